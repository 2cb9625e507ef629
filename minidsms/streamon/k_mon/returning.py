"""How rows that were let go come back: the exact mode of k-Mon (Babu 2005, section 6.1.6).

*Ways* lead to a row: the sides of its stream and, where the answer relies on a key by which nothing is joined, that
key. For each that was closed its words stand in a Bloom filter. A row that comes by a closed way brings it back, and
with it whatever was let go beside it, through rows that have stayed, too (`synopses.k_mon_staying`).

Invariant: when a row is taken in, every row that it makes a result with is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array, Type
from minidsms.kernels.k_mon_join import CHANGES, CLOCK, HI, LO, NUMBER, SIDE, SIDES_END, STREAM, UNIQUE
from minidsms.kernels.k_mon_reduction import MATCH, NEW, STANDS
from minidsms.streamon.k_mon.contracts import Kind
from minidsms.synopses.k_mon_rows import KMonRows, key_hash
from minidsms.synopses.k_mon_spill import Spill, stacked
from minidsms.synopses.k_mon_staying import StayingKeys

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]

_MET = 32
"""In the mask of a row that has gone: bit n of the n-th way that was closed, bit _MET + n where a row stood there."""


@dataclass
class Found:
    """What came back. rows: of each stream.  broken: the sides by which rows came that constraints excluded.

    repeated: the sides in whose columns two rows of a stream agree, with the hash of one such key.  repeated_roots: the
    streams of which two rows agree in the columns of `Returning.unique`, with the same.
    """

    rows: list[list[Int64Array]]
    broken: set[int] = field(default_factory=set)
    repeated: dict[int, int] = field(default_factory=dict)
    repeated_roots: dict[int, int] = field(default_factory=dict)


class Returning:
    """The rows that are out of memory, and the ways back.

    unique: of each stream, columns by which no two rows of it were said to agree though nothing is joined by them.
    """

    def __init__(self, rows: KMonRows, unique: dict[int, tuple[int, ...]]) -> None:
        self.rows = rows
        n = len(rows.figures)
        self._sides: list[list[int]] = [
            rows.of_stream[rows.figures[i, SIDE] : rows.figures[i, SIDES_END]].tolist() for i in range(n)
        ]
        self._unique = {i: [rows.places[i][c] for c in columns] for i, columns in unique.items()}
        texts = [
            [rows.places[i][c] for c in columns if rows.schemas[i][c].type is Type.TEXT]
            for i, columns in enumerate(rows.columns)
        ]
        ways = [len(sides) + (i in unique) for i, sides in enumerate(self._sides)]
        # Before the words of a row stands its mask.
        clocks = [1 + max(int(a), 0) for a in rows.figures[:, NUMBER]]
        self.spill = Spill(ways, clocks, [[1 + place for place in places] for places in texts])
        self.staying = [StayingKeys(count) for count in ways]

    # ---------------------------------------------------------------------------------------------------- going

    def put(self, i: int, at: Int64Array, messages: Sequence[Verdicts]) -> None:
        """Rows of a stream go. at: their slots.  messages: by side, what each row has by it."""
        gone = self.rows.view(i, 0, int(self.rows.figures[i, HI]))[at]
        mask = np.zeros(len(at), np.int64)
        sides = self._sides[i]
        keys = [self.keys_of(i, n, gone) for n in range(len(sides) + (i in self._unique))]
        # Beside a row that has stayed, though closed, others may have gone as complete: they do not stand there, and
        # are found by it alone.
        is_beside: BoolArray = np.zeros(len(at), np.bool_)
        for n in range(len(sides)):
            is_beside |= self.staying[i].test(n, keys[n])
        for n, is_way in enumerate(_ways_back([messages[n][at] for n in range(len(sides))], is_beside)):
            mask |= is_way.astype(np.int64) << n
            mask |= (messages[n][at] & STANDS != 0).astype(np.int64) << (_MET + n)
        if i in self._unique:
            mask |= np.int64(1) << len(sides)
        self.spill.put(i, np.column_stack((mask, gone)), np.stack(keys), mask)

    def stay(self, i: int, at: Int64Array, messages: Sequence[Verdicts]) -> None:
        """Rows of a stream stay when others go. See `put`."""
        sides, is_unique = self._sides[i], i in self._unique
        if len(sides) < 2 and not is_unique:
            return  # nothing stands beyond them
        held = self.rows.view(i, 0, int(self.rows.figures[i, HI]))[at]
        for n in range(len(sides)):
            closed = messages[n][at] & (MATCH | NEW) != MATCH | NEW
            self.staying[i].renew(n, self.keys_of(i, n, held), closed)
        if is_unique:
            self.staying[i].renew(len(sides), self.keys_of(i, len(sides), held), np.ones(len(at), np.bool_))

    def keys_of(self, i: int, way: int, rows: Int64Array) -> Int64Array:
        """The hash by which rows of a stream are found by a way."""
        sides = self._sides[i]
        places = self.rows.parts_of(sides[way]) if way < len(sides) else np.array(self._unique[i])
        return key_hash(rows[:, places])

    def closed(self, s: int, kind: Kind) -> int:
        """Rows out of memory for which a side was closed: by a KEY, because a row stood there; else by what was watched
        of those to come.
        """
        i, way = self._way(s)
        rows = self.spill.all(i)
        if rows is None:
            return 0
        masks = rows[:, 0]
        is_closed = (masks >> way) & 1 == 1
        is_met = (masks >> (_MET + way)) & 1 == 1
        if kind is Kind.KEY:
            is_closed &= is_met
        elif kind in (Kind.RIDS, Kind.OAC):
            is_closed &= ~is_met
        return int(np.count_nonzero(is_closed))

    # ------------------------------------------------------------------------------------------------ coming back

    def find(
        self, arrivals: Sequence[tuple[int, Int64Array]], roots: Sequence[tuple[int, Int64Array]],
        present: Callable[[int], int],
    ) -> Found:  # fmt: skip
        """What comes back for rows about to come.

        arrivals: (side, keys) of the rows of a side's stream.  roots: (stream, keys) by the columns in `unique`.
        present: the least clock of a row of a stream that is in its window.
        """
        found = Found([[] for _ in self._sides])
        # (the stream that is asked, by which way, keys, whether those who ask are about to come)
        asked = [(*self._way(s ^ 1), keys, True) for s, keys in arrivals]
        asked += [(i, len(self._sides[i]), keys, True) for i, keys in roots]
        while asked:
            i, way, keys, is_arrival = asked.pop(0)
            is_root = way == len(self._sides[i])
            taken = self.spill.find(i, way, keys, present(i)) if self.spill.held(i) else None
            if taken is not None:
                masks, rows = taken[:, 0], taken[:, 1:]
                found.rows[i].append(rows)
                if is_root:
                    found.repeated_roots.setdefault(i, int(self.keys_of(i, way, rows)[0]))
                elif is_arrival:
                    self._note_broken(found, i, way, rows, masks)
                asked += self._beside(i, rows, -1)
            known = self.staying[i].test(way, keys)
            if known.any():
                low, high = int(self.rows.figures[i, LO]), int(self.rows.figures[i, HI])
                held = self.rows.view(i, low, high)
                theirs = self.keys_of(i, way, held)
                met = np.isin(theirs, keys[known])
                if met.any():
                    if is_root:
                        found.repeated_roots.setdefault(i, int(theirs[met][0]))
                    asked += self._beside(i, held[met], way)
        return found

    def merge(self, found: Found) -> None:
        """Hold what came back among the others; no rows wait to be taken in."""
        if any(found.rows):
            self.rows.merge([stacked(rows) if rows else None for rows in found.rows])

    def _note_broken(self, found: Found, i: int, way: int, rows: Int64Array, masks: Int64Array) -> None:
        """Rows of stream i that went are met by a way that was closed for them: what was wrong?"""
        t = self._sides[i][way]
        met = (masks >> (_MET + way)) & 1 == 1
        # A relation's row that was met may have been deleted since; two that stand together are seen to.
        if met.any() and self.rows.figures[self.rows.sides[t ^ 1, STREAM], CLOCK] != CHANGES:
            found.repeated.setdefault(t ^ 1, int(self.keys_of(i, way, rows[met])[0]))
        if not met.all() or not self.rows.sides[t ^ 1, UNIQUE]:
            found.broken.add(t)

    def _beside(self, i: int, rows: Int64Array, but: int) -> list[tuple[int, int, Int64Array, bool]]:
        """Who is to be asked for what stands beside rows of a stream, not by the way `but`."""
        sides = self._sides[i]
        return [(*self._way(s ^ 1), self.keys_of(i, n, rows), False) for n, s in enumerate(sides) if n != but]

    def _way(self, s: int) -> tuple[int, int]:
        """A side's stream, and the number of the side there."""
        i = int(self.rows.sides[s, STREAM])
        return i, self._sides[i].index(s)


def _ways_back(messages: Sequence[Verdicts], is_beside: BoolArray) -> list[BoolArray]:
    """By which of its sides each row is to be found. messages: of each side, what the rows have by it.

    By each by which no more is expected it would be found in time; by all, where others may have gone beside it. But
    if there is one where nothing stands that joins it, that one is enough: until a row comes there it is part of no
    result, and then it asks for the others by all its sides.
    """
    ways: list[BoolArray] = []
    is_enough = is_beside.copy()
    for has in messages:
        is_lost = (has & (MATCH | STANDS) == 0) & ~is_enough
        ways.append(is_lost)
        is_enough |= is_lost
    for n, has in enumerate(messages):
        ways[n] |= ((has & (MATCH | NEW) != MATCH | NEW) & ~is_enough) | is_beside
    return ways
