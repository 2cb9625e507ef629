"""The rows that a join of windows keeps: its own, with the columns it needs and no others.

All streams' rows stand in one array of words, for each stream in the order of arrival (layout: `kernels.k_mon_rows`),
and own no part of any stream's store. Room for rows to come is made in bulk: what is not needed goes then, and the rest
moves together (`collect`). Where the room is twice what stays, a row is moved once on average.

Invariants: rows with a NULL in a join column are never held; the columns kept are those of joins and of the answer
(Babu 2005, section 6.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Column, Int64Array, Schema
from minidsms.joins.directed_graph import Edge
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.arrays import normal
from minidsms.kernels.join_layout import NO_LIMIT, InstantRun, JoinInput, JoinKey, JoinStep, Pipelines, Windows
from minidsms.kernels.k_mon_elements import take_runs
from minidsms.kernels.k_mon_keys import RowArrays, Side, StreamFigures, keys_of_rows
from minidsms.kernels.k_mon_rows import CHANGES, DELETION, FIRST_LINK, ROWS, link_all
from minidsms.kernels.links import LOWER, UNLINKED
from minidsms.machine_code import record_in, rows_from, rows_of, words_of

_LEAST_ROOM = 512
"""Rows that a stream has room for, at least: a part of a slice."""

_LEAST_BUCKETS = 64
_NO_PLACES, _NO_MARKS, _NO_RUNS = np.zeros(0, np.int64), np.zeros(0, np.int16), rows_of(InstantRun, 0)


@dataclass(frozen=True)
class Window:
    """How a stream's rows leave.

    clock: UNBOUNDED, RANGE, ROWS, or CHANGES (of a relation).  length: ticks (at least 1), or rows.
    """

    clock: int
    length: int = 0


class KMonRows:
    """The rows of n streams, indexed by the edges of a tree.

    schemas: of the streams.  edges: the tree.  windows: of each stream.  needed: columns of each that the answer shows.
    knows_keys: declared keys are relied on.  counts_clusters: sides that are declared keys, or may turn out to be where
    none is declared for the edge, keep what CA needs.
    """

    def __init__(
        self, schemas: Sequence[Schema], edges: Sequence[Edge], windows: Sequence[Window],
        needed: Sequence[Iterable[int]], knows_keys: bool, counts_clusters: bool,
    ) -> None:  # fmt: skip
        n = len(schemas)
        self.schemas = list(schemas)
        self.edges = tuple(edges)
        self.windows = list(windows)
        self.inputs, self.figures = rows_of(JoinInput, n), rows_of(StreamFigures, n)
        self.records = [record_in(JoinInput, self.inputs, i) for i in range(n)]
        self.streams = [record_in(StreamFigures, self.figures, i) for i in range(n)]
        """The figures of each stream, to be read and written."""
        self.inputs["probe_hi"] = NO_LIMIT
        self.strides: Int64Array = np.zeros(n, np.int64)
        self.sides = rows_of(Side, 2 * len(edges))
        self.sides["cluster"] = -1
        self.columns: list[tuple[int, ...]] = []
        """Of each stream: the columns kept, in the order of their words."""
        self.bits: list[dict[int, int]] = []
        """Of each stream, which bit of the mask of NULLs is a column's. Those only joined by come last: they have none.
        """
        self.places: list[dict[int, int]] = []
        """Of each stream: the word of each column kept."""
        self.sides_of: list[list[int]] = []
        """Of each stream."""
        self.heaps = 1
        of_key: list[int] = []
        for i in range(n):
            own = [(2 * e + k, edge) for e, edge in enumerate(edges) for k in (0, 1) if edge.ends[k] == i]
            self.sides_of.append([s for s, _ in own])
            self._lay_out(i, own, needed[i], len(of_key), knows_keys, counts_clusters)
            of_key += self.sides_of[i] + [-1] * (windows[i].clock == CHANGES)
        parts: list[int] = []
        for s in range(len(self.sides)):
            i = int(self.sides["stream"][s])
            self.sides["part"][s] = len(parts)
            parts += [self.places[i][pair[s % 2]] for pair in edges[s // 2].columns]
            self.sides["parts_end"][s] = len(parts)
        self.parts: Int64Array = np.array(parts, np.int64)
        self.keys = rows_of(JoinKey, len(of_key) + len(parts))
        """Those by which rows are found, and behind them the single columns of sides."""
        self.keys["is_linked"][: len(of_key)] = 1
        self.of_key: Int64Array = np.array(of_key, np.int64)
        self._hashed = [list(self._hashed_tags(i)) for i in range(n)]
        self._capacities = [0] * n
        self._packed = [0] * n
        """Of each stream, the rows that stayed when room was made."""
        self.least_room = [_LEAST_ROOM] * n
        """Rows of each stream that there is room for when room has been made."""
        self.messages = np.zeros(0, np.uint8)
        self._allocate([_LEAST_ROOM] * n)

    def _lay_out(
        self, i: int, own: Sequence[tuple[int, Edge]], needed: Iterable[int], key: int, knows_keys: bool,
        counts_clusters: bool,
    ) -> None:  # fmt: skip
        """Say what stands where in the rows of a stream. own: its sides.  key: its first one."""
        record, figures, window, at, places = self.records[i], self.streams[i], self.windows[i], 1, dict[int, int]()
        for s, edge in own:
            self.sides["stream"][s], self.sides["key"][s], self.sides["tag_at"][s] = i, key + (at - 1) // 2, at
            if len(edge.columns) == 1:
                places.setdefault(edge.columns[0][s % 2], at)
            at += 2
        figures.clock, figures.length, figures.number, figures.mask_at = window.clock, window.length, -1, -1
        record.is_bag, record.mask, record.key = window.clock == CHANGES, -1, key
        at += 2 * record.is_bag
        record.keys_end, figures.sides_end = key + (at - 1) // 2, key + len(own)
        if window.clock == ROWS:
            figures.number, figures.heap = at, self.heaps
            self.heaps += 1
            at += 1
        for s, edge in own:
            is_key = knows_keys and (edge.right_key if s % 2 else edge.left_key)
            self.sides["unique"][s] = is_key
            changes = CHANGES in (self.windows[end].clock for end in edge.ends)
            if counts_clusters and not changes and (is_key or not (edge.left_key or edge.right_key)):
                self.sides["cluster"][s] = at
                at += 1
        joined = [pair[s % 2] for s, edge in own for pair in edge.columns]
        columns = tuple(dict.fromkeys([*joined, *needed]))
        self.bits.append({c: k for k, c in enumerate(dict.fromkeys([*needed, *joined]))})
        figures.words_at = at
        for c in columns:
            if c not in places:
                places[c] = at
                at += 1
        self.columns.append(columns)
        self.places.append(places)
        self.strides[i] = at

    def _hashed_tags(self, i: int) -> Iterator[tuple[int, Int64Array]]:
        """Of the tags of a stream's rows that are not words of theirs, the place, and the places of what they hash."""
        for x in range(self.records[i].key, self.records[i].keys_end):
            s, at = int(self.of_key[x]), 1 + 2 * (x - self.records[i].key)
            parts = self.parts_of(s) if s >= 0 else np.array(list(self.places[i].values()), np.int64)
            if at not in parts:
                yield at, parts

    def pipelines(self, orders: Sequence[Sequence[int]]) -> Pipelines:
        """As the kernels take them. orders: of each stream, the side by which each step leaves for another stream."""
        steps = rows_of(JoinStep, len(orders) * (len(orders) - 1))
        checks: list[tuple[int, int, int, int]] = []
        for i, order in enumerate(orders):
            positions = {i: 0}
            for d, s in enumerate(order):
                t = s ^ 1
                own, other = int(self.sides["stream"][s]), int(self.sides["stream"][t])
                first, each = len(checks), [len(self.of_key) + int(self.sides["part"][x]) for x in (s, t)]
                for p in range(len(self.parts_of(s)) if len(self.parts_of(s)) > 1 else 0):
                    checks.append((own, each[0] + p, other, each[1] + p))
                step = record_in(JoinStep, steps, i * len(order) + d)
                step.target, step.probed = other, int(self.sides["key"][t])
                step.source, step.source_key, step.asked = own, int(self.sides["key"][s]), positions[own]
                step.check, step.checks_end, step.kept = first, len(checks), -1
                positions[other] = d + 1
        lengths = np.full(len(orders), len(orders) - 1, np.int64)
        return Pipelines(steps, lengths, np.array(checks, np.int64).reshape(-1, 4))

    # ------------------------------------------------------------------------------------------------- contents

    def __len__(self) -> int:
        """Rows in the windows that are held; among them may be some that will go when room is made."""
        return int((self.inputs["hi"] - self.inputs["lo"]).sum())

    def held(self, i: int) -> int:
        """The same of one stream."""
        return self.records[i].hi - self.records[i].lo

    @property
    def bundle(self) -> RowArrays:
        """As the kernels take it; other arrays after a change of size."""
        windows = Windows(self.inputs, self.keys, self.cells, self.heads, _NO_PLACES, _NO_MARKS, _NO_RUNS)
        return RowArrays(windows, self.strides, self.figures, self.sides, self.of_key, self.parts)

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self.heads.nbytes + self.messages.nbytes

    def view(self, i: int, first: int, end: int) -> Int64Array:
        """The rows in the slots [first, end), (m, stride); not a copy."""
        base, stride = int(self.figures["begins_at"][i]), int(self.strides[i])
        return self.cells[base + first * stride : base + end * stride].reshape(end - first, stride)

    def are_needed(self, i: int, first: int, end: int) -> BoolArray:
        """Of the rows in the slots [first, end), those that have neither gone nor will go whatever comes."""
        found: BoolArray = self.view(i, first, end)[:, FIRST_LINK] & LOWER != UNLINKED
        return found

    def parts_of(self, s: int) -> Int64Array:
        """The places of a side's columns in the rows of its stream."""
        return self.parts[int(self.sides["part"][s]) : int(self.sides["parts_end"][s])]

    def room(self, i: int) -> int:
        """Rows that fit without moving what is there."""
        return self._capacities[i] - int(self.figures["end"][i])

    def rooms(self) -> list[int]:
        """The same of all streams."""
        return [capacity - end for capacity, end in zip(self._capacities, self.figures["end"].tolist())]

    def column(self, i: int, rows: Int64Array, c: int) -> Column:
        """A column of rows of a stream."""
        mask_at = int(self.figures["mask_at"][i])
        valid = None
        if mask_at >= 0:
            valid = (rows[:, mask_at] >> self.bits[i][c]) & 1 == 0
        return Column.from_words(rows[:, self.places[i][c]].copy(), valid, self.schemas[i][c].type)

    def live_codes(self) -> Iterable[Int64Array]:
        for i, schema in enumerate(self.schemas):
            rows = self.view(i, 0, int(self.figures["end"][i]))
            for c in self.columns[i]:
                if schema[c].type.is_coded:
                    yield rows[:, self.places[i][c]].copy()

    # -------------------------------------------------------------------------------------------------- arrivals

    def append(
        self, i: int, ts: Int64Array, numbers: Int64Array, columns: Sequence[Column], leaving: BoolArray | None = None
    ) -> None:
        """Write rows behind those there, which the kernel takes in; there is room.

        columns: those of `self.columns[i]`; none of a join's has a NULL; others only after `take_nulls`.
        leaving: which of them are deletions; None: none.
        """
        n = len(ts)
        assert n <= self.room(i), "rows would be written over those of another stream"
        nulls = [(self.bits[i][c], v.valid) for c, v in zip(self.columns[i], columns) if v.valid is not None]
        first = int(self.figures["end"][i])
        rows = self.view(i, first, first + n)
        rows[:] = -1
        rows[:, 0] = ts
        if leaving is not None:
            rows[leaving, FIRST_LINK] = DELETION
        if self.figures["number"][i] >= 0:
            rows[:, self.figures["number"][i]] = numbers
        for c, column in zip(self.columns[i], columns):
            rows[:, self.places[i][c]] = column.words()
        if self.figures["mask_at"][i] >= 0:
            mask = rows[:, self.figures["mask_at"][i]]
            mask[:] = 0
            for k, valid in nulls:
                mask |= (~valid).astype(np.int64) << k
        for at, places in self._hashed[i]:
            rows[:, at] = key_hash(rows, places)
        self.figures["end"][i] = first + n

    def arrive(self, i: int, ts: Int64Array, kept: BoolArray, runs: Int64Array, at: int) -> int:
        """Note the instants of arrivals of which `kept` have been appended; returns where their runs end."""
        figures, record = self.streams[i], self.records[i]
        record.run = at
        first = figures.end - int(np.count_nonzero(kept))
        every = figures.clock == ROWS
        record.runs_end = int(take_runs(ts, kept, every, figures.total, first, runs, at))
        return record.runs_end

    # ---------------------------------------------------------------------------------------------------- moving

    def make_room(
        self, needs: Sequence[int], verdicts: np.ndarray[Any, Any] | None = None, wider: int | None = None
    ) -> None:
        """Keep the rows judged KEPT (None: those in their windows), with room for more of each stream: where they
        stand, if there is about as much of it as is wanted, else in new arrays.

        wider: a stream whose rows get a word more.

        Called when the kernel is done: no rows wait to be taken in.
        """
        begin = self.begins()
        high = self.inputs["hi"].tolist()
        if verdicts is None:
            staying = [self.held(i) for i in range(len(high))]
        else:
            staying = [
                int(np.count_nonzero(verdicts[first : first + end] == reduction.KEPT))
                for first, end in zip(begin.tolist(), high)
            ]
        rooms = self._rooms(staying, needs)
        if wider is None and self._fit(staying, needs, rooms):
            if verdicts is None:
                reduction.slide(self.bundle)
            else:
                forward = np.empty(max(high), np.int32)
                reduction.pack_in_place(self.bundle, verdicts, begin, forward)
            self.figures["end"] = self.inputs["hi"]
            self._packed = self.figures["end"].tolist()
            return
        if verdicts is None:
            verdicts = np.full(sum(high), reduction.KEPT, np.uint8)
            for i, first in enumerate(begin.tolist()):
                verdicts[first : first + self.records[i].lo] = reduction.DROPPED
                if self.figures["clock"][i] == CHANGES:
                    verdicts[first : first + high[i]][~self.are_needed(i, 0, high[i])] = reduction.DROPPED
        before = rows_from(StreamFigures, words_of(self.figures).copy()), self.strides.copy(), self.cells
        if wider is not None:
            self.strides[wider] += 1
        self._allocate([held + room for held, room in zip(staying, rooms)])
        reduction.pack(*before, np.array(high, np.int64), self.bundle, verdicts, begin)
        self.figures["end"] = self.inputs["hi"]
        self._packed = self.figures["end"].tolist()
        link_all(self.bundle)

    def _rooms(self, staying: Sequence[int], needs: Sequence[int]) -> list[int]:
        """Room for half as many rows as stay, shared out as rows have come lately: so all of it is used up at once."""
        came = [int(end) - before for end, before in zip(self.figures["end"], self._packed)]
        share = sum(staying) / (2 * max(1, sum(came)))
        return [
            max(need, _LEAST_ROOM, least, int(share * each)) for need, least, each in zip(needs, self.least_room, came)
        ]

    def _fit(self, staying: Sequence[int], needs: Sequence[int], rooms: Sequence[int]) -> bool:
        """The arrays there are about as large as is wanted. Chains that are linked both ways are not moved along."""
        if (self.figures["clock"] == CHANGES).any():
            return False
        left = [there - held for there, held in zip(self._capacities, staying)]
        wanted = sum(staying) + sum(rooms)
        return sum(self._capacities) <= wanted + wanted // 4 and all(
            each >= max(need, room // 2) for each, need, room in zip(left, needs, rooms)
        )

    def merge(self, back: Sequence[Int64Array | None]) -> None:
        """Hold rows again that were held before, among the others in the order of arrival; rows that wait to be taken
        in stand behind them.

        back: (m, stride) of each stream; rows from before there was a mask of NULLs lack it.
        """
        if any(rows is not None and self.room(i) < len(rows) for i, rows in enumerate(back)):
            self._move_waiting([0 if rows is None else len(rows) for rows in back])
        for i, rows in enumerate(back):
            if rows is None:
                continue
            wide = np.zeros((len(rows), int(self.strides[i])), np.int64)
            wide[:, : rows.shape[1]] = rows
            wide = wide[np.argsort(wide[:, max(int(self.figures["number"][i]), 0)], kind="stable")]
            reduction.insert_rows(
                self.bundle, i, wide, np.empty(len(rows), np.int64), np.empty(int(self.figures["end"][i]), np.int32)
            )  # fmt: skip
            self._packed[i] += len(rows)

    def _move_waiting(self, needs: Sequence[int]) -> None:
        """Make room for so many rows of each stream while others wait to be taken in."""
        ends = zip(self.inputs["hi"].tolist(), self.figures["end"].tolist())
        waiting = [self.view(i, high, end).copy() for i, (high, end) in enumerate(ends)]
        self.figures["end"] = self.inputs["hi"]
        # The room that is left is for rows about to come, and stays.
        self.make_room([self.room(i) + need for i, need in enumerate(needs)])
        for i, rows in enumerate(waiting):
            high = self.records[i].hi
            self.figures["end"][i] = high + len(rows)
            self.view(i, high, high + len(rows))[:] = rows

    def begins(self) -> Int64Array:
        """Where each stream's rows begin in an array with a place for every row."""
        return np.concatenate([[0], np.cumsum(self.inputs["hi"][:-1])]).astype(np.int64)

    def take_nulls(self, i: int) -> None:
        """Give a stream's rows a mask of NULLs, unless they have one; no rows wait to be taken in."""
        if self.figures["mask_at"][i] < 0:
            self.figures["mask_at"][i] = self.strides[i]
            self.make_room(self._capacities, wider=i)

    def _allocate(self, capacities: Sequence[int]) -> None:
        """Empty arrays for these many rows; the figures that say where they stand."""
        self._capacities = list(capacities)
        cells = heads = 0
        self.inputs["lo"] = self.inputs["hi"] = self.figures["end"] = 0
        for i, capacity in enumerate(capacities):
            self.figures["begins_at"][i], self.records[i].nodes = cells, cells + 1
            buckets = max(_LEAST_BUCKETS, 1 << (capacity - 1).bit_length())
            for k, x in enumerate(range(self.records[i].key, self.records[i].keys_end)):
                self.keys["nodes"][x], self.keys["heads"][x] = cells + 1 + 2 * k, heads
                self.keys["shift"][x] = 65 - buckets.bit_length()
                heads += buckets
            cells += capacity * int(self.strides[i])
        for s, i in enumerate(self.sides["stream"]):
            at = len(self.of_key) + int(self.sides["part"][s])
            parts = self.parts_of(s)
            self.keys["nodes"][at : at + len(parts)] = self.figures["begins_at"][i] + parts
        self.cells: Int64Array = np.empty(cells, np.int64)
        self.heads: np.ndarray[Any, np.dtype[np.int32]] = np.full(heads, -1, np.int32)

    # ----------------------------------------------------------------------------------------------------- state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state; no rows wait to be taken in."""
        return self._figures() | {"cells": self.cells, "heads": self.heads}

    def _figures(self) -> dict[str, Int64Array]:
        """All but the rows and their buckets."""
        words = {"inputs": words_of(self.inputs), "figures": words_of(self.figures), "strides": self.strides}
        return words | {"sides": words_of(self.sides), "keys": words_of(self.keys)}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        for name, words in self._figures().items():
            words[:] = arrays[name]
        self.cells, self.heads = arrays["cells"].copy(), arrays["heads"].copy()
        ends = [*(int(b) for b in self.figures["begins_at"][1:]), len(self.cells)]
        self._capacities = [
            (end - int(base)) // int(stride) for end, base, stride in zip(ends, self.figures["begins_at"], self.strides)
        ]


def key_hash(words: Int64Array, places: Int64Array | None = None) -> Int64Array:
    """(n,) the keys of rows of words, (n, w), by all of them or those at some places (`kernels.k_mon_keys`)."""
    keys: Int64Array = np.empty(len(words), np.int64)
    if places is None:
        places = np.arange(words.shape[1])
    keys_of_rows(normal(words).reshape(-1), 0, words.shape[1], places, keys)
    return keys
