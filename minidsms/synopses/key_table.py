"""A table of distinct rows: each row present has a dense id, by which operators keep what they know of it in arrays.

Invariant: ids in use are below `capacity`, equal rows have one id, an id given back is used again before a new one.
What is held follows the rows present, not the rows ever seen: `compact` gives memory back when most ids are free.
docs/design, points 2 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, Column, Int8Array, Int64Array, Schema, columns_of_words, row_words, words_width
from minidsms.kernels import key_table as kernels
from minidsms.kernels.arrays import normal

_FIRST_CAPACITY = 64
_WORTH_SHRINKING = 4096
_LOOSE = 1 << 15
"""Slots up to which a table has eight for each id, so that few rows meet another's; more would leave the cache."""
NO_ARRIVALS: tuple[npt.NDArray[np.int32], Int64Array] = np.zeros(0, np.int32), np.zeros(0, np.int64)
"""In place of `ArrivalRing.parts` where what leaves is looked up."""
NO_STACKS: Int64Array = np.zeros((0, 0), np.int64)
"""In place of its `stacks`."""


class KeyTable:
    """Rows of `width` words to ids.

    text: positions of the words that are TEXT codes (for the dictionary's sweep).
    """

    def __init__(self, width: int, text: Sequence[int] = ()) -> None:
        self.width = width
        self.text = tuple(text)
        self._reset(_FIRST_CAPACITY)

    @classmethod
    def of_schema(cls, schema: Schema) -> KeyTable:
        """A table for whole rows of the schema, as `elements.row_words` writes them."""
        return cls(words_width(len(schema)), schema.coded)

    def _reset(self, capacity: int) -> None:
        keys, links = np.zeros((capacity, self.width), np.int64), np.zeros(capacity, np.int64)
        slots, meta = _slots_for(capacity), np.array([0, capacity, 0], np.int64)
        self.keys: Int64Array = keys
        self._links: Int64Array = links
        self._slots, self._meta = slots, meta
        self.parts = kernels.Table(slots, keys, links, meta)
        """As the kernels take them."""

    def __len__(self) -> int:
        return int(self._meta[0])

    @property
    def capacity(self) -> int:
        """Every id is below it: the length arrays indexed by id need."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self._links.nbytes + self._slots.nbytes

    def growth(self, n: int) -> int:
        """Bytes that the table grows by at most for n more rows, about: as many as it has each time it doubles."""
        capacity = self.capacity
        while capacity < len(self) + n:
            capacity *= 2
        return self.nbytes * (capacity // self.capacity - 1)

    # -------------------------------------------------------------------------------------------- rows and ids

    def acquire(self, words: Int64Array) -> Int64Array:
        """The ids of the rows, (n,), new ones for rows not yet present. words: (n, width), C-contiguous."""
        n = len(words)
        ids = np.empty(n, np.int64)
        done = 0
        while True:
            done = kernels.acquire(words, self._slots, self.keys, self._links, self._meta, ids, done, True)
            if done == n:
                return ids
            self.grow()

    def acquire_columns(self, columns: Sequence[Column]) -> Int64Array:
        """The same for rows given as columns, as `elements.row_words` writes them."""
        if len(columns) != 1 or (columns[0].valid is not None and not columns[0].valid.all()):
            return self.acquire(row_words(columns))
        words = normal(columns[0].words())
        n = len(words)
        ids = np.empty(n, np.int64)
        done = 0
        while True:
            done = kernels.acquire_words(words, self._slots, self.keys, self._links, self._meta, ids, done)
            if done == n:
                return ids
            self.grow()

    def find(self, words: Int64Array) -> Int64Array:
        """The ids of the rows, -1 for rows not present."""
        ids = np.empty(len(words), np.int64)
        kernels.acquire(words, self._slots, self.keys, self._links, self._meta, ids, 0, False)
        return ids

    def release(self, ids: Int64Array) -> None:
        """Give ids back; one may be named twice, -1 is passed over. The words stay readable until the next acquire."""
        if len(ids):
            kernels.release(ids, self._slots, self.keys, self._links, self._meta)

    def live(self) -> Int64Array:
        """The ids in use, ascending."""
        return np.flatnonzero(self._links[: self._meta[2]] == -1)

    def columns(self, ids: Int64Array, schema: Schema) -> list[Column]:
        """The rows of these ids as columns."""
        return columns_of_words(self.keys[ids], schema)

    # -------------------------------------------------------------------------------------------------- memory

    def grow(self) -> None:
        """Twice the capacity; ids stay. Called only when every id is in use."""
        used = self.capacity
        capacity = 2 * used
        keys = np.concatenate([self.keys, np.zeros((used, self.width), np.int64)])
        links = np.concatenate([self._links, np.zeros(used, np.int64)])
        # Only when there is room for all of it does anything change.
        self._slots = _slots_for(capacity)
        self.keys, self._links, self._meta[1] = keys, links, capacity
        self.parts = kernels.Table(self._slots, keys, links, self._meta)
        kernels.rehash(self._slots, self.keys, self._links, used)

    @property
    def is_sparse(self) -> bool:
        """Most ids are free, and many."""
        return _WORTH_SHRINKING < len(self.keys) >= len(self) * 8

    def compact(self, remap: tuple[int, Int64Array] | None = None) -> Int64Array | None:
        """Give memory back if most ids are free: then the rows are numbered anew, and the result names, for each
        new id, the old one.

        None: nothing changed. remap: (word, new value of each old value), for tables whose rows hold another
        table's ids; it forces the renumbering.
        """
        if remap is None and not self.is_sparse:
            return None
        kept = self.live()
        keys = self.keys[kept]
        if remap is not None:
            keys[:, remap[0]] = remap[1][keys[:, remap[0]]]
        self._load(keys, 2 * len(keys))
        return kept

    def _load(self, keys: Int64Array, room: int) -> None:
        """room: for so many rows, these among them."""
        n = len(keys)
        self._reset(max(_FIRST_CAPACITY, 1 << (room - 1).bit_length() if room else 0))
        self.keys[:n] = keys
        self._links[:n] = -1
        self._meta[0] = self._meta[2] = n
        kernels.rehash(self._slots, self.keys, self._links, n)

    def arrays(self) -> dict[str, Int64Array]:
        """The state: the rows in use in the order of their ids. `restore` numbers them 0, 1, .. in this order."""
        return {"keys": self.keys[self.live()]}

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        keys = np.ascontiguousarray(arrays["keys"])
        self._load(keys, len(keys))  # no more than they had when they came one by one

    def live_codes(self) -> Iterable[Int64Array]:
        if self.text:
            live = self.live()
            for word in self.text:
                yield self.keys[live, word]


class ArrivalRing:
    """The ids of the rows present in the order of their arrival, for inputs that delete in the order of insertion.

    stacks: words of each row, for aggregates that are `grouping.STACKED`.

    Invariant: the k-th deletion takes back the k-th insertion, so a row that leaves need not be looked up.
    """

    def __init__(self, stacks: int = 0) -> None:
        self._ring = np.zeros(_FIRST_CAPACITY, np.int32)
        self.stacks: Int64Array = np.zeros((_FIRST_CAPACITY, stacks), np.int64)
        self._ends: Int64Array = np.zeros(3, np.int64)
        """The oldest row, the next one, and the end of the front stack."""

    def __len__(self) -> int:
        return int(self._ends[1] - self._ends[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self._ring.nbytes + self.stacks.nbytes

    def recall(self, sign: Int8Array, arrived: Int64Array) -> Int64Array:
        """The ids of elements with these signs (never 0), given those of the insertions among them."""
        ring, ends = self.parts(sign)
        ids = np.empty(len(sign), np.int64)
        kernels.recall(sign, arrived, ring, ends, ids)
        return ids

    def parts(
        self, sign: Int8Array, claim: Callable[[int], None] | None = None
    ) -> tuple[npt.NDArray[np.int32], Int64Array]:
        """(ring, ends), as the kernels take them, with room for elements with these signs. claim: told of the bytes
        that this takes.
        """
        oldest, following, _ = self._ends.tolist()
        size, needed = len(self._ring), following - oldest + len(sign)
        if needed > size:
            needed = following - oldest + int(np.count_nonzero(sign > 0))
        if needed > size or (size > _WORTH_SHRINKING and needed * 8 < size):
            if claim is not None and needed > size:
                claim((_size_for(needed) - size) * (self.nbytes // size))
            self._load(self._held(), needed)
        return self._ring, self._ends

    def renumber(self, kept: Int64Array) -> None:
        """The row with id kept[i] has id i from now on."""
        places = np.zeros(int(kept.max()) + 1 if len(kept) else 1, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        self._load(places[self._held()], len(self))

    def _places(self) -> Int64Array:
        places: Int64Array = np.arange(self._ends[0], self._ends[1]) & (len(self._ring) - 1)
        return places

    def _held(self) -> npt.NDArray[np.int32]:
        held: npt.NDArray[np.int32] = self._ring[self._places()]
        return held

    def _load(self, held: npt.NDArray[np.int32], needed: int) -> None:
        stacks, front = self.stacks[self._places()], max(0, self._ends[2] - self._ends[0])
        size = _size_for(needed)
        self._ring, self.stacks = np.zeros(size, np.int32), np.zeros((size, stacks.shape[1]), np.int64)
        self._ring[: len(held)], self.stacks[: len(stacks)] = held, stacks
        self._ends[:] = (0, len(held), front)

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state, with rows numbered as in live."""
        places = np.zeros(int(live.max()) + 1 if len(live) else 1, np.int32)
        places[live] = np.arange(len(live), dtype=np.int32)
        arrays: dict[str, AnyArray] = {"arrivals": places[self._held()]}
        if self.stacks.shape[1] > 0:
            arrays |= {"stacks": self.stacks[self._places()], "front": self._ends[2:] - self._ends[0]}
        return arrays

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        """Take a state back."""
        held = arrays["arrivals"].astype(np.int32)
        self._ends[:] = 0
        self._load(held, len(held))
        if "stacks" in arrays:
            self.stacks[: len(held)] = arrays["stacks"]
            self._ends[2] = arrays["front"][0]


def _slots_for(capacity: int) -> npt.NDArray[np.int32]:
    """Empty slots of a table with so many ids, two for each at least."""
    return np.full(max(2 * capacity, min(8 * capacity, _LOOSE)), -1, np.int32)


def _size_for(rows: int) -> int:
    """Of a ring with room for so many."""
    return max(_FIRST_CAPACITY, 1 << (rows - 1).bit_length() if rows else 0)
