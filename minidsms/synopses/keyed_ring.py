"""A relation whose rows leave in the order they came, indexed by key: the FIFO side of a join.

Slots are numbered by arrival and stand in a ring; buckets chain them newest first, and deletion only moves `lo`
(docs/design, point 3). Rows that still stand in a stream's store are kept as references to it, held by a Reader; others
are kept as words, of the columns somebody needs.

Invariants: [lo, hi) is present; a row with a NULL key has a slot, so that deletions stay in step, but stands in no
bucket; references are all to one store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema, columns_of_words, row_words
from minidsms.kernels.hashing import key_tags, normal, normal_signs
from minidsms.kernels.keyed_slots import FIFO, HI, KEYLESS, LO, MASK, SHIFT, UNLINKED, Side, relink
from minidsms.synopses.row_layout import RowLayout
from minidsms.synopses.stream_store import Reader, StreamStore

_LEAST_CAPACITY = 64
_NO_ROWS = np.zeros((1, 1), np.int64)
_NO_SLOTS = np.zeros(0, np.int64)


class KeyedRing:
    """Rows in arrival order, by key.

    schema: of the input.  keys: its key columns.  needed: columns that `gather` will be asked for.
    null_safe: NULL is a key like others.
    state: this side's row of the join kernel's state.
    """

    def __init__(
        self,
        schema: Schema,
        keys: Sequence[int],
        needed: Iterable[int],
        state: Int64Array,
        null_safe: bool = False,
    ) -> None:
        self.schema = schema
        self.layout = RowLayout(schema, keys, needed, null_safe)
        self.keys = self.layout.keys
        self._kept = self.layout.columns
        self.state = state
        state[FIFO] = 1
        self._store: StreamStore | None = None
        self._store_columns: tuple[int, ...] = ()
        self._reader: Reader | None = None
        self._passed = 0
        self._seq = _NO_SLOTS
        self._words = _NO_ROWS
        self._allocate(_LEAST_CAPACITY)

    # ------------------------------------------------------------------------------------------------- contents

    def __len__(self) -> int:
        return int(self.state[HI] - self.state[LO])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held; the store referred to is counted by its owner."""
        return self.heads.nbytes + self.nodes.nbytes + self._words.nbytes + self._seq.nbytes

    @property
    def refers(self) -> bool:
        """Rows are references to a stream's store, not copies."""
        return self._store is not None

    def gather(self, columns: Sequence[int], slots: Int64Array) -> list[Column]:
        """The columns of the rows in these slots."""
        at = slots & self.state[MASK]
        if self._store is not None:
            seq = self._seq[at]
            return [self._store.gather(self._store_columns[c], seq) for c in columns]
        return self.layout.gather(self._words, at, columns)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The rows held, oldest first, as words of the columns kept; references are resolved."""
        slots = np.arange(self.state[LO], self.state[HI], dtype=np.int64)
        return {"words": row_words(self.gather(self._kept, slots)), "count": np.array([len(slots)], np.int64)}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        n = int(arrays["count"][0])
        self._drop_reader()
        self.state[LO] = self.state[HI] = 0
        self._allocate(_LEAST_CAPACITY)
        self._own_rows()
        kept = Schema(tuple(self.schema[c] for c in self._kept))
        at = dict(zip(self._kept, columns_of_words(arrays["words"][:n], kept)))
        self._reserve(n)
        tags, key_words, nulls = key_tags([at[c] for c in self.keys], n, self.layout.null_safe)
        if self._kept:
            self._append(self._words, self.layout.words(at.__getitem__, n, key_words), n)
        self.nodes[:n, 0] = tags
        self.nodes[:n, 1] = -1 if nulls is None else np.where(nulls, UNLINKED, -1)
        self.state[HI] = n
        relink(self.heads, self.nodes, 0, n, self.state[MASK], self.state[SHIFT])

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held here; a store referred to answers for its own."""
        if self._store is None:
            at = np.arange(self.state[LO], self.state[HI], dtype=np.int64) & self.state[MASK]
            for j, c in enumerate(self._kept):
                if self.schema[c].type.is_coded:
                    yield self._words[at, self.layout.word_of[j]]

    # -------------------------------------------------------------------------------------------- the join's work

    def begin(self, batch: Batch | None) -> Side:
        """Write the batch's insertions into slots to come; gives the kernel's view of this side."""
        self.state[2:5] = 0
        if batch is None:
            return Side(_NO_SLOTS, _NO_SIGNS, _NO_SLOTS, self.heads, self.nodes, self._words, *_NO_BAG)
        n = len(batch)
        signs = normal_signs(batch.sign, n)
        arrived = batch
        at: Int64Array | None = None
        if batch.sign is not None:
            at = np.flatnonzero(signs > 0)
            if len(at) < n:
                arrived = batch.take(at)
        self._choose(batch)
        m = len(arrived)
        tags = _NO_SLOTS
        if m:
            self._reserve(m)
            tags, key_words, nulls = key_tags([arrived.column(c) for c in self.keys], m, self.layout.null_safe)
            if nulls is not None:
                signs = signs.copy()
                signs[nulls if at is None else at[nulls]] = KEYLESS
            if self._store is not None:
                assert arrived.seq is not None
                self._append(self._seq, arrived.seq, m)
                self._passed = int(arrived.seq[-1]) + 1
                if key_words is not None:
                    self._append(self._words, key_words, m)
            elif self._kept:
                self._append(self._words, self.layout.words(arrived.column, m, key_words), m)
        return Side(normal(batch.ts), signs, tags, self.heads, self.nodes, self._words, *_NO_BAG)

    def finish(self, until: int) -> None:
        """The batch's output has been gathered and everything up to `until` has been shown: let go of what has left."""
        if self._reader is None:
            return
        store = self._store
        assert store is not None
        if self.state[LO] < self.state[HI]:
            self._reader.lo = int(self._seq[self.state[LO] & self.state[MASK]])
            return
        # An empty ring must not hold what it passed by, however long a filter below lets nothing through.
        low, high = max(self._passed, self._reader.lo, store.tail), store.head
        if low < high and store.ts_at(high - 1) <= until:
            low = high
        while low < high:
            middle = (low + high) // 2
            if store.ts_at(middle) <= until:
                low = middle + 1
            else:
                high = middle
        self._reader.lo = self._passed = max(low, self._reader.lo)

    # -------------------------------------------------------------------------------------------------- storage

    def _choose(self, batch: Batch) -> None:
        """References where the batch has them and all rows held are of that store; else rows of our own."""
        source, columns = batch.reference or (None, ())
        if isinstance(source, StreamStore) and batch.seq is not None:
            if self._store is source and self._store_columns == tuple(columns):
                return
            if not len(self):
                self._drop_reader()
                self._store, self._store_columns = source, tuple(columns)
                self._passed = int(batch.seq[0])
                self._reader = source.reader(self._passed)
                self._seq = np.zeros(len(self.nodes), np.int64)
                width = self.layout.key_width
                self._words = np.zeros((len(self.nodes), width), np.int64) if width else _NO_ROWS
                return
        if self._store is not None or not self._has_words:
            self._own_rows()

    @property
    def _has_words(self) -> bool:
        """Words are kept: of whole rows, or of keys. By size, as a copied plan has other arrays."""
        return len(self._words) > len(_NO_ROWS)

    def _own_rows(self) -> None:
        """Copy the rows referred to, if any, and keep rows as words from now on."""
        lo, hi = int(self.state[LO]), int(self.state[HI])
        words = None
        if self._store is not None and hi > lo and self._kept:
            columns = dict(zip(self._kept, self.gather(self._kept, np.arange(lo, hi, dtype=np.int64))))
            _, key_words, _ = key_tags([columns[c] for c in self.keys], hi - lo, self.layout.null_safe)
            words = self.layout.words(columns.__getitem__, hi - lo, key_words)
        self._drop_reader()
        self._seq = _NO_SLOTS
        if not self._kept:
            return
        self._words = np.zeros((len(self.nodes), self.layout.width), np.int64)
        if words is not None:
            self._words[np.arange(lo, hi) & self.state[MASK]] = words

    def _drop_reader(self) -> None:
        if self._store is not None and self._reader is not None:
            self._store.release(self._reader)
        self._store = self._reader = None

    def release(self) -> None:
        """End the claim on the store; the operator is done."""
        self._drop_reader()

    def _append(self, array: Int64Array, rows: Int64Array, n: int) -> None:
        """Write n rows into the slots from hi on."""
        start = int(self.state[HI] & self.state[MASK])
        first = min(n, len(array) - start)
        array[start : start + first] = rows[:first]
        if first < n:
            array[: n - first] = rows[first:]

    def _reserve(self, n: int) -> None:
        """Room for n rows more, in an index neither crowded nor mostly empty."""
        needed = len(self) + n
        capacity = len(self.nodes)
        if needed > capacity or (capacity > 1024 and needed * 8 < capacity):
            self._resize(max(_LEAST_CAPACITY, 1 << (needed * 2 - 1).bit_length()))

    def _allocate(self, capacity: int) -> None:
        """An empty index of this many slots."""
        self.nodes = np.zeros((capacity, 2), np.int64)
        self.heads = np.full((1, capacity), -1, np.int64)
        self.state[MASK] = capacity - 1
        self.state[SHIFT] = 65 - capacity.bit_length()

    def _resize(self, capacity: int) -> None:
        """Move the slots held into arrays of another capacity; each keeps its number."""
        lo, hi = int(self.state[LO]), int(self.state[HI])
        slots = np.arange(lo, hi, dtype=np.int64)
        old = slots & self.state[MASK]
        nodes = self.nodes[old]
        self._allocate(capacity)
        new = slots & self.state[MASK]
        self.nodes[new] = nodes
        if self._store is not None:
            seq = np.zeros(capacity, np.int64)
            seq[new] = self._seq[old]
            self._seq = seq
        if self._has_words:
            words = np.zeros((capacity, self._words.shape[1]), np.int64)
            words[new] = self._words[old]
            self._words = words
        relink(self.heads, self.nodes, lo, hi, self.state[MASK], self.state[SHIFT])


_NO_SIGNS = np.zeros(0, np.int8)
_NO_BAG = (_NO_ROWS, _NO_SLOTS, _NO_SLOTS, _NO_SLOTS)
