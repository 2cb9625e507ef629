"""A level of a screen: boxes whose constructs were built together, and the kernel's run over rows.

A screen has few levels, as a log-structured merge tree has: boxes that come later stand in a small level of their own
until there are enough of them, and those that go are only struck out. So what comes and goes costs what it is.

Invariant: `_members` maps a bit of the bitmaps to the number of its member, -1 where it has gone.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed

import numpy as np

from minidsms.elements import Batch, BoolArray, Int32Array, Int64Array, Type
from minidsms.kernels.screening import (
    BLOCK,
    CHUNK,
    STEP,
    LookedAt,
    Meeting,
    Pairs,
    ScreenState,
    screen_homes,
    screen_rows,
)
from minidsms.machine_code.compile_time import thread_ns
from minidsms.screens.asc import Constructs
from minidsms.screens.box import Box
from minidsms.screens.domains import Domains
from minidsms.screens.homes import HomeLists
from minidsms.screens.sequence import Homes, Sequence
from minidsms.values.dictionary import TextDictionary

MANY = 2048
"""Boxes above which a level has home lists."""
_STEP_PAIRS = STEP * BLOCK * 64
"""Pairs that one step through home lists may find."""


class Found:
    """Pairs (row, member) that kernels write, those of a member in ascending row; grows as it must."""

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
        began = thread_ns()
        self.domains = Domains(boxes, types)
        self.constructs: Constructs | HomeLists
        self.plan: Sequence | Homes
        if len(boxes) > MANY:
            self.constructs = HomeLists(boxes, self.domains)
            self.plan = self.constructs.homes
        else:
            self.constructs = Constructs(boxes, self.domains)
            self.plan = Sequence(tuple(range(len(self.domains.columns))))
        self.boxes = list(boxes)
        self._numbers = np.array(numbers, np.int32)
        self.gone = 0
        self.rows = self.micro = self.words = self.time_ns = 0
        self.counts = np.zeros((2, len(self.domains.columns)), np.int64)
        self._arrange()
        self.built_ns = thread_ns() - began

    def follow(self, plan: Sequence | Homes) -> None:
        """Look at rows by this plan from now on."""
        self.plan = plan
        if isinstance(plan, Homes):
            assert isinstance(self.constructs, HomeLists)
            self.constructs.settle(plan)
        self._arrange()

    def _arrange(self) -> None:
        """What the kernel is given beside the constructs."""
        constructs = self.constructs
        if isinstance(self.plan, Sequence):
            self._sequence = self.plan.arrays(self.domains.size)
        words = constructs.size // 64
        self._members = np.full(64 * words, -1, np.int32)
        self._members[constructs.places] = self._numbers
        if isinstance(constructs, HomeLists):
            left = np.empty(STEP * BLOCK + 1, np.uint64), np.empty(STEP * BLOCK + 1, np.int64)
            self._home_scratch = Meeting(np.empty(CHUNK, np.int32), *left)
        else:
            looked_by = np.full(len(self.domains.columns), -1, np.int64)
            self._scratch = LookedAt(np.zeros(words, np.uint64), looked_by, self._members, self.counts)

    def order_of(self, names: Listed[str]) -> list[str]:
        """The columns in the order in which they are looked at, or by how many are at home. names: the producer's."""
        return [names[self.domains.columns[c]] for c in self.plan.order]

    def plan_text(self, names: Listed[str]) -> str:
        """The plan in words. names: the producer's."""
        return self.plan.text([names[c] for c in self.domains.columns])

    def strike(self, box: int) -> None:
        """The box of that number, as they were given, has gone."""
        self._numbers[box] = -1
        self._members[self.constructs.places[box]] = -1
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
        """Add the pairs of a batch to those found; (keys, which are not NULL) as the domains have them."""
        keys, present = self.domains.keys(batch, dictionary)
        began = thread_ns()
        if isinstance(self.constructs, HomeLists):
            self._look_at_homes(self.constructs, self.domains.regions_of(keys, present), found)
        else:
            self._look_at_columns(self.constructs, keys, present, found)
        self.rows += len(batch)
        self.time_ns += thread_ns() - began
        return keys, present

    def _look_at_columns(self, constructs: Constructs, keys: Int64Array, present: BoolArray, found: Found) -> None:
        state = ScreenState(found=found.count)
        self._scratch.looked_by[:] = -1
        found.reserve(4 * keys.shape[1] + len(self._members))
        while True:
            pairs = Pairs(found.rows, found.members)
            screen_rows(keys, present, constructs.arrays, self._sequence, self._scratch, pairs, state)
            found.count = state.found
            if state.row == keys.shape[1]:
                break
            found.reserve(max(len(self._members), found.count))
        self.micro += state.micro

    def _look_at_homes(self, lists: HomeLists, regions: Int32Array, found: Found) -> None:
        regions, groups = lists.by_row(regions)
        state = ScreenState(found=found.count)
        found.reserve(4 * len(regions) + _STEP_PAIRS)
        while True:
            pairs = Pairs(found.rows, found.members)
            screen_homes(regions, groups, lists.arrays, self._members, self._home_scratch, pairs, state)
            found.count = state.found
            if state.row == len(regions):
                break
            found.reserve(max(_STEP_PAIRS, found.count))
        self.counts[0] += len(regions)
        self.words += state.words
