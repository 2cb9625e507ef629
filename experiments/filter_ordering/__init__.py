"""Babu 2005, section 4.7: figures 4.11 to 4.24 and table 4.2, by `python -m experiments.filter_ordering`.

The streams are in `workload.py`, the filters in `probing.py`, those of known statistics in `known_filters.py`, a select
operator over them in `select.py`, and the same through the engine's own in `operator_runs.py`; `convergence.py` has
figures 4.11 to 4.14, `overhead.py` table 4.2 and figures 4.15 to 4.18, `adaptivity.py` figures 4.19 to 4.24; `plots.py`
and `report.py` show what was found, `remarks.md` says what it means.
"""
