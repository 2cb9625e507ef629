"""The rows that one thread finds by a compiled form (`kernels.streams_join`), and the room in which they stand.

Invariant: each row comes out once, in the order in which it was found, and is not written any more then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.graph import JoinGraph
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import DONE, FULL, PAUSED, JoinState, Windows
from minidsms.kernels.streams_join import Room, Source
from minidsms.process.large_pages import BLOCK_WORDS, words_on_large_pages

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


class Shown(NamedTuple):
    """The columns of the answer. columns: as `Source` has them.  masked: of each, whether there may be NULLs."""

    columns: Int64Array
    masked: Sequence[bool]


class FormRows:
    """claim: as of `Answer`.  nets: `kernels.streams_join.NETS`.  room: of rows found, if there is any."""

    def __init__(self, spec: JoinSpec, graph: JoinGraph, nets: bool, claim: Callable[[int], None]) -> None:
        self._claim = claim
        self._marked = np.zeros((len(graph.classes), _MARKS), np.int64)
        self._firsts = np.zeros(graph.n, np.int64)
        self._serial = np.zeros(4, np.int64)
        self._types = spec.schema.types
        self._is_netted = spec.shown is None and nets
        self._ratio = 1.0
        self._shown: Shown | None = None
        self._source: Source | None = None
        self._masked: Sequence[bool] = ()
        self._sign = np.ones(0, np.int8)
        self._small: Room | None = None
        self.room: Room | None = None
        self._is_block = False
        self._given = self._found = 0

    def run(
        self, code: Callable[..., Any], windows: Windows, state: JoinState, shown: Shown, waits: int
    ) -> Iterator[Batch]:
        """Join what waits in the windows; gives the rows that there is no room for beside those to come.

        waits: elements of the slice that are still to come into the windows.
        """
        waiting = _waiting(windows)
        yield from self.make_ready(shown, waiting + waits)
        status, doubled = -1, 1
        while status != DONE:
            room = self.room
            if room is None:
                room = self._made(self._expected(waiting + waits) * doubled, doubled)
            found = self._found
            self._found = code(windows, self._source, room, found, state)
            status = state.status
            before, waiting = waiting, _waiting(windows)
            joined = before - waiting
            if self._found > found and joined:
                self._ratio = (self._found - found) / joined
            if status == PAUSED:
                self._claim(0)  # the call may have taken too long
            if status == FULL:
                doubled = 1 if self._found else 2 * doubled
                self._is_block = False  # it is full
                yield from self.flush()

    def make_ready(self, shown: Shown, elements: int) -> Iterator[Batch]:
        """Make room for what so many elements are expected to find; gives the rows that cannot stand beside it."""
        if self._source is None or shown is not self._shown:
            if shown.masked != self._masked:
                # Other columns may be NULL now than those that the room knows.
                self._is_block = False
                yield from self.flush()
                self._masked, self._small = shown.masked, None
            self._shown = shown
            self._source = Source(shown.columns, self._marked, self._firsts, self._serial)
        rows = self._expected(elements)
        if self.room is None or (self._is_block and self._given == self._found and not self._is_worth_a_block(rows)):
            self._made(rows, 1)

    def _expected(self, elements: int) -> int:
        """The rows to make room for."""
        return int(elements * self._ratio * _ROOM)

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
        self._is_block = False
        if rows <= _FEW_ROWS and doubled == 1:
            self.room = self._small = self._small or self._room_for(max(_LEAST_ROWS, 2 * _FEW_ROWS))
            return self.room
        if rows > _LARGE:
            self._claim(rows * 8 * (1 + len(self._masked)))
        self._is_block = self._is_worth_a_block(rows)
        self.room = self._room_for(max(rows, _LEAST_ROWS * doubled))
        return self.room

    def _room_for(self, rows: int) -> Room:
        width = len(self._masked)
        if self._is_block:
            rows = max(rows, BLOCK_WORDS // (1 + width))
            words = words_on_large_pages((1 + width) * rows).reshape(1 + width, rows)
        else:
            words = np.empty((1 + width, rows), np.int64)
        valid = np.empty(width * rows, np.bool_) if True in self._masked else _NO_VALID
        sign = self._sign if rows <= len(self._sign) else np.ones(rows, np.int8)
        if rows <= BLOCK_WORDS:
            self._sign = sign
        return Room(words, valid, sign[:rows])

    def _batch(self, room: Room, first: int, end: int) -> Batch:
        """The rows [first, end); a copy where there is much more room that nobody uses, or others are to come there."""
        words, valid, sign = room.words[:, first:end], None, None
        if room is self._small or (not self._is_block and (end - first) * 2 < room.words.shape[1]):
            words = words.copy()
        if len(room.valid):
            valid = room.valid.reshape(len(self._masked), -1)
        if self._serial.item(1):
            sign = room.sign[first:end].copy()
            room.sign[first:end] = 1
        is_netted = self._is_netted and not self._serial.item(2)
        self._serial[1:3] = 0
        columns = [
            Column.from_words(
                words[1 + c], valid[c, first:end].copy() if valid is not None and is_masked else None, type_
            )
            for c, (is_masked, type_) in enumerate(zip(self._masked, self._types))
        ]
        batch = Batch(words[0], sign, columns, is_own=True)
        batch.is_netted = is_netted
        return batch


def _waiting(windows: Windows) -> int:
    return int(sum(windows.inputs["stop"].tolist()) - sum(windows.inputs["hi"].tolist()))
