"""Joining streams with ranges by a compiled form (`kernels.streams_join`): the program that makes rows.

It runs over the same windows as the others, and leaves them as they do, so that it may begin and end between any two
parts. It fits plans of pipelines alone, whose steps probe keys, of joins below an ISTREAM whose answer shows a key of
each input, of two streams as a relation, and of outer joins by one pair of columns.

Invariant: below an ISTREAM its answer is that of `joins.by_pipelines`, in the same order; a relation, netted, is the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from minidsms.elements import Batch, Int64Array
from minidsms.joins.form_rows import FormRows, Shown
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import JoinPlan, Orders
from minidsms.joins.spec import JoinSpec
from minidsms.joins.stretches import Stretches
from minidsms.kernels.join_layout import JoinState, JoinStep, Windows
from minidsms.kernels.streams_join import SOURCE_WORDS, join_streams
from minidsms.machine_code import record_in
from minidsms.machine_code.templates import Constant, Form
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.synopses.window_index import WindowIndex

_MOST_INPUTS = 4
"""The compiler takes a second for each step of each pipeline."""
_STRETCH = 1 << 13
_LEAST_SHARE = 0.02
"""Rows put out by an element from which on a form of more than two inputs pays, over so many elements: where fewer find
something, `kernels.drop_probing` drops them block by block, in less time."""


class _Step(NamedTuple):
    """A step in the words of `kernels.streams_join`."""

    target: int
    probed: int
    source: int
    source_input: int
    source_key: int
    checks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, step: JoinStep, checks: Int64Array, visited: Sequence[int], numbers: Mapping[int, int]) -> _Step:
        """step, checks: as of `Pipelines`.  visited: the inputs in their order.  numbers: of the keys."""
        compared = tuple(
            (visited.index(a), a, numbers[key], numbers[other])
            for a, key, _, other in checks[step.check : step.checks_end].tolist()
        )
        probed, source_key = numbers[step.probed], numbers[step.source_key]
        return cls(step.target, probed, step.asked, step.source, source_key, compared)


class ByForm:
    """index: the windows.  state: of the join's run.  claim: as of `Answer`."""

    def __init__(
        self, spec: JoinSpec, graph: JoinGraph, index: WindowIndex, state: JoinState, claim: Callable[[int], None]
    ) -> None:
        self._spec = spec
        self._graph = graph
        self._index = index
        self._windows = cast("list[IndexedWindow]", index.windows)
        self._state = state
        self._deletes = spec.shown is None
        self._nets = set(spec.shown or ()) == set(range(len(spec.columns)))
        if self._deletes:
            self._nets = _has_one_key(graph) and (0, graph.keys[0][0][0]) in spec.columns
        self._claim = claim
        self._rows = [FormRows(spec, graph, self._nets, claim)]
        self._stretches = Stretches(index, state)
        self._tables: list[Int64Array | None] = [None] * graph.n
        self._nulls = [False] * graph.n
        self._widths: list[int] = []
        self._orders: Orders = ()
        self._is_known = False
        """Where columns stand, and what may be NULL, is as it was for the form."""
        self._form: Form | None = None
        self._pays = True
        self._seen = (0, 0)
        self._shown = Shown(np.zeros((0, SOURCE_WORDS), np.int64), ())

    @staticmethod
    def suits(spec: JoinSpec, graph: JoinGraph, index: WindowIndex) -> bool:
        """There is a form for such a join."""
        shown = index.keys["is_shown"]
        are_shown = all(shown[first:end].any() for first, end in ((of.key, of.keys_end) for of in index.records))
        if spec.outer:
            tells_apart = _has_one_key(graph)
        else:
            tells_apart = spec.shown is None or (are_shown and spec.leaves_out)
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
        for i, window in enumerate(self._windows):
            store = window.store
            if store is None:
                return None
            table = store.places()[0]
            if table is not self._tables[i] or (self._index.records[i].has_nulls != 0) != self._nulls[i]:
                self._tables[i], self._nulls[i], self._is_known = table, self._index.records[i].has_nulls != 0, False
        if not self._is_known:
            self._orders = ()
            places = [self._place(i, c) for i, c in self._spec.columns]
            outer = self._spec.outer
            masked = [valid != 0 or (outer and i == 1) for (i, _), (_, valid, _, _) in zip(self._spec.columns, places)]
            self._shown = Shown(np.array([place[:SOURCE_WORDS] for place in places], np.int64), masked)
            self._widths = [width for _, _, _, width in places]
        if plan.orders is not self._orders:
            self._orders, self._is_known = plan.orders, True
            self._form = join_streams.form(
                COLUMNS=tuple(zip(self._widths, self._shown.masked)),
                NETS=self._nets,
                DELETES=self._deletes,
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
            begin = i * len(order)
            own = (record_in(JoinStep, steps, r) for r in range(begin, begin + len(order)))
            path = [_Step.of(step, checks, visited, numbers) for step in own]
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
            for x, key in enumerate(self._graph.keys[i], self._index.records[i].key):
                if k not in seen and len(key) == 1 and (i, key[0]) in columns and self._index.keys["is_shown"][x]:
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
        """Join what waits in the windows, at which `fitting` has just looked; gives the rows that there is no room for
        beside those to come.

        waits: elements of the slice that are still to come into the windows.
        """
        return self._rows[0].run(code, self._index.bundle, self._state, self._shown, waits)

    def run_side_by_side(self, code: Callable[..., Any], part: Sequence[Batch | None], ways: int) -> Iterator[Batch]:
        """The same for the part that has come last, in so many threads at most; gives all rows, once all is joined."""
        while len(self._rows) < ways:
            self._rows.append(FormRows(self._spec, self._graph, self._nets, self._claim))

        stretches = self._stretches.cut(part, ways)
        before = list(self._rows[0].make_ready(self._shown, stretches[0].elements))

        def found(k: int, windows: Windows, state: JoinState) -> list[Batch]:
            return list(self._rows[k].run(code, windows, state, self._shown, 0))

        joined = self._stretches.join(stretches, found)
        yield from before
        for rows, batches in zip(self._rows, joined):
            yield from batches
            yield from rows.flush()

    @property
    def beside_ns(self) -> int:
        """What other threads took for the last part that was divided."""
        return self._stretches.beside_ns

    def flush(self) -> Iterator[Batch]:
        """The rows found that have not been given."""
        return self._rows[0].flush()


def _has_one_key(graph: JoinGraph) -> bool:
    """Each input does, of one column."""
    return all(len(keys) == 1 and len(keys[0]) == 1 for keys in graph.keys)


def _ahead(steps: Sequence[_Step], position: int) -> tuple[tuple[int, ...], ...]:
    """The steps that ask for the keys of the row at a position, where one of them is not the next."""
    asking = [(d, step) for d, step in enumerate(steps) if step.source == position]
    if all(d == position for d, _ in asking):
        return ()
    return tuple((step.target, step.probed, step.source_input, step.source_key, d) for d, step in asking)
