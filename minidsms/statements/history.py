"""WITH HISTORY: a late query that begins with what the windows before it still hold (docs/semantics T7).

The query reads the elements that its streams' stores still keep as if they came now, at their own instants. What it
would have said at instants closed before it is not said again: a relation begins, at the last closed instant, with
the rows it has there; a stream begins with the instant after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidsms.elements import Batch


class HistoryGate:
    """Stands between a plan and its query until the past has been read.

    frontier: the last instant closed before the query.  net: what several batches of changes leave, as insertions.
    """

    def __init__(
        self,
        deliver: Callable[[Batch], int | None],
        is_relation: bool,
        net: Callable[[Sequence[Batch]], Batch],
        frontier: int,
    ) -> None:
        self._deliver = deliver
        self._is_relation = is_relation
        self._net = net
        self._frontier = frontier
        self._past: list[Batch] = []
        self._is_open = False

    def __call__(self, batch: Batch) -> int | None:
        """Take results: of the past to keep or to drop, of the present to deliver. Gives what `deliver` does."""
        if self._is_open:
            return self._deliver(batch)
        cut = int(np.searchsorted(batch.ts, self._frontier, side="right"))
        if self._is_relation and cut:
            self._past.append(batch.slice(0, cut).owned())
        refused = None
        if cut < len(batch):
            refused = self.open()
            if refused is None:
                refused = self._deliver(batch.slice(cut, len(batch)))
        return refused

    def open(self) -> int | None:
        """The past has been read: deliver the relation it leaves. Gives what `deliver` does."""
        if self._is_open:
            return None
        self._is_open = True
        past, self._past = self._past, []
        if past:
            present = self._net(past)
            if len(present):
                ts = np.full(len(present), self._frontier, np.int64)
                return self._deliver(Batch(ts, np.ones(len(ts), np.int8), present.columns))
        return None
