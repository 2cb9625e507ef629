"""A level of a screen: boxes whose constructs were built together, and the kernel's run over rows.

A screen has few levels, as a log-structured merge tree has: boxes that come later stand in a small level of their own
until there are enough of them, and those that go are only struck out. So what comes and goes costs what it is.

Invariant: `members` maps a bit of the bitmaps to the number of its member, -1 where it has gone.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed

import numpy as np

from minidsms.compile_time import thread_ns
from minidsms.dictionary import TextDictionary
from minidsms.elements import Batch, BoolArray, Int32Array, Int64Array, Type
from minidsms.kernels.screening import FOUND, MICRO, ROW, screen_homes, screen_rows
from minidsms.screens.asc import Constructs
from minidsms.screens.box import Box
from minidsms.screens.sequence import Sequence

MANY = 2048
"""Boxes above which a level has homes: whole bitmaps would not stay in the cache, and no row is dropped early."""


class Found:
    """Pairs (row, member) that kernels write; grows as it must."""

    def __init__(self) -> None:
        self.rows: Int32Array = np.empty(1024, np.int32)
        self.members: Int32Array = np.empty(1024, np.int32)
        self.count = 0

    def reserve(self, room: int) -> None:
        """Make room for so many more; what is there stays."""
        if self.count + room > len(self.rows):
            size = max(2 * len(self.rows), self.count + room)
            rows, members = np.empty(size, np.int32), np.empty(size, np.int32)
            rows[: self.count], members[: self.count] = self.rows[: self.count], self.members[: self.count]
            self.rows, self.members = rows, members


class Level:
    """Some of the boxes of a screen. numbers: the members' numbers in the screen."""

    def __init__(self, boxes: Listed[Box], numbers: Listed[int], types: Listed[Type]) -> None:
        self.has_homes = len(boxes) > MANY
        self.constructs = Constructs(boxes, types, self.has_homes)
        self.boxes = list(boxes)
        self.members = np.full(64 * len(self.constructs.everybody), -1, np.int32)
        self.members[self.constructs.places] = numbers
        self.gone = 0
        self.rows = self.micro = self.time_ns = 0
        self.counts = np.zeros((2, len(self.constructs.columns)), np.int64)
        self._scratch = (
            np.zeros(self.constructs.bits.shape[1], np.uint64),
            np.full(len(self.constructs.columns), -1, np.int64),
            self.members,
            self.counts,
        )
        self.sequence = Sequence(tuple(range(len(self.constructs.columns))))
        self._sequence = self.sequence.arrays(len(self.constructs.bits))

    def follow(self, sequence: Sequence) -> None:
        """Look at columns in this order from now on."""
        self.sequence = sequence
        self._sequence = sequence.arrays(len(self.constructs.bits))

    def order_of(self, names: Listed[str]) -> list[str]:
        """The columns in the order in which they are looked at. names: the producer's."""
        return [names[self.constructs.columns[c]] for c in self.sequence.order]

    def sequence_text(self, names: Listed[str]) -> str:
        """The order of the columns. names: the producer's."""
        return self.sequence.text([names[c] for c in self.constructs.columns])

    def strike(self, box: int) -> None:
        """The box of that number, as they were given, has gone."""
        self.members[self.constructs.places[box]] = -1
        self.gone += 1

    @property
    def looked(self) -> int:
        """Columns looked at, of all rows."""
        return int(self.counts[0].sum())

    @property
    def dropped(self) -> int:
        """Rows that no filter wanted."""
        return int(self.counts[1].sum())

    def run(self, batch: Batch, dictionary: TextDictionary, found: Found) -> tuple[Int64Array, BoolArray]:
        """Add the pairs of a batch to those found; (keys, which are not NULL) as the constructs have them."""
        keys, present = self.constructs.keys(batch, dictionary)
        began = thread_ns()
        state = np.zeros(3, np.int64)
        state[FOUND] = found.count
        self._scratch[1][:] = -1
        found.reserve(4 * len(batch) + len(self.members))
        while True:
            pairs = found.rows, found.members
            if self.has_homes:
                near = self.constructs.near
                screen_homes(keys, present, self.constructs.arrays, near, self._scratch, pairs, state)
            else:
                screen_rows(keys, present, self.constructs.arrays, self._sequence, self._scratch, pairs, state)
            found.count = int(state[FOUND])
            if state[ROW] == len(batch):
                break
            found.reserve(max(len(self.members), found.count))
        self.rows += len(batch)
        self.micro += int(state[MICRO])
        self.time_ns += thread_ns() - began
        return keys, present
