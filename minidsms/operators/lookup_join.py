"""Lookup join: the elements of a stream beside the rows that a relation has of their key at their own instants.

What a join with a NOW window puts out where only what enters is of use (`plan.rules.pass_what_enters`): a row of the
window lasts an instant, so it need not be kept for rows of the relation that come later.  docs/semantics R1, R2, S2.

Invariant: between slices nothing of the stream is held, and of the relation the rows that it has at `progress`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch, BoolArray, Column, Int64Array, Schema
from minidsms.joins.equal_columns import equalities_text
from minidsms.kernels.arrays import key_words, normal
from minidsms.kernels.key_counts import Asking
from minidsms.kernels.key_probing import DONE, MISSING, NOT_BEGUN, Met, ProbeState, lookup_join
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.bag_windows import NO_SIGNS, NO_TS
from minidsms.synopses.shown_tuples import ShownTuples
from minidsms.synopses.synopsis import Synopsis
from minidsms.synopses.window_index import WindowIndex

_FEW, _MANY = 64, 1 << 14
"""Rows found before their columns are gathered: of a slice of few elements, and of others."""
_ALL_KEYED: BoolArray = np.empty(0, np.bool_)


class LookupJoin(Operator):
    """keys: (column of the stream, column of the relation) that are equal and of one type; none: all rows are met.

    columns: the (input, column) of each output column.  outer: elements that meet no row are there, too, with NULLs.
    right_fifo: the relation's deletions come in the order of its insertions.
    """

    name = "LookupJoin"
    acts_on_time = False

    def __init__(
        self,
        stream: Queue,
        right: Queue,
        keys: Sequence[tuple[int, int]],
        columns: Sequence[tuple[int, int]],
        schema: Schema,
        outer: bool = False,
        right_fifo: bool = False,
    ) -> None:
        super().__init__([stream, right], schema)
        self.name = "LeftLookupJoin" if outer else self.name
        self._keys = tuple(keys)
        self._columns = tuple(columns)
        self._outer = outer
        shown = [c for i, c in columns if i == 1]
        self._index = WindowIndex.by_columns(right.schema, [c for _, c in keys], shown, not right_fifo)
        self._right = self._index.windows[0]
        self._shown = ShownTuples(
            self._index, [(0, c) for c in shown], Schema(tuple(right.schema[c] for c in shown)), 0 if outer else None
        )
        self._state = ProbeState(until=MAX_INSTANT)
        self._no_elements = Asking(NO_TS, np.zeros((0, len(keys)), np.int64), _ALL_KEYED)
        self._room = _room(_FEW)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Make the relation's changes, and let elements ask; one batch of output per full buffer of rows."""
        stream, changes = batches
        if stream is None and changes is None:
            return
        if changes is not None:
            self._index.admit([changes])
        asking = self._no_elements if stream is None else self._asking(stream)
        state = self._state
        state.at, state.slot = 0, NOT_BEGUN
        if len(asking.ts) > len(self._room.ts) and len(self._room.ts) == _FEW:
            self._room = _room(_MANY)
        status = -1
        while status != DONE:
            found = lookup_join(self._index.bundle, asking, self._state, self._outer, self._room)
            status = state.status
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            if found and stream is not None:
                yield self._rows(stream, found)
            if status != DONE:
                self.claim(0)  # the call may have taken too long
        if changes is not None:
            self._right.settle()

    def _asking(self, stream: Batch) -> Asking:
        words, keyed = key_words([stream.column(c) for c, _ in self._keys], len(stream.ts))
        return Asking(normal(stream.ts), words, _ALL_KEYED if keyed is None else normal(keyed))

    def _rows(self, stream: Batch, found: int) -> Batch:
        """Those of the first rows found."""
        elements, ts, slots, _ = self._room
        own = [c for i, c in self._columns if i == 0]
        is_run = self._state.is_run != 0
        if is_run:
            first = elements.item(0)
            part = stream if found == len(stream.ts) else stream.slice(first, first + found)
            left: Iterable[Column] = map(part.column, own)
        else:
            at: Int64Array = elements[:found].copy()
            left = stream.columns_at(own, at)
        right = self._shown.rows(slots, ts, None, found)
        sides = iter(left), iter(right.columns)
        return Batch(right.ts, None, [next(sides[i]) for i, _ in self._columns], is_own=not is_run)

    def describe(self) -> Description:
        """Key columns, rows and bytes held, slots inspected so far."""
        names = [q.schema.names for q in self.inputs]
        on = equalities_text([((0, a), (1, b)) for a, b in self._keys], names)
        figures = {
            "rows": len(self._right),
            "fifo": not self._right.is_bag,
            "bytes": self._right.nbytes,
            "inspected": self._state.inspected,
        }
        return Description(self.name, on or "every row", figures)

    def close(self) -> None:
        """End the claim on the relation's store."""
        self._right.release()

    def let_go(self) -> None:
        """See `Operator`; the index goes, too, to which its windows refer."""
        vars(self._index).clear()
        super().let_go()

    def synopses(self) -> tuple[Synopsis, ...]:
        """The relation's rows."""
        return (self._right,)


def _room(rows: int) -> Met:
    return Met(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((1, rows), np.int64), NO_SIGNS)
