"""The adaptive tree of an XJoin: which results of inner joins are kept, if any.

An instance of StreaMon (Babu 2005, sections 3.1, 5.3 and 5.8.4):

    executor.py        the XJoin's tree as a plan that can be switched
    sizes.py           how large joins of its windows are, from samples of their rows
    costs.py           what a tree costs per element, from sizes and rates
    profiler.py        keeps sizes and rates
    reoptimizer.py     the best of all trees, by exhaustive search
    adaptive_trees.py  joins the three, and says when to look
"""
