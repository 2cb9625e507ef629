"""Over: each row with a running aggregate or its share, in the order of its partition.

Each partition stands in order. A change concerns the rows behind it that see it: as many as the function looks back, or
all. They are taken back and put out again, and what is equal cancels. Where rows come in the order asked for and none
leaves, only as many are kept as the function looks back. What kernels can do does not come here: streams whose rows
look at none behind them (`operators.stream_over`), ranks and neighbours (`operators.ranked_over`).

Invariant: after an instant the rows put out are those of the input with their results.  docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from minidsms.aggregates.over import SHARES, Accumulator, OverCall, accumulator, slid, tile
from minidsms.aggregates.sorting import Rows
from minidsms.elements import Batch, Column, Schema, bounds_of_instants
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.object_states import Texts
from minidsms.synopses.partition_rows import Beside, Entry, Keys, Partition, PartitionRows, behind
from minidsms.synopses.passed_rows import PassedRows, further
from minidsms.values.coded import text_of_digits
from minidsms.values.types import MOST_DIGITS

_LARGEST_OUTPUT = 1 << 14
_GREATEST = 10**MOST_DIGITS - 1

Shown = tuple[bytes, Any]
"""A row, as words, and its result."""
Change = tuple[Entry, int]
"""A row, and how many times more it is there."""
Placed = tuple[Entry, int, int, int]
"""A change, and the places of the rows equal to its row: from, and before."""


class Over(Resuming):
    """Appends what the call gives. O(log n) a change beside the rows that it concerns, n the rows kept of a partition.

    input_append_only: no row leaves.  in_order: and all rows
    of an instant stand behind those of earlier ones.
    """

    name = "Over"
    acts_on_time = False

    def __init__(
        self,
        input_: Queue,
        call: OverCall,
        schema: Schema,
        texts: Texts,
        input_append_only: bool = False,
        in_order: bool = False,
    ) -> None:
        super().__init__([input_], schema)
        self._rows = PartitionRows(input_.schema, call.partition, call.order, call.arg, call.sums_decimals, texts)
        self._passed = PassedRows()
        self._call, self._texts, self._width = call, texts, len(call.order)
        sees_all = call.function in SHARES or (call.is_framed and call.frame.end is None)
        self._in_order = in_order and input_append_only and not sees_all
        self._kept = (call.frame.reach if call.is_framed else call.distance) or 0
        self.knows_rows = not self._in_order  # else they have been forgotten
        self._carries = call.is_framed and call.frame.start is None
        self._back, self._on = _reach(call)
        self._by_value = call.is_framed and call.frame.by_value

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return
        self.claim(len(batch) * self._rows.row_nbytes)
        partitions, entries = self._rows.entries(batch)
        changes = list(zip(entries, repeat(1) if batch.sign is None else batch.sign.tolist()))
        shown: list[Shown] = []
        counts: list[tuple[int, int, int]] = []
        for start, end in pairwise(bounds_of_instants(batch.ts)):
            ts = batch.ts.item(start)
            changed: dict[Partition, list[Change]] = {}
            for partition, change in zip(partitions[start:end], changes[start:end]):
                changed.setdefault(partition, []).append(change)
            gone: list[Shown] = []
            come: list[Shown] = []
            try:
                for partition, of_partition in changed.items():
                    self._change(partition, of_partition, gone, come)
            except OverflowError:
                self.fail(ts, f"{self._call.label} overflows {self._call.type}")
                break
            counts.append((ts, len(gone), len(come)))
            shown += gone
            shown += come
            if len(shown) >= _LARGEST_OUTPUT:
                yield self._batch(counts, shown)
                shown, counts = [], []
        if shown:
            yield self._batch(counts, shown)

    def _change(self, partition: Partition, changes: list[Change], gone: list[Shown], come: list[Shown]) -> None:
        """Carry out the changes of an instant to a partition, and note what is taken back and put out."""
        rows = self._rows.of(partition)
        passed = self._passed.partitions.get(partition)
        net = changes if len(changes) == 1 else _netted(changes)
        if not rows:  # all that comes is put out, and nothing else
            for entry, n in net:
                rows = self._rows.add(partition, rows, entry, n)
            come += self._shown(rows, 0, len(rows), passed)
            if self._in_order:
                self._pass(partition, rows, self._passing(rows))
            return
        placed = _placed(rows, net)
        before = self._told(rows, placed, 0, passed)
        rows = self._move(partition, rows, placed)
        after = self._told(rows, placed, 1, passed) if rows else []
        if not before:
            come += after
        elif not after:
            gone += before
        else:
            _difference(before, after, gone, come)
        if self._in_order:
            self._pass(partition, rows, self._passing(rows))

    # ------------------------------------------------------------------------------------------------ where rows stand

    def _seen_by_value(self, rows: Rows, entry: Entry, low: int, high: int) -> tuple[int, int]:
        """The places of the rows in whose frames a row is, if it comes or leaves at these places."""
        frame = self._call.frame
        first = 0 if frame.end is None else min(low, self._place(rows, entry, -frame.end))
        return first, len(rows) if frame.start is None else max(high, self._place(rows, entry, -frame.start, True))

    def _place(self, rows: Rows, entry: Entry, distance: int, is_behind: bool = False) -> int:
        """The place of the first row whose key is not before that of the row and so much; or behind the last such."""
        keys = entry[: self._width]
        if distance and not isinstance(keys[0], Beside):
            keys = (keys[0] + distance,)
        return behind(rows, keys) if is_behind else int(rows.bisect_left(keys))

    # ---------------------------------------------------------------------------------------------------------- results

    def _told(self, rows: Rows, placed: list[Placed], moved: int, passed: Accumulator | None) -> list[Shown]:
        """The rows whose results may differ before and after, with their results now. moved: 1 after the changes, else
        0.
        """
        told: list[Shown] = []
        at = by = 0
        for entry, n, low, high in placed:
            low += by
            by += n * moved
            high += by
            if self._by_value:
                low, high = self._seen_by_value(rows, entry, low, high)
            else:
                low = 0 if self._back is None else low - self._back
                high = len(rows) if self._on is None else high + self._on
            low, high = max(at, low), min(high, len(rows))
            if low < high:
                told += self._shown(rows, low, high, passed)
                at = high
        return told

    def _shown(self, rows: Rows, low: int, high: int, passed: Accumulator | None) -> Iterable[Shown]:
        """The rows at these places of a partition with their results."""
        if low >= high:
            return ()
        words = [entry[-2] for entry in rows[low:high]]
        call = self._call
        if call.function in SHARES:
            return zip(words, self._shares(rows, low, high))
        frames = self._frames(rows, low, high)
        first, last = frames[0][0], max(frames[-1][1], frames[0][0])
        found = accumulator(call) if passed is None else further(passed)
        return zip(words, self._in_range(slid(found, _arguments(rows, first, last), frames, first)))

    def _shares(self, rows: Rows, low: int, high: int) -> list[float]:
        """The places of these rows among all of the partition."""
        call, n = self._call, len(rows)
        if call.function == "ntile":
            assert call.distance is not None
            return [tile(place, n, call.distance) for place in range(low, high)]
        keys = [entry[: self._width] for entry in rows[low:high]]
        if call.function == "percent_rank":
            before = {each: int(rows.bisect_left(each)) for each in keys}
            return [before[each] / (n - 1) if n > 1 else 0.0 for each in keys]
        up_to = {each: behind(rows, each) for each in keys}
        return [up_to[each] / n for each in keys]

    def _frames(self, rows: Rows, low: int, high: int) -> list[tuple[int, int]]:
        """From which place to before which the frame of each row reaches."""
        frame, end = self._call.frame, len(rows)
        if not frame.by_value:
            return [
                (
                    0 if frame.start is None else min(end, max(0, place + frame.start)),
                    end if frame.end is None else max(0, min(end, place + frame.end + 1)),
                )
                for place in range(low, high)
            ]
        frames: list[tuple[int, int]] = []
        before: Keys | None = None
        for entry in rows[low:high]:
            keys = entry[: self._width]
            if keys == before:
                frames.append(frames[-1])
                continue
            before = keys
            first = 0 if frame.start is None else self._place(rows, entry, frame.start)
            frames.append((first, end if frame.end is None else self._place(rows, entry, frame.end, True)))
        return frames

    def _in_range(self, results: list[Any]) -> list[Any]:
        if not self._call.can_fail:
            return results
        least, greatest = (-_GREATEST, _GREATEST) if self._call.sums_decimals else (-(2**63), 2**63 - 1)
        for result in results:
            if result is not None and not least <= result <= greatest:
                raise OverflowError
        return [r if r is None else text_of_digits(r) for r in results] if self._call.sums_decimals else results

    # ------------------------------------------------------------------------------------------------------------ state

    def _move(self, partition: Partition, rows: Rows, placed: list[Placed]) -> Rows:
        """Carry changes out, the last first, so that places stay; returns where the rows are now."""
        for entry, n, low, _ in reversed(placed):
            if n > 0:
                rows = self._rows.add(partition, rows, entry, n)
            else:
                self._rows.drop(partition, rows, low, low - n)
        return rows

    def _passing(self, rows: Rows) -> int:
        """The place of the first row that one which comes may still change, or see."""
        if self._by_value and rows:
            return self._place(rows, rows[-1], -self._kept) if self._kept else len(rows)
        return len(rows) - self._kept

    def _pass(self, partition: Partition, rows: Rows, end: int) -> None:
        if end <= 0:
            return
        arguments = _arguments(rows, 0, end)
        self._rows.drop(partition, rows, 0, end)
        if self._carries:
            passed = self._passed.partitions.get(partition)
            if passed is None:
                passed = self._passed.partitions[partition] = accumulator(self._call)
            passed.extend(arguments)

    # --------------------------------------------------------------------------------------------------------- outwards

    def _batch(self, counts: Sequence[tuple[int, int, int]], shown: Sequence[Shown]) -> Batch:
        """counts: each instant, and how many rows are taken back then and put out."""
        ts: list[int] = []
        sign: list[int] = []
        for instant, gone, come in counts:
            ts += [instant] * (gone + come)
            sign += [-1] * gone + [1] * come
        columns = self._rows.columns_of([words for words, _ in shown])
        columns.append(self._column([result for _, result in shown]))
        return Batch(np.array(ts, np.int64), np.array(sign, np.int8), columns, is_own=True)

    def _column(self, results: list[Any]) -> Column:
        type_ = self._call.type
        if type_.is_coded:
            return self._texts.encode_as(results, type_)
        if None not in results:
            return Column(np.array(results, type_.dtype))
        valid = np.array([r is not None for r in results])
        return Column(np.array([0 if r is None else r for r in results], type_.dtype), valid)

    def present(self) -> Batch:
        shown: list[Shown] = []
        for partition, rows in self._rows.partitions.items():
            shown += self._shown(rows, 0, len(rows), self._passed.partitions.get(partition))
        return self._batch([(0, 0, len(shown))], shown)

    def describe(self) -> Description:
        nbytes = self._rows.nbytes + self._passed.nbytes
        return Description(self.name, self._call.label, {"rows": self._rows.n, "bytes": nbytes})

    def synopses(self) -> tuple[PartitionRows | PassedRows, ...]:
        return self._rows, self._passed


def _reach(call: OverCall) -> tuple[int | None, int | None]:
    """How many rows before and behind one that comes or leaves may have another result; None for all."""
    frame = call.frame
    if call.function in SHARES:
        return None, None
    return None if frame.end is None else max(0, frame.end), None if frame.start is None else max(0, -frame.start)


def _netted(changes: Iterable[Change]) -> list[Change]:
    """What changes of a partition come to, in the order of the rows."""
    counts: dict[Entry, int] = {}
    for entry, n in changes:
        counts[entry] = counts.get(entry, 0) + n
    return sorted((change for change in counts.items() if change[1]), key=lambda change: change[0])


def _placed(rows: Rows, changes: Iterable[Change]) -> list[Placed]:
    placed = []
    for entry, n in changes:
        low = high = int(rows.bisect_left(entry))
        if low < len(rows) and rows[low] == entry:
            high = int(rows.bisect_right(entry))
        placed.append((entry, n, low, high))
    return placed


def _difference(before: Iterable[Shown], after: Iterable[Shown], gone: list[Shown], come: list[Shown]) -> None:
    """Note what is taken back and put out if the one is to become the other."""
    net: dict[Shown, int] = {}
    for shown in before:
        net[shown] = net.get(shown, 0) - 1
    for shown in after:
        net[shown] = net.get(shown, 0) + 1
    for shown, n in net.items():
        if n:
            (come if n > 0 else gone).extend([shown] * abs(n))


def _arguments(rows: Rows, first: int, last: int) -> list[Any]:
    """The argument of the rows at these places; 1 for COUNT(*)."""
    return [entry[-1] for entry in rows[first:last]]
