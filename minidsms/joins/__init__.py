"""Joins: the operator, what it may run, as values, and what that means for the windows it joins.

    join.py            the operator: takes elements in, runs a plan, puts rows out
    spec.py            what a join is asked for
    answer.py          the tuples found, until they are rows
    by_pipelines.py, by_caches.py, by_tree.py
                       the programs: how what waits in the windows is joined
    by_form.py         the same by a form that is compiled for the plan; form_rows.py has the rows that it finds
    stretches.py       what waits, cut at instants for several threads
    equal_columns.py   which columns are equal in all results
    graph.py           which inputs equalities link, by which keys, and which orders are legal
    plan.py            the orders of the pipelines, the caches in them, their routes, and the patterns they probe
    row_routes.py      which pipeline each row takes, where these differ by content
    tree.py            which results of inner joins are kept
    directed_graph.py  which edges are many-one: what declared keys let a join do without
    cache_plan.py      which plans with caches are legal, and how the kernels take them
    tree_pipelines.py  the pipelines of a tree as the kernel takes them
    figures.py         what a join has counted

Invariant: nothing here imports what adapts plans, but routes as values and how attributes are read; of operators only
their base, and that only in join.py.
Babu 2005, chapters 5 and 6.
"""
