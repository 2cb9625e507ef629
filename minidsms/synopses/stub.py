"""Stubs: what a first-in-first-out window remembers of a stream.

A stub is a run of positions [lo, hi) in arrival order: [lo, mid) is in the window, [mid, hi) has come but not entered
yet (SLIDE). Where the elements follow each other without a gap in the store, a position is a sequence number and
nothing is kept but the three bounds; a filtered window keeps a ring of (ts, seq) beside them, and only the
columns are shared.

Invariant: positions are monotone, lo <= mid <= hi; the reader on the store claims the element at lo and everything
after it, so that whatever may still be put out as a deletion can be gathered.
docs/design, point 3; Babu 2005, section 2.3.1, figure 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy import empty

from minidsms.elements import AnyArray, Batch, Int64Array, Schema, arrays_of_columns, columns_of_arrays
from minidsms.kernels.windows import Moves, merge_changes, slide_range
from minidsms.synopses.stream_store import Reader, StreamStore

_FIRST_CAPACITY = 64
_INT64, _INT8 = np.dtype(np.int64), np.dtype(np.int8)
_LARGEST_OUTPUT = 1 << 18
"""Elements in one batch put out; longer runs are put out in several, so that a full queue can stop them."""

NO_INSTANTS: Int64Array = np.zeros(0, np.int64)
NO_CURSOR: Int64Array = np.zeros(2, np.int64)


class Stub:
    """The elements of one window over one stream.

    store: where rows that come without a reference are kept; default: a store of its own, made when first needed.
    copies: keep rows in that store even if they come with a reference. For derived streams, whose batches may refer to
        a base stream's store in another order, or repeatedly (DSTREAM, RSTREAM, ordered ISTREAM).
    """

    def __init__(self, schema: Schema, store: StreamStore | None = None, copies: bool = False) -> None:
        self.schema = schema
        self.lo = self.mid = self.hi = 0
        self.arrived = 0
        self.store = store
        self.source_columns: Sequence[int] = range(len(schema))
        self._appends: bool | None = True if copies else None
        self._last_seq = -1
        self._reader: Reader | None = None if store is None else store.reader()
        self._is_listed = False
        self._ts: Int64Array = NO_INSTANTS
        self._seq: Int64Array = NO_INSTANTS

    def __len__(self) -> int:
        return self.mid - self.lo

    @property
    def own_store(self) -> StreamStore | None:
        """The store this stub appends to, which nobody else frees or saves; None where rows are references."""
        return self.store if self._appends else None

    # ------------------------------------------------------------------------------------------------- arrivals

    def receive(self, batch: Batch) -> None:
        """Take in a stream's elements at the end."""
        if self._appends is None:
            self._appends = not self._may_refer(batch)
        ts, is_run, reference = batch.ts, batch.is_run, batch.reference
        n = len(ts)
        if is_run and reference is not None and not self._appends:
            # As below, of what goes on where the window stands: of a stream, nearly always so.
            hi = self.hi
            if batch.first_seq == hi > self._last_seq and not self._is_listed:
                self.source_columns = reference[1]
                self.hi = hi = hi + n
                self._last_seq = hi - 1
                self.arrived += n
                return
        if self._appends:
            if self.store is None:
                self.store = StreamStore(self.schema)
            if self._reader is None:
                self._reader = self.store.reader()
            first = self.store.append(ts, batch.columns)
            seq: Int64Array = np.arange(first, first + n, dtype=np.int64)
            has_gap = False
        else:
            assert reference is not None and batch.seq is not None
            seq = batch.seq
            store, self.source_columns = reference
            assert self.store is store
            first = seq.item(0)
            if first <= self._last_seq or not (is_run or n == 1 or bool((seq[1:] > seq[:-1]).all())):
                raise AssertionError("a window over references needs them in arrival order; give it copies=True")
            has_gap = not (is_run or self._stands_in_store(ts, first, seq.item(-1)))
        self._last_seq = seq.item(-1)
        self.arrived += n
        if self.lo == self.hi and not has_gap:
            self._is_listed = False
            self.lo = self.mid = self.hi = first
        if not self._is_listed and (has_gap or first != self.hi):
            self._start_list()
        if self._is_listed:
            self._push(ts, seq)
        self.hi += n

    def _may_refer(self, batch: Batch) -> bool:
        """Decided by the first batch: can the rows stay where they are?"""
        if batch.reference is None or batch.seq is None:
            return False
        store = batch.reference[0]
        if not isinstance(store, StreamStore) or (self.store is not None and self.store is not store):
            return False
        if len(batch) > 1 and not bool((batch.seq[1:] > batch.seq[:-1]).all()):
            return False
        if self.store is None:
            self.store = store
            self._reader = store.reader(int(batch.seq[0]))
        return True

    def _stands_in_store(self, ts: Int64Array, first: int, last: int) -> bool:
        """The store has the elements first to last, without a gap and under these instants."""
        n = len(ts)
        assert self.store is not None
        if last - first != n - 1:
            return False
        if n == 1:
            return self.store.ts_at(first) == ts.item(0)
        return bool((self.store.ts(first, last + 1) == ts).all())

    def _start_list(self) -> None:
        """Keep (ts, seq) of each element from now on."""
        held = self.hi - self.lo
        ts, seq = self.ts(self.lo, self.hi).copy(), self.seq(self.lo, self.hi)
        self._is_listed = True
        self.hi = self.lo
        if held + 1 > len(self._ts):
            self._resize(held + 1)
        self._push(ts, seq)
        self.hi += held

    def _push(self, ts: Int64Array, seq: Int64Array) -> None:
        n = len(ts)
        if n == 0:
            return
        held = self.hi - self.lo
        capacity = len(self._ts)
        if held + n > capacity or (capacity > 64 * _FIRST_CAPACITY and (held + n) * 8 < capacity):
            self._resize(held + n)
        mask = len(self._ts) - 1
        start = self.hi & mask
        first = min(n, mask + 1 - start)
        for ring, values in ((self._ts, ts), (self._seq, seq)):
            ring[start : start + first] = values[:first]
            if first < n:
                ring[: n - first] = values[first:]

    def _resize(self, needed: int) -> None:
        capacity = max(_FIRST_CAPACITY, 1 << (needed - 1).bit_length())
        at = np.arange(self.lo, self.hi, dtype=np.int64)
        rings = []
        for old in (self._ts, self._seq):
            new = np.zeros(capacity, np.int64)
            if len(at):
                new[at & (capacity - 1)] = old[at & (len(old) - 1)]
            rings.append(new)
        self._ts, self._seq = rings

    # ---------------------------------------------------------------------------------------------------- reading

    def ts(self, start: int, stop: int) -> Int64Array:
        """The instants at which positions start to stop came; maybe a view, good until the store is written."""
        if self._is_listed:
            return self._read(self._ts, start, stop)
        return NO_INSTANTS if start == stop or self.store is None else self.store.ts(start, stop)

    def seq(self, start: int, stop: int) -> Int64Array:
        """The sequence numbers of positions start to stop."""
        if self._is_listed:
            return self._read(self._seq, start, stop).copy()
        return np.arange(start, stop, dtype=np.int64)

    def search(self, bound: int, start: int) -> int:
        """The first position >= start whose ts is above `bound`, or hi. O(log of the distance)."""
        low, high, step = start, self.hi, 1
        if low >= high:
            return low
        if self._is_listed:
            instants, origin, mask = self._ts, 0, len(self._ts) - 1
        else:
            instants, origin, mask = self.store.instants_held  # type: ignore[union-attr]
        at = instants.item
        if at(low - origin & mask) > bound:
            return low
        start = low = low + 1
        while low < high and at(low - origin & mask) <= bound:
            start = low + 1
            low += step
            step *= 2
        low, high = start, low if low < high else high
        while low < high:
            middle = (low + high) // 2
            if at(middle - origin & mask) <= bound:
                low = middle + 1
            else:
                high = middle
        return low

    def ts_at(self, position: int) -> int:
        """The instant at which a position came."""
        if self._is_listed:
            return self._ts.item(position & (len(self._ts) - 1))
        assert self.store is not None
        return self.store.ts_at(position)

    @staticmethod
    def _read(ring: Int64Array, start: int, stop: int) -> Int64Array:
        mask = len(ring) - 1
        begin, end = start & mask, (start & mask) + stop - start
        if end <= mask + 1:
            return ring[begin:end]
        return np.concatenate([ring[begin:], ring[: end - mask - 1]])

    # ----------------------------------------------------------------------------------------------------- output

    def slide(self, until: int, length: int) -> Iterable[Batch]:
        """`move` on to an instant, where every element enters as it comes and leaves `length` > 0 ticks later."""
        old, mid, hi, store = self.lo, self.mid, self.hi, self.store
        lo = self.search(until - length, old)
        n = hi - mid + lo - old
        if self._is_listed or store is None:
            return self.move(lo, hi, self.ts(mid, hi), self.seq(mid, hi), self.ts(old, lo) + length, self.seq(old, lo))
        self.lo, self.mid = lo, hi
        self.settle()
        if not n:
            return ()
        if n > _LARGEST_OUTPUT:
            return self._slid(store, old, lo, mid, hi, length)
        return (self._part(store, old, lo, mid, hi, length, n)[0],)

    def _slid(self, store: StreamStore, old: int, lo: int, mid: int, hi: int, length: int) -> Iterator[Batch]:
        """The changes of a slide from [old, mid) to [lo, hi), in parts."""
        while n := hi - mid + lo - old:
            batch, left = self._part(store, old, lo, mid, hi, length, min(n, _LARGEST_OUTPUT))
            old, mid = left, mid + len(batch.ts) - (left - old)
            yield batch

    def _part(self, store: StreamStore, old: int, lo: int, mid: int, hi: int, length: int, n: int) -> tuple[Batch, int]:
        """The first n changes of such a slide, and the first position that is still to leave."""
        ts, sign, seq = empty(n, _INT64), empty(n, _INT8), empty(n, _INT64)
        ring, mask = store.instants
        left = slide_range(ring, mask, old, lo, mid, hi, length, ts, sign, seq)
        return Batch.referring(ts, sign if left > old else None, seq, store, self.source_columns), left

    def move(
        self, lo: int, mid: int, ins_at: Int64Array, ins_seq: Int64Array, del_at: Int64Array, del_seq: Int64Array
    ) -> Iterable[Batch]:
        """Make [lo, mid) the window and give the changes: what stands from the old mid enters, from the old lo leaves.

        ins_at, del_at: the instants at which they do, nondecreasing, (mid - old mid,) and (lo - old lo,).
        """
        ins_pos, del_pos = self.mid, self.lo
        self.lo, self.mid = lo, mid
        self.settle()
        n_ins, n_del = len(ins_at), len(del_at)
        if n_ins + n_del == 0:
            return ()
        if n_del == 0 and n_ins <= _LARGEST_OUTPUT:
            return (self._refer(ins_at, None, ins_seq),)
        if n_ins == 0 and n_del <= _LARGEST_OUTPUT:
            return (self._refer(del_at, np.full(n_del, -1, np.int8), del_seq),)
        entering, leaving = Moves(ins_at, ins_seq, ins_pos), Moves(del_at, del_seq, del_pos)
        if n_ins + n_del <= _LARGEST_OUTPUT:
            merged = self._merged(n_ins + n_del, entering, leaving, NO_CURSOR.copy())
            return () if merged is None else (merged,)
        return self._merge(n_ins + n_del, entering, leaving)

    def _refer(self, ts: Int64Array, sign: np.ndarray[tuple[int], np.dtype[np.int8]] | None, seq: Int64Array) -> Batch:
        assert self.store is not None
        return Batch.referring(ts, sign, seq, self.store, self.source_columns)

    def _merge(self, total: int, entering: Moves, leaving: Moves) -> Iterator[Batch]:
        cursor = NO_CURSOR.copy()
        while True:
            room = min(total - int(cursor[0]) - int(cursor[1]), _LARGEST_OUTPUT)
            if room == 0:
                return
            batch = self._merged(room, entering, leaving, cursor)
            if batch is not None:
                yield batch

    def _merged(self, room: int, entering: Moves, leaving: Moves, cursor: Int64Array) -> Batch | None:
        """The changes from the cursor on, `room` of them at most."""
        ts, sign, seq = np.empty(room, np.int64), np.empty(room, np.int8), np.empty(room, np.int64)
        n = merge_changes(entering, leaving, cursor, ts, sign, seq)
        if n < room:
            ts, sign, seq = ts[:n], sign[:n], seq[:n]
        return self._refer(ts, sign, seq) if n else None

    def settle(self) -> None:
        """Claim in the store what is still held.

        An empty window claims nothing: what has not reached it yet is claimed by whoever passes it on.
        """
        if self._reader is None or self.store is None:
            return
        if self.lo == self.hi:
            self._reader.lo = self.store.head
        elif self._is_listed:
            self._reader.lo = int(self._seq[self.lo & (len(self._seq) - 1)])
        else:
            self._reader.lo = self.lo

    def release(self) -> None:
        """End the claim: the query that owned this window is gone."""
        if self._reader is not None and self.store is not None:
            self.store.release(self._reader)
            self._reader = None

    # ------------------------------------------------------------------------------------------------------ state

    @property
    def nbytes(self) -> int:
        """Bytes held beyond a shared store."""
        own = self.own_store
        return self._ts.nbytes + self._seq.nbytes + (0 if own is None else own.nbytes)

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes of the own store; a shared store speaks for itself."""
        own = self.own_store
        if own is not None:
            seq = np.arange(own.tail, own.head, dtype=np.int64)
            for i in own.schema.coded:
                yield own.gather(i, seq).words()

    def codes(self) -> Iterator[Int64Array]:
        """The TEXT codes in what `arrays` gives."""
        rows = self._rows(self.lo, self.hi)
        for i in self.schema.coded:
            yield rows.column(i).words()

    def contents(self) -> Batch:
        """The rows of the window, as insertions (ts of no meaning)."""
        return self._rows(self.lo, self.mid)

    def _rows(self, start: int, stop: int) -> Batch:
        if start == stop:
            return Batch.empty(self.schema)
        return self._refer(np.zeros(stop - start, np.int64), None, self.seq(start, stop))

    def arrays(self) -> dict[str, AnyArray]:
        """The state, with the rows, wherever they stand."""
        bounds = [self.mid - self.lo, self.hi - self.lo, self.arrived, self._last_seq]
        state: dict[str, AnyArray] = {"bounds": np.array(bounds, np.int64), "ts": self.ts(self.lo, self.hi).copy()}
        return state | arrays_of_columns(self._rows(self.lo, self.hi).columns)

    def numbers(self, state: Mapping[str, AnyArray]) -> Int64Array:
        """By arrival."""
        _, n, arrived, _ = (int(x) for x in state["bounds"])
        return np.arange(arrived - n, arrived, dtype=np.int64)

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave, into a store of its own."""
        mid, hi, self.arrived, self._last_seq = (int(x) for x in state["bounds"])
        self.lo = self._last_seq + 1 - hi
        self.mid, self.hi = self.lo + mid, self.lo + hi
        self.release()
        self._appends, self._is_listed, self.store = True, False, StreamStore(self.schema)
        self._ts = self._seq = NO_INSTANTS
        self.source_columns = range(len(self.schema))
        self.store.start_at(self.lo)
        self.store.append(state["ts"].astype(np.int64), columns_of_arrays(state, len(self.schema)))
        self._reader = self.store.reader(self.lo)
        self.settle()
