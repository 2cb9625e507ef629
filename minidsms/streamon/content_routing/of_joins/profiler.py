"""The Profiler of a join's routes: samples of rows, with the logical filters that drop them.

The Profiler of orders asks every logical filter of a pipeline about sampled rows; the same rows tell of classes. These
are all that were asked, not only those that some filter drops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.value import Frame
from minidsms.streamon.content_routing.sample import Sample
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.synopses.window_index import WindowIndex

CAPACITY = 4096
"""Rows of a sample."""


class RouteProfiler:
    """filters: by input, how many logical filters its pipeline has.  samples: by input."""

    def __init__(self, index: WindowIndex, attributes: Mapping[int, Attributes], filters: Mapping[int, int]) -> None:
        self.samples = {i: Sample(filters[i], attributes[i], CAPACITY) for i in attributes}
        self._index = index

    def take(self, i: int, slots: Int64Array, drops: BoolArray) -> None:
        """Rows of input i were asked. drops: (filters, rows)."""
        window = self._index.windows[i]
        if i not in self.samples or not isinstance(window, IndexedWindow):
            return
        columns = window.gather(window.kept, slots)
        self.samples[i].take(Frame(columns.__getitem__, len(slots)), drops.T)

    def statistics(self) -> Mapping[str, Any]:
        """Rows sampled, of each input."""
        return {f"sample of input {i}": len(sample) for i, sample in self.samples.items()}
