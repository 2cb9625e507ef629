"""How many rows of a relation have each key: the right side of a semi-join, which needs no more of it.

Invariant: between slices the keys held are exactly those some row has; a key that dies gives its node back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Int8Array, Int64Array, Schema
from minidsms.kernels.hashing import combined, key_tags, normal, normal_signs
from minidsms.kernels.semi_join import (
    BEFORE,
    COUNT,
    FREE,
    KEY_NODE_WORDS,
    LIVE,
    POSITION,
    SHIFT,
    TOUCHED,
    relink_keys,
)

_LEAST_CAPACITY = 64


class KeyCounts:
    """Counts by key.

    schema: of the input.  keys: its key columns; a key with a NULL does not count.
    state: this side's row of the semi-join kernel's state.
    """

    def __init__(self, schema: Schema, keys: Sequence[int], state: Int64Array) -> None:
        self.schema = schema
        self._keys = tuple(keys)
        self._width = len(self._keys) if len(self._keys) > 1 else 0
        self.state = state
        self.touched = np.zeros(0, np.int64)
        self._allocate(_LEAST_CAPACITY)

    def __len__(self) -> int:
        return int(self.state[LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.heads.nbytes + self.nodes.nbytes + self.words.nbytes

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The keys held, (n, w) words, and how many rows have each."""
        live = np.flatnonzero(self.nodes[:, COUNT])
        words = self.words[live] if self._width else self.nodes[live, :1]
        return {"words": words, "counts": self.nodes[live, COUNT]}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        self._refill(normal(arrays["words"]), arrays["counts"], len(arrays["counts"]))

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values among the keys."""
        words = self.arrays()["words"]
        for j, c in enumerate(self._keys):
            if self.schema[c].type.is_coded:
                yield words[:, j]

    def begin(self, batch: Batch | None) -> tuple[Int64Array, Int8Array, Int64Array, Int64Array]:
        """The batch as the kernel takes it: (ts, sign, tags, key words)."""
        self.state[POSITION] = self.state[TOUCHED] = 0
        if batch is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64), self.words[:0]
        if len(self.nodes) > 1024 and len(self) * 16 < len(self.nodes):
            held = self.arrays()
            self._refill(held["words"], held["counts"], len(self) * 2)
        columns = [batch.column(c) for c in self._keys]
        tags, words, nulls = key_tags(columns, len(batch))
        ts, signs = batch.ts, normal_signs(batch.sign, len(batch))
        if nulls is not None:
            keyed = np.flatnonzero(~nulls)
            ts, signs, tags, words = ts[keyed], signs[keyed], tags[keyed], words[keyed]
        if len(self.touched) < len(ts):
            self.touched = np.zeros(len(ts), np.int64)
        return normal(ts), signs, normal(tags), words

    def finish(self) -> None:
        """Nothing is in flight any more."""
        self.touched = self.touched[:0]

    def grow(self) -> None:
        """Twice the nodes; those there keep their numbers."""
        nodes, words = self.nodes, self.words
        n, live = len(nodes), self.state[LIVE]
        self._allocate(2 * n)
        self.nodes[:n] = nodes
        self.words[:n] = words
        self.state[FREE], self.state[LIVE] = n, live
        relink_keys(self.heads, self.nodes, n, self.state[SHIFT])

    def _allocate(self, capacity: int) -> None:
        """No keys, and this many free nodes in a list."""
        self.nodes = np.zeros((capacity, KEY_NODE_WORDS), np.int64)
        self.nodes[:, BEFORE] = -1
        self.nodes[:, 1] = np.arange(1, capacity + 1)
        self.nodes[-1, 1] = -1
        self.heads = np.full((1, capacity), -1, np.int64)
        self.words = np.zeros((capacity, self._width), np.int64)
        self.state[SHIFT] = 65 - capacity.bit_length()
        self.state[FREE] = self.state[LIVE] = 0

    def _refill(self, words: Int64Array, counts: Int64Array, room: int) -> None:
        """Hold exactly these keys."""
        n = len(counts)
        self._allocate(max(_LEAST_CAPACITY, 1 << (2 * room).bit_length()))
        if self._width:
            self.words[:n] = words
            self.nodes[:n, 0] = combined(normal(words))
        else:
            self.nodes[:n, 0] = words[:, 0]
        self.nodes[:n, COUNT] = counts
        self.state[FREE], self.state[LIVE] = n, n
        relink_keys(self.heads, self.nodes, n, self.state[SHIFT])
