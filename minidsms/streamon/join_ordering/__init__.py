"""The adaptive order of an MJoin's pipelines: A-Greedy over logical filters.

The instance of StreaMon of Babu 2005, sections 5.2.2, 5.2.3 and 5.5.6:

    executor.py          the MJoin's orders as a plan that can be switched
    profiler.py          which logical filters drop sampled elements, and what asking takes
    reoptimizer.py       asks an ordering algorithm of `streamon.filter_ordering` for each pipeline
    adaptive_orders.py   joins the three, and says when to profile

Joins along paths of the join graph as filters, and orders of them as orders of joins: `minidsms.joins.logical_filters`.
"""
