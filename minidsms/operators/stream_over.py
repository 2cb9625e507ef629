"""OVER on a stream: each row with its rank, an earlier row's value or a running aggregate, in the order of its
partition.

A row comes behind all rows of its partition and looks at none behind it, so that its result is final. An aggregate is
that of a group per partition, into which rows come and out of which they leave in one order (`operators.aggregate`);
its answer is read at each row.

Invariant: after an instant the rows put out are those of the input with their results; of those whose result is above
`at_most`, none need be.  docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import RANKS, OverCall
from minidsms.aggregates.sorting import sort_columns
from minidsms.elements import Batch, Column, Int8Array, Int64Array, Schema, is_all_true
from minidsms.kernels import frames as kernels
from minidsms.kernels.aggregation import FAILED, NULL
from minidsms.kernels.arrays import normal
from minidsms.operators.aggregate import AggregateSpec, GroupStates
from minidsms.operators.frame_states import FrameStates
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.frames import Frames, asked
from minidsms.synopses.group_state import contiguous_words
from minidsms.synopses.object_states import Texts

_BY_VALUE = SortKey(nulls_first=True)
_NO_PEERS: Int8Array = np.zeros(0, np.int8)
_FEW_TIED = 4
"""Where not even one row of so many shares its instant with another of its partition, these are taken out to be sorted.
"""
_OF_A_ROW: Int8Array = np.array(2, np.int8)
"""What is kept of the values of LAG with a default: 1, and 2 of a NULL, so that 0 tells that there is no row."""
_ROW_BYTES = 100
"""What a row takes on its way, beside the rows that are put out."""


class StreamOver(Resuming):
    """Appends what the call gives.  at_most: rows with a greater rank are of no interest.  spec: of an aggregate.

    No row leaves, and all rows of an instant stand behind those of earlier ones. O(1) a row, amortised; where several
    rows of a partition come at one instant, they are sorted.
    """

    name = "Over"
    acts_on_time = False
    knows_rows = False  # they have been forgotten

    def __init__(
        self, input_: Queue, call: OverCall, schema: Schema, texts: Texts, at_most: int | None = None,
        spec: AggregateSpec | None = None,
    ) -> None:  # fmt: skip
        super().__init__([input_], schema)
        types = input_.schema.types
        self._call, self._texts, self._types, self._at_most = call, texts, types, at_most
        keys, grows = tuple(types[i] for i in call.partition), call.frame.start is None
        self._states = FrameStates(spec, keys, texts, self.claim, are_fifo=True, is_append_only=grows)
        self.groups = self._states.groups
        self.frames = Frames(call.arg is not None and types[call.arg].is_coded)
        self._frame = None if call.function in RANKS else asked(call)
        known = {*call.partition, *(column for column, _ in call.order)}
        others = [(column, _BY_VALUE) for column in range(len(types)) if column not in known]
        finds_peers = call.function in RANKS[1:] or (call.is_framed and call.frame.by_value)
        is_by_place = not finds_peers or call.sees_order
        self._keys = call.order[1:]
        """Behind the instant."""
        self._sorted_by = [*self._keys, *others] if is_by_place else self._keys
        self._finds_peers = finds_peers
        self._ones: Int8Array = np.ones(1, np.int8)
        self.is_self_contained = not any(t.is_coded for t in types) and self.has_arrays

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return ()
        n, call = len(batch), self._call
        self.claim(n * _ROW_BYTES)
        ids = self.groups.acquire([batch.column(i) for i in call.partition], n)
        self.frames.resize(self.groups.capacity)
        is_peer = _NO_PEERS
        if n > 1:
            order, is_peer = self._in_order(batch, ids)
            if order is not None:
                batch, ids = batch.take(order), ids[order]
        words, valid = ids, self._all(n)
        if call.arg is not None:
            column = batch.column(call.arg)
            words = contiguous_words(column)
            if column.valid is not None:
                valid = column.valid.astype(np.int8)
            if call.default is not None:
                valid = _OF_A_ROW - valid
        arriving = kernels.Arriving(ids, normal(batch.ts), words, valid, is_peer)
        frame = self._frame
        result = Column(self._ranks(arriving)) if frame is None else self._of_frames(arriving, frame, batch)
        told = Batch(batch.ts, None, [*batch.columns, result])
        if self._at_most is not None:
            told = told.take(result.words() <= self._at_most)
        told.is_netted = True
        if self.failure is None:
            self.groups.settle(n)
            self.frames.settle()
        return (told,)

    def _all(self, n: int) -> Int8Array:
        """n ones."""
        if len(self._ones) < n:
            self._ones = np.ones(n, np.int8)
        return self._ones[:n]

    # ------------------------------------------------------------------------------------------------------- the order

    def _in_order(self, batch: Batch, ids: Int64Array) -> tuple[Int64Array | None, Int8Array]:
        """The order in which rows of one instant and partition stand one behind the other, sorted, None for that in
        which they are; and which are equal in all keys to the one before them.
        """
        n = len(ids)
        room: Int64Array = np.empty((3, n), np.int64)
        ties = kernels.Ties(np.empty(n, np.int8), *room)
        tied = kernels.mark_ties(ids, normal(batch.ts), self.frames.partitions, ties.role, ties.following)
        if tied == 0:
            return None, _NO_PEERS
        rows = ties.role.nonzero()[0] if tied * _FEW_TIED < n else None
        columns: list[Int64Array] = []
        keys = 0
        for k, (i, key) in enumerate(self._sorted_by):
            column = batch.column(i) if rows is None else batch.column(i).take(rows)
            columns += sort_columns(column, self._types[i], key, self._texts)
            if k < len(self._keys):
                keys = len(columns)
        by: Int64Array = np.empty((n if rows is None else tied, len(columns)), np.int64)
        for c, words in enumerate(columns):
            by[:, c] = words
        order, is_peer = np.empty(n, np.int64), np.empty(n, np.int8)
        kernels.place_ties(ties, by, keys, order, is_peer)
        return order, is_peer if self._finds_peers else _NO_PEERS

    # --------------------------------------------------------------------------------------------------------- results

    def _ranks(self, arriving: kernels.Arriving) -> Int64Array:
        answers: Int64Array = np.empty(len(arriving.ids), np.int64)
        kernels.count_rows(arriving, RANKS.index(self._call.function), self.frames.partitions, answers)
        return answers

    def _of_frames(self, arriving: kernels.Arriving, frame: kernels.FrameAsked, batch: Batch) -> Column:
        """What the call gives of the frame of each row of the batch."""
        n = len(arriving.ids)
        words, told = np.empty(n, np.int64), np.empty(n, np.int8)
        is_aggregate = frame.place == kernels.AGGREGATE
        self.frames.begin(n)
        first = 0
        while first < n:
            done, elements = self.frames.slide(arriving, frame, words, told)
            if is_aggregate and elements:
                results, status = self._states.answers(self.frames.moved(elements))
                at = words[first:done]
                told[first:done] = status[at]
                words[first:done] = results[at]
            first = done
        if self._call.default is not None:
            _set_defaults(words, told, batch.column(self._call.default))
        if (self._call.can_fail or self._states.reason) and FAILED in told:
            failed = int((told == FAILED).argmax())
            reason = self._states.reason or f"{self._call.label} overflows {self._call.type}"
            self.fail(arriving.ts.item(failed), reason)
        valid = None if is_all_true(told.view(np.uint8)) else told != NULL
        if valid is not None:
            words[~valid] = 0
        return Column.from_words(words, valid, self._call.type)

    # ------------------------------------------------------------------------------------------------------ for others

    @property
    def has_arrays(self) -> bool:
        return not self.groups.objects

    def describe(self) -> Description:
        nbytes = self.groups.nbytes + self.frames.nbytes
        return Description(self.name, self._call.label, {"rows": len(self.frames), "bytes": nbytes})

    def synopses(self) -> tuple[GroupStates, Frames]:
        return self.groups, self.frames


def _set_defaults(words: Int64Array, told: Int8Array, default: Column) -> None:
    """Give rows (n,) the default where there is no row to take the value of."""
    has_none = told == 0
    words[has_none] = contiguous_words(default)[has_none]
    told[has_none] = 1 if default.valid is None else default.valid[has_none]
    told[told == _OF_A_ROW] = NULL
