"""An input of an n-way join whose rows leave in any order: relations, PARTITION BY windows, derived relations.

Its rows stand as words in slots with a free list, behind the index that the other inputs have (docs/design, point 3).

Invariants: a row with a NULL key has a slot and stands in no bucket of a key; a slot freed in a slice is used again
only after `settle`, when everything that was found in the slice has been gathered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema
from minidsms.kernels.access_methods.contract import Key, Slots, array_of
from minidsms.kernels.arrays import normal
from minidsms.kernels.hashing import hash_rows
from minidsms.kernels.join_layout import HAS_NULLS, HI, NODES, ROWS
from minidsms.synopses.row_layout import RowLayout

if TYPE_CHECKING:
    from minidsms.synopses.indexed_windows import WindowIndex

_LEAST_CAPACITY = 64
_SLICES_BEFORE_SHRINKING = 8


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
        self.figures = index.inputs[number]
        self._index = index
        self._number = number
        self._freed: list[Int64Array] = []
        self._roomy = 0
        self._top = self._held = 0
        self._allocate(_LEAST_CAPACITY)

    def __len__(self) -> int:
        return self._held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held; the index is counted once, by the first input."""
        own = sum(array.nbytes for array in self._rows)
        return own + (self._index.nbytes if self._number == 0 else 0)

    def gather(self, columns: Sequence[int], slots: Int64Array) -> list[Column]:
        """The columns of the rows in these slots."""
        return self.layout.gather(self._rows.words, slots, columns)

    def present(self) -> Int64Array:
        """The slots of its rows without a NULL key, ascending.  O(slots)."""
        first = self.figures.item(ROWS)
        # Where the link to the newer slot is UNLINKED, the upper half of the word is 0 (`kernels.links`).
        return np.flatnonzero(self._index.nodes[first + 1 : first + 2 * len(self._rows.words) : 2] >> 32)

    def sample(self, most: int) -> Int64Array:
        """Slots of at most so many rows without a NULL key, evenly over all."""
        slots = self.present()
        return slots[np.linspace(0, len(slots) - 1, min(len(slots), most)).astype(np.int64)]

    def recent(self, back: Int64Array) -> Int64Array:
        """Slots of the elements that came last, of the last batch."""
        at: Int64Array = np.maximum(self.figures[HI] - 1 - back, 0)
        return self._index.places[at]

    def arrived(self, batch: Batch) -> Int64Array:
        """The slots of the insertions of the batch that was admitted last, oldest first."""
        slots = self.recent(np.arange(len(batch) - 1, -1, -1))
        return slots if batch.sign is None else np.ascontiguousarray(slots[batch.sign > 0])

    # -------------------------------------------------------------------------------------------------- arrivals

    def admit(self, batch: Batch) -> Int64Array:
        """Write the batch's insertions into free slots; gives the slot of every element."""
        n = len(batch)
        signs = normal(batch.signs)
        arrived = n if batch.sign is None else int(np.count_nonzero(signs > 0))
        self._reserve(arrived)
        places, freed = self._take(self.layout.words(batch.column, n), signs, n - arrived)
        self._freed.append(freed)
        self._index.take_keys(self._number, places if batch.sign is None else places[signs > 0], range(len(self.keys)))
        return places

    def settle(self) -> None:
        """What was found in the slice has been gathered: the slots that were left may be used again."""
        for freed in self._freed:
            self._rows.free[self._top : self._top + len(freed)] = freed
            self._top += len(freed)
        self._freed.clear()

    def release(self) -> None:
        """Nothing outside is claimed."""

    def _take(self, rows: Int64Array, signs: Any, leaving: int) -> tuple[Int64Array, Int64Array]:
        places, freed = np.empty(len(rows), np.int64), np.empty(leaving, np.int64)
        top = self._kernels.take_rows(signs, rows, hash_rows(rows), self._rows, self._top, places, freed)
        assert top != self._kernels.MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
        self._top = int(top)
        self._held += len(rows) - 2 * leaving
        return places, freed

    def write_words(self, x: int, column: int, slots: Slots) -> None:
        """Write a column's words, and whether they are NULL, into key x of these slots."""
        layout, index = self.layout, self._index
        j = layout.columns.index(column)
        mask_word = layout.width - layout.masks + j // 62
        base, slots = index.keys.item(x, NODES), array_of(slots)
        if self._kernels.take_key_words(self._rows.words, j, mask_word, j % 62, slots, index.nodes, base):
            self.figures[HAS_NULLS] = 1

    # ----------------------------------------------------------------------------------------------------- state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The rows held, as words of the columns kept."""
        return {"words": self._rows.words[self._slots()]}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        self._refill(np.ascontiguousarray(arrays["words"]), 0)

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held."""
        slots = self._slots()
        for j, c in enumerate(self.layout.columns):
            if self.schema[c].type.is_coded:
                yield self._rows.words[slots, j]

    def _slots(self) -> Int64Array:
        """The slots that hold rows."""
        return np.flatnonzero(self._rows.nodes != self._kernels.FREE)

    # --------------------------------------------------------------------------------------------------- storage

    def _reserve(self, count: int) -> None:
        """Free slots for so many rows more, in arrays neither full nor mostly empty."""
        capacity = len(self._rows.words)
        needed = self._held + count
        self._roomy = self._roomy + 1 if capacity > 1024 and needed * 8 < capacity else 0
        if count > self._top:
            self._grow(1 << (capacity - self._top + count - 1).bit_length())
        elif self._roomy > _SLICES_BEFORE_SHRINKING and not self._freed:
            self._roomy = 0
            self._refill(self._rows.words[self._slots()], count)

    def _allocate(self, capacity: int) -> None:
        """Empty arrays of so many slots."""
        self._rows = self._kernels.BagRows(
            words=np.zeros((capacity, self.layout.width), np.int64),
            nodes=np.full(capacity, self._kernels.FREE, np.int64),
            heads=np.full(capacity, -1, np.int32),
            free=np.arange(capacity - 1, -1, -1, dtype=np.int32),
        )
        self._top = capacity
        self._held = 0

    def _grow(self, capacity: int) -> None:
        """More slots; each row keeps its own."""
        before, free = self._rows, self._rows.free[: self._top]
        old, held = len(before.words), self._held
        self._allocate(capacity)
        rows = self._rows
        rows.words[:old], rows.nodes[:old], self._held = before.words, before.nodes, held
        self._top = capacity - old + len(free)
        rows.free[capacity - old : self._top] = free
        self._kernels.rehash(rows.heads, rows.nodes)
        self._index.set_capacity(self._number, capacity)

    def _refill(self, words: Int64Array, more: int) -> None:
        """Hold exactly these rows, in new slots, with room for more."""
        n = len(words)
        capacity = max(_LEAST_CAPACITY, 1 << (n + more).bit_length())
        self._freed.clear()
        self._allocate(capacity)
        self._index.renumberings += 1
        self._index.clear(self._number)
        self._index.set_capacity(self._number, capacity)
        self.layout.note_nulls(words)
        places, _ = self._take(words, np.ones(n, np.int8), 0)
        self._index.take_keys(self._number, places, range(len(self.keys)))
        self._index.link_bag(self._number, places)
        self._index.give_up_cells()
