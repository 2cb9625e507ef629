"""Joining two streams with ranges by a compiled form (`kernels.two_streams_join`): the program that makes rows.

It runs over the same windows as the others, and leaves them as they do, so that it may begin and end between any two
parts. It fits joins by one pair of columns, one of which the answer shows where it is for an ISTREAM.

Invariant: below an ISTREAM its answer is that of `joins.by_pipelines`, in the same order; of an outer join, netted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import DONE, HAS_NULLS, HI, IS_SHOWN, KEY, STATUS, STOP
from minidsms.kernels.two_streams_join import SOURCE_WORDS, Room, Source, join_two_streams
from minidsms.machine_code.templates import Form
from minidsms.process.large_pages import BLOCK_WORDS, words_on_large_pages
from minidsms.synopses.indexed_windows import IndexedWindow, WindowIndex

_LEAST_ROWS = 64
_FEW_ROWS = 512
"""Rows that are copied rather than given room of their own."""
_ROOM = 1.125
"""Times the rows that are expected."""
_LARGE = 1 << 14
"""Rows for which room is taken without asking."""
_WORTH_A_BLOCK = BLOCK_WORDS // 4
"""Words of rows from which on slices fill a block, one after the other: whoever keeps the rows of one keeps it all."""
_MARKS = 1024
_NO_VALID = np.zeros(0, np.bool_)


class ByForm:
    """index: the windows.  state: of the join's run.  claim: as of `Answer`.  room: of rows found, if there is any."""

    def __init__(self, spec: JoinSpec, index: WindowIndex, state: Int64Array, claim: Callable[[int], None]) -> None:
        self._spec = spec
        self._index = index
        self._state = state
        self._claim = claim
        self._nets = set(spec.shown or ()) == set(range(len(spec.columns)))
        if spec.outer:
            self._nets = (0, index.windows[0].keys[0][0]) in spec.columns
        self._marked = np.zeros(_MARKS, np.int64)
        self._serial = np.zeros(3, np.int64)
        self._types = spec.schema.types
        self._ratio = 1.0
        self._tables: tuple[Int64Array, Int64Array] = (self._marked, self._marked)
        self._nulls = (False, False)
        self._form: Form | None = None
        self._columns = np.zeros((0, SOURCE_WORDS), np.int64)
        self._source: Source | None = None
        self._masked: list[bool] = []
        self._small: Room | None = None
        self.room: Room | None = None
        self._is_block = False
        self._room_masked = self._masked
        self._given = self._found = 0

    @property
    def _windows(self) -> list[IndexedWindow]:
        return cast("list[IndexedWindow]", self._index.windows)

    @staticmethod
    def suits(spec: JoinSpec, index: WindowIndex) -> bool:
        """There is a form for such a join."""
        keys = [window.keys for window in index.windows]
        has_one_key = len(keys) == 2 and all(len(each) == 1 and len(each[0]) == 1 and each[0][0] >= 0 for each in keys)
        is_shown = has_one_key and bool(index.keys[index.inputs[:, KEY], IS_SHOWN].all())
        tells_apart = has_one_key if spec.outer else is_shown and spec.leaves_out
        return tells_apart and spec.ranges is not None and bool(spec.columns)

    def fitting(self) -> Form | None:
        """The form for what the windows hold; None where they have held no rows of both streams yet, or are indexed by
        patterns.
        """
        (window0, window1), inputs = self._windows, self._index.inputs
        if window0.store is None or window1.store is None or len(window0.keys) > 1:
            return None
        table0, table1 = window0.store.places()[0], window1.store.places()[0]
        nulls = inputs.item(0, HAS_NULLS) != 0, inputs.item(1, HAS_NULLS) != 0
        if table0 is not self._tables[0] or table1 is not self._tables[1] or nulls != self._nulls:
            self._tables, self._nulls, self._source = (table0, table1), nulls, None
            places = [self._place(i, c) for i, c in self._spec.columns]
            outer = self._spec.outer
            masked = [valid != 0 or (outer and i == 1) for (i, _), (_, valid, _, _) in zip(self._spec.columns, places)]
            columns = tuple((i, place[3], m) for (i, _), place, m in zip(self._spec.columns, places, masked))
            self._columns = np.array([place[:SOURCE_WORDS] for place in places], np.int64)
            if masked != self._masked:
                self._masked, self._small = masked, None
            self._form = join_two_streams.form(HAS_NULLS=nulls, COLUMNS=columns, NETS=self._nets, OUTER=outer)
        return self._form

    def _place(self, i: int, c: int) -> tuple[int, int, int, int]:
        """Of a column: as `Source.columns` has it, and the bytes of a value."""
        window = self._windows[i]
        assert window.store is not None
        places, mask = window.store.places()
        address, valid, width = places[window.column_in_store(c)].tolist()
        return address, valid, mask, width

    def run(self, code: Callable[..., Any], waits: int) -> Iterator[Batch]:
        """Join what waits in the windows, as which `fitting` has just looked at; gives the rows that there is no room
        for beside those to come.

        waits: elements of the slice that are still to come into the windows.
        """
        index, state = self._index, self._state
        source = self._source
        if source is None:
            source = self._source = Source(self._columns, self._marked, self._serial)
        if self.room is not None and self._room_masked is not self._masked:
            # Other columns may be NULL now than those that the room knows.
            self._is_block = False
            yield from self.flush()
        status, doubled = -1, 1
        while status != DONE:
            waiting = self._waiting()
            rows = int((waiting + waits) * self._ratio * _ROOM) * doubled
            room = self.room
            if room is None or (self._is_block and self._given == self._found and not self._is_worth_a_block(rows)):
                room = self.room = self._made(rows, doubled)
            before = self._found
            self._found = code(index.bundle, source, room, before, state)
            status = state.item(STATUS)
            joined = waiting - self._waiting()
            if self._found > before and joined:
                self._ratio = (self._found - before) / joined
            if status != DONE:
                doubled = 1 if self._found else 2 * doubled
                self._is_block = False  # it is full
                yield from self.flush()

    def _waiting(self) -> int:
        item = self._index.inputs.item
        return int(item(0, STOP) - item(0, HI) + item(1, STOP) - item(1, HI))

    def flush(self) -> Iterator[Batch]:
        """The rows found that have not been given."""
        room, given, found = self.room, self._given, self._found
        if self._is_block:
            self._given = found
        else:
            self.room, self._given, self._found = None, 0, 0
        if room is not None and given < found:
            yield self._batch(room, given, found)

    def _is_worth_a_block(self, rows: int) -> bool:
        return rows * (1 + len(self._masked)) >= _WORTH_A_BLOCK

    def _made(self, rows: int, doubled: int) -> Room:
        """Room for so many, with none in it. Where they are few it is that of before: what stands in it is copied."""
        self._given = self._found = 0
        self._room_masked, self._is_block = self._masked, False
        if rows <= _FEW_ROWS and doubled == 1:
            self._small = self._small or self._room_for(max(_LEAST_ROWS, 2 * _FEW_ROWS))
            return self._small
        if rows > _LARGE:
            self._claim(rows * 8 * (1 + len(self._masked)))
        self._is_block = self._is_worth_a_block(rows)
        return self._room_for(max(rows, _LEAST_ROWS * doubled))

    def _room_for(self, rows: int) -> Room:
        width = len(self._masked)
        if self._is_block:
            rows = max(rows, BLOCK_WORDS // (1 + width))
            words = words_on_large_pages((1 + width) * rows).reshape(1 + width, rows)
        else:
            words = np.empty((1 + width, rows), np.int64)
        valid = np.empty(width * rows, np.bool_) if True in self._masked else _NO_VALID
        return Room(words, valid, np.ones(rows, np.int8))

    def _batch(self, room: Room, first: int, end: int) -> Batch:
        """The rows [first, end); a copy where there is much more room that nobody uses, or others are to come there."""
        words, valid, sign = room.words[:, first:end], None, None
        is_copied = room is self._small or (not self._is_block and (end - first) * 2 < room.words.shape[1])
        if is_copied:
            words = words.copy()
        if len(room.valid):
            valid = room.valid.reshape(len(self._room_masked), -1)
        outer = self._spec.outer
        is_netted = outer and self._nets and not self._serial.item(1)
        if outer:
            sign = room.sign[first:end].copy() if is_copied else room.sign[first:end]
            self._serial[1] = 0
        elif self._serial.item(1):
            sign = room.sign[first:end].copy()
            room.sign[first:end] = 1
            self._serial[1] = 0
        columns = [
            Column.from_words(
                words[1 + c], valid[c, first:end].copy() if valid is not None and is_masked else None, type_
            )
            for c, (is_masked, type_) in enumerate(zip(self._room_masked, self._types))
        ]
        batch = Batch(words[0], sign, columns, is_own=True)
        batch.is_netted = is_netted
        return batch
