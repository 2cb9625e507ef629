"""The rows that a join of windows keeps: its own, with the columns it needs and no others.

All streams' rows stand in one array of words, for each stream in the order of arrival (layout: `kernels.k_mon_join`),
and own no part of any stream's store. Room for rows to come is made in bulk: what is not needed goes then, and the rest
moves together (`collect`). Where the room is twice what stays, a row is moved once on average.

Invariants: rows with a NULL in a join column are never held; the columns kept are those of joins and of the answer
(Babu 2005, section 6.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Column, Int64Array, Schema
from minidsms.joins.directed_graph import Edge
from minidsms.kernels import k_mon_join as kernels
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.arrays import normal
from minidsms.kernels.k_mon_instants import take_runs
from minidsms.kernels.k_mon_join import CHANGES, DELETION, ROWS, UNLINKED
from minidsms.kernels.k_mon_keys import RowArrays, Side, StreamFigures, keys_of_rows
from minidsms.machine_code import record_in, rows_from, rows_of, words_of

_LEAST_ROOM = 512
"""Rows that a stream has room for, at least: a part of a slice."""

_LEAST_BUCKETS = 64


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
        self.figures = rows_of(StreamFigures, n)
        self.figures["cap"] = 2**63 - 1
        self.streams = [record_in(StreamFigures, self.figures, i) for i in range(n)]
        """The figures of each stream, to be read and written."""
        self.sides = rows_of(Side, 2 * len(edges))
        self.sides["cluster"] = self.sides["previous"] = -1
        self.columns: list[tuple[int, ...]] = []
        self.bits: list[dict[int, int]] = []
        """Of each stream, which bit of the mask of NULLs is a column's. Those only joined by come last: they have none.
        """
        """Of each stream: the columns kept, in the order of their words."""
        self.places: list[dict[int, int]] = []
        """Of each stream: the word of each column kept."""
        parts: list[int] = []
        self.sides_of: list[list[int]] = []
        """Of each stream."""
        self.heaps = 1
        for i in range(n):
            own = [(2 * e + k, edge) for e, edge in enumerate(edges) for k in (0, 1) if edge.ends[k] == i]
            figures = self.streams[i]
            figures.side = sum(map(len, self.sides_of))
            figures.sides_end = figures.side + len(own)
            self.sides_of.append([s for s, _ in own])
            at = self._lay_out(i, own, knows_keys, counts_clusters)
            joined = [pair[s % 2] for s, edge in own for pair in edge.columns]
            columns = tuple(dict.fromkeys([*joined, *needed[i]]))
            self.columns.append(columns)
            self.bits.append({c: k for k, c in enumerate(dict.fromkeys([*needed[i], *joined]))})
            self.places.append({c: at + k for k, c in enumerate(columns)})
            figures.words_at = at
            for s, edge in own:
                self.sides["part"][s] = len(parts)
                parts += [self.places[i][pair[s % 2]] for pair in edge.columns]
                self.sides["parts_end"][s] = len(parts)
            figures.stride, figures.mask_at = at + len(columns), -1
        self.parts: Int64Array = np.array(parts, np.int64)
        self.of_stream: Int64Array = np.array([s for own in self.sides_of for s in own], np.int64)
        self._capacities = [0] * n
        self._packed = [0] * n
        """Of each stream, the rows that stayed when room was made."""
        self.least_room = [_LEAST_ROOM] * n
        """Rows of each stream that there is room for when room has been made."""
        self.messages = np.zeros(0, np.uint8)
        self._allocate([_LEAST_ROOM] * n)

    def _lay_out(self, i: int, own: Sequence[tuple[int, Edge]], knows_keys: bool, counts_clusters: bool) -> int:
        """Say where rows of a stream have what stands before their words, and where these begin. own: its sides."""
        figures, window, at = self.streams[i], self.windows[i], 1
        for s, _ in own:
            self.sides["stream"][s], self.sides["next"][s] = i, at
            at += 1
        figures.clock, figures.length, figures.number, figures.equal = window.clock, window.length, -1, -1
        if window.clock == CHANGES:
            for s, _ in own:
                self.sides["previous"][s] = at
                at += 1
            figures.equal = at
            at += 1
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
        return at

    # ------------------------------------------------------------------------------------------------- contents

    def __len__(self) -> int:
        """Rows in the windows that are held; among them may be some that will go when room is made."""
        return int((self.figures["hi"] - self.figures["lo"]).sum())

    def held(self, i: int) -> int:
        """The same of one stream."""
        return int(self.figures["hi"][i] - self.figures["lo"][i])

    @property
    def bundle(self) -> RowArrays:
        """As the kernels take it; other arrays after a change of size."""
        return RowArrays(self.figures, self.of_stream, self.sides, self.parts, self.cells, self.heads)

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self.heads.nbytes + self.messages.nbytes

    def view(self, i: int, first: int, end: int) -> Int64Array:
        """The rows in the slots [first, end), (m, stride); not a copy."""
        base, stride = int(self.figures["begins_at"][i]), int(self.figures["stride"][i])
        return self.cells[base + first * stride : base + end * stride].reshape(end - first, stride)

    def parts_of(self, s: int) -> Int64Array:
        """The places of a side's columns in the rows of its stream."""
        return self.parts[int(self.sides["part"][s]) : int(self.sides["parts_end"][s])]

    def room(self, i: int) -> int:
        """Rows that fit without moving what is there."""
        return self._capacities[i] - int(self.figures["end"][i])

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
            rows[leaving, 1] = DELETION
        if self.figures["number"][i] >= 0:
            rows[:, self.figures["number"][i]] = numbers
        for c, column in zip(self.columns[i], columns):
            rows[:, self.places[i][c]] = column.words()
        if self.figures["mask_at"][i] >= 0:
            mask = rows[:, self.figures["mask_at"][i]]
            mask[:] = 0
            for k, valid in nulls:
                mask |= (~valid).astype(np.int64) << k
        self.figures["end"][i] = first + n

    def arrive(self, i: int, ts: Int64Array, kept: BoolArray, runs: Int64Array, at: int) -> int:
        """Note the instants of arrivals of which `kept` have been appended; returns where their runs end."""
        figures = self.streams[i]
        figures.run = at
        first = figures.end - int(np.count_nonzero(kept))
        every = figures.clock == ROWS
        end = int(take_runs(ts, kept, every, figures.total, first, runs, at))
        figures.runs_end = end
        return end

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
        high = self.figures["hi"].tolist()
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
                reduction.slide(self.figures, self.of_stream, self.sides, self.cells, self.heads)
            else:
                forward = np.empty(max(high), np.int32)
                reduction.pack_in_place(
                    self.figures, self.of_stream, self.sides, self.cells, self.heads, verdicts, begin, forward
                )
            self.figures["end"] = self.figures["hi"]
            self._packed = self.figures["end"].tolist()
            return
        if verdicts is None:
            verdicts = np.full(sum(high), reduction.KEPT, np.uint8)
            for i, first in enumerate(begin.tolist()):
                verdicts[first : first + int(self.figures["lo"][i])] = reduction.DROPPED
                if self.figures["clock"][i] == CHANGES:
                    is_gone = self.view(i, 0, high[i])[:, 1] == UNLINKED
                    verdicts[first : first + high[i]][is_gone] = reduction.DROPPED
        old_figures, old_cells = rows_from(StreamFigures, words_of(self.figures).copy()), self.cells
        if wider is not None:
            self.figures["stride"][wider] += 1
        self._allocate([held + room for held, room in zip(staying, rooms)])
        reduction.pack(old_figures, self.figures, old_cells, self.cells, verdicts, begin)
        self.figures["end"] = self.figures["hi"]
        self._packed = self.figures["end"].tolist()
        kernels.link_all(self.bundle)

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
            wide = np.zeros((len(rows), int(self.figures["stride"][i])), np.int64)
            wide[:, : rows.shape[1]] = rows
            wide = wide[np.argsort(wide[:, max(int(self.figures["number"][i]), 0)], kind="stable")]
            reduction.insert_rows(
                self.bundle, i, wide, np.empty(len(rows), np.int64), np.empty(int(self.figures["end"][i]), np.int32)
            )  # fmt: skip
            self._packed[i] += len(rows)

    def _move_waiting(self, needs: Sequence[int]) -> None:
        """Make room for so many rows of each stream while others wait to be taken in."""
        ends = zip(self.figures["hi"].tolist(), self.figures["end"].tolist())
        waiting = [self.view(i, high, end).copy() for i, (high, end) in enumerate(ends)]
        self.figures["end"] = self.figures["hi"]
        # The room that is left is for rows about to come, and stays.
        self.make_room([self.room(i) + need for i, need in enumerate(needs)])
        for i, rows in enumerate(waiting):
            high = int(self.figures["hi"][i])
            self.figures["end"][i] = high + len(rows)
            self.view(i, high, high + len(rows))[:] = rows

    def begins(self) -> Int64Array:
        """Where each stream's rows begin in an array with a place for every row."""
        return np.concatenate([[0], np.cumsum(self.figures["hi"][:-1])]).astype(np.int64)

    def take_nulls(self, i: int) -> None:
        """Give a stream's rows a mask of NULLs, unless they have one; no rows wait to be taken in."""
        if self.figures["mask_at"][i] < 0:
            self.figures["mask_at"][i] = self.figures["stride"][i]
            self.make_room(self._capacities, wider=i)

    def _allocate(self, capacities: Sequence[int]) -> None:
        """Empty arrays for these many rows; the figures that say where they stand."""
        self._capacities = list(capacities)
        cells = heads = 0
        for i, capacity in enumerate(capacities):
            self.figures["begins_at"][i] = cells
            cells += capacity * int(self.figures["stride"][i])
            for word in ("lo", "hi", "end"):
                self.figures[word][i] = 0
            buckets = max(_LEAST_BUCKETS, 1 << (capacity - 1).bit_length())
            for s in np.flatnonzero(self.sides["stream"] == i):
                self.sides["heads"][s] = heads
                self.sides["shift"][s] = 65 - buckets.bit_length()
                heads += buckets
            if self.figures["equal"][i] >= 0:
                self.figures["equal_heads"][i], self.figures["equal_shift"][i] = heads, 65 - buckets.bit_length()
                heads += buckets
        self.cells: Int64Array = np.empty(cells, np.int64)
        self.heads: np.ndarray[Any, np.dtype[np.int32]] = np.full(heads, -1, np.int32)

    # ----------------------------------------------------------------------------------------------------- state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state; no rows wait to be taken in."""
        words = {"figures": words_of(self.figures), "sides": words_of(self.sides)}
        return words | {"cells": self.cells, "heads": self.heads}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        words_of(self.figures)[:], words_of(self.sides)[:] = arrays["figures"], arrays["sides"]
        self.cells, self.heads = arrays["cells"].copy(), arrays["heads"].copy()
        ends = [*(int(b) for b in self.figures["begins_at"][1:]), len(self.cells)]
        self._capacities = [
            (end - int(base)) // int(stride)
            for end, base, stride in zip(ends, self.figures["begins_at"], self.figures["stride"])
        ]


def key_hash(words: Int64Array, places: Int64Array | None = None) -> Int64Array:
    """(n,) the keys of rows of words, (n, w), by all of them or those at some places (`kernels.k_mon_keys`)."""
    keys: Int64Array = np.empty(len(words), np.int64)
    if places is None:
        places = np.arange(words.shape[1])
    keys_of_rows(normal(words).reshape(-1), 0, words.shape[1], places, keys)
    return keys
