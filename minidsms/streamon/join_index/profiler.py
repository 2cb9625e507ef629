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
from minidsms.kernels.access_methods.bit_addresses import MOST_BITS
from minidsms.kernels.join_sampling import Sample, sample_pipeline
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.streamon.join_index.selection import Workload
from minidsms.synopses.window_index import WindowIndex

ROWS = 16
"""Sampled of an input at a time."""
TOLD_APART = 1_024
"""Rows by which it is seen whether a column's values repeat."""
PAIRED = 128
"""Rows of each input of which pairs are looked at."""
MOST_INSPECTED = 10_000
"""Slots for the rows of an input; what is begun then ends."""


@dataclass(frozen=True)
class StepSample:
    """A step of a pipeline, for one row that enters it.

    visited: the input it visits.  pattern: the columns compared.  reached: tuples that probe.  inspected: slots, by a
    key of one column.  found: tuples behind it.  left_out: tuples found that lie in other cells than the pattern's.
    """

    visited: int
    pattern: Key
    reached: float
    inspected: float
    found: float
    left_out: float = 0.0


class IndexProfiler:
    """Of the last profile. samples: by input, of the pipeline's steps that compare several columns.  inspected: by
    input, slots for a row.  asked: by input, of each step the input it visits, which columns it knows of it
    (`JoinGraph.known`), and the tuples that probe for a row.
    """

    def __init__(self, executor: IndexExecutor, index: WindowIndex) -> None:
        self.samples: dict[int, list[StepSample]] = {}
        self.inspected: dict[int, float] = {}
        self.asked: dict[int, list[tuple[int, int, float]]] = {}
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
        slots = index.windows[i].sample(ROWS)
        if not len(slots):
            return
        sample = Sample(np.zeros(len(order) + 1, np.int64), np.zeros(len(order), np.int64))
        sample_pipeline(slots, i, path, index.bundle, sample, MOST_INSPECTED, MOST_INSPECTED)
        reached, inspected = sample.reached / sample.reached[0], sample.inspected / sample.reached[0]
        found = reached[1:]
        self.inspected[i] = float(inspected.sum())
        self.asked[i] = [(j, graph.known((i, *order[:d]), j), float(reached[d])) for d, j in enumerate(order)]
        far = 1.0 - self._near() if graph.has_banded_patterns else 0.0
        self.samples[i] = [
            StepSample(
                j, pattern, float(reached[d]), float(inspected[d]), float(found[d]) * (1 - far), float(found[d]) * far
            )
            for d, j in enumerate(order)
            if len(pattern := graph.pattern((i, *order[:d]), j)) > 1
        ]

    def _near(self) -> float:
        """Of pairs of sampled rows of two inputs, the share that meets by the cells of all bands."""
        near = np.ones((PAIRED, PAIRED), np.bool_)
        if not all(map(len, self._index.windows)):
            return 1.0
        for band in self._executor.join.graph.bands:
            cells = []
            for of in (band.a, band.b):
                (column,) = self._index.windows[of[0]].gather([of[1]], self._index.windows[of[0]].sample(PAIRED))
                shift, width = band.cell(of)
                cell = np.floor((column.values.astype(np.float64) + shift) / width)
                cells.append(cell if column.valid is None else np.where(column.valid, cell, np.nan))
            a, b = (each[:, np.newaxis][:PAIRED] for each in cells)
            near = near[: len(a), : len(b)] & ((a == b.T) | (a == b.T + 1))
        return float(near.mean()) if near.size else 1.0

    def workloads(self, weights: Mapping[int, float]) -> list[Workload]:
        """What each input is asked, for an element.  weights: by input, its share of the elements."""
        windows = self._index.windows
        requests: list[dict[int, float]] = [{} for _ in windows]
        for i, steps in self.asked.items():
            for j, known, reached in steps:
                requests[j][known] = requests[j].get(known, 0.0) + weights.get(i, 0.0) * reached
        told = []
        for j, counted in enumerate(requests):
            every = sum(counted.values())
            shares = {known: count / every for known, count in counted.items() if count}
            told.append(Workload(weights.get(j, 0.0), every, len(windows[j]), shares))
        return told

    def telling_bits(self, j: int) -> list[int]:
        """Of each column of input j that may have bits, how many of them can tell its values apart."""
        window = self._index.windows[j]
        slots = window.sample(TOLD_APART)
        columns = window.gather(self._executor.join.graph.columns(j), slots) if len(slots) else []
        distinct = [len(np.unique(column.values)) for column in columns]
        return [count.bit_length() if 2 * count < len(slots) else MOST_BITS for count in distinct]

    def statistics(self) -> Mapping[str, Any]:
        """Of each input and pattern, for a row that enters the pipeline: probes, slots inspected without, and found."""
        names, told = self._executor.names, {}
        for i, samples in self.samples.items():
            for each in samples:
                step = f"{names[i]} to {names[each.visited]} {self._executor.key_text(each.visited, each.pattern)}"
                told[step] = (round(each.reached, 2), round(each.inspected, 2), round(each.found, 2))
        return told
