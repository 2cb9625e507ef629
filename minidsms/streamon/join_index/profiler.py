"""The Profiler of patterns: what the steps of the pipelines would inspect by keys of one column, and what they find.

Sampled rows of the windows are joined along their pipeline, apart from the join. What is counted does not depend on the
patterns that are there, so that those not worth their links are seen as well as those that are.
Invariant: nothing of the join is changed by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.joins.plan import Key, Orders
from minidsms.kernels.join_existence import join_counts
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.synopses.indexed_windows import WindowIndex

ROWS = 16
"""Sampled of an input at a time."""
MOST_INSPECTED = 10_000
"""Slots for the rows of an input; what is begun then ends."""


@dataclass(frozen=True)
class StepSample:
    """A step of a pipeline, for one row that enters it.

    visited: the input it visits.  pattern: the columns compared.  reached: tuples that probe.  inspected: slots, by a
    key of one column.  found: tuples behind it.
    """

    visited: int
    pattern: Key
    reached: float
    inspected: float
    found: float


class IndexProfiler:
    """samples: by input, of the pipeline's steps that compare several columns; of the last profile."""

    def __init__(self, executor: IndexExecutor, index: WindowIndex) -> None:
        self.samples: dict[int, list[StepSample]] = {}
        self.inspected: dict[int, float] = {}
        self._executor = executor
        self._index = index

    def profile(self) -> None:
        """Join some rows of every input."""
        orders: Orders = self._executor.join.plan.orders
        for i, order in enumerate(orders):
            self._profile(i, order)

    def _profile(self, i: int, order: Sequence[int]) -> None:
        graph, index = self._executor.join.graph, self._index
        path = graph.path(i, order, configurations=index.configurations)
        counts = np.zeros((2, len(order)), np.int64)
        slots = index.sample(i, ROWS)
        if not len(slots):
            return
        rows = join_counts(slots, i, path, index.bundle, counts, MOST_INSPECTED)
        found, inspected = counts / rows
        reached = [1.0, *found[:-1]]
        self.inspected[i] = float(inspected.sum())
        self.samples[i] = [
            StepSample(j, pattern, float(reached[d]), float(inspected[d]), float(found[d]))
            for d, j in enumerate(order)
            if len(pattern := graph.pattern((i, *order[:d]), j)) > 1
        ]

    def statistics(self) -> Mapping[str, Any]:
        """Of each input and pattern, for a row that enters the pipeline: probes, slots inspected without, and found."""
        names, told = self._executor.names, {}
        for i, samples in self.samples.items():
            for each in samples:
                step = f"{names[i]} to {names[each.visited]} {self._executor.key_text(each.visited, each.pattern)}"
                told[step] = (round(each.reached, 2), round(each.inspected, 2), round(each.found, 2))
        return told
