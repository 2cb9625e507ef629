"""k-Mon: joins that keep only the rows that can still matter (Babu 2005, chapter 6).

    contracts.py     what a k-constraint is, and what a monitor of one is asked
    execution.py     which rows go, and when
    returning.py     how they come back
    join_graph.py    which joins qualify, and their directed graph
    watching.py      what a join tells its monitors, and what it takes from them
    monitoring/      the monitors, and the constraints of a connection

The operator is `operators.k_mon_join`, its rows `synopses.k_mon_rows`, its loops `kernels.k_mon_join` and
`kernels.k_mon_reduction`.
"""
