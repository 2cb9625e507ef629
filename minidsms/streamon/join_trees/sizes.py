"""How many tuples joins of an n-way join's windows have, estimated from samples of their rows.

A set of inputs is a bit mask. Of every connected set the rows of its smallest window, or a sample of them, are joined
with the others: correlations between equalities show, which products of selectivities would miss.

Invariant: `tuples` are those of the windows at the last `measure`, averaged with those of the times before.
Babu 2005, sections 5.3 and 5.5.3.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from minidsms.joins.graph import JoinGraph
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.kernels.join_layout import Path
from minidsms.kernels.join_sampling import Sample, sample_pipeline
from minidsms.synopses.window_index import WindowIndex

SAMPLED = 256
"""Rows of a window that are joined, at most."""
INSPECTED = 4_000
"""Slots inspected for one set, at most."""
WEIGHT = 0.5
"""Of a new estimate against those before, ..."""
ENOUGH, OTHER = 32, 0.5
"""... but where so many tuples were found, and it differs from those by so much of the larger one: then conditions have
changed, and it stands alone."""


class JoinSizes:
    """tuples: by connected set of two inputs or more.  rows: (n,) of the windows."""

    def __init__(self, graph: JoinGraph, index: WindowIndex) -> None:
        self.tuples: dict[int, float] = {}
        self.rows: list[int] = [0] * graph.n
        self._graph = graph
        self._index = index
        self._sets = tuple(mask for mask in range(1, 1 << graph.n) if mask & (mask - 1) and is_connected(graph, mask))
        self._paths: dict[tuple[int, int], Path] = {}
        self._configurations: list[list[tuple[int, Bits]]] = []
        """Of bits, under which the paths find rows."""

    def of(self, mask: int) -> float:
        """Tuples of the join of a set of inputs; of one that is not connected, the product over its parts."""
        if mask & (mask - 1) == 0:
            return float(self.rows[mask.bit_length() - 1])
        known = self.tuples.get(mask)
        if known is not None:
            return known
        part = _component(self._graph, mask)
        return self.of(part) * self.of(mask ^ part) if part != mask else 0.0

    def measure(self) -> None:
        """Sample the windows as they are."""
        inputs = self._index.inputs
        configurations = [list(each) for each in self._index.configurations]
        if self._configurations != configurations:
            self._configurations, self._paths = configurations, {}
        self.rows = [len(window) for window in self._index.windows]
        samples = [self._index.windows[i].sample(SAMPLED) for i in range(len(inputs))]
        for mask in self._sets:
            i = min(members(mask), key=self.rows.__getitem__)
            rows = self.rows[i]
            seen, found = 0.0, 0
            if len(samples[i]):
                path = self._path(i, mask)
                reached = np.zeros(len(path.steps) + 1, np.int64)
                sample = Sample(reached, np.zeros(len(path.steps), np.int64))
                sample_pipeline(samples[i], i, path, self._index.bundle, sample, INSPECTED, INSPECTED)
                found = int(reached[-1])
                seen = rows * found / int(reached[0])
            known = self.tuples.get(mask)
            is_other = known is not None and found >= ENOUGH and abs(seen - known) > OTHER * max(seen, known)
            self.tuples[mask] = seen if known is None or is_other else WEIGHT * seen + (1 - WEIGHT) * known

    def _path(self, i: int, mask: int) -> Path:
        if (i, mask) not in self._paths:
            visited = [i]
            rest = set(members(mask)) - {i}
            while rest:
                j = next(j for j in sorted(rest) if not self._graph.linked(j).isdisjoint(visited))
                visited.append(j)
                rest.remove(j)
            self._paths[i, mask] = self._graph.path(i, visited[1:], configurations=self._index.configurations)
        return self._paths[i, mask]


def members(mask: int) -> Iterator[int]:
    """The inputs of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def is_connected(graph: JoinGraph, mask: int) -> bool:
    """Equalities connect the inputs of the set."""
    return _component(graph, mask) == mask


def _component(graph: JoinGraph, mask: int) -> int:
    """The part of the set that equalities connect with its least input."""
    found = mask & -mask
    fresh = found
    while fresh:
        near = 0
        for i in members(fresh):
            for j in graph.linked(i):
                near |= 1 << j
        fresh = near & mask & ~found
        found |= fresh
    return found
