"""What a join that keeps only the rows that can still matter lets go, and how it comes back. Babu 2005, chapter 6.

contracts.py   what a k-constraint is, and what a join asks of those who watch it
limits.py      what is taken for granted of rows to come
execution.py   which rows go, and when
returning.py   how they come back
updates.py     keys of relations while their rows change
"""
