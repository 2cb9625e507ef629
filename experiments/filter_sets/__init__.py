"""Screens over sets of filters: the figures of Lee and Lee 2012, section 6."""
