"""StreaMon: plans that are watched while they run, and changed when others would be cheaper.

Three components for every technique (Babu 2005, section 3.1, figure 3.1): the Executor runs the current plan, the
Profiler gathers the statistics that were asked for, the Re-optimizer decides. `contracts.py` says what each of them
is; a technique has a folder of its own and knows no other technique.
"""
