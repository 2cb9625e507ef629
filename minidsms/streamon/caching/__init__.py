"""A-Caching: which subresults of an n-way join are cached, and where (Babu 2005, sections 5.4 to 5.7).

contracts.py        plans of a join: the pipelines' orders and the caches in them; what the executor counts
"""
