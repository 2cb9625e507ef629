"""Top: the first rows of a relation, ORDER BY .. LIMIT.

All rows are kept, for a row may become one of the first when others leave, but only those near the first in order;
where none ever leaves, the first alone. A change moves the rows behind it by one place, so at most one row enters what
is shown and one leaves it.

Invariant: after an instant the rows put out are those at places [offset, offset + limit) of the input in its order.
docs/semantics R6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Batch
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.first_rows import FirstRows
from minidsms.synopses.object_states import Texts
from minidsms.synopses.sorted_rows import Entry

_LARGEST_OUTPUT = 1 << 14
_AT_ONCE = 1 << 10
"""Changes after which rows may come to be far."""


class Top(Resuming):
    """order: by which columns, and how.  input_append_only: no row leaves. O(log n) a change, n the rows in order."""

    name = "Top"
    acts_on_time = False

    def __init__(
        self,
        input_: Queue,
        order: Sequence[tuple[int, SortKey]],
        limit: int,
        offset: int,
        texts: Texts,
        input_append_only: bool = False,
    ) -> None:
        super().__init__([input_], input_.schema)
        self._start, self._stop = offset, offset + limit
        self._keeps_all = not input_append_only
        self._sorted = FirstRows(input_.schema, order, texts, self._stop, self._keeps_all)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return
        if not self.allowance.is_open:
            self.claim(len(batch) * (self._sorted.nbytes // max(len(self._sorted), 1)))
        out: list[tuple[int, int, Entry]] = []
        for ts, changes in self._of_near_rows(batch):
            out += self._instant(ts, changes)
            if len(out) >= _LARGEST_OUTPUT:
                yield self._batch(out)
                out = []
        if out:
            yield self._batch(out)

    def _of_near_rows(self, batch: Batch) -> Iterator[tuple[int, list[tuple[int, Entry]]]]:
        """The changes of rows near the first, instant by instant. Others are counted, and fetched before few are."""
        first, all_ts, start, n = self._sorted, batch.ts, 0, len(batch)
        while start < n:
            end = n
            if n - start > _AT_ONCE:
                end = int(np.searchsorted(all_ts, all_ts[start + _AT_ONCE - 1], "right"))
            near, far = first.parted(batch if end - start == n else batch.slice(start, end))
            start, too_many = end, -1
            changes = () if near is None else zip(near.ts.tolist(), near.signs.tolist(), first.entries(near))
            for ts, of_instant in groupby(changes, key=lambda change: change[0]):
                instant = [(sign, entry) for _, sign, entry in of_instant]
                leaving = sum(sign < 0 for sign, _ in instant)
                if far is not None and len(first.rows) - leaving < self._stop:
                    far, start = far.slice(0, int(np.searchsorted(far.ts, ts))), int(np.searchsorted(all_ts, ts))
                    too_many = leaving
                    break
                yield ts, instant
            if far is not None:
                first.count(far)
            if too_many >= 0:
                first.fetch(too_many)
            else:
                first.settle()

    def _instant(self, ts: int, changes: list[tuple[int, Entry]]) -> Iterator[tuple[int, int, Entry]]:
        """What the changes of an instant come to, deletions first."""
        net: dict[Entry, int] = {}
        for sign, entry in changes:
            for moved, change in self._insert(entry) if sign > 0 else self._delete(entry):
                net[moved] = net.get(moved, 0) + change
        entries = sorted(net)
        for wanted in (-1, 1):
            for entry in entries:
                for _ in range(net[entry] * wanted):
                    yield ts, wanted, entry

    def _insert(self, entry: Entry) -> Iterator[tuple[Entry, int]]:
        rows = self._sorted.rows
        place = rows.bisect_left(entry)
        rows.add(entry)
        yield from self._shifted(place, 1)
        if not self._keeps_all and self._stop < len(rows):
            del rows[self._stop]

    def _delete(self, entry: Entry) -> Iterator[tuple[Entry, int]]:
        rows = self._sorted.rows
        place = rows.bisect_left(entry)
        yield from self._shifted(place, -1)
        del rows[place]

    def _shifted(self, place: int, sign: int) -> Iterator[tuple[Entry, int]]:
        """Which rows come to be shown, and which no more, by the row at a place: it has come, or is about to leave."""
        rows = self._sorted.rows
        if place < self._stop:
            if max(place, self._start) < len(rows):
                yield rows[max(place, self._start)], sign
            if self._stop < len(rows):
                yield rows[self._stop], -sign

    def _batch(self, changes: Sequence[tuple[int, int, Entry]]) -> Batch:
        ts = np.array([ts for ts, _, _ in changes], np.int64)
        sign = np.array([sign for _, sign, _ in changes], np.int8)
        return Batch(ts, sign, self._sorted.columns([entry for _, _, entry in changes]), is_own=True)

    def contents(self) -> Batch:
        """The rows that are shown, as insertions (ts of no meaning)."""
        shown = list(self._sorted.rows.islice(self._start, self._stop))
        return Batch(np.zeros(len(shown), np.int64), None, self._sorted.columns(shown))

    def describe(self) -> Description:
        detail = f"{self._stop - self._start}" + (f" behind {self._start}" if self._start else "")
        return Description(self.name, detail, {"rows": len(self._sorted), "bytes": self._sorted.nbytes})

    def synopses(self) -> tuple[FirstRows, ...]:
        return (self._sorted,)
