"""Filters as hash probes: a tuple passes a filter if its value stands in the filter's table.

A table is an array of 2^k slots, -1 where free, probed linearly from the value's hash. A filter of cost c makes c
probes per tuple: of c - 1 other values, and of the tuple's own. What the other probes find is summed up and given back,
so that no compiler leaves them out. Babu 2005, sections 4.7 and 4.7.3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

SLOTS = 1 << 15


@njit("int64(int64)", cache=True)
def _slot(value: int) -> int:
    """Where the search for a value begins."""
    return ((value * 0x9E3779B97F4A7C) >> 20) & (SLOTS - 1)


@njit("int64(int64[::1], int64)", cache=True)
def _probe(table: Int64Array, value: int) -> int:
    """1 if the table holds the value."""
    slot = _slot(value)
    while table[slot] != -1:
        if table[slot] == value:
            return 1
        slot = (slot + 1) & (SLOTS - 1)
    return 0


@njit("int64(int64[::1], int64, int64, int64)", cache=True)
def _passes(table: Int64Array, value: int, cost: int, domain: int) -> int:
    """1 if the tuple passes; what the other probes found stands in the upper bits."""
    found = 0
    other = value
    for _ in range(cost - 1):
        other = (other * 1103515245 + 12345) % domain
        found += _probe(table, other)
    return (found << 1) | _probe(table, value)


@njit("void(int64[::1], bool_[::1])", cache=True)
def fill(table: Int64Array, holds: BoolArray) -> None:
    """Make the table of the values that it holds: holds (domain,)."""
    table[:] = -1
    for value in range(holds.shape[0]):
        if holds[value]:
            slot = _slot(value)
            while table[slot] != -1:
                slot = (slot + 1) & (SLOTS - 1)
            table[slot] = value


@njit(
    "int64(int64[::1], int64[:,::1], int64[::1], int64, int64[::1], int64[::1], int64, int64[::1], int64[::1])",
    cache=True,
)
def select(
    values: Int64Array,
    tables: Int64Array,
    costs: Int64Array,
    domain: int,
    order: Int64Array,
    gaps: Int64Array,
    skip: int,
    sampled: Int64Array,
    counts: Int64Array,
) -> int:
    """Put each tuple through the filters in their order, and sample those that are dropped; how many were sampled.

    gaps: how many dropped tuples lie between two samples, one after the other; skip: before the first one.
    counts: (4,), out: filters evaluated, probes made, dropped tuples until the next sample, and a sum that keeps the
    probes alive.
    """
    evaluated = probes = found = k = 0
    for value in values:
        for f in order:
            result = _passes(tables[f], value, costs[f], domain)
            evaluated += 1
            probes += costs[f]
            found += result
            if result & 1 == 0:
                if skip == 0:
                    sampled[k] = value
                    skip = gaps[k]
                    k += 1
                else:
                    skip -= 1
                break
    counts[0], counts[1], counts[2], counts[3] = evaluated, probes, skip, found
    return k


@njit("int64(int64[::1], int64[::1], int64, int64, bool_[::1])", cache=True)
def evaluate(values: Int64Array, table: Int64Array, cost: int, domain: int, drops: BoolArray) -> int:
    """One filter on many tuples, whose `drops` are set: how profile tuples are made."""
    found = 0
    for row in range(values.shape[0]):
        result = _passes(table, values[row], cost, domain)
        drops[row] = result & 1 == 0
        found += result
    return found
