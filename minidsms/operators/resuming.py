"""Operators that go on from a state that was kept as arrays, as if the elements it came from had come into them.

Invariant: an element up to `counted_until` is in the state already; one that comes again is passed over.
docs/durability.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, AnyArray, Batch
from minidsms.operators.operator import Operator


class Resuming(Operator):
    """An operator with one synopsis, which knows what it puts out."""

    counted_until = MIN_INSTANT
    """Up to this instant the state has what came before it was kept."""
    _resumed: Batch | None = None
    """The rows that are there then, until they have been put out."""

    def contents(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning)."""
        raise AssertionError("an operator that resumes knows its contents")

    def state(self) -> dict[str, AnyArray] | None:
        """Its arrays; None where the state has none. Asked while the engine rests."""
        arrays: dict[str, AnyArray] = self.synopses()[0].arrays()
        return arrays

    def codes(self) -> list[AnyArray]:
        """Those of the texts in its state."""
        return [codes for each in self.synopses() for codes in each.live_codes()]

    def resume(self, arrays: dict[str, Any], until: int) -> None:
        """Go on from a state that `state` gave, of all that came up to an instant. Nothing has come in yet; readers
        find the rows there at that instant.
        """
        self.synopses()[0].restore(arrays)
        self.counted_until = until
        self.acts_on_time = True  # where no element comes until then, its rows are to pass all the same
        self.counters.elements_in += 1  # it is no new operator's state
        present = self.contents()
        self._resumed = Batch(np.full(len(present), until, np.int64), None, present.columns)

    def _emit(self, emission: Iterator[Batch]) -> None:
        """The rows of the state first, at its instant: what waits in queues before that does not outlive a change of
        plan.
        """
        if self._resumed is not None and self._until >= self.counted_until:
            emission = self._emission = chain((self._resumed,), emission)
            self._resumed = None
        super()._emit(emission)

    def wakes_at(self) -> int:
        return self.counted_until if self.progress < self.counted_until else MAX_INSTANT

    def uncounted(self, batch: Batch | None) -> Batch | None:
        """What of a batch is not in the state."""
        if self.counted_until == MIN_INSTANT or batch is None or batch.ts[0] > self.counted_until:
            return batch
        first = int(np.searchsorted(batch.ts, self.counted_until, side="right"))
        return batch.slice(first, len(batch)) if first < len(batch) else None
