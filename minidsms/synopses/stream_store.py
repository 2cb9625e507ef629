"""The store of one stream: its elements in arrival order, in one columnar ring buffer.

Every window over the stream, whatever its size and whoever asks, is a stub: a range [lo, hi) of sequence numbers on
this ring (docs/design, point 3; Babu 2005, section 2.3.1, figure 2.3). Elements also wait here until the time of the
queries that read them comes.

Invariants: sequence numbers are monotone and never reused; [tail, head) is present; a slot is freed only when every
registered reader has passed it, and only while the engine rests, so that references in flight stay good.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, Batch, BoolArray, Column, Int64Array, Schema, Type

T = TypeVar("T", bound=np.generic)

_FIRST_CAPACITY = 1024
_FREES_BEFORE_SHRINKING = 8
_WORTH_PASSING = 2 * _FIRST_CAPACITY
"""Elements of a push that are not copied into the ring before somebody wants them there."""
_LARGE = 4 * _FIRST_CAPACITY
"""Rings up to here keep their size."""


class Reader:
    """A claim on a store: elements with seq >= lo are still needed. Windows and sources hold one each; None after
    `release`.
    """

    __slots__ = ("lo", "store")

    def __init__(self, lo: int, store: StreamStore) -> None:
        self.lo = lo
        self.store = store


class StreamStore:
    """A ring of columns whose capacity, a power of two, doubles until it holds what must stand there at once.

    The instants stand behind the columns, as one more: references may name it by its number, len(schema).

    mirrors: stores that take what comes here, too, as long as anybody reads them; those with fewer columns take the
    first ones. What a mirror holds of it is held here, too, for a query that begins with it and asks for all columns.

    A large push into an empty store is not copied into the ring as long as nobody needs it there: the arrays pushed are
    read themselves (`append` with `passes`, and `_passing`), and a query that keeps nothing is done with them when the
    store is freed. Whoever asks for the ring gets it: then they are copied first, and so they are before the push
    returns, for they belong to the application.
    """

    history: int | None = None
    """The first element that a query WITH HISTORY sees, where that is not the first one held."""
    begins: int = 0
    """The first element that came here, not to a store before this one."""
    table: Int64Array | None = None
    """What `places` gives; None where an array has been replaced since, or elements stand outside the ring. Never that
    of another store: a copy has none.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.types = *schema.types, Type.TIMESTAMP
        self._all_columns = range(len(schema))
        self._all_stamped = range(len(schema) + 1)
        self.row_nbytes = 8 + sum(t.dtype.itemsize for t in schema.types)
        """Bytes of an element, without masks of NULLs."""
        self.tail = self.head = 0
        self._passing: tuple[Int64Array, Sequence[Column]] | None = None
        """The instants and columns of [tail, head), with the instants, where they stand outside the ring."""
        self._mask = _FIRST_CAPACITY - 1
        self._ts: Int64Array = np.zeros(_FIRST_CAPACITY, np.int64)
        self._values: list[AnyArray] = [*(np.zeros(_FIRST_CAPACITY, t.dtype) for t in schema.types), self._ts]
        self._valid: list[BoolArray | None] = [None] * len(self._values)
        self._has_masks = False
        self._readers: list[Reader] = []
        self.mirrors: list[StreamStore] = []
        self._peak = 0
        self._frees = 0

    # ------------------------------------------------------------------------------------------------- contents

    def __len__(self) -> int:
        return self.head - self.tail

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        arrays = [*self._values, *(v for v in self._valid if v is not None)]
        return sum(a.nbytes for a in arrays) + sum(mirror.nbytes for mirror in self.mirrors)

    @property
    def room(self) -> int:
        """Elements that fit without growing."""
        return self._mask + 1 - self.head + self.tail

    def growth(self, n: int) -> int:
        """Bytes that the ring grows by for n more elements."""
        return 0 if n <= self.room else (_capacity_for(len(self) + n) - self._mask - 1) * self.row_nbytes

    def reserve(self, n: int) -> None:
        """Make room for n more elements. MemoryError, and nothing has changed."""
        if n > self.room:
            self._resize(_capacity_for(len(self) + n))

    def append(self, ts: Int64Array, columns: Sequence[Column], passes: bool = False) -> int:
        """Append elements (ts nondecreasing, not below the last); returns the sequence number of the first.

        passes: whoever appends calls `keep` before the arrays may change; they need not be copied until then.
        """
        n = len(ts)
        first = self.head
        if passes and self.tail == self.head and self.may_pass(ts, columns):
            self._passing, self.table = (ts, [*columns, Column(ts)]), None
            self.head += n
            return first
        self.prepare(ts, columns)
        self._put(first & self._mask, ts, columns)
        self.head += n
        for mirror in self.mirrors:
            mirror.append(ts, columns[: len(mirror.schema)])
        return first

    def append_row(self, ts: int, values: Sequence[Any]) -> None:
        """Append one element of stored scalars, None for NULL: `append` without its arrays, for single pushes."""
        head, mask, mirrors = self.head, self._mask, self.mirrors
        if self._passing is not None or head - self.tail > mask or None in values or mirrors:
            self.prepare_row(values)
            mask = self._mask
        at = head & mask
        self._ts[at] = ts
        words = values
        if self._has_masks:
            for valid, value in zip(self._valid, values):
                if valid is not None:
                    valid[at] = value is not None
            words = [0 if value is None else value for value in values]
        for array, word in zip(self._values, words):
            array[at] = word
        self.head = head + 1
        for mirror in mirrors:
            mirror.append_row(ts, values[: len(mirror.schema)])

    def may_pass(self, ts: Int64Array, columns: Sequence[Column]) -> bool:
        """Whether a push need not be copied into the ring if that is empty."""
        return len(ts) >= _WORTH_PASSING and not self.mirrors and _are_plain(ts, columns)

    def prepare(self, ts: Int64Array, columns: Sequence[Column], passes: bool = False) -> None:
        """Make all the room that `append` needs for these elements: it will not fail. MemoryError, and nothing has
        changed.
        """
        if passes and self.tail == self.head and self.may_pass(ts, columns):
            return
        self._make_room(len(ts), [column.valid is not None for column in columns])
        for mirror in self.mirrors:
            mirror.prepare(ts, columns[: len(mirror.schema)])

    def prepare_row(self, values: Sequence[Any]) -> None:
        """The same for `append_row`."""
        self._make_room(1, [value is None for value in values])
        for mirror in self.mirrors:
            mirror.prepare_row(values[: len(mirror.schema)])

    def _make_room(self, n: int, have_nulls: Sequence[bool]) -> None:
        self.keep()
        self.reserve(n)
        for i, has_nulls in enumerate(have_nulls):
            if has_nulls and self._valid[i] is None:
                self._with_mask(i)

    def keep(self) -> None:
        """Copy into the ring what stands outside of it. MemoryError, and it goes on standing there."""
        if self._passing is None:
            return
        ts, columns = self._passing
        stop, self.head = self.head, self.tail  # the ring is empty
        try:
            self.reserve(len(ts))
            self._put(self.tail & self._mask, ts, columns[:-1])
            self._passing = None
        finally:
            self.head = stop

    def ts(self, start: int, stop: int) -> Int64Array:
        """The instants of the elements [start, stop); a view where they lie in one piece."""
        if self._passing is not None:
            return self._passing[0][start - self.tail : stop - self.tail]
        return self._read(self._ts, start, stop)

    @property
    def instants(self) -> tuple[Int64Array, int]:
        """(ring, mask): the instant of an element stands at seq & mask."""
        self.keep()
        return self._ts, self._mask

    @property
    def instants_held(self) -> tuple[Int64Array, int, int]:
        """(instants, origin, mask), wherever they stand: that of an element is at seq - origin & mask."""
        if self._passing is not None:
            return self._passing[0], self.tail, -1
        return self._ts, 0, self._mask

    def ts_at(self, seq: int) -> int:
        """The instant of one element."""
        if self._passing is not None:
            return int(self._passing[0][seq - self.tail])
        return self._ts.item(seq & self._mask)

    def gather(self, column: int, seq: Int64Array) -> Column:
        """The column's values at these sequence numbers (all in [tail, head))."""
        n = len(seq)
        if n:
            start = seq.item(0)
            if n == 1 or (seq.item(-1) - start == n - 1 and (n == 2 or bool((np.diff(seq) == 1).all()))):
                return self.view(column, start, start + n)
        if self._passing is not None:
            return self._passing[1][column].take(seq - self.tail)
        valid = self._valid[column]
        at = seq & self._mask
        return Column(self._values[column][at], None if valid is None else valid[at])

    def view(self, column: int, start: int, stop: int) -> Column:
        """A column of the elements [start, stop); views where they lie in one piece."""
        if self._passing is not None:
            return self._passing[1][column].slice(start - self.tail, stop - self.tail)
        valid = self._valid[column]
        begin = start & self._mask
        end = begin + stop - start
        if end <= self._mask + 1:
            return Column(self._values[column][begin:end], None if valid is None else valid[begin:end])
        mask = None if valid is None else self._read(valid, start, stop)
        return Column(self._read(self._values[column], start, stop), mask)

    def stop_of_piece(self, start: int, stop: int) -> int:
        """The elements from `start` up to here, at most `stop`, lie in one piece."""
        return stop if self._passing is not None else min(stop, (start | self._mask) + 1)

    def raw(self, column: int) -> tuple[AnyArray, BoolArray | None, int]:
        """(values, valid, mask) of a column as it stands in the ring: an element's value is at seq & mask."""
        self.keep()
        return self._values[column], self._valid[column], self._mask

    def places(self) -> tuple[Int64Array, int]:
        """(places, mask): where the columns, and behind them the instants, stand in the ring, for kernels
        (`kernels.addresses`); to be asked for anew for each call.
        """
        table = self.table
        if table is None:
            self.keep()
            rows = [
                (v.ctypes.data, 0 if valid is None else valid.ctypes.data, v.itemsize)
                for v, valid in zip(self._values, self._valid)
            ]
            table = self.table = np.array(rows, np.int64).reshape(len(rows), 3)
        return table, self._mask

    def stamped(self, columns: Sequence[int]) -> Sequence[int]:
        """These columns, and behind them the instants."""
        return self._all_stamped if columns is self._all_columns else [*columns, len(self.schema)]

    def batch(self, start: int, stop: int) -> Batch:
        """The elements [start, stop) as a batch of references."""
        begin = start & self._mask
        end = begin + stop - start
        in_one_piece = self._passing is None and end <= self._mask + 1
        ts = self._ts[begin:end] if in_one_piece else self.ts(start, stop)
        return Batch.run(ts, start, self, self._all_columns)

    def arrays(self) -> tuple[Int64Array, list[Column]]:
        """What is held, oldest first: (ts, columns)."""
        seq = np.arange(self.tail, self.head, dtype=np.int64)
        return self.ts(self.tail, self.head), [self.gather(i, seq) for i in range(len(self.schema))]

    # -------------------------------------------------------------------------------------------------- readers

    def reader(self, lo: int | None = None) -> Reader:
        """A new claim from `lo` (default: the next element to come) on."""
        reader = Reader(self.head if lo is None else max(lo, self.tail), self)
        self._readers.append(reader)
        return reader

    def release(self, reader: Reader) -> None:
        """End a claim."""
        self._readers.remove(reader)

    def first_claimed(self) -> int:
        """The first element that a reader claims; the next one to come where none does."""
        first = self.head
        for reader in self._readers:
            if reader.lo < first:
                first = reader.lo
        return first

    def claimed_by(self, readers: Sequence[Reader]) -> int:
        """Elements that would be given up without these readers."""
        others = min((each.lo for each in self._readers if each not in readers), default=self.head)
        return max(0, others - min((each.lo for each in readers), default=others))

    def held_back_by(self, reader: Reader) -> int:
        """Elements that it claims and another reader has passed; all from its first on, where there is no other. What
        all others wait for, too, it does not hold back.
        """
        passed = max((each.lo for each in self._readers if each is not reader), default=self.head)
        return max(0, passed - reader.lo)

    @property
    def is_read(self) -> bool:
        """Somebody claims elements, here or in a mirror."""
        return bool(self._readers) or any(mirror.is_read for mirror in self.mirrors)

    def with_mirrors(self) -> Iterator[StreamStore]:
        """The store, and those that take what comes here."""
        yield self
        for mirror in self.mirrors:
            yield from mirror.with_mirrors()

    def feeds(self, store: StreamStore) -> bool:
        """What comes here comes into that store."""
        return any(each is store for each in self.with_mirrors())

    def free(self) -> None:
        """Give up what no reader claims. Called while the engine rests."""
        if self.mirrors:
            self.mirrors = [mirror for mirror in self.mirrors if mirror.is_read]
            for mirror in self.mirrors:
                mirror.free()
        head, tail, is_small = self.head, self.tail, self._mask < _LARGE
        if head == tail and is_small:
            return
        claimed = self.first_claimed() if head > tail else head
        for mirror in self.mirrors:
            claimed = min(claimed, mirror.tail)
        if self._passing is None:
            if is_small:
                # It keeps its size, whatever it has held.
                if claimed > tail:
                    self.tail = claimed
                return
            self._peak = max(self._peak, head - tail)
        else:
            if claimed < head:
                passed, (ts, columns) = max(claimed - tail, 0), self._passing
                self._passing = ts[passed:], [column.slice(passed, len(ts)) for column in columns]
                self.tail += passed
                self.keep()
            self._passing = None
        if claimed > self.tail:
            self.tail = claimed
        self._frees += 1
        if self._frees >= _FREES_BEFORE_SHRINKING:
            # Only what has been too large for a while shrinks: a ring that fills and empties with every push keeps
            # its size.
            peak, self._peak, self._frees = self._peak, len(self), 0
            if self._mask + 1 > max(_LARGE, 4 * peak):
                with contextlib.suppress(MemoryError):  # then it keeps what it has
                    self._resize((self._mask + 1) // 2)

    def shrink(self) -> None:
        """Give up room that nothing stands in, at once: memory is short. Called while the engine rests."""
        capacity = max(_FIRST_CAPACITY, _capacity_for(len(self)))
        if capacity <= self._mask:
            self._resize(capacity)

    def start_at(self, seq: int) -> None:
        """Let an empty store begin with another sequence number than 0."""
        self.tail = self.head = seq

    def take_back(self, other: StreamStore, lo: int) -> None:
        """Hold the elements [lo, tail) again, which another store has under the same numbers; NULL in columns that it
        has not.
        """
        if lo >= self.tail:
            return
        self.reserve(self.tail - lo)
        seq = np.arange(lo, self.tail, dtype=np.int64)
        ts, columns = other.ts(lo, self.tail), [other.gather(i, seq) for i in range(len(other.schema))]
        columns += [Column.nulls(len(seq), type_) for type_ in self.schema.types[len(columns) :]]
        self._put(lo & self._mask, ts, columns)
        self.tail = lo

    # ------------------------------------------------------------------------------------------------- the ring

    def _put(self, start: int, ts: Int64Array, columns: Sequence[Column]) -> None:
        """Write elements into the slots from start on, which are free."""
        self._write(self._ts, start, ts)
        for i, column in enumerate(columns):
            self._write(self._values[i], start, column.values)
            valid = self._valid[i]
            if column.valid is not None:
                if valid is None:
                    valid = self._with_mask(i)
                self._write(valid, start, column.valid)
            elif valid is not None:
                self._fill(valid, start, len(ts))

    def _with_mask(self, column: int) -> BoolArray:
        """A column gets its first NULL: a mask for it."""
        valid = self._valid[column] = np.ones(self._mask + 1, np.bool_)
        self._has_masks, self.table = True, None
        return valid

    def _write(self, array: AnyArray, start: int, values: AnyArray) -> None:
        stop, room = start + len(values), self._mask + 1
        if stop <= room:
            array[start:stop] = values
        else:
            array[start:] = values[: room - start]
            array[: stop - room] = values[room - start :]

    def _fill(self, valid: BoolArray, start: int, n: int) -> None:
        """So many elements from a slot on are not NULL. `fill` asks for no memory, as an assigned True would."""
        first = min(n, self._mask + 1 - start)
        valid[start : start + first].fill(True)
        valid[: n - first].fill(True)

    def _read(self, array: npt.NDArray[T], start: int, stop: int) -> npt.NDArray[T]:
        begin = start & self._mask
        end = begin + stop - start
        if end <= self._mask + 1:
            return array[begin:end]
        return np.concatenate([array[begin:], array[: end - self._mask - 1]])

    def _resize(self, capacity: int) -> None:
        """Move what is held into arrays of another capacity; each element keeps its sequence number. MemoryError, and
        nothing has changed.
        """
        arrays = [*self._values, *self._valid]
        held = [None if a is None else self._read(a, self.tail, self.head) for a in arrays]
        moved: list[Any] = [None if a is None else np.empty(capacity, a.dtype) for a in arrays]
        self._mask = capacity - 1
        for array, values in zip(moved, held):
            if values is not None:
                self._write(array, self.tail & self._mask, values)
        self.table = None
        k = len(self.types)
        self._ts, self._values, self._valid = moved[k - 1], moved[:k], moved[k:]


def _capacity_for(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def _are_plain(ts: Int64Array, columns: Sequence[Column]) -> bool:
    """The arrays are such as the ring's: kernels take them."""
    arrays = [ts, *(c.values for c in columns), *(c.valid for c in columns if c.valid is not None)]
    return all(array.flags.c_contiguous and array.flags.writeable and array.flags.aligned for array in arrays)
