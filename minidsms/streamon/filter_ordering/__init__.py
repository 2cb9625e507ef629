"""Adaptive ordering of pipelined filters: one algorithm per file. Babu 2005, chapter 4.

    a_greedy.py       the greedy order, from conditional drop rates (section 4.3)
    sweep.py          the same, looking at one filter at a time (4.4)
    independent.py    as if filters were independent (4.5)
    local_swaps.py    neighbours only (4.6)
    static.py         the order as written
    optimal.py        the cheapest of all orders, by exhaustive search (4.7.2)

All of them look at a `profile_window.py`; what A-Greedy keeps over it is the `matrix_view.py`, of which others keep a
part (`matrix_view_ordering.py`). Static and the Eddies ask for no profile tuples (`unprofiled.py`).
"""
