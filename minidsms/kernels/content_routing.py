"""Kernels of content-based routing: classes of tuples, and the division of a chunk by them.

A classifier gives each tuple a bucket, uint8: 0 for NULL, 1 .. d - 1 for values. The buckets of all classifiers of a
plan make a cell, which the plan's table takes to one of a few orders of filters. `divide` is one counting sort by
order, not by cell: parts are few and long. Tuples are known by their rows in a chunk, and stay in their order inside a
part.

What the learner needs is here too: the greedy order of each cell of a sample, and what an order costs in each cell.
Bizarro, Babu, DeWitt, Widom: Content-Based Routing, section 4.
"""

from __future__ import annotations

from minidsms.machine_code import (
    Bools,
    Float64s,
    Float64Table,
    Int64s,
    Int64Table,
    Uint8s,
    Uint8Table,
    int64,
    kernel,
    uint64,
)


@kernel
def remainders(words: Int64s, d: int, out: Uint8s) -> None:
    """Buckets 1 .. d - 1 by the remainder of the word, folded to 32 bits: neighbours never share one.

    The remainder is the upper half of a product with the reciprocal (Lemire et al. 2019), with no division.
    """
    wide = uint64(d - 1)
    scale = uint64(0xFFFFFFFFFFFFFFFF) // wide + uint64(1)
    for i in range(len(words)):
        word = uint64(words[i])
        folded = (word ^ (word >> uint64(32))) & uint64(0xFFFFFFFF)
        part = ((scale * folded) >> uint64(32)) + uint64(1)
        out[i] = uint64(1) + ((part * wide) >> uint64(32))


@kernel
def ranges(values: Float64s, low: float, scale: float, grid: Uint8s, out: Uint8s) -> None:
    """Buckets by the grid cell (value - low) * scale; what lies outside of the grid belongs to its ends.

    A search among the bounds of 23 ranges takes ten times as long, and routes need no exact bounds.
    """
    last = float(len(grid) - 1)
    for i in range(len(values)):
        out[i] = grid[int64(min(max((values[i] - low) * scale, 0.0), last))]


@kernel
def divide(cells: Uint8s, table: Uint8s, rows: Int64s, ends: Int64s, out: Int64s) -> None:
    """Rows by route.  cells: (n,), of the chunk's rows, where the cells fit into a byte.  table: cell -> part.

    rows: those in question, or empty for all of the n.  out: as many.  ends: (parts + 1,), zero; part p is
    out[ends[p]:ends[p + 1]] afterwards.
    """
    is_all = len(rows) == 0
    m = len(out)
    for k in range(m):
        ends[1 + table[cells[k if is_all else rows[k]]]] += 1
    for p in range(1, len(ends)):
        ends[p] += ends[p - 1]
    for k in range(m):
        row = k if is_all else rows[k]
        part = table[cells[row]]
        out[ends[part]] = row
        ends[part] += 1
    for p in range(len(ends) - 1, 0, -1):
        ends[p] = ends[p - 1]
    ends[0] = 0


@kernel
def route_pairs(first: Uint8s, second: Uint8s, d: int, table: Uint8s, out: Uint8s) -> None:
    """out[i]: the part of the cell of two classifiers, first * d + second."""
    for i in range(len(first)):
        out[i] = table[int64(first[i]) * d + second[i]]


@kernel
def greedy_orders(
    drops: Uint8Table, cells: Int64s, known: Bools, costs: Float64s, usual: Int64s, alive: Bools, dropped: Int64Table,
    orders: Int64Table,
) -> None:  # fmt: skip
    """The greedy order of each cell: what drops most per cost of what is left comes next (Babu 2005, section 4.3).

    drops: (m, n), 1 where filter f drops tuple t.  cells: (m,).  known: (cells,), False where there are too few tuples
    to tell.  costs: (n,).  usual: (n,), the order of those cells, and of filters that drop alike.  alive: (m,), True.
    dropped: (cells, n), room.  orders: (cells, n), written.  O(m n^2 + cells n^3)
    """
    m, n = drops.shape
    for place in range(n):
        dropped[:] = 0
        for t in range(m):
            if alive[t]:
                for f in range(n):
                    dropped[cells[t], f] += drops[t, f]
        for c in range(len(orders)):
            best = -1
            for k in range(n):
                f = usual[k]
                is_placed = False
                for before in range(place):
                    is_placed |= orders[c, before] == f
                if is_placed:
                    continue
                if best < 0 or (known[c] and dropped[c, f] * costs[best] > dropped[c, best] * costs[f]):
                    best = f
            orders[c, place] = best
        for t in range(m):
            if alive[t] and drops[t, orders[cells[t], place]]:
                alive[t] = False


@kernel
def costs_by_cell(drops: Uint8Table, cells: Int64s, costs: Float64s, orders: Int64Table, out: Float64Table) -> None:
    """out[o, c]: what the tuples of cell c cost together under order o; zero at first.  orders: (k, n).  O(k m n)"""
    m, n = drops.shape
    for o in range(len(orders)):
        for t in range(m):
            spent = 0.0
            for place in range(n):
                f = orders[o, place]
                spent += costs[f]
                if drops[t, f]:
                    break
            out[o, cells[t]] += spent
