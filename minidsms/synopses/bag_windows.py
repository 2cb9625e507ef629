"""An input of an n-way join whose rows leave in any order: relations, PARTITION BY windows, derived relations.

Its rows stand as words in slots with a free list, behind the index that the other inputs have (docs/design, point 3).

Invariants: a row with a NULL key has a slot and stands in no bucket of a key; a slot freed in a slice is used again
only after `settle`, when everything that was found in the slice has been gathered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import Batch, Column, Int8Array, Int64Array, Schema
from minidsms.kernels.access_methods.contract import Key, Slots, array_of
from minidsms.kernels.access_methods.methods import words_and_others
from minidsms.kernels.arrays import normal
from minidsms.kernels.gathering import OF_INPUT
from minidsms.synopses.row_layout import RowLayout, Standing

if TYPE_CHECKING:
    from minidsms.synopses.window_index import WindowIndex

_LEAST_CAPACITY = 64
_SLICES_BEFORE_SHRINKING = 8
_ROOMY = 1024
"""Slots: fewer are never given up."""
NO_SIGNS: Int8Array = np.zeros(0, np.int8)
NO_TS: Int64Array = np.zeros(0, np.int64)


class BagWindow:
    """One input: its rows by slot.

    keys: as of an `IndexedWindow`.  needed: columns that `gather` will be asked for. Rows that are equal in keys and
    needed columns are one and the same here.
    """

    is_bag = True
    refers = False
    lowest = 0

    def __init__(
        self, index: WindowIndex, number: int, schema: Schema, keys: Sequence[Key], needed: Iterable[int]
    ) -> None:
        # Loaded for the first bag: most joins have none.
        from minidsms.kernels import bag_window

        self._kernels = bag_window
        self.schema = schema
        self.keys = tuple(keys)
        self.layout = RowLayout(schema, sorted(index.columns_of(number, keys) | set(needed)))
        self.figures = index.records[number]
        self._index = index
        self._number = number
        self._words: Int64Array | None = None
        """The keys that are words of a column, with its place in a row; None where that is not known."""
        self._others: list[int] = []
        """The other keys, by their numbers."""
        self._roomy = 0
        self._allocate(_LEAST_CAPACITY)

    def __len__(self) -> int:
        return self._rows.figures.held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held; the index is counted once, by the first input."""
        own = sum(array.nbytes for array in self._rows[:4])
        return own + (self._index.nbytes if self._number == 0 else 0)

    def gather(self, columns: Sequence[int], slots: Int64Array) -> list[Column]:
        """The columns of the rows in these slots."""
        return self.layout.gather(self._rows.words, slots, columns)

    def sources(self, columns: Sequence[int]) -> tuple[Standing, Int64Array]:
        """As of an `IndexedWindow`."""
        words, sources = self._rows.words, self.layout.sources(self._rows.words, columns)
        sources[:, OF_INPUT] = self._number
        return Standing(words, self.layout.seen_nulls.tobytes()), sources

    def stands_at(self, mark: Any) -> bool:
        """See `sources`."""
        is_there: bool = mark.words is self._rows.words
        return is_there and mark.nulls == self.layout.seen_nulls.tobytes()

    def present(self) -> Int64Array:
        """The slots of its rows without a NULL key, ascending.  O(slots)."""
        first = self.figures.nodes
        # Where the link to the newer slot is UNLINKED, the upper half of the word is 0 (`kernels.links`).
        return np.flatnonzero(self._index.nodes[first + 1 : first + 2 * len(self._rows.words) : 2] >> 32)

    def held(self, waiting: Batch | None) -> tuple[Slots, Slots]:
        """As of an `IndexedWindow`: also those that the batch takes out."""
        slots = self._slots()
        if waiting is None:
            return slots, slots[:0]
        named = self._index.places[self.figures.hi : self.figures.hi + len(waiting)]
        if waiting.sign is None:
            return np.setdiff1d(slots, named), named
        coming = named[waiting.sign > 0]
        return np.setdiff1d(np.union1d(slots, named), coming), coming

    def sample(self, most: int) -> Int64Array:
        """Slots of at most so many rows without a NULL key, evenly over all."""
        slots = self.present()
        return slots[np.linspace(0, len(slots) - 1, min(len(slots), most)).astype(np.int64)]

    def recent(self, back: Int64Array) -> Int64Array:
        """Slots of the elements that came last, of the last batch."""
        at: Int64Array = np.maximum(self.figures.hi - 1 - back, 0)
        return self._index.places[at]

    def arrived(self, batch: Batch) -> Int64Array:
        """The slots of the insertions of the batch that was admitted last, oldest first."""
        slots = self.recent(np.arange(len(batch) - 1, -1, -1))
        return slots if batch.sign is None else np.ascontiguousarray(slots[batch.sign > 0])

    # -------------------------------------------------------------------------------------------------- arrivals

    def admit(self, batch: Batch, first: int) -> None:
        """Write the batch's insertions into free slots, and the slot of every element into the index, from `first` on;
        count the changes of each instant.
        """
        n, sign = len(batch.ts), batch.sign
        if n > self._rows.figures.top or self._is_roomy:
            self._reserve(n if sign is None else int(np.count_nonzero(sign > 0)))
        self._take(normal(batch.ts), sign, self.layout.words(batch.column, n), self._index.places, first)

    def settle(self) -> None:
        """What was found in the slice has been gathered: the slots that were left may be used again."""
        line = self._rows.figures
        freed = line.freed
        if freed:
            free, top = self._rows.free, line.top
            free[top : top + freed] = free[-freed:][::-1].copy()
            line.top, line.freed = top + freed, 0

    def release(self) -> None:
        """Nothing outside is claimed."""

    def forget_keys(self) -> None:
        """They are others."""
        self._words = None

    def _take(self, ts: Int64Array, sign: Int8Array | None, rows: Int64Array, places: Int64Array, first: int) -> None:
        """ts: empty where changes are not to be counted.  places: written from `first` on."""
        index, words = self._index, self._words
        if words is None:
            plain, self._others = words_and_others(self.keys)
            table = [(self.figures.key + k, self.layout.columns.index(self.keys[k][0])) for k in plain]
            words = self._words = np.array(table, np.int64).reshape(-1, 2)
        elements = ts, NO_SIGNS if sign is None else normal(sign), sign is not None, rows, self._rows
        keys: Any = words, self.figures, index.nodes, index.keys  # as `KeysOfInput`
        status = self._kernels.take_rows(*elements, keys, places, first, index.runs)
        assert status != self._kernels.MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
        if self._others:
            places = places[first : first + len(rows)]
            index.take_keys(self._number, places if sign is None else places[sign > 0], self._others)

    def write_words(self, x: int, column: int, slots: Slots) -> None:
        """Write a column's words, and whether they are NULL, into key x of these slots."""
        index, j = self._index, self.layout.columns.index(column)
        if self._kernels.take_key(self._rows, j, array_of(slots), index.nodes, index.keys["nodes"].item(x)):
            self.figures.has_nulls = 1

    # ----------------------------------------------------------------------------------------------------- state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The rows held, as words of the columns kept."""
        return {"words": self._rows.words[self._slots()]}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self._refill(np.ascontiguousarray(arrays["words"]), 0)
        self._index.give_up_cells()

    def live_codes(self) -> Iterable[Int64Array]:
        slots = self._slots()
        for j, c in enumerate(self.layout.columns):
            if self.schema[c].type.is_coded:
                yield self._rows.words[slots, j]

    def _slots(self) -> Int64Array:
        """The slots that hold rows."""
        return np.flatnonzero(self._rows.nodes != self._kernels.FREE)

    # --------------------------------------------------------------------------------------------------- storage

    @property
    def _is_roomy(self) -> bool:
        return len(self._rows.words) > _ROOMY

    def _reserve(self, count: int) -> None:
        """Free slots for so many rows more, in arrays neither full nor mostly empty."""
        capacity, top = len(self._rows.words), self._rows.figures.top
        needed = len(self) + count
        self._roomy = self._roomy + 1 if self._is_roomy and needed * 8 < capacity else 0
        if count > top:
            self._grow(1 << (capacity - top + count - 1).bit_length())
        elif self._roomy > _SLICES_BEFORE_SHRINKING and not self._rows.figures.freed:
            self._roomy = 0
            self._refill(self._rows.words[self._slots()], count)

    def _allocate(self, capacity: int) -> None:
        """Empty arrays of so many slots."""
        self._rows = self._kernels.BagRows(
            words=np.zeros((capacity, self.layout.width), np.int64),
            nodes=np.full(capacity, self._kernels.FREE, np.int64),
            heads=np.full(capacity, -1, np.int32),
            free=np.arange(capacity - 1, -1, -1, dtype=np.int32),
            figures=self._kernels.BagSlots(capacity),
            seen_nulls=self.layout.seen_nulls,
        )

    def _grow(self, capacity: int) -> None:
        """More slots; each row keeps its own."""
        before, kernels = self._rows, self._kernels
        top, freed, held = before.figures.top, before.figures.freed, before.figures.held
        old = len(before.words)
        self._allocate(capacity)
        rows, more = self._rows, capacity - old
        rows.words[:old], rows.nodes[:old] = before.words, before.nodes
        rows.free[more : more + top], rows.free[capacity - freed :] = before.free[:top], before.free[old - freed :]
        rows.figures.top, rows.figures.freed, rows.figures.held = more + top, freed, held
        kernels.rehash(rows.heads, rows.nodes)
        self._index.set_capacity(self._number, capacity)

    def _refill(self, words: Int64Array, more: int) -> None:
        """Hold exactly these rows, in new slots, with room for more."""
        n, index = len(words), self._index
        capacity = max(_LEAST_CAPACITY, 1 << (n + more).bit_length())
        self._allocate(capacity)
        index.renumberings += 1
        index.clear(self._number)
        index.set_capacity(self._number, capacity)
        # The index's places have the slots of inputs that came before this one.
        places: Int64Array = np.empty(n, np.int64)
        self._take(NO_TS, None, words, places, 0)
        index.link_bag(self._number, places)
