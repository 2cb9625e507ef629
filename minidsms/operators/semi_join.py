"""The rows of one relation that have (or lack) a partner in another: IN, EXISTS and their negations.

A left row is in the output while some right row has its key; anti: while none has. Keys with a NULL have no partner.
Each instant the right's changes are netted per key first, so that a key whose last row is replaced by another disturbs
nothing.  docs/semantics R1, R2; Babu 2005, section 2.2.2.

Invariant: between slices the output is { l in left : count(right rows with key of l) > 0 }, or = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch
from minidsms.kernels.key_probing import DONE, FULL, GROW, MISSING, NOT_COUNTED, Met, ProbeState, semi_join
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.bag_windows import NO_TS
from minidsms.synopses.key_counts import KeyCounts
from minidsms.synopses.shown_tuples import ShownTuples, signs_of
from minidsms.synopses.synopsis import Synopsis
from minidsms.synopses.window_index import WindowIndex

_ROWS = 1 << 14
"""Rows found before their columns are gathered."""


class SemiJoin(Operator):
    """Left rows with (anti: without) a right row of equal key.

    left_keys, right_keys: key columns of each input, pairwise of one type; none asks whether right has any row at all.
    left_fifo: left's deletions come in the order of its insertions.
    """

    name = "SemiJoin"

    def __init__(
        self,
        left: Queue,
        right: Queue,
        left_keys: Sequence[int],
        right_keys: Sequence[int],
        anti: bool,
        left_fifo: bool = False,
    ) -> None:
        super().__init__([left, right], left.schema)
        self.left_keys, self.right_keys = tuple(left_keys), tuple(right_keys)
        self.anti = anti
        self.name = "AntiJoin" if anti else "SemiJoin"
        self._state = ProbeState()
        self._index = WindowIndex.by_columns(left.schema, self.left_keys, range(len(left.schema)), not left_fifo)
        self._left = self._index.windows[0]
        self._shown = ShownTuples(self._index, [(0, c) for c in range(len(left.schema))], left.schema)
        self._room: Met | None = None
        self._right = KeyCounts(right.schema, self.right_keys, anti)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Count right, let keys that change ask, pass left; one batch of output per full buffer of rows."""
        if batches[0] is not None or batches[1] is not None:
            self._index.admit(batches[:1])
            state, room = self._state, self._room
            if room is None:
                slots = np.empty((1, _ROWS), np.int64)
                room = self._room = Met(NO_TS, np.empty(_ROWS, np.int64), slots, np.empty(_ROWS, np.int8))
            found = 0
            for rows, state.until in self._right.parts(batches[1]):
                state.at, state.status = NOT_COUNTED, -1
                while state.status != DONE:
                    found = semi_join(self._index.bundle, rows, self._right.standing, state, room, found)
                    assert state.status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
                    if state.status == FULL:
                        yield self._rows(room, found)
                        found = 0
                    elif state.status == GROW:
                        self._right.grow()
            if found:
                yield self._rows(room, found)
        self._left.settle()

    def _rows(self, room: Met, found: int) -> Batch:
        return self._shown.rows(room.slots, room.ts, signs_of(room.sign, found), found)

    def wakes_at(self) -> int:
        """Never: the inputs say when rows leave."""
        return MAX_INSTANT

    def describe(self) -> Description:
        """Key columns, rows, keys and bytes held, slots inspected by all toggles so far."""
        names = self.inputs[0].schema.names, self.inputs[1].schema.names
        keys = [f"{names[0][l]} = {names[1][r]}" for l, r in zip(self.left_keys, self.right_keys)]
        return Description(
            self.name,
            " AND ".join(keys) or "any row",
            {
                "left_rows": len(self._left),
                "right_keys": len(self._right),
                "left_fifo": not self._left.is_bag,
                "bytes": self._left.nbytes + self._right.nbytes,
                "inspected": self._state.inspected,
            },
        )

    def close(self) -> None:
        """End the claims on the inputs' stores."""
        self._left.release()

    def let_go(self) -> None:
        """See `Operator`; the index goes, too, to which its windows refer."""
        vars(self._index).clear()
        super().let_go()

    def synopses(self) -> tuple[Synopsis, ...]:
        """Left's rows and right's counts."""
        return (self._left, self._right)
