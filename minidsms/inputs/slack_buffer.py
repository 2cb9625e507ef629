"""Elements above the progress of their stream, waiting until nothing earlier can come (docs/semantics T6).

Invariant: `release(t)` gives every waiting element with ts <= t, in ts order, equal ts in arrival order; what stays
is later. Elements that came in batches stand in one sorted run of columns; single ones in a heap, since merging the
run for each would cost its length. Whatever is in the heap came after everything in the run, so a stable merge keeps
arrival order.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import BoolArray, Column, Int64Array, Schema, Type

_HEAP_LIMIT = 4096
"""Single elements that wait before they are folded into the run."""

_BYTES_PER_HEAP_ROW = 200


_Row = tuple[int, int, Sequence[Any]]
"""Instant, number of arrival, values."""
_Run = tuple[Int64Array, list[Column], int]
"""Instants and columns in order, and how many of them have been released."""


class Released(NamedTuple):
    """Elements that wait no more. start, rows: where they stood, for `take_back`."""

    ts: Int64Array
    columns: list[Column]
    start: int
    rows: list[_Row]


class SlackBuffer:
    """Waiting elements of one stream."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._ts: Int64Array = np.zeros(0, np.int64)
        self._columns = _no_columns(schema)
        self._start = 0
        self._heap: list[_Row] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._ts) - self._start + len(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap) or len(self._ts) > self._start

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        columns = sum(c.values.nbytes + (0 if c.valid is None else c.valid.nbytes) for c in self._columns)
        return self._ts.nbytes + columns + len(self._heap) * _BYTES_PER_HEAP_ROW

    def add_row(self, ts: int, values: Sequence[Any]) -> None:
        """One element; values are stored scalars, None for NULL. O(log n)."""
        self._arrivals += 1
        heapq.heappush(self._heap, (ts, self._arrivals, values))

    def remove_last(self) -> None:
        """Undo `add_row`, where nothing has been called since. O(waiting)."""
        self._heap.remove(next(row for row in self._heap if row[1] == self._arrivals))
        heapq.heapify(self._heap)

    def add(self, ts: Int64Array, columns: Sequence[Column]) -> _Run:
        """Elements in arrival order, ts in any order; the arrays are copied. O(waiting + n log n). What it gives, with
        `go_back`, undoes it. MemoryError, and the same elements wait as before.
        """
        self._fold()
        before = self._ts, self._columns, self._start
        self._merge(ts, columns)
        return before

    def go_back(self, run: _Run) -> None:
        """Undo `add`, where nothing has been called since."""
        self._ts, self._columns, self._start = run

    def release(self, until: int) -> Released | None:
        """Take out the elements with ts <= until, in order; None where there is none. MemoryError, and they wait on."""
        start, stop = self._start, self._start
        if start < len(self._ts):
            stop += int(np.searchsorted(self._ts[start:], until, "right"))
        rows: list[_Row] = []
        while self._heap and self._heap[0][0] <= until:
            rows.append(heapq.heappop(self._heap))
        if start == stop and not rows:
            return None
        try:
            released = self._released(start, stop, rows)
        except BaseException:
            self._push_back(rows)
            raise
        self._start = stop
        return released

    def _released(self, start: int, stop: int, rows: list[_Row]) -> Released:
        ts, columns = self._ts[start:stop], [c.slice(start, stop) for c in self._columns]
        if rows:
            heap_ts, heap_columns = _columns_of_rows(rows, self.schema)
            if start == stop:
                return Released(heap_ts, heap_columns, start, rows)
            ts = np.concatenate([ts, heap_ts])
            order = np.argsort(ts, kind="stable")
            ts = ts[order]
            columns = [Column.concat([a, b]).take(order) for a, b in zip(columns, heap_columns)]
        return Released(ts, columns, start, rows)

    def take_back(self, released: Released) -> None:
        """Undo `release`."""
        self._start = released.start
        self._push_back(released.rows)

    def _push_back(self, rows: Sequence[_Row]) -> None:
        for row in rows:
            heapq.heappush(self._heap, row)

    def trim(self) -> None:
        """Put in order what waits, once what was released stands elsewhere: let go of that where it is the larger part,
        and of a heap that has grown large.
        """
        with contextlib.suppress(MemoryError):  # then later
            if self._start and self._start * 2 > len(self._ts):
                self._drop_released()
            if len(self._heap) > max(_HEAP_LIMIT, len(self._ts)):
                self._fold()

    def widened(self, schema: Schema) -> SlackBuffer:
        """A buffer in which the same elements wait, with NULL in the columns that the schema has behind their own."""
        ts, columns = self.arrays()
        added = [Column(np.zeros(len(ts), t.dtype), np.zeros(len(ts), np.bool_)) for t in schema.types[len(columns) :]]
        made = SlackBuffer(schema)
        made.restore(ts, [*columns, *added])
        made._arrivals = self._arrivals
        return made

    def arrays(self) -> tuple[Int64Array, list[Column]]:
        """What waits, in the order of its release: (ts, columns)."""
        self._fold()
        self._drop_released()
        return self._ts, self._columns

    def restore(self, ts: Int64Array, columns: Sequence[Column]) -> None:
        """Take back what `arrays` gave."""
        self._ts, self._columns, self._start, self._heap = ts, list(columns), 0, []

    def _drop_released(self) -> None:
        """Copy what still waits, so that what was released does not stay in memory."""
        start, stop = self._start, len(self._ts)
        held = [c.slice(start, stop) for c in self._columns]
        self._set_run(
            self._ts[start:].copy(),
            [c.copy() for c in held],
        )

    def _set_run(self, ts: Int64Array, columns: list[Column]) -> None:
        self._ts, self._columns, self._start = ts, columns, 0

    def _fold(self) -> None:
        """Move the heap into the run."""
        if self._heap:
            self._merge(*_columns_of_rows(sorted(self._heap, key=lambda row: row[:2]), self.schema))
            self._heap = []

    def _merge(self, ts: Int64Array, columns: Sequence[Column]) -> None:
        start, stop = self._start, len(self._ts)
        ts = np.concatenate([self._ts[start:], ts])
        order = np.argsort(ts, kind="stable")
        held = [c.slice(start, stop) for c in self._columns]
        self._set_run(ts[order], [Column.concat([a, b]).take(order) for a, b in zip(held, columns)])


def _no_columns(schema: Schema) -> list[Column]:
    return [Column(np.zeros(0, t.dtype)) for t in schema.types]


def _columns_of_rows(rows: Sequence[_Row], schema: Schema) -> tuple[Int64Array, list[Column]]:
    """(ts, columns) of heap entries."""
    columns = []
    for i, type_ in enumerate(schema.types):
        values = [row[2][i] for row in rows]
        valid: BoolArray | None = None
        if None in values:
            valid = np.array([v is not None for v in values], np.bool_)
            values = [0 if v is None else v for v in values]
        columns.append(Column(np.array(values, type_.dtype if type_ is not Type.NULL else np.int64), valid))
    return np.array([row[0] for row in rows], np.int64), columns
