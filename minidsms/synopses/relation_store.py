"""The store of one base relation: a log of its changes for the queries that run, and the bag of its rows for those to
come.

Invariants: the log holds changes in arrival order, ts nondecreasing, under sequence numbers that are never reused; the
bag is the sum of all changes ever made (docs/semantics T2, T7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, Column, Int8Array, Int64Array, Schema, Type, is_all_true, row_words
from minidsms.synopses.row_bag import RowBag
from minidsms.synopses.stream_store import Reader, StreamStore


class RelationStore:
    """Changes by sequence number, with readers like a stream's store. mirrors: stores whose logs take what changes
    here, too, as long as anybody reads them.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._log = StreamStore(schema + Schema.of(("sign", Type.BOOLEAN)))
        self._bag = RowBag(schema)
        self.mirrors: list[RelationStore] = []
        self._text = schema.coded

    def __len__(self) -> int:
        return len(self._log)

    @property
    def head(self) -> int:
        """The sequence number the next change gets."""
        return self._log.head

    @property
    def tail(self) -> int:
        """The first change still held."""
        return self._log.tail

    @property
    def size(self) -> int:
        """How many rows the relation holds now."""
        return len(self._bag)

    @property
    def nbytes(self) -> int:
        return self._log.nbytes + self._bag.nbytes + sum(mirror.nbytes for mirror in self.mirrors)

    def growth(self, n: int, inserted: int) -> int:
        """Bytes that the store grows by at most for n more changes, so many of them insertions; about. At least those
        of the changes, which wait for queries.
        """
        logs = self._log.growth(n) + sum(mirror._log.growth(n) for mirror in self.mirrors)
        return max(logs + self._bag.growth(inserted), n * self._log.row_nbytes)

    def append(
        self, ts: Int64Array, sign: Int8Array | None, columns: Sequence[Column], words: Int64Array | None = None
    ) -> int:
        """Make changes; returns -1, or the first deletion that cancels no row. Then, or with a MemoryError, nothing has
        changed.

        ts: (n,) nondecreasing, not below the last.  sign: (n,), or None for insertions only.  words: of `row_words`,
        where they are known.
        """
        logged = [*columns, Column(np.ones(len(ts), np.bool_) if sign is None else sign > 0)]
        self._log.prepare(ts, logged)
        for mirror in self.mirrors:
            mirror._log.prepare(ts, logged)
        bad = self._bag.apply(ts, sign, row_words(columns) if words is None else words)
        if bad < 0:
            self._log.append(ts, logged)
            for mirror in self.mirrors:
                mirror._log.append(ts, logged)
        return bad

    def ts(self, start: int, stop: int) -> Int64Array:
        """The instants of the changes [start, stop), every one: what S2 counts as events of the relation."""
        return self._log.ts(start, stop)

    def ts_at(self, seq: int) -> int:
        """The instant of one change."""
        return self._log.ts_at(seq)

    def batch(self, start: int, stop: int) -> Batch:
        """The changes [start, stop) as they came: of an instant neither netted nor deletions first.

        The columns are copies: a relation's operators may keep them while the log moves on.
        """
        ts = self._log.ts(start, stop).copy()
        *columns, inserted = [self._log.view(i, start, stop).copy() for i in range(len(self.schema) + 1)]
        is_inserted: Int8Array = inserted.values.view(np.int8)
        if is_all_true(is_inserted):
            return Batch(ts, None, columns, is_own=True)
        sign: Int8Array = 2 * is_inserted - 1
        return Batch(ts, sign, columns, is_own=True)

    def present(self) -> Batch:
        """The rows there now, as insertions at the instants they came at; for a query that starts late (T7)."""
        return self._bag.present()

    def reader(self, lo: int | None = None) -> Reader:
        """A claim on the changes from `lo` (default: the next one) on."""
        return self._log.reader(lo)

    def release(self, reader: Reader) -> None:
        """End a claim."""
        self._log.release(reader)

    def free(self) -> None:
        """Give up the changes no reader claims. Called while the engine rests."""
        self._log.free()
        self.mirrors = [mirror for mirror in self.mirrors if mirror.is_read]
        for mirror in self.mirrors:
            mirror.free()

    def shrink(self) -> None:
        """Give up room for changes that no reader claims, at once: memory is short. Called while the engine rests."""
        self._log.shrink()
        for mirror in self.mirrors:
            mirror.shrink()

    @property
    def is_read(self) -> bool:
        """Somebody claims changes."""
        return self._log.is_read

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held by the log and the bag (0 stands for NULL)."""
        seq = np.arange(self.tail, self.head, dtype=np.int64)
        for i in self._text:
            yield self._log.gather(i, seq).values  # type: ignore[misc]
        yield from self._bag.live_codes()
        for mirror in self.mirrors:
            yield from mirror.live_codes()

    def arrays(self) -> dict[str, Int64Array]:
        """The rows present, as arrays. The log lies between two rests of the engine and is no state."""
        return self._bag.arrays()

    def restore(self, arrays: dict[str, Int64Array]) -> None:
        """Take back what `arrays` gave, into an empty store."""
        self._bag.restore(arrays)
