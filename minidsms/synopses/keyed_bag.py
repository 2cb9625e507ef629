"""A relation whose rows leave in any order, indexed by key and by row: the bag side of a join.

A slot store with a free list behind the probe interface of `KeyedRing` (docs/design, point 3). A deletion finds a slot
with an equal row by the row's hash; equal rows are interchangeable.

Invariants: a free slot stands in no bucket; a slot freed in a batch is used again only after `finish`; rows with a NULL
key stand in no bucket of keys, and are not kept at all unless `keeps_keyless`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema
from minidsms.kernels.hashing import hash_rows, key_tags, normal, normal_signs
from minidsms.kernels.keyed_slots import FIFO, FREED, KEYLESS, MASK, SHIFT, UNLINKED, Side, relink
from minidsms.synopses.row_layout import RowLayout

_LEAST_CAPACITY = 64
_NO_SLOTS = np.zeros(0, np.int64)
_NO_SIGNS = np.zeros(0, np.int8)


class KeyedBag:
    """Rows in slots, by key and by row.

    schema: of the input.  keys: its key columns.  needed: columns that `gather` will be asked for.
    null_safe: NULL is a key like others.  keeps_keyless: rows with a NULL key are kept, though no probe finds them.
    state: this side's row of the join kernel's state.
    """

    refers = False

    def __init__(
        self,
        schema: Schema,
        keys: Sequence[int],
        needed: Iterable[int],
        state: Int64Array,
        null_safe: bool = False,
        keeps_keyless: bool = False,
    ) -> None:
        self.schema = schema
        self.layout = RowLayout(schema, keys, needed, null_safe)
        self.keys = self.layout.keys
        self._width = self.layout.width
        self._keeps_keyless = keeps_keyless
        self.state = state
        state[FIFO] = 0
        self._freed = _NO_SLOTS
        self._held = 0
        self._allocate(_LEAST_CAPACITY)

    # ------------------------------------------------------------------------------------------------- contents

    def __len__(self) -> int:
        return self._held

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.heads.nbytes + self.nodes.nbytes + self._words.nbytes + self._free.nbytes

    def gather(self, columns: Sequence[int], slots: Int64Array) -> list[Column]:
        """The columns of the rows in these slots."""
        return self.layout.gather(self._words, slots, columns)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The rows held, as words of the columns kept."""
        return {"words": self._words[self._live()]}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        self._refill(np.ascontiguousarray(arrays["words"]))

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held."""
        live = self._live()
        for j, c in enumerate(self.layout.columns):
            if self.schema[c].type.is_coded:
                yield self._words[live, self.layout.word_of[j]]

    def release(self) -> None:
        """Nothing outside is claimed."""

    # -------------------------------------------------------------------------------------------- the join's work

    def begin(self, batch: Batch | None) -> Side:
        """Write the batch's insertions into free slots; gives the kernel's view of this side."""
        self.state[2:5] = 0
        if batch is None:
            self._freed = _NO_SLOTS
            return self._view(_NO_SLOTS, _NO_SIGNS, _NO_SLOTS, _no_rows(self._width), _NO_SLOTS, _NO_SLOTS)
        keys = [batch.column(c) for c in self.keys]
        tags, key_words, nulls = key_tags(keys, len(batch), self.layout.null_safe)
        if nulls is not None and not self._keeps_keyless:
            keyed = ~nulls
            batch, tags = batch.take(keyed), tags[keyed]
            key_words, nulls = None, None
        n = len(batch)
        signs = normal_signs(batch.sign, n)
        if nulls is not None:
            signs = np.where(nulls & (signs > 0), KEYLESS, signs).astype(np.int8)
        rows = self.layout.words(batch.column, n, key_words)
        arrived = slice(None) if batch.sign is None else np.flatnonzero(signs > 0)
        m = n if batch.sign is None else len(arrived)  # type: ignore[arg-type]
        self._reserve(m)
        fresh = self._free[self._top - m : self._top].copy()
        self._top -= m
        self._held += m
        self._words[fresh] = rows[arrived]
        self._freed = np.empty(n - m, np.int64)
        tags = normal(tags if batch.sign is None else tags[arrived])
        return self._view(normal(batch.ts), signs, tags, rows, hash_rows(rows), fresh)

    def finish(self, until: int) -> None:
        """The batch's output has been gathered: what was freed may be used again."""
        n = int(self.state[FREED])
        self._free[self._top : self._top + n] = self._freed[:n]
        self._top += n
        self._held -= n
        self.state[FREED] = 0

    # -------------------------------------------------------------------------------------------------- storage

    def _view(self, ts: Any, sign: Any, tags: Any, rows: Any, row_tags: Any, fresh: Any) -> Side:
        return Side(ts, sign, tags, self.heads, self.nodes, self._words, rows, row_tags, fresh, self._freed)

    def _live(self) -> Int64Array:
        return np.flatnonzero(self.nodes[:, 2] != UNLINKED)

    def _reserve(self, n: int) -> None:
        """Room for n rows more, in an index neither crowded nor mostly empty."""
        capacity = len(self.nodes)
        needed = self._held + n
        if n > self._top or (capacity > 1024 and needed * 8 < capacity):
            self._refill(self._words[self._live()], n)

    def _allocate(self, capacity: int) -> None:
        """An empty index of this many slots."""
        self.nodes = np.zeros((capacity, 5), np.int64)
        self.nodes[:, 2] = UNLINKED
        self.heads = np.full((2, capacity), -1, np.int64)
        self._words = np.zeros((capacity, self._width), np.int64)
        self._free = np.arange(capacity - 1, -1, -1, dtype=np.int64)
        self._top = capacity
        self.state[MASK] = capacity - 1
        self.state[SHIFT] = 65 - capacity.bit_length()

    def _refill(self, words: Int64Array, more: int = 0) -> None:
        """Hold exactly these rows, in slots from 0 on, with room for more."""
        n = len(words)
        self._allocate(max(_LEAST_CAPACITY, 1 << ((n + more) * 2 - 1).bit_length()))
        words = normal(words)
        self._words[:n] = words
        width = self.layout.key_width
        self.nodes[:n, 0] = hash_rows(words, width) if width else words[:, 0] if self.keys else 0
        self.nodes[:n, 3] = hash_rows(words)
        self.nodes[self.layout.keyless(words), 1] = UNLINKED
        self._held = n
        self._top -= n
        self.layout.note_nulls(words)
        relink(self.heads, self.nodes, 0, n, self.state[MASK], self.state[SHIFT])


def _no_rows(width: int) -> Int64Array:
    return np.zeros((0, width), np.int64)
