"""k-Mon: joins that keep only the rows that can still matter (Babu 2005, chapter 6).

    executor.py, profiler.py, reoptimizer.py
                     whether a join that runs is reduced when memory gets short: asked by adaptive_reduction.py
    watching.py      what a join tells its monitors, and what it takes from them
    monitoring/      the monitors, and the constraints of a connection

The operator is `operators.k_mon_join`. Which rows it lets go, how they come back, and what a constraint is, stands in
`operators.k_mon`; its rows are in `synopses.k_mon_rows`, its loops in `kernels.mjoin`, `k_mon_elements` and
`k_mon_reduction`.
"""
