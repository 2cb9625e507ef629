"""Over: each row with its rank, a neighbour's value or a running aggregate, in the order of its partition.

All rows stand in one sorted list, partition by partition. A change concerns the rows behind it that see it: as many as
the function looks back, or all. They are taken back and put out again, and what is equal cancels. Where rows come in
the order asked for and none leaves, only as many are kept as the function looks back.

Invariant: after an instant the rows put out are those of the input with their results; of those whose result is above
`at_most`, none need be.  docs/semantics R7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from sortedcontainers import SortedList

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import (
    NEIGHBOURS,
    RANKS,
    SHARES,
    OverCall,
    accumulator,
    neighbours,
    slid,
    tile,
)
from minidsms.aggregates.sorting import sort_key
from minidsms.elements import Batch, Column, Schema
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.object_states import Texts
from minidsms.synopses.passed_rows import Passed, PassedRows
from minidsms.synopses.sorted_rows import Entry, SortedRows
from minidsms.values.coded import digits_of, text_of_digits
from minidsms.values.types import MOST_DIGITS

_LARGEST_OUTPUT = 1 << 14
_BEHIND_ALL = ((3,),)
"""Greater than the sort key of any value."""

Keys = tuple[Any, ...]
Shown = tuple[tuple[int, ...], Any]
"""A row, as words, and its result."""


class Over(Resuming):
    """Appends what the call gives. O(log n) a change beside the rows that it concerns, n the rows kept.

    at_most: rows with a greater rank are of no interest.  input_append_only: no row leaves.  in_order: and all rows
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
        at_most: int | None = None,
        input_append_only: bool = False,
        in_order: bool = False,
    ) -> None:
        super().__init__([input_], schema)
        by = [(column, SortKey()) for column in call.partition]
        self._sorted = SortedRows(input_.schema, [*by, *call.order], texts)
        self._passed = PassedRows()
        self._different: SortedList[Keys] = SortedList()
        self._call, self._texts, self._width = call, texts, len(by)
        self._sums_decimals = call.function == "sum" and call.type.kind == "DECIMAL"
        self._at_most = at_most
        self._append_only = input_append_only
        self._descends = bool(call.order) and call.order[0][1].descending
        sees_all = call.function in SHARES or (call.is_framed and call.frame.end is None)
        self._in_order = in_order and input_append_only and not sees_all
        self._is_final = self._in_order and not call.looks_ahead  # what has been told stays
        self._kept = (call.frame.reach if call.is_framed else call.distance) or 0
        self.knows_rows = not self._in_order  # else they have been forgotten
        self._carries = call.function in RANKS or (call.is_framed and call.frame.start is None)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return
        self.claim(len(batch) * (self._sorted.nbytes // max(len(self._sorted.rows), 1)))
        changes = zip(batch.ts.tolist(), batch.signs.tolist(), self._sorted.entries(batch))
        out: list[tuple[int, int, Shown]] = []
        for ts, of_instant in groupby(changes, key=lambda change: change[0]):
            try:
                out += self._instant(ts, [(sign, entry) for _, sign, entry in of_instant])
            except OverflowError:
                self.fail(ts, f"{self._call.label} overflows {self._call.type}")
                break
            if len(out) >= _LARGEST_OUTPUT:
                yield self._batch(out)
                out = []
        if out:
            yield self._batch(out)

    def _instant(self, ts: int, changes: list[tuple[int, Entry]]) -> Iterator[tuple[int, int, Shown]]:
        """What the changes of an instant come to, deletions first."""
        changed: dict[Keys, list[Entry]] = {}
        counts: Counter[Entry] = Counter()
        for sign, entry in changes:
            counts[entry] += sign
        for entry in counts:
            changed.setdefault(entry.keys[: self._width], []).append(entry)
        net: Counter[Shown] = Counter()
        for partition, entries in changed.items():
            turning = self._turning(entries, counts)
            if not self._is_final:
                self._tell(net, -1, partition, entries, turning)
            self._move(entries, counts)
            self._tell(net, 1, partition, entries, turning)
            self._forget(partition)
        for wanted in (-1, 1):
            for shown, n in net.items():
                for _ in range(n * wanted):
                    yield ts, wanted, shown

    # ------------------------------------------------------------------------------------------------ where rows stand

    def _first(self, keys: Keys) -> int:
        """The place of the first row whose keys begin with these."""
        return int(self._sorted.rows.bisect_left((keys,)))

    def _behind(self, keys: Keys) -> int:
        """The place behind the last row whose keys begin with these."""
        return int(self._sorted.rows.bisect_left((keys + _BEHIND_ALL,)))

    def _shown_up_to(self, start: int, end: int) -> int:
        """The place behind the rows of a partition that are of interest."""
        most = self._at_most
        if most is None:
            return end
        rows, function = self._sorted.rows, self._call.function
        if function == "dense_rank":
            if start == end or most < 1:
                return start
            place = self._different.bisect_left(rows[start].keys) + most - 1
            last = self._different.bisect_left(rows[end - 1].keys)
            return end if place >= last else self._behind(self._different[place])
        shown = start + max(0, most)
        if shown >= end:
            return end
        return self._behind(rows[shown - 1].keys) if function == "rank" and shown > start else shown

    def _concerned(self, partition: Keys, entries: list[Entry], turning: set[Keys]) -> Iterator[tuple[int, int]]:
        """The places, from and to, of rows whose results may differ before and after; disjoint, ascending."""
        start, end = self._first(partition), self._behind(partition)
        most = self._shown_up_to(start, end)
        at = start
        for low, high in sorted(self._of_change(entry, start, end, turning) for entry in entries):
            low, high = max(at, low), min(high, most)
            if low < high:
                yield low, high
                at = high

    def _of_change(self, entry: Entry, start: int, end: int, turning: set[Keys]) -> tuple[int, int]:
        """The places of the rows that see a row come or leave."""
        rows, call, frame = self._sorted.rows, self._call, self._call.frame
        low, high = rows.bisect_left(entry), rows.bisect_right(entry)
        match call.function:
            case "dense_rank" if entry.keys not in turning:
                return low, high
            case "lag" | "lead":
                back, on = (0, call.distance or 0) if call.function == "lag" else (call.distance or 0, 0)
                return low - back, high + on
            case function if function in SHARES:
                return start, end
            case function if function in RANKS:
                return low, end
        if frame.by_value:
            first = start if frame.end is None else min(low, self._place(entry, -frame.end))
            return first, end if frame.start is None else max(high, self._place(entry, -frame.start, True))
        first = start if frame.end is None else low - max(0, frame.end)
        return first, end if frame.start is None else high + max(0, -frame.start)

    def _place(self, entry: Entry, distance: int, is_behind: bool = False) -> int:
        """The place of the first row whose key is not before that of the row and so much; or behind the last such."""
        keys = entry.keys
        if distance:
            column, key = self._call.order[0]
            is_there, value = entry.values[column]
            if is_there:
                moved = value - distance if self._descends else value + distance
                keys = (*keys[: self._width], *sort_key([moved], [key]))
        return self._behind(keys) if is_behind else self._first(keys)

    # ---------------------------------------------------------------------------------------------------------- results

    def _tell(self, net: Counter[Shown], sign: int, partition: Keys, entries: list[Entry], turning: set[Keys]) -> None:
        """Count the rows concerned, with their results now."""
        for low, high in self._concerned(partition, entries, turning):
            shown = self._sorted.rows.islice(low, high)
            for entry, result in zip(shown, self._results(partition, low, high)):
                net[entry.words, result] += sign

    def _results(self, partition: Keys, low: int, high: int) -> Sequence[Any]:
        """The results of the rows at these places of a partition."""
        call = self._call
        start, end = self._first(partition), self._behind(partition)
        passed = self._passed.partitions.get(partition)
        if call.function in RANKS:
            return self._ranks(start, low, high, passed)
        if call.function in SHARES:
            return self._shares(start, end, low, high)
        if call.function in NEIGHBOURS:
            assert call.distance is not None
            first, last = max(start, low - call.distance), min(end, high + call.distance)
            by = -call.distance if call.function == "lag" else call.distance
            return neighbours(self._arguments(first, last), low - first, high - first, by)
        return self._in_range(self._framed(start, end, low, high, passed))

    def _ranks(self, start: int, low: int, high: int, passed: Passed | None) -> Sequence[int]:
        before, keys_before = (0, 0) if passed is None else (passed.rows, passed.keys)
        if self._call.function == "row_number":
            return range(low - start + before + 1, high - start + before + 1)
        rows = list(self._sorted.rows.islice(low, high))
        if self._call.function == "dense_rank":
            first = self._different.bisect_left(self._sorted.rows[start].keys)
            rank = self._different.bisect_left(rows[0].keys) - first + keys_before + 1
            ranks = [rank]
            for one, other in pairwise(rows):
                rank += one.keys != other.keys
                ranks.append(rank)
            return ranks
        place = self._first(rows[0].keys)
        ranks = [place - start + before + 1]
        for i in range(1, len(rows)):
            if rows[i].keys != rows[i - 1].keys:
                place = low + i
            ranks.append(place - start + before + 1)
        return ranks

    def _shares(self, start: int, end: int, low: int, high: int) -> list[float]:
        """The places of these rows among all of the partition."""
        call, n = self._call, end - start
        if call.function == "ntile":
            assert call.distance is not None
            return [tile(place - start, n, call.distance) for place in range(low, high)]
        if call.function == "percent_rank":
            return [(rank - 1) / (n - 1) if n > 1 else 0.0 for rank in self._ranks(start, low, high, None)]
        return [(self._behind(entry.keys) - start) / n for entry in self._sorted.rows.islice(low, high)]

    def _framed(self, start: int, end: int, low: int, high: int, passed: Passed | None) -> list[Any]:
        """What the call gives of the frames of the rows at these places of a partition."""
        frames = self._frames(start, end, low, high)
        first, last = frames[0][0], max(frames[-1][1], frames[0][0])
        found = accumulator(self._call) if passed is None else passed.further()
        return slid(found, self._arguments(first, last), frames, first)

    def _frames(self, start: int, end: int, low: int, high: int) -> list[tuple[int, int]]:
        """From which place to before which the frame of each row reaches."""
        frame = self._call.frame
        if not frame.by_value:
            return [
                (
                    start if frame.start is None else min(end, max(start, place + frame.start)),
                    end if frame.end is None else max(start, min(end, place + frame.end + 1)),
                )
                for place in range(low, high)
            ]
        frames: list[tuple[int, int]] = []
        before: Keys | None = None
        for entry in self._sorted.rows.islice(low, high):
            if entry.keys == before:
                frames.append(frames[-1])
                continue
            before = entry.keys
            first = start if frame.start is None else max(start, self._place(entry, frame.start))
            frames.append((first, end if frame.end is None else min(end, self._place(entry, frame.end, True))))
        return frames

    def _arguments(self, first: int, last: int) -> list[Any]:
        """The argument of the rows at these places; 1 for COUNT(*)."""
        arg = self._call.arg
        entries = self._sorted.rows.islice(first, last)
        if arg is None:
            return [1 for _ in entries]
        values = [entry.values[arg][1] for entry in entries]
        return [v if v is None else digits_of(v) for v in values] if self._sums_decimals else values

    def _in_range(self, results: list[Any]) -> list[Any]:
        if not self._call.can_fail:
            return results
        least, behind = (1 - 10**MOST_DIGITS, 10**MOST_DIGITS) if self._sums_decimals else (-(2**63), 2**63)
        if any(r is not None and not least <= r < behind for r in results):
            raise OverflowError
        return [r if r is None else text_of_digits(r) for r in results] if self._sums_decimals else results

    # ------------------------------------------------------------------------------------------------------------ state

    def _turning(self, entries: list[Entry], counts: Counter[Entry]) -> set[Keys]:
        """The sort keys that appear or disappear by these changes."""
        if self._call.function != "dense_rank":
            return set()
        come: Counter[Keys] = Counter()
        for entry in entries:
            come[entry.keys] += counts[entry]
        before = {keys: self._behind(keys) - self._first(keys) for keys in come}
        return {keys for keys, n in before.items() if (n == 0) != (n + come[keys] == 0)}

    def _move(self, entries: list[Entry], counts: Counter[Entry]) -> None:
        rows = self._sorted.rows
        for entry in entries:
            for _ in range(counts[entry]):
                rows.add(entry)
            for _ in range(-counts[entry]):
                rows.remove(entry)
            if self._call.function == "dense_rank":
                self._note_keys(entry.keys)

    def _note_keys(self, keys: Keys) -> None:
        """Different sort keys are those of the rows that are there."""
        is_there = self._first(keys) < self._behind(keys)
        is_noted = keys in self._different
        if is_there and not is_noted:
            self._different.add(keys)
        elif is_noted and not is_there:
            self._different.remove(keys)

    def _forget(self, partition: Keys) -> None:
        """Let go of rows that no later one can change, and of those that will never be of interest."""
        rows, start, end = self._sorted.rows, self._first(partition), self._behind(partition)
        if self._in_order:
            self._pass(partition, start, self._passing(start, end))
        elif self._append_only and self._at_most is not None:
            gone = {entry.keys for entry in rows.islice(self._shown_up_to(start, end), end)}
            del rows[self._shown_up_to(start, end) : end]
            if self._call.function == "dense_rank":
                for keys in gone:
                    self._note_keys(keys)

    def _passing(self, start: int, end: int) -> int:
        """The place of the first row that one which comes may still change, or see."""
        if self._call.is_framed and self._call.frame.by_value and start < end:
            last = self._sorted.rows[end - 1]
            return max(start, self._place(last, -self._kept)) if self._kept else end
        return end - self._kept

    def _pass(self, partition: Keys, start: int, end: int) -> None:
        call, rows = self._call, self._sorted.rows
        if start >= end:
            return
        if self._carries:
            made = Passed(accumulator(call) if call.is_framed else None)
            passed = self._passed.partitions.setdefault(partition, made)
            passed.rows += end - start
            if call.function == "dense_rank":
                different = {entry.keys for entry in rows.islice(start, end)}
                passed.keys += len(different)
                for keys in different:
                    self._different.remove(keys)
            if passed.aggregate is not None:
                for value in self._arguments(start, end):
                    passed.aggregate.add(value)
        del rows[start:end]

    # --------------------------------------------------------------------------------------------------------- outwards

    def _batch(self, changes: Sequence[tuple[int, int, Shown]]) -> Batch:
        ts = np.array([ts for ts, _, _ in changes], np.int64)
        sign = np.array([sign for _, sign, _ in changes], np.int8)
        columns = self._sorted.columns_of([words for _, _, (words, _) in changes])
        return Batch(ts, sign, [*columns, self._column([result for _, _, (_, result) in changes])])

    def _column(self, results: list[Any]) -> Column:
        type_ = self._call.type
        if type_.is_coded:
            return self._texts.encode(results)
        valid = None if None not in results else np.array([r is not None for r in results])
        return Column(np.array([0 if r is None else r for r in results], type_.dtype), valid)

    def present(self) -> Batch:
        rows, shown = self._sorted.rows, list[tuple[int, int, Shown]]()
        start = 0
        while start < len(rows):
            partition = rows[start].keys[: self._width]
            end = self._behind(partition)
            low, high = start, self._shown_up_to(start, end)
            if low < high:
                results = self._results(partition, low, high)
                shown += [(0, 1, (entry.words, result)) for entry, result in zip(rows.islice(low, high), results)]
            start = end
        return self._batch(shown)

    def restore(self, arrays: dict[str, Any]) -> None:
        super().restore(arrays)
        if self._call.function == "dense_rank":
            self._different = SortedList({entry.keys for entry in self._sorted.rows})

    def describe(self) -> Description:
        nbytes = self._sorted.nbytes + self._passed.nbytes
        return Description(self.name, self._call.label, {"rows": len(self._sorted.rows), "bytes": nbytes})

    def synopses(self) -> tuple[SortedRows | PassedRows, ...]:
        return self._sorted, self._passed
