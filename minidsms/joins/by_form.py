"""Joining streams with ranges by a compiled form (`kernels.streams_join`): the program that makes rows.

It runs over the same windows as the others, and leaves them as they do, so that it may begin and end between any two
parts. It fits plans of pipelines alone, whose steps probe keys, of joins whose answer shows a key of each input, and of
outer joins by one pair of columns.

Invariant: below an ISTREAM its answer is that of `joins.by_pipelines`, in the same order; of an outer join, netted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import JoinPlan, Orders
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import (
    ASKED,
    CHECK,
    CHECKS_END,
    DONE,
    FROM,
    FROM_KEY,
    FULL,
    HAS_NULLS,
    HI,
    IS_SHOWN,
    KEY,
    KEYS_END,
    PAUSED,
    PROBED,
    STATUS,
    STOP,
    TARGET,
)
from minidsms.kernels.streams_join import SOURCE_WORDS, Room, Source, join_streams
from minidsms.machine_code.templates import Constant, Form
from minidsms.process.large_pages import BLOCK_WORDS, words_on_large_pages
from minidsms.synopses.indexed_windows import IndexedWindow, WindowIndex

_MOST_INPUTS = 4
"""The compiler takes a second for each step of each pipeline."""
_STRETCH = 1 << 13
_LEAST_SHARE = 0.02
"""Rows put out by an element from which on a form of more than two inputs pays, over so many elements: where fewer find
something, `kernels.entering_join` drops them block by block, in less time."""
_LEAST_ROWS = 64
_FEW_ROWS = 512
"""Rows that are copied rather than given room of their own."""
_ROOM = 1.125
"""Times the rows that are expected."""
_LARGE = 1 << 14
"""Rows for which room is taken without asking."""
_WORTH_A_BLOCK = BLOCK_WORDS // 4
"""Words of rows from which on slices fill a block, one after the other: whoever keeps the rows of one keeps it all."""
_MARKS = 1024
_NO_VALID = np.zeros(0, np.bool_)


class _Step(NamedTuple):
    """A step in the words of `kernels.streams_join`."""

    target: int
    probed: int
    source: int
    source_input: int
    source_key: int
    checks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, words: Sequence[int], checks: Int64Array, visited: Sequence[int], numbers: Mapping[int, int]) -> _Step:
        """words, checks: as of `Pipelines`.  visited: the inputs in their order.  numbers: of the keys."""
        compared = tuple(
            (visited.index(a), a, numbers[key], numbers[other])
            for a, key, _, other in checks[words[CHECK] : words[CHECKS_END]].tolist()
        )
        probed, source_key = numbers[words[PROBED]], numbers[words[FROM_KEY]]
        return cls(words[TARGET], probed, words[ASKED], words[FROM], source_key, compared)


class ByForm:
    """index: the windows.  state: of the join's run.  claim: as of `Answer`.  room: of rows found, if there is any."""

    def __init__(
        self, spec: JoinSpec, graph: JoinGraph, index: WindowIndex, state: Int64Array, claim: Callable[[int], None]
    ) -> None:
        self._spec = spec
        self._graph = graph
        self._index = index
        self._state = state
        self._claim = claim
        self._nets = set(spec.shown or ()) == set(range(len(spec.columns)))
        if spec.outer:
            self._nets = (0, graph.keys[0][0][0]) in spec.columns
        self._marked = np.zeros((len(graph.classes), _MARKS), np.int64)
        self._firsts = np.zeros(graph.n, np.int64)
        self._serial = np.zeros(4, np.int64)
        self._types = spec.schema.types
        self._ratio = 1.0
        self._tables: list[Int64Array | None] = [None] * graph.n
        self._nulls = [False] * graph.n
        self._widths: list[int] = []
        self._orders: Orders = ()
        self._is_known = False
        """Where columns stand, and what may be NULL, is as it was for the form."""
        self._form: Form | None = None
        self._pays = True
        self._seen = (0, 0)
        self._columns = np.zeros((0, SOURCE_WORDS), np.int64)
        self._source: Source | None = None
        self._masked: list[bool] = []
        self._small: Room | None = None
        self.room: Room | None = None
        self._is_block = False
        self._room_masked = self._masked
        self._given = self._found = 0

    @property
    def _windows(self) -> list[IndexedWindow]:
        return cast("list[IndexedWindow]", self._index.windows)

    @staticmethod
    def suits(spec: JoinSpec, graph: JoinGraph, index: WindowIndex) -> bool:
        """There is a form for such a join."""
        shown = index.keys[:, IS_SHOWN]
        are_shown = all(shown[first:end].any() for first, end in index.inputs[:, [KEY, KEYS_END]].tolist())
        has_one_key = all(len(keys) == 1 and len(keys[0]) == 1 for keys in graph.keys)
        tells_apart = has_one_key if spec.outer else are_shown and spec.leaves_out
        is_linked = 2 <= graph.n <= _MOST_INPUTS and graph.is_connected and not graph.bands
        return is_linked and tells_apart and spec.ranges is not None and bool(spec.columns)

    def joined(self, taken: int, put_out: int) -> None:
        """So many elements have been joined since the beginning, and have put out so many rows."""
        if self._graph.n > 2 and taken - self._seen[0] >= _STRETCH:
            share = (put_out - self._seen[1]) / (taken - self._seen[0])
            self._pays = share >= (_LEAST_SHARE / 2 if self._pays else _LEAST_SHARE)
            self._seen = taken, put_out

    def fitting(self, plan: JoinPlan) -> Form | None:
        """The form for this plan, and what the windows hold; None where they have held no rows of all streams yet, the
        plan has more than pipelines that probe keys, or hardly an element finds something.
        """
        if plan.tree is not None or plan.caches or plan.index or plan.routes or plan.is_reduced or not self._pays:
            return None
        item = self._index.inputs.item
        for i, window in enumerate(self._windows):
            store = window.store
            if store is None:
                return None
            table = store.places()[0]
            if table is not self._tables[i] or (item(i, HAS_NULLS) != 0) != self._nulls[i]:
                self._tables[i], self._nulls[i], self._is_known = table, item(i, HAS_NULLS) != 0, False
        if not self._is_known:
            self._source, self._orders = None, ()
            places = [self._place(i, c) for i, c in self._spec.columns]
            self._columns = np.array([place[:SOURCE_WORDS] for place in places], np.int64)
            outer = self._spec.outer
            masked = [valid != 0 or (outer and i == 1) for (i, _), (_, valid, _, _) in zip(self._spec.columns, places)]
            if masked != self._masked:
                self._masked, self._small = masked, None
            self._widths = [width for _, _, _, width in places]
        if plan.orders is not self._orders:
            self._orders, self._is_known = plan.orders, True
            self._form = join_streams.form(
                COLUMNS=tuple(zip(self._widths, self._masked)),
                NETS=self._nets,
                OUTER=self._spec.outer,
                **self._constants(plan.orders),
            )
        return self._form

    def _constants(self, orders: Orders) -> dict[str, Constant]:
        """The pipelines as `kernels.streams_join` has them, and the keys that they probe."""
        graph = self._graph
        steps, checks = graph.pipelines(orders)
        rows = [row for (_, _), row in sorted(graph.places().items(), key=lambda place: place[1])]
        numbers = {row: number for number, row in enumerate(rows)}
        shown = [any(k == i for k, _ in self._spec.columns) for i in range(graph.n)]
        pipelines: list[Constant] = []
        for i, order in enumerate(orders):
            visited, seen = (i, *order), set[int]()
            marks = [self._marks(j, seen, numbers) for j in visited]
            path = [_Step.of(words, checks, visited, numbers) for words in steps[i].tolist()]
            ahead = [_ahead(path, position) for position in range(graph.n)]
            constants = tuple(
                (*step[:5], bool(ahead[step.source]), d, step.checks, shown[step.target], marks[d + 1], ahead[d + 1])
                for d, step in enumerate(path)
            )
            keys = tuple((numbers[graph.places()[i, key]],) for key in graph.keys[i])
            positions = tuple(visited.index(k) for k, _ in self._spec.columns)
            pipelines.append((i, self._nulls[i], shown[i], marks[0], ahead[0], constants, keys, positions))
        return {"KEYS": tuple((row,) for row in rows), "PIPELINES": tuple(pipelines)}

    def _marks(self, i: int, seen: set[int], numbers: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
        """The shown keys of input i, with their classes, of which none has been seen; they have been then."""
        found = []
        for k, columns in enumerate(self._graph.classes):
            for x, key in enumerate(self._graph.keys[i], self._index.inputs.item(i, KEY)):
                if k not in seen and len(key) == 1 and (i, key[0]) in columns and self._index.keys[x, IS_SHOWN]:
                    seen.add(k)
                    found.append((i, numbers[x], k))
        return tuple(found)

    def _place(self, i: int, c: int) -> tuple[int, int, int, int]:
        """Of a column: as `Source.columns` has it, and the bytes of a value."""
        window = self._windows[i]
        assert window.store is not None
        places, mask = window.store.places()
        address, valid, width = places[window.column_in_store(c)].tolist()
        return address, valid, mask, width

    def run(self, code: Callable[..., Any], waits: int) -> Iterator[Batch]:
        """Join what waits in the windows, as which `fitting` has just looked at; gives the rows that there is no room
        for beside those to come.

        waits: elements of the slice that are still to come into the windows.
        """
        index, state = self._index, self._state
        source = self._source
        if source is None:
            source = self._source = Source(self._columns, self._marked, self._firsts, self._serial)
        if self.room is not None and self._room_masked is not self._masked:
            # Other columns may be NULL now than those that the room knows.
            self._is_block = False
            yield from self.flush()
        status, doubled = -1, 1
        while status != DONE:
            waiting = self._waiting()
            rows = int((waiting + waits) * self._ratio * _ROOM) * doubled
            room = self.room
            if room is None or (self._is_block and self._given == self._found and not self._is_worth_a_block(rows)):
                room = self.room = self._made(rows, doubled)
            before = self._found
            self._found = code(index.bundle, source, room, before, state)
            status = state.item(STATUS)
            joined = waiting - self._waiting()
            if self._found > before and joined:
                self._ratio = (self._found - before) / joined
            if status == PAUSED:
                self._claim(0)  # the call may have taken too long
            if status == FULL:
                doubled = 1 if self._found else 2 * doubled
                self._is_block = False  # it is full
                yield from self.flush()

    def _waiting(self) -> int:
        item = self._index.inputs.item
        return int(sum(item(i, STOP) - item(i, HI) for i in range(self._graph.n)))

    def flush(self) -> Iterator[Batch]:
        """The rows found that have not been given."""
        room, given, found = self.room, self._given, self._found
        if self._is_block:
            self._given = found
        else:
            self.room, self._given, self._found = None, 0, 0
        if room is not None and given < found:
            yield self._batch(room, given, found)

    def _is_worth_a_block(self, rows: int) -> bool:
        return rows * (1 + len(self._masked)) >= _WORTH_A_BLOCK

    def _made(self, rows: int, doubled: int) -> Room:
        """Room for so many, with none in it. Where they are few it is that of before: what stands in it is copied."""
        self._given = self._found = 0
        self._room_masked, self._is_block = self._masked, False
        if rows <= _FEW_ROWS and doubled == 1:
            self._small = self._small or self._room_for(max(_LEAST_ROWS, 2 * _FEW_ROWS))
            return self._small
        if rows > _LARGE:
            self._claim(rows * 8 * (1 + len(self._masked)))
        self._is_block = self._is_worth_a_block(rows)
        return self._room_for(max(rows, _LEAST_ROWS * doubled))

    def _room_for(self, rows: int) -> Room:
        width = len(self._masked)
        if self._is_block:
            rows = max(rows, BLOCK_WORDS // (1 + width))
            words = words_on_large_pages((1 + width) * rows).reshape(1 + width, rows)
        else:
            words = np.empty((1 + width, rows), np.int64)
        valid = np.empty(width * rows, np.bool_) if True in self._masked else _NO_VALID
        return Room(words, valid, np.ones(rows, np.int8))

    def _batch(self, room: Room, first: int, end: int) -> Batch:
        """The rows [first, end); a copy where there is much more room that nobody uses, or others are to come there."""
        words, valid, sign = room.words[:, first:end], None, None
        if room is self._small or (not self._is_block and (end - first) * 2 < room.words.shape[1]):
            words = words.copy()
        if len(room.valid):
            valid = room.valid.reshape(len(self._room_masked), -1)
        if self._serial.item(1):
            sign = room.sign[first:end].copy()
            room.sign[first:end] = 1
        is_netted = self._spec.outer and self._nets and not self._serial.item(2)
        self._serial[1:3] = 0
        columns = [
            Column.from_words(
                words[1 + c], valid[c, first:end].copy() if valid is not None and is_masked else None, type_
            )
            for c, (is_masked, type_) in enumerate(zip(self._room_masked, self._types))
        ]
        batch = Batch(words[0], sign, columns, is_own=True)
        batch.is_netted = is_netted
        return batch


def _ahead(steps: Sequence[_Step], position: int) -> tuple[tuple[int, ...], ...]:
    """The steps that ask for the keys of the row at a position, where one of them is not the next."""
    asking = [(d, step) for d, step in enumerate(steps) if step.source == position]
    if all(d == position for d, _ in asking):
        return ()
    return tuple((step.target, step.probed, step.source_input, step.source_key, d) for d, step in asking)
