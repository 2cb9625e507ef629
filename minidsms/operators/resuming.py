"""Operators that go on from a state that was kept as arrays, as if the elements it came from had come into them.

Invariant: an element up to `counted_until` is in the state already; one that comes again is passed over.
docs/durability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, AnyArray, Batch, Int64Array, Schema
from minidsms.operators.contents import KnowsContents
from minidsms.operators.operator import Operator
from minidsms.queues import Queue
from minidsms.synopses.synopsis import NumbersRows


class Resuming(Operator):
    """An operator whose synopses are all it remembers."""

    knows_rows = True
    """It puts out a relation, and knows its present rows."""

    def __init__(self, inputs: Sequence[Queue], schema: Schema) -> None:
        super().__init__(inputs, schema)
        self.counted_until = MIN_INSTANT
        """Up to this instant the state has what came before it was kept."""

    def present(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning), where they are known."""
        assert isinstance(self, KnowsContents)
        return self.contents()

    @property
    def has_arrays(self) -> bool:
        """Its state can be had as arrays."""
        return True

    def state(self) -> dict[str, AnyArray]:
        """Its arrays, where it has them. Asked while the engine rests."""
        return {
            f"{i}.{name}": array
            for i, synopsis in enumerate(self.synopses())
            for name, array in synopsis.arrays().items()
        }

    def numbers(self, state: Mapping[str, AnyArray]) -> dict[str, Int64Array]:
        """Of the rows in what `state` gave, by array, where they leave in the order in which they came, or nearly."""
        found: dict[str, Int64Array] = {}
        for i, synopsis in enumerate(self.synopses()):
            if isinstance(synopsis, NumbersRows):
                of = {key: array for key, array in state.items() if key.startswith(f"{i}.")}
                numbers = synopsis.numbers({key.partition(".")[2]: array for key, array in of.items()})
                found |= {key: numbers for key, array in of.items() if len(array) == len(numbers)}
        return found

    def codes(self) -> Iterable[Int64Array]:
        """Those of the texts in the arrays."""
        return chain.from_iterable(synopsis.live_codes() for synopsis in self.synopses())

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        for i, synopsis in enumerate(self.synopses()):
            prefix = f"{i}."
            synopsis.restore({key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)})

    def resume(self, arrays: dict[str, Any], until: int) -> None:
        """Go on from a state that `state` gave, of all that came up to an instant. Nothing has come in yet; readers
        find the rows there at that instant.
        """
        self.restore(arrays)
        self.counted_until = until
        self.acts_on_time = True  # where no element comes until then, its rows are to pass all the same
        self.counters.elements_in += 1  # it is no new operator's state
        if self.knows_rows:
            rows, self._resumed_at = self.present(), self.shows_at(until)
            ts = np.full(len(rows), self._resumed_at, np.int64)
            self._resumed = Batch(ts, rows.sign, rows.columns, rows.seq)

    def shows_at(self, until: int) -> int:
        """The latest instant up to one at which its rows may have changed."""
        return until

    def wakes_at(self) -> int:
        return MAX_INSTANT if self._resumed is None else self._resumed_at

    def uncounted(self, batch: Batch | None) -> Batch | None:
        """What of a batch is not in the state."""
        if self.counted_until == MIN_INSTANT or batch is None or batch.ts[0] > self.counted_until:
            return batch
        first = int(np.searchsorted(batch.ts, self.counted_until, side="right"))
        return batch.slice(first, len(batch)) if first < len(batch) else None

    def all_uncounted(self, batches: Sequence[Batch | None]) -> Sequence[Batch | None]:
        """The same of the batches of all inputs."""
        return batches if self.counted_until == MIN_INSTANT else [self.uncounted(batch) for batch in batches]
