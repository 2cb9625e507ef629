"""A-Caching: which subresults of an n-way join are cached, and where (Babu 2005, sections 5.4 to 5.7).

    contracts.py            what is asked of the join
    candidates.py           which caches given orders allow, prefix-consistent and globally consistent
    costs.py, step_costs.py benefit and cost of a cache, from the statistics of its pipeline
    miss_probability.py     how often a cache that is not used would miss
    offline_selection.py    the best of the candidates, statistics given
    executor.py             the Executor: the join, and its plans in words
    sampler.py              what the pipelines are like without caches, from sampled elements
    profiler.py             the Profiler: the statistics
    adaptive_selection.py   the Re-optimizer: candidates used, profiled and unused as conditions change
    trial.py                whether new caches have helped
    adaptive_caches.py      all of it, for one join

Plans are values of `joins.plan`; the join that runs the caches is `joins.by_caches`.
"""
