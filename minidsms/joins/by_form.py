"""Joining two streams with ranges by a compiled form (`kernels.two_streams_join`): the program that makes rows.

It runs over the same windows as the others, and leaves them as they do, so that it may begin and end between any two
parts. It fits joins by one pair of columns, one of which the answer shows.

Invariant: below an ISTREAM its answer is that of `joins.by_pipelines`, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import DONE, HAS_NULLS, HI, IS_SHOWN, STATUS, STOP
from minidsms.kernels.two_streams_join import Room, Source, join_two_streams
from minidsms.machine_code.templates import Form
from minidsms.synopses.indexed_windows import IndexedWindow, WindowIndex

_LEAST_ROWS = 64
_ROOM = 1.125
"""Times the rows that are expected."""
_LARGE = 1 << 14
"""Rows for which room is taken without asking."""
_MARKS = 1024
_NO_VALID = np.zeros(0, np.bool_)


class ByForm:
    """index: the windows.  state: of the join's run.  claim: as of `Answer`."""

    def __init__(self, spec: JoinSpec, index: WindowIndex, state: Int64Array, claim: Callable[[int], None]) -> None:
        self._spec = spec
        self._index = index
        self._state = state
        self._claim = claim
        self._nets = set(spec.shown or ()) == set(range(len(spec.columns)))
        self._marked = np.zeros(_MARKS, np.int64)
        self._serial = np.zeros(2, np.int64)
        self._ratio = 1.0
        self._masked: list[bool] = []
        self._room: Room | None = None
        self._found = 0
        self._known: tuple[Any, ...] = ()
        self._form: Form | None = None

    @staticmethod
    def suits(spec: JoinSpec, index: WindowIndex) -> bool:
        """There is a form for such a join."""
        keys = [window.keys for window in index.windows]
        has_one_key = len(keys) == 2 and all(len(each) == 1 and len(each[0]) == 1 and each[0][0] >= 0 for each in keys)
        is_shown = has_one_key and bool(index.keys[:, IS_SHOWN].all())
        return is_shown and spec.ranges is not None and spec.leaves_out and bool(spec.columns)

    def fitting(self) -> Form | None:
        """The form for what the windows hold; None where they have held no rows of both streams yet."""
        tables = self._tables()
        if tables is None:
            return None
        nulls = tuple(self._index.inputs[:, HAS_NULLS].tolist())
        known = (*nulls, *map(id, tables))
        if known != self._known or self._form is None:
            self._known, self._kept = known, tables
            columns = []
            for i, c in self._spec.columns:
                _, valid, width = tables[i][self._windows[i].column_in_store(c)].tolist()
                columns.append((i, int(width), valid != 0))
            has_nulls = tuple(bool(has) for has in nulls)
            self._form = join_two_streams.form(HAS_NULLS=has_nulls, COLUMNS=tuple(columns), NETS=self._nets)
        return self._form

    @property
    def _windows(self) -> list[IndexedWindow]:
        return cast("list[IndexedWindow]", self._index.windows)

    def _tables(self) -> list[Int64Array] | None:
        """Where the columns of the windows' stores stand."""
        stores = [window.store for window in self._windows]
        return None if None in stores else [store.places()[0] for store in stores if store is not None]

    def run(self, code: Callable[..., Any], waits: int) -> Iterator[Batch]:
        """Join what waits in the windows; gives the rows that there is no room for beside those to come.

        waits: elements of the slice that are still to come into the windows.
        """
        index, state, inputs = self._index, self._state, self._index.inputs
        columns = np.array([self._place(i, c) for i, c in self._spec.columns], np.int64)
        self._masked = [place[1] != 0 for place in columns.tolist()]
        ring0, ring1 = (window.ring for window in self._windows)
        source = Source(columns, ring0, ring1, self._marked, self._serial)
        status, doubled = -1, 1
        while status != DONE:
            waiting = int((inputs[:, STOP] - inputs[:, HI]).sum())
            if self._room is None:
                self._room = self._made(max(_LEAST_ROWS, int((waiting + waits) * self._ratio * _ROOM)) * doubled)
            before = self._found
            self._found = code(index.bundle, source, self._room, before, state)
            status = int(state[STATUS])
            taken = waiting - int((inputs[:, STOP] - inputs[:, HI]).sum())
            if taken:
                self._ratio = (self._found - before) / taken
            if status != DONE:
                doubled = 1 if self._found else 2 * doubled
                yield from self.flush()

    def flush(self) -> Iterator[Batch]:
        """The rows found that have not been given."""
        if self._found:
            assert self._room is not None
            yield self._batch(self._room, self._found)
        self._found, self._room = 0, None

    def _made(self, rows: int) -> Room:
        """Room for so many, with none in it."""
        width = len(self._spec.columns)
        if rows > _LARGE:
            self._claim(rows * 8 * (1 + width))
        self._serial[1] = 0
        valid = np.empty(width * rows, np.bool_) if True in self._masked else _NO_VALID
        return Room(np.empty((1 + width, rows), np.int64), valid, np.ones(rows, np.int8))

    def _place(self, i: int, c: int) -> tuple[int, int, int]:
        window = self._windows[i]
        assert window.store is not None
        places, mask = window.store.places()
        address, valid, _ = places[window.column_in_store(c)].tolist()
        return address, valid, mask

    def _batch(self, room: Room, found: int) -> Batch:
        """The first rows; a copy where there is much more room."""
        words, sign = room.words[:, :found], room.sign[:found]
        is_roomy = found * 2 < room.words.shape[1]
        if is_roomy:
            words = words.copy()
        masked = self._masked
        valid = room.valid.reshape(len(masked), -1)[:, :found] if len(room.valid) else None
        columns = [
            Column.from_words(words[1 + c], valid[c].copy() if valid is not None and has_mask else None, field.type)
            for c, (has_mask, field) in enumerate(zip(masked, self._spec.schema))
        ]
        return Batch(words[0], sign.copy() if self._serial[1] else None, columns, is_own=True)
