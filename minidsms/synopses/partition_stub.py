"""What a window by key remembers: the last N rows of each key, or its present session, in slots of its own.

A row of a quiet key stays long after its neighbours in the stream have gone, so these rows are copied, not referred to.

Invariant: a slot is on the list of its key and on the list of all arrivals, or free; a key has at least one row, or is
free. Freed slots and keys are used again, and the arrays shrink when little is left: the size follows the relation.
docs/semantics W5, W11; docs/design, point 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import (
    MAX_INSTANT,
    AnyArray,
    Batch,
    BoolArray,
    Column,
    Int8Array,
    Int64Array,
    Schema,
    row_words,
    words_width,
)
from minidsms.kernels import partition_window as kernels
from minidsms.kernels.arrays import normal
from minidsms.machine_code import rows_of
from minidsms.synopses.stub import NO_INSTANTS

_FIRST_CAPACITY = 64
_LARGEST_OUTPUT = 1 << 16
_NEVER = -(2**63)
_UNBOUNDED = 2**62
_Value = TypeVar("_Value", bound=np.generic)
_Changes = tuple[Int8Array, Int64Array]
"""`kernels.Changes`."""


class PartitionStub:
    """Rows per key, in arrival order.

    spec: PARTITION, or SESSION: then instant and number of the session's first row stand behind each row's columns.
    keeps_rows: False where only instants are wanted.
    """

    def __init__(self, schema: Schema, spec: WindowSpec, keeps_rows: bool = True) -> None:
        self.schema = schema
        self.keys = spec.keys
        self.range_ = range_ = spec.range_
        self.in_sessions = spec.kind is WindowKind.SESSION
        self._rows = _UNBOUNDED if spec.rows is None else spec.rows
        self._length = 0 if range_ is None else max(range_, 1)
        self._slot_fields = kernels.SLOT_FIELDS if self._length else kernels.TIMELESS_SLOT_FIELDS
        self._kept = range(len(schema)) if keeps_rows else range(0)
        self._key_width = words_width(len(self.keys))
        self._no_words: Int64Array = np.zeros((0, self._key_width), np.int64)
        self._clear(0)

    def _clear(self, arrived: int) -> None:
        self._figures = kernels.WindowFigures(oldest=-1, newest=-1, arrived=arrived)
        self._slots: Int64Array = np.zeros((0, self._slot_fields), np.int64)
        self._free_slots = self._free_keys = NO_INSTANTS
        self._keys = rows_of(kernels.KeyRows, 0)
        self._key_words: Int64Array = np.zeros((0, self._key_width), np.int64)
        self._buckets: Int64Array = np.full(2, -1, np.int64)
        self._values: list[AnyArray] = [np.zeros(0, self.schema.types[i].dtype) for i in self._kept]
        self._valid: list[BoolArray | None] = [None for _ in self._kept]
        self._grow_slots(_FIRST_CAPACITY)
        self._grow_keys(_FIRST_CAPACITY)

    def __len__(self) -> int:
        return len(self._slots) - self._figures.free_slots

    def leaves_at(self) -> int:
        """An instant before which no row leaves unless others come; MAX_INSTANT where none does."""
        oldest = self._figures.oldest
        return MAX_INSTANT if oldest < 0 else self._slots.item(oldest, kernels.TS) + self._length

    @property
    def own_store(self) -> None:
        """Rows stand in slots, not in a stream's store: there is nothing for the engine to free."""
        return None

    @property
    def groups(self) -> int:
        """How many keys have rows."""
        return len(self._keys) - self._figures.free_keys

    # ------------------------------------------------------------------------------------------------- the slices

    def pass_through(self, batch: Batch | None, until: int) -> Iterator[Batch]:
        """Let elements arrive and time pass up to `until`; gives what leaves and enters, in bounded batches.

        The batches carry arrival numbers as seq, and rows unless only instants are kept.
        """
        n = 0 if batch is None else len(batch)
        ts, words = NO_INSTANTS, self._no_words
        if batch is not None:
            ts, words = normal(batch.ts), self._words(batch)
        self._figures.arrived += n
        place: Int64Array = np.empty(n, np.int64)
        place.fill(-1)
        cursor = kernels.SliceCursor()
        last_expiring = _NEVER if self.range_ is None else max(until - self._length, _NEVER)
        status = -1
        while status != kernels.DONE:
            came = cursor.next
            room = max(1, min(2 * (n - came) + len(self) + n, _LARGEST_OUTPUT))
            out_sign, out = changes = self._room(room)
            status = self._run(ts, words, last_expiring, place, cursor, changes)
            k = cursor.written
            # Gather before the slots this call freed and filled again are written.
            columns = self._gather(batch, out[2, :k])
            if self.in_sessions:
                columns += _session_columns(out[3, :k], out[4, :k])
            if batch is not None:
                self._scatter(batch, place, came, cursor.next)
            if status == kernels.NEEDS_SLOTS:
                self._grow_slots(2 * len(self._slots))
            elif status == kernels.NEEDS_KEYS:
                self._grow_keys(2 * len(self._keys))
            if k:
                yield Batch(out[0, :k], out_sign[:k], columns, out[1, :k])
        self._shrink()

    def _run(
        self, ts: Int64Array, words: Int64Array, last_expiring: int, place: Int64Array, cursor: kernels.SliceCursor,
        changes: _Changes,
    ) -> int:  # fmt: skip
        # Plain tuples in the places of the kernel's bundles: a NamedTuple takes seven times as long.
        keys = self._keys, self._key_words, self._free_keys, self._buckets
        stub = self._figures, self._slots, self._free_slots, *keys
        kept = self._rows, self._length, last_expiring, self.in_sessions
        run: Callable[..., int] = kernels.partition_window
        return run(ts, words, kept, stub, place, cursor, changes)

    def _room(self, n: int) -> _Changes:
        return np.empty(n, np.int8), np.empty((5 if self.in_sessions else 3, n), np.int64)

    def _words(self, batch: Batch) -> Int64Array:
        if self.keys:
            return row_words([batch.column(i) for i in self.keys])
        return np.zeros((len(batch), self._key_width), np.int64)

    def _gather(self, batch: Batch | None, origin: Int64Array) -> list[Column]:
        """The rows put out: from the batch where origin >= 0, else from slot -1 - origin."""
        if not self._kept or not len(origin):
            return []
        from_batch = NO_INSTANTS if batch is None else (origin >= 0).nonzero()[0]
        if batch is not None and len(from_batch) == len(origin):
            return [batch.column(i).take(origin) for i in self._kept]
        slots = ~origin
        if len(from_batch):
            slots[from_batch] = 0  # some slot is read, and written over
        columns = [
            Column(values.take(slots), None if valid is None else valid.take(slots))
            for values, valid in zip(self._values, self._valid)
        ]
        if batch is None or not len(from_batch):
            return columns
        arrivals = origin[from_batch]
        for i, mixed in zip(self._kept, columns):
            new = batch.column(i)
            mixed.values[from_batch] = new.values[arrivals]
            if mixed.valid is None and new.valid is not None:
                mixed.valid = np.ones(len(origin), np.bool_)
            if mixed.valid is not None:
                mixed.valid[from_batch] = True if new.valid is None else new.valid[arrivals]
        return columns

    def _scatter(self, batch: Batch, place: Int64Array, start: int, stop: int) -> None:
        """Copy the rows of the arrivals from start to stop that still stand into their slots."""
        if not self._kept or start == stop:
            return
        standing = (place[start:stop] >= 0).nonzero()[0] + start
        slots = place[standing]
        for j, i in enumerate(self._kept):
            column = batch.column(i)
            self._values[j][slots] = column.values[standing]
            valid = self._valid[j]
            if valid is None and column.valid is not None:
                valid = self._valid[j] = np.ones(len(self._slots), np.bool_)
            if valid is not None:
                valid[slots] = True if column.valid is None else column.valid[standing]

    # ---------------------------------------------------------------------------------------------------- capacity

    def _grow_slots(self, capacity: int) -> None:
        old, free = len(self._slots), self._figures.free_slots
        self._slots = _longer(self._slots, capacity, 0)
        self._free_slots = _longer(self._free_slots, capacity, 0)
        self._values = [_longer(values, capacity, 0) for values in self._values]
        self._valid = [None if valid is None else _longer(valid, capacity, 1) for valid in self._valid]
        self._free_slots[free : free + capacity - old] = np.arange(capacity - 1, old - 1, -1)
        self._figures.free_slots += capacity - old

    def _grow_keys(self, capacity: int) -> None:
        old, free = len(self._keys), self._figures.free_keys
        is_live = np.ones(old, np.bool_)
        is_live[self._free_keys[:free]] = False
        keys = rows_of(kernels.KeyRows, capacity)
        keys[:old] = self._keys
        self._keys = keys
        self._key_words = _longer(self._key_words, capacity, 0)
        self._free_keys = _longer(self._free_keys, capacity, 0)
        self._buckets = np.full(2 * capacity, -1, np.int64)
        kernels.chain_keys(self._key_words, np.flatnonzero(is_live).astype(np.int64), self._buckets, self._keys)
        self._free_keys[free : free + capacity - old] = np.arange(capacity - 1, old - 1, -1)
        self._figures.free_keys += capacity - old

    def _shrink(self) -> None:
        capacity = max(len(self._slots), len(self._keys))
        if capacity > 64 * _FIRST_CAPACITY and len(self) * 8 < capacity:
            self.restore(self.arrays())

    # ------------------------------------------------------------------------------------------------------- state

    def _standing(self) -> Int64Array:
        """The slots in use, by arrival."""
        is_used = np.ones(len(self._slots), np.bool_)
        is_used[self._free_slots[: self._figures.free_slots]] = False
        slots = np.flatnonzero(is_used).astype(np.int64)
        return slots[np.argsort(self._slots[slots, kernels.NUMBER])]

    def contents(self) -> Batch:
        """The rows of the window, by arrival (ts of no meaning). Only where rows are kept."""
        slots = self._standing()
        columns = [
            Column(values[slots], None if valid is None else valid[slots])
            for values, valid in zip(self._values, self._valid)
        ]
        if self.in_sessions:
            keys = self._slots[slots, kernels.KEY]
            columns += _session_columns(self._keys["began_at"][keys], self._keys["began_with"][keys])
        return Batch(np.zeros(len(slots), np.int64), None, columns, self._slots[slots, kernels.NUMBER])

    @property
    def nbytes(self) -> int:
        arrays = [self._slots, self._free_slots, self._key_words, self._free_keys, self._buckets, *self._values]
        return self._keys.nbytes + sum(a.nbytes for a in arrays) + sum(v.nbytes for v in self._valid if v is not None)

    def live_codes(self) -> Iterator[Int64Array]:
        slots = self._standing()
        for j, i in enumerate(self._kept):
            if self.schema.types[i].is_coded:
                yield Column(self._values[j]).words()[slots]
        for j, i in enumerate(self.keys):
            if self.schema.types[i].is_coded:
                yield self._key_words[self._slots[slots, kernels.KEY], j]

    def arrays(self) -> dict[str, AnyArray]:
        """What is held, by arrival."""
        slots = self._standing()
        state: dict[str, AnyArray] = {
            "ts": self._slots[slots, kernels.TS],
            "number": self._slots[slots, kernels.NUMBER],
            "key": self._key_words[self._slots[slots, kernels.KEY]],
            "arrived": np.array([self._figures.arrived]),
        }
        for j, valid in enumerate(self._valid):
            state[f"values{j}"] = self._values[j][slots]
            if valid is not None:
                state[f"valid{j}"] = valid[slots]
        return state

    def numbers(self, state: Mapping[str, AnyArray]) -> Int64Array:
        """By arrival."""
        return state["number"].astype(np.int64, copy=False)

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave: the rows arrive once more, in a window where nothing leaves."""
        ts, words = state["ts"].astype(np.int64), np.ascontiguousarray(state["key"], dtype=np.int64)
        n = len(ts)
        self._clear(n)
        capacity = max(_FIRST_CAPACITY, 1 << (2 * n).bit_length())
        self._grow_slots(capacity)
        self._grow_keys(capacity)
        place, cursor = np.full(n, -1, np.int64), kernels.SliceCursor()
        status = self._run(ts, words, _NEVER, place, cursor, self._room(n + 1))
        assert status == kernels.DONE and not (place < 0).any()
        self._slots[place, kernels.NUMBER] = state["number"]
        live = self._slots[place, kernels.KEY]
        self._keys["began_with"][live] = self._slots[self._keys["first_row"][live], kernels.NUMBER]
        self._figures.arrived = int(state["arrived"][0])
        for j in range(len(self._kept)):
            self._values[j][place] = state[f"values{j}"]
            if f"valid{j}" in state:
                valid = self._valid[j] = np.ones(capacity, np.bool_)
                valid[place] = state[f"valid{j}"]


def _session_columns(began_at: Int64Array, began_with: Int64Array) -> list[Column]:
    """Start and id of sessions; elements are counted from 1."""
    return [Column(began_at), Column(began_with + 1)]


def _longer(array: npt.NDArray[_Value], capacity: int, fill: int) -> npt.NDArray[_Value]:
    longer = np.zeros((capacity, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    if fill:
        longer[len(array) :] = fill
    return longer
