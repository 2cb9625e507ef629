"""The Profiler of join trees: sizes of joins from samples of the windows, rates from what arrives.

Invariant: nothing of the join is changed by it; rates are shares of the elements of the recent past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.graph import JoinGraph
from minidsms.streamon.contracts import Float64Array
from minidsms.streamon.join_trees.sizes import JoinSizes, members
from minidsms.synopses.window_index import WindowIndex

FORGETTING = 0.5
"""Of the elements counted, whenever the sizes are measured."""


class JoinTreeProfiler:
    """names: of the inputs.  arrived: elements of each, older ones counting less."""

    def __init__(self, graph: JoinGraph, index: WindowIndex, names: Sequence[str]) -> None:
        self.sizes = JoinSizes(graph, index)
        self.arrived: Float64Array = np.zeros(graph.n)
        self._names = tuple(names)

    def note(self, arrived: Int64Array) -> None:
        """So many elements of each input have come."""
        self.arrived += arrived

    def forget(self) -> None:
        """Conditions have changed: what was seen before does not count; its rates do until something comes."""
        self.arrived /= max(1.0, float(self.arrived.sum()))
        self.sizes.tuples.clear()

    def measure(self) -> None:
        """Sample the windows, and let older arrivals count less from now on."""
        self.sizes.measure()
        self.arrived *= FORGETTING

    @property
    def rates(self) -> list[float]:
        """Shares of the elements, by input."""
        total = float(self.arrived.sum())
        return [float(a) / total if total else 1 / len(self.arrived) for a in self.arrived]

    def statistics(self) -> Mapping[str, Any]:
        """Rates by input, and tuples of each join of inputs."""
        told: dict[str, Any] = {f"rate of {name}": round(rate, 4) for name, rate in zip(self._names, self.rates)}
        for mask, tuples in self.sizes.tuples.items():
            told[" x ".join(self._names[i] for i in members(mask))] = round(tuples, 1)
        return told
