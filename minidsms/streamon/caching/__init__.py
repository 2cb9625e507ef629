"""A-Caching: which subresults of an n-way join are cached, and where (Babu 2005, sections 5.4 to 5.7).

contracts.py            plans of a join: the pipelines' orders and the caches in them; what the executor counts
candidates.py           which caches given orders allow, prefix-consistent and globally consistent
costs.py                benefit and cost of a cache, from the statistics of its pipeline
step_costs.py           what a lookup and an update cost
miss_probability.py     how often a cache that is not used would miss
offline_selection.py    the best of the candidates, statistics given
profiler.py             the Profiler: the statistics
adaptive_selection.py   the Re-optimizer: candidates used, profiled and unused as conditions change
"""
