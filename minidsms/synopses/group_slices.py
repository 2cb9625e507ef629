"""The way of a slice through a grouped aggregation: one call of a kernel, or two and between them the states that stand
outside the records.

Columns that the elements refer to in a stream's store are read there.  `kernels.grouped_slice`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidsms.elements import Batch, Int8Array, Int64Array
from minidsms.kernels import grouped_slice as kernels
from minidsms.kernels import grouping
from minidsms.kernels.arrays import normal
from minidsms.machine_code.templates import Form
from minidsms.synopses.changed_rows import ChangedRows, Rows
from minidsms.synopses.group_records import GroupRecords
from minidsms.synopses.group_state import ROOM_BYTES, Argument, Run, contiguous_words, take_freely
from minidsms.synopses.key_table import NO_ARRIVALS, NO_STACKS, ArrivalRing, KeyTable
from minidsms.synopses.stream_store import StreamStore

_LEAST_ROOM = 16
_MOST_IN_A_FORM = 8
"""Aggregates for which a kernel is compiled."""
_NO_NUMBERS: Int64Array = np.zeros(0, np.int64)
_NO_PLACES: Int64Array = np.zeros((0, 3), np.int64)
_NO_TABLE = np.zeros(0, np.int32), np.zeros((1, 0), np.int64), _NO_NUMBERS, _NO_NUMBERS


class GroupSlices:
    """table, arrivals, records: of the groups; without a table there is one group, without arrivals what leaves is
    looked up.  keys: the input columns of the table's rows.  arguments: those of the aggregates, in the order in which
    the records' calls number them.  resize: makes room in all states for the ids of a table that has grown.  outside:
    moves the states that stand outside the records, and gives the instant from which there is no answer.  claim: told
    of the bytes that are about to be taken for more room.  is_global: see `grouping.close_instants`.
    """

    def __init__(
        self, table: KeyTable | None, arrivals: ArrivalRing | None, records: GroupRecords, keys: Sequence[int],
        arguments: Sequence[int], resize: Callable[[], None],
        outside: Callable[[Run, Sequence[Argument]], int] | None = None, claim: Callable[[int], None] = take_freely,
        is_global: bool = False,
    ) -> None:  # fmt: skip
        self._claim = claim
        self._resize = resize
        self._outside = outside
        self._table = table
        self._arrivals = arrivals
        self._records = records
        self._k = len(keys)
        self._wanted = [*keys, *arguments]
        self._width = 0 if table is None else table.width
        self._row_nbytes = 8 * (self._k + records.count)
        self._rows_out = ChangedRows(self._k + records.count)
        self._numbers = _NO_NUMBERS
        self._numbered: Sequence[int] = ()
        self._asked = self._k, records.calls, records.sums, records.marks, records.stars, is_global
        self._is_global = is_global
        self._reserve(_LEAST_ROOM)

    def _reserve(self, n: int) -> None:
        """Fresh memory costs more than the work itself: what a slice needs the next one uses again."""
        self._room = n
        k = self._records.count
        self._words: Int64Array = np.empty((len(self._wanted), n), np.int64)
        self._valid: Int8Array = np.empty((len(self._wanted), n), np.int8)
        self._weights: Int8Array = np.empty((len(self._wanted) - self._k, n), np.int8)
        self._scratch: Int64Array = np.empty((kernels.SCRATCH_ROWS, n), np.int64)
        self._rows: Int64Array = np.empty((n if self._k > 1 else 0, self._width), np.int64)
        self._results: Int64Array = np.empty((n, k), np.int64)
        self._status: Int8Array = np.empty((n, k), np.int8)
        self._plus: Int8Array = np.ones(n, np.int8)
        answers = self._results, self._status
        self._work = kernels.Work(self._words, self._valid, self._scratch, self._rows, self._weights, *answers)
        self._ids = _NO_NUMBERS

    def form(self) -> Form | None:
        """The kernel for these aggregates (`kernels.grouped_form`); None where there are none, or many, or states
        outside.
        """
        if self._outside is not None or not 0 < self._records.count <= _MOST_IN_A_FORM:
            return None
        from minidsms.kernels.grouped_form import aggregate_form

        records = self._records
        return aggregate_form.form(
            CALLS=records.constants, KEYS=self._k, IS_GLOBAL=self._is_global, WORDS=records.records.shape[1]
        )

    def take(
        self, batch: Batch, start: int, until: int, kernel: Callable[..., int] | None = None
    ) -> tuple[list[Rows], tuple[int, int] | None]:
        """Take a batch in; the rows put out, in parts, and (aggregate, element) of a sum that fits no INTEGER: nothing
        of that instant is put out. start, until: see `grouping.close_instants`.  kernel: the form's.
        """
        run: Callable[..., int] = kernel or kernels.aggregate_slice
        n = len(batch.ts)
        if n > self._room or (self._room > 64 * _LEAST_ROOM and n * 64 < self._room):
            if n > self._room:
                self._claim(ROOM_BYTES * n * (len(self._wanted) + self._width + 2 * self._records.count))
            self._reserve(max(n, _LEAST_ROOM))
        table, arrivals, records = self._table, self._arrivals, self._records
        ts, sign = normal(batch.ts), self._plus[:n] if batch.sign is None else normal(batch.sign)
        # Plain tuples in the places of the kernel's bundles: making a NamedTuple takes as long as taking an element in.
        elements = ts, sign, *self._places(batch)
        present = NO_ARRIVALS if arrivals is None else arrivals.parts(sign, self._claim)
        stacks = NO_STACKS if arrivals is None else arrivals.stacks
        out = self._rows_out
        rows: list[Rows] = []
        if 2 * n > out.fitting:
            out.make_ready(2 * n)
        state = grouping.SliceState()  # with fields given it takes five times as long
        state.instant, state.out = records.instants, out.begin
        if self._outside is not None:
            state.pauses = 1
        asked, work = self._asked, self._work
        while True:
            groups = *(_NO_TABLE if table is None else table.parts), *present
            held = records.records, records.nodes, records.pool, stacks
            status = run(elements, groups, asked, held, work, start, until, state, out.changed)
            if status == kernels.DONE:
                break
            if status == kernels.POOL_FULL:
                records.grow_nodes()
            elif status == kernels.ROOM_FULL:
                self._take_rows(rows, state)
                out.make_room(2 * n, 2 * state.closed)
                state.out, state.nulls = out.begin, 0
            elif status == kernels.TABLE_FULL:
                assert table is not None
                self._claim(table.nbytes + records.nbytes)
                table.grow()
                self._resize()
            else:
                assert self._outside is not None
                until = min(until, self._outside(*self._begun(batch, ts, sign)))
        records.instants, culprit = state.instant, state.culprit
        failure = (culprit - 1, state.culprit_at) if culprit else None
        self._take_rows(rows, state)
        return rows, failure

    def _take_rows(self, rows: list[Rows], state: grouping.SliceState) -> None:
        """Add the rows that have been put out since the last time."""
        out, end = self._rows_out, state.out
        if end > out.begin:
            self._claim((end - out.begin) * self._row_nbytes)
            rows.append(out.take(end, state.nulls != 0))

    def _begun(self, batch: Batch, ts: Int64Array, sign: Int8Array) -> tuple[Run, Sequence[Argument]]:
        """What the states outside are given of a batch whose groups have been found."""
        n = len(ts)
        if len(self._ids) != n:
            self._ids = self._scratch[kernels.IDS, :n]
            results = self._results[:n]
            self._answers = results, results.view(np.float64), self._status[:n]
            read = self._words[self._k :, :n], self._valid[self._k :, :n], self._weights[:, :n]
            self._arguments = [Argument(*rows) for rows in zip(*read)]
        return Run(batch, ts, sign, self._ids, *self._answers), self._arguments

    def _places(self, batch: Batch) -> tuple[Int64Array, Int64Array, int, Int64Array]:
        """(seq, places, mask, numbers) of the columns wanted; where they stand in no store, the words are written."""
        reference, seq = batch.reference, batch.seq
        if reference is not None and seq is not None and isinstance(store := reference[0], StreamStore):
            columns = reference[1]
            if columns is not self._numbered:
                self._numbered = columns
                self._numbers = np.array([columns[i] for i in self._wanted], np.int64)
            return normal(seq), *store.places(), self._numbers
        n = len(batch.ts)
        for row, i in enumerate(self._wanted):
            column = batch.column(i)
            self._words[row, :n] = contiguous_words(column)
            self._valid[row, :n] = True if column.valid is None else column.valid
        return _NO_NUMBERS, _NO_PLACES, 0, _NO_NUMBERS
