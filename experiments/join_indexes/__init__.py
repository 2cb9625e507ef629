"""AMRI's experiments on this engine: assessments, schedules and migrations of bits, beside keys and patterns.

    streams.py   four streams whose best orders change
    running.py   their complete join under settings: what it inspects, and its time
    __main__.py  the figures, as a page with plots

Works, Rundensteiner and Agu 2012, section 9.
"""
