"""Screens: thousands of conjunctions over one stream, looked up together. Lee and Lee 2012; docs/sharing.md.

`box.py` is what a condition asks of single columns, `asc.py` the regions of a column with the filters each admits,
`sequence.py` the order in which columns are looked at, `answers.py` the rows that wait for queries that only show them.
"""
