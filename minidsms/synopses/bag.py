"""A bag of rows that can be shown whole.

Invariant: the rows [0, size) are those present, each with its number of copies; the arrays shrink when most are gone.
docs/semantics T2, S2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from minidsms.elements import AnyArray, Batch, Int8Array, Int64Array, Schema, row_words
from minidsms.kernels import bag as kernels
from minidsms.kernels.arrays import normal
from minidsms.synopses.stub import NO_INSTANTS

_FIRST_CAPACITY = 64
_LARGEST_OUTPUT = 1 << 16
_NO_SIGNS: Int8Array = np.zeros(0, np.int8)


class Bag:
    """Rows of a schema with their multiplicities."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._width = len(schema) + len(schema) // 62 + 1
        self._no_words: Int64Array = np.zeros((0, self._width), np.int64)
        self._words = self._no_words
        self._counts = self._next = NO_INSTANTS
        self._buckets = NO_INSTANTS
        self._figures = kernels.BagFigures()
        self._resize(_FIRST_CAPACITY)

    def __len__(self) -> int:
        return self._figures.total

    def show(self, batch: Batch | None, events: Int64Array, is_whole: bool) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Apply the changes of a batch and give (ts, row words) of all rows at each event instant.

        Bounded runs; is_whole: but never a part of an instant. Changes after the last event are applied too.
        """
        changes = kernels.BagChanges(NO_INSTANTS, _NO_SIGNS, self._no_words)
        if batch is not None:
            changes = kernels.BagChanges(normal(batch.ts), normal(batch.signs), self._as_words(batch))
        elif not len(self) or not len(events):
            return
        events = normal(events)
        cursor = kernels.BagCursor()
        # An estimate: what is there now and comes in this batch, at each event.
        room = max(1, min((len(self) + len(changes.ts)) * len(events), _LARGEST_OUTPUT))
        status = -1
        while status != kernels.DONE:
            out_ts, out_words = np.empty(room, np.int64), np.empty((room, self._width), np.int64)
            bag = kernels.BagArrays(self._words, self._counts, self._next, self._buckets, self._figures)
            status = kernels.show_bag(changes, events, is_whole, bag, cursor, out_ts, out_words)
            if status == kernels.NEEDS_SLOTS:
                self._resize(2 * len(self._counts))
            elif status == kernels.NEEDS_ROOM:
                room = len(self)
            k = cursor.written
            if k:
                yield out_ts[:k], out_words[:k]
        assert not self._figures.missing, "a deletion cancels an insertion (docs/semantics T2)"
        if len(self._counts) > 64 * _FIRST_CAPACITY and self._figures.size * 8 < len(self._counts):
            self._resize(len(self._counts) // 4)

    def _as_words(self, batch: Batch) -> Int64Array:
        if not batch.width:
            return np.zeros((len(batch), self._width), np.int64)
        return row_words(batch.columns)

    def _resize(self, capacity: int) -> None:
        size = self._figures.size
        words, counts = np.zeros((capacity, self._width), np.int64), np.zeros(capacity, np.int64)
        words[:size], counts[:size] = self._words[:size], self._counts[:size]
        self._words, self._counts, self._next = words, counts, np.full(capacity, -1, np.int64)
        self._buckets = np.full(2 * capacity, -1, np.int64)
        kernels.chain_rows(words, size, self._buckets, self._next)

    @property
    def nbytes(self) -> int:
        return self._words.nbytes + self._counts.nbytes + self._next.nbytes + self._buckets.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        size = self._figures.size
        for i in self.schema.coded:
            yield self._words[:size, i]

    def arrays(self) -> dict[str, AnyArray]:
        """The rows as words, and how often each is there."""
        size = self._figures.size
        return {"words": self._words[:size].copy(), "counts": self._counts[:size].copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._words, self._counts = state["words"].astype(np.int64), state["counts"].astype(np.int64)
        self._figures = kernels.BagFigures(len(self._counts), int(self._counts.sum()))
        self._resize(max(_FIRST_CAPACITY, 1 << (2 * len(self._counts)).bit_length()))
