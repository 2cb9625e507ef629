"""The order in which a screen looks at columns, adapted while it runs. Lee and Lee 2012, sections 4 and 5.2."""
