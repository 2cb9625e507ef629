"""Babu 2005, section 5.8: figures 5.11 to 5.23 and table 5.2, by `python -m experiments.caching`.

`streams.py` makes the synthetic streams of section 5.8.1, `runs.py` sends them through the engine under one plan or
another and measures, `figures.py` says which points make which figure; `plots.py` and `report.py` show what was found,
`remarks.md` says what it means. `calibration.py` and `cache_steps.py` set what joins take beside what the models
of trees and caches say.
"""
