"""Which k-constraints do the streams keep, and how closely? Babu 2005, sections 6.6.3, 6.7.3 and 6.8.3.

`rids.py`, `clustered.py` and `ordered.py` watch a constraint each; `estimate.py` is what they have in common: from a
distance per arrival to k. `entries.py` is the table of keys that two of them keep. `registry.py` has the constraints of
a connection, which queries share.
"""
