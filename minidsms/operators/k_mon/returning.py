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

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels.k_mon_rows import CHANGES, DELETION, FIRST_LINK, RANGE, find_held
from minidsms.kernels.k_mon_spill import MET, Held, gather_closed, gather_going
from minidsms.operators.k_mon.contracts import Kind
from minidsms.synopses.k_mon_rows import KMonRows, key_hash
from minidsms.synopses.k_mon_spill import Spill, stacked
from minidsms.synopses.k_mon_staying import StayingKeys

Verdicts = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass
class Found:
    """What came back. rows: of each stream.  broken: the sides by which rows came that constraints excluded.

    repeated: the sides in whose columns two rows of a stream agree, with the hash of one such key.  repeated_roots: the
    streams of which two rows agree in the columns of `Returning.unique`, with the same.  updated: the sides of
    relations, with how many rows came back that had met another row of one of the keys that come.
    """

    rows: list[list[Int64Array]]
    broken: set[int] = field(default_factory=set)
    repeated: dict[int, int] = field(default_factory=dict)
    repeated_roots: dict[int, int] = field(default_factory=dict)
    updated: dict[int, int] = field(default_factory=dict)


class Returning:
    """The rows that are out of memory, and the ways back.

    unique: of each stream, columns by which no two rows of it were said to agree though nothing is joined by them.
    """

    def __init__(self, rows: KMonRows, unique: dict[int, tuple[int, ...]]) -> None:
        self.rows = rows
        self._sides = rows.sides_of
        self._unique = {i: [rows.places[i][c] for c in columns] for i, columns in unique.items()}
        texts = [
            [rows.places[i][c] for c in columns if rows.schemas[i][c].type.is_coded]
            for i, columns in enumerate(rows.columns)
        ]
        ways = [len(sides) + (i in unique) for i, sides in enumerate(self._sides)]
        # Before the words of a row stands its mask.
        clocks = [1 + max(int(a), 0) for a in rows.figures["number"]]
        self.spill = Spill(ways, clocks, [[1 + place for place in places] for places in texts])
        self.staying = [StayingKeys(count) for count in ways]
        self._ways: list[tuple[Int64Array, Int64Array]] = []
        """Of each stream: the places of the columns of its ways, one after the other, and where each begins."""
        for i, sides in enumerate(self._sides):
            parts = [rows.parts_of(s) for s in sides] + ([np.array(self._unique[i])] if i in self._unique else [])
            bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
            self._ways.append((np.concatenate(parts).astype(np.int64), bounds))
        self._within = [
            next((n for n, s in enumerate(sides) if set(rows.parts_of(s)) <= set(self._unique.get(i, ()))), None)
            for i, sides in enumerate(self._sides)
        ]
        """Of each stream: a side whose columns are among those in `unique`, so that it leads to rows that agree in
        them."""

    # ---------------------------------------------------------------------------------------------------- going

    def reserve(self, i: int, count: int) -> None:
        """Make room for so many rows of a stream, which `put` takes. Raises OSError where there is none."""
        self.spill.reserve(i, count, 1 + int(self.rows.strides[i]))

    def put(self, i: int, at: Int64Array, messages: Verdicts, first: Int64Array) -> None:
        """Rows of a stream go. at: their slots.  messages: what each row has by each side, from first[side] on."""
        places, bounds = self._ways[i]
        own = self._sides[i]
        filters = [self.staying[i].filter_of(n) for n in range(len(own))]
        going = self._rows_at(i, at, messages)
        gone: Int64Array = np.empty((len(at), 1 + going.stride), np.int64)
        keys: Int64Array = np.empty((len(bounds) - 1, len(at)), np.int64)
        gather_going(
            going, first[own], places, bounds, np.concatenate(filters),
            np.cumsum([0, *map(len, filters)], dtype=np.int64), gone, keys,
        )  # fmt: skip
        self.spill.put(i, gone, keys, gone[:, 0])

    def stay(self, i: int, at: Int64Array, messages: Verdicts, first: Int64Array) -> None:
        """Rows of a stream stay when others go. See `put`."""
        own, is_unique = self._sides[i], i in self._unique and self._within[i] is None
        if len(own) < 2 and not is_unique:
            return  # nothing stands beyond them
        held = self._rows_at(i, at, messages)
        keys: Int64Array = np.empty(len(at), np.int64)
        for n in range(len(own) + is_unique):
            count = gather_closed(
                held, first[own[n]] if n < len(own) else 0, n == len(own), self.places_of(i, n),
                self.staying[i].filter_of(n), keys,
            )  # fmt: skip
            self.staying[i].renew(n, keys[:count])

    def _rows_at(self, i: int, at: Int64Array, messages: Verdicts) -> Held:
        figures = self.rows.streams[i]
        return Held(self.rows.cells, figures.begins_at, int(self.rows.strides[i]), at, messages)

    def places_of(self, i: int, way: int) -> Int64Array:
        """The words of a stream's rows by which a way finds them."""
        places, bounds = self._ways[i]
        return places[bounds[way] : bounds[way + 1]]

    def keys_of(self, i: int, way: int, rows: Int64Array) -> Int64Array:
        """The keys by which rows of a stream, (m, words), are found by a way."""
        return key_hash(rows, self.places_of(i, way))

    def closed(self, s: int, kind: Kind) -> int:
        """Rows out of memory for which a side was closed: by a KEY, because a row stood there; else by what was watched
        of those to come.
        """
        i, way = self._way(s)
        count = 0
        for masks in self.spill.first_words(i):
            is_closed = (masks >> way) & 1 == 1
            is_met = (masks >> (MET + way)) & 1 == 1
            if kind is Kind.KEY:
                is_closed &= is_met
            elif kind in (Kind.RIDS, Kind.OAC):
                is_closed &= ~is_met
            count += int(np.count_nonzero(is_closed))
        return count

    # ------------------------------------------------------------------------------------------------ coming back

    def find(self, waiting: Sequence[int], present: Callable[[int], int]) -> Found:
        """What comes back for rows about to come: of each stream those from slot waiting[stream] on.

        present: the least clock of a row of a stream that is in its window.
        """
        found = Found([[] for _ in self._sides])
        keys = [self._keys_of_waiting(i, first) for i, first in enumerate(waiting)]
        # (the stream that is asked, by which way, keys, whether those who ask are about to come)
        asked = [
            (*self._way(s ^ 1), self._but_deletions(i, waiting[i], keys[i][n]), True)
            for i, sides in enumerate(self._sides)
            for n, s in enumerate(sides)
            if len(keys[i][n])
        ]
        asked += [(i, len(self._sides[i]), keys[i][-1], True) for i in self._unique if len(keys[i][-1])]
        while asked:
            i, way, theirs, is_arrival = asked.pop(0)
            is_root = way == len(self._sides[i])
            taken = self.spill.find(i, way, theirs, present(i)) if self.spill.held(i) else None
            if taken is not None:
                masks, rows = taken[:, 0], taken[:, 1:]
                found.rows[i].append(rows)
                if is_root:
                    found.repeated_roots.setdefault(i, int(self.keys_of(i, way, rows)[0]))
                elif is_arrival:
                    stays = self._stays(i, rows, present(i))
                    self._note_broken(found, i, way, rows[stays], masks[stays])
                asked += self._beside(i, rows, -1)
            held = self._held(i, way, theirs, keys[i])
            if len(held):
                if is_root:
                    found.repeated_roots.setdefault(i, int(self.keys_of(i, way, held)[0]))
                asked += self._beside(i, held, way)
        return found

    def _keys_of_waiting(self, i: int, first: int) -> list[Int64Array]:
        """The keys of the rows of a stream that are about to come, by each way."""
        waiting = self.rows.view(i, first, self.rows.streams[i].end)
        return [self.keys_of(i, way, waiting) for way in range(len(self._ways[i][1]) - 1)]

    def _but_deletions(self, i: int, first: int, keys: Int64Array) -> Int64Array:
        """Of the keys of waiting rows, those of rows that come."""
        if self.rows.figures["clock"][i] != CHANGES:
            return keys
        theirs: Int64Array = keys[self.rows.view(i, first, first + len(keys))[:, FIRST_LINK] != DELETION]
        return theirs

    def _held(self, i: int, way: int, keys: Int64Array, of_waiting: list[Int64Array]) -> Int64Array:
        """The rows of a stream in memory that have one of these keys by a way, and were closed by it.

        of_waiting: the keys of the stream's rows that are about to come, which ask by its last way.
        """
        if way == len(self._sides[i]) and (known_by := self._within[i]) is not None:
            return self._met(i, known_by, of_waiting[known_by], way, keys)
        known = self.staying[i].test(way, keys)
        if not known.any():
            return self.rows.view(i, 0, 0)
        keys = keys[known]
        if way < len(self._sides[i]):
            return self._met(i, way, keys, way, keys)
        held = self.rows.view(i, self.rows.records[i].lo, self.rows.records[i].hi)
        return held[np.isin(self.keys_of(i, way, held), keys)]

    def _met(self, i: int, n: int, keys: Int64Array, way: int, wanted: Int64Array) -> Int64Array:
        """The rows of a stream in memory that have one of these keys by the n-th side, and what is wanted by a way."""
        rows, places = self.rows, self.places_of(i, way)
        slots: Int64Array = np.empty(64, np.int64)
        while True:
            count = find_held(
                rows.bundle, self._sides[i][n], keys, places, wanted, slots,
            )  # fmt: skip
            if count <= len(slots):
                break
            slots = np.empty(count, np.int64)
        if not count:
            return rows.view(i, 0, 0)
        return rows.view(i, 0, rows.records[i].hi)[np.unique(slots[:count])]

    def all(self, present: Callable[[int], int]) -> Found:
        """All rows that are out of memory and in their windows; nothing is out of memory then. See `find`."""
        taken = self.spill.take_all([present(i) for i in range(len(self._sides))])
        return Found([[] if rows is None or not len(rows) else [rows[:, 1:]] for rows in taken])

    def merge(self, found: Found) -> None:
        """Hold what came back among the others; no rows wait to be taken in."""
        if any(found.rows):
            self.rows.merge([stacked(rows) if rows else None for rows in found.rows])

    def _stays(self, i: int, rows: Int64Array, present: int) -> BoolArray:
        """Rows of a stream that are not about to leave their window, where such have come back as well: a row that
        comes when they leave breaks no constraint.
        """
        if not self._unique or self.rows.figures["clock"][i] != RANGE:
            return np.ones(len(rows), np.bool_)
        return np.asarray(rows[:, 0] > present)

    def _note_broken(self, found: Found, i: int, way: int, rows: Int64Array, masks: Int64Array) -> None:
        """Rows of stream i that went are met by a way that was closed for them: what was wrong?"""
        if not len(rows):
            return
        t = self._sides[i][way]
        met = (masks >> (MET + way)) & 1 == 1
        if self.rows.figures["clock"][self.rows.sides["stream"][t ^ 1]] == CHANGES:
            # The row that was met may have been deleted since; two that stand together are seen to.
            found.updated[t ^ 1] = found.updated.get(t ^ 1, 0) + len(rows)
        elif met.any():
            found.repeated.setdefault(t ^ 1, int(self.keys_of(i, way, rows[met])[0]))
        if not met.all() or not self.rows.sides["unique"][t ^ 1]:
            found.broken.add(t)

    def _beside(self, i: int, rows: Int64Array, but: int) -> list[tuple[int, int, Int64Array, bool]]:
        """Who is to be asked for what stands beside rows of a stream, not by the way `but`."""
        sides = self._sides[i]
        return [(*self._way(s ^ 1), self.keys_of(i, n, rows), False) for n, s in enumerate(sides) if n != but]

    def _way(self, s: int) -> tuple[int, int]:
        """A side's stream, and the number of the side there."""
        i = int(self.rows.sides["stream"][s])
        return i, self._sides[i].index(s)
