"""Which k streams keep in truth: the distance of every row, by plain loops. Babu 2005, section 6.2."""

from __future__ import annotations

import numpy as np

from experiments.k_mon.workload import Int64Array, Stream


def join_distances(parents: Stream, column: str, children: Stream, child_column: str) -> Int64Array:
    """Of each parent: how many children come after it up to its own; 0 if that came before, -1 if there is none."""
    order = np.argsort(children[child_column])
    keys = children[child_column][order]
    at = np.minimum(np.searchsorted(keys, parents[column]), len(keys) - 1)
    child = order[at]
    before = np.searchsorted(children.ts, parents.ts)
    distances = np.maximum(child + 1 - before, 0)
    return np.where(keys[at] == parents[column], distances, -1)


def clustering_distances(values: Int64Array) -> Int64Array:
    """Of each row: how many others lie between it and the first of its value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    group = np.cumsum(np.r_[True, ordered[1:] != ordered[:-1]]) - 1
    rank = np.arange(len(values)) - starts[group]
    distances = np.empty(len(values), np.int64)
    distances[order] = order - order[starts[group]] - rank
    return distances


def scrambling_distances(values: Int64Array) -> Int64Array:
    """Of each row: how many rows ago the maximum rose above it."""
    highest = np.maximum.accumulate(values)
    first_above = np.searchsorted(highest, values, side="right")
    return np.maximum(np.arange(len(values)) - first_above, 0)
