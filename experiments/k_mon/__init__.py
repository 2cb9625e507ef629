"""Babu 2005, chapter 6: figures 6.10 to 6.18, tables 6.1 and 6.3, the query of chapter 1, by `python -m
experiments.k_mon`.

The streams are in `workload.py`; `distances.py` says which k they keep in truth, `running.py` sends them through the
engine. `monitoring.py` has figures 6.11, 6.13 and 6.15, `memory.py` the others and table 6.1, `cost.py` what monitoring
takes, `network.py` chapter 1, `linear_road.py` table 6.3; `plots.py` and `report.py` show what was found, `remarks.md`
says what it means.
"""
