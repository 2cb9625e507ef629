"""Where a query's answers go when they are not fetched: files in the sources' formats, and the lines of STREAM.

Nothing is imported here: who fetches answers needs no writers of files.
"""
