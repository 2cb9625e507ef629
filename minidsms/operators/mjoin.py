"""MJoin: the equi-join of two or more windows in one operator, without intermediate results.

Each input has a pipeline: the order in which an element of it visits the others, and which key each visit probes
(`join_graph`). The orders follow FROM until `reorder` gives others; answers do not depend on them. Within an instant
all deletions of all inputs come first, then all insertions: so each tuple that begins or ends at the instant is put out
exactly once. NULL keys match nothing (docs/semantics R2). Viglas, Naughton and Burger 2003; Babu 2005, sections 2.2.2,
3.2 and 5.2.

Invariant: between slices every window holds the rows of its relation at `progress`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch, Column, Int8Array, Int64Array, Schema
from minidsms.joins.equal_columns import Equality, equalities_text
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Orders
from minidsms.kernels.entering_join import CROWDED, PLACED_WORDS, join_entering, place_steps
from minidsms.kernels.join_layout import (
    DELETED,
    DEPTH,
    DONE,
    FIRST,
    INSPECTED,
    LEAVES,
    MIDDLE,
    MISSING,
    NEEDED,
    SIZE,
    STAMPS,
    STATE_WORDS,
    STATUS,
)
from minidsms.kernels.mjoin import mjoin
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import IndexedWindow, WindowIndex

if TYPE_CHECKING:
    from minidsms.streamon.caching.adaptive_caches import AdaptiveCaches
    from minidsms.streamon.join_watch import Adapting, JoinWatch
    from minidsms.streamon.loop import Loop

_TUPLES = 1 << 14
"""Tuples found before their rows are gathered: their slots stay in the cache until then."""


_PART = 1 << 14
"""Elements of one input indexed at a time: slots that are filled, linked and left while they stand in the cache."""

_BLOCK = 128
"""Elements of one input that are linked and probed together, at most, where an instant has not more."""

_FIRST_TUPLES = 64
"""Room for tuples before a slice needs more."""


class MJoin(Operator):
    """The rows of all inputs side by side where every equality holds.

    outputs_of: the (input, column) of each output column; schema: theirs.
    shown: where the consumer is ISTREAM, the output columns that stand unchanged in its rows; then deletions that
    cancel no insertion of their instant may be left out. None: all deletions are put out.
    ranges: where given (and `shown` is), the inputs are streams, and each row stays so many ticks, as in a RangeWindow;
    None: for ever. Then no deletion is ever an element, which halves the work.
    fifo: of each input, whether its deletions come in the order of its insertions (default: of all).
    """

    name = "MJoin"
    times_every_run = True
    names: Sequence[str] = ()
    """Of the inputs, for plans in words; set by the planner."""

    def __init__(
        self,
        inputs: Sequence[Queue],
        equalities: Sequence[Equality],
        outputs_of: Sequence[tuple[int, int]],
        schema: Schema,
        shown: Sequence[int] | None = None,
        ranges: Sequence[int | None] | None = None,
        fifo: Sequence[bool] | None = None,
    ) -> None:
        super().__init__(inputs, schema)
        assert ranges is None or shown is not None
        self.ranges = None if ranges is None else tuple(ranges)
        n = len(inputs)
        self.graph = JoinGraph(n, equalities)
        self.outputs_of = tuple(outputs_of)
        # By input: the output columns it gives, and which of its own they are.
        gives = [[(j, c) for j, (k, c) in enumerate(self.outputs_of) if k == i] for i in range(n)]
        self._gives = [([j for j, _ in each], [c for _, c in each]) for each in gives]
        bags = [not each for each in fifo or [True] * n]
        self.has_bags = any(bags)
        assert ranges is None or not self.has_bags
        self.leaves_out = shown is not None and not self.has_bags
        marked = None
        if shown is not None and self.leaves_out:
            marked = [sorted({c for j in shown for k, c in [self.outputs_of[j]] if k == i}) for i in range(n)]
        keyed = self.graph.equal_to(self.outputs_of[j] for j in shown or ())
        if marked is not None:
            of_keys = [any((i, *key) in keyed for key in self.graph.keys[i]) for i in range(n)]
            if all(has_one or not columns for has_one, columns in zip(of_keys, marked)):
                marked = None  # what the answer shows of the keys tells rows apart well enough
        needed = [[c for k, c in self.outputs_of if k == i] for i in range(n)]
        self._index = WindowIndex([q.schema for q in inputs], self.graph.keys, marked, needed, ranges, bags)
        self._index.show(keyed)
        self.reorder(self.graph.default_orders())
        self._stamps = np.zeros((n if self.leaves_out else 0, STAMPS), np.int64)
        self._walks = np.zeros((4, n), np.int64)
        self._stops = np.zeros(n, np.int64)
        self._placed = np.zeros(n * (n - 1) * PLACED_WORDS, np.int64)
        self._state = np.zeros(STATE_WORDS, np.int64)
        self._state[DEPTH] = -1
        self._state[SIZE] = _BLOCK
        self._scratch: tuple[Int64Array, Int64Array, Int64Array] | None = None
        self._buffers: tuple[Int64Array, Int64Array, Int8Array] = _buffers(n, _FIRST_TUPLES)
        self.watch: JoinWatch | None = None
        """What adapts the plan, where there is more than one; set by the planner."""
        self.caching: AdaptiveCaches | None = None
        """What chooses caches, where the join can have any; set by the planner."""

    @property
    def index(self) -> WindowIndex:
        """The windows of all inputs."""
        return self._index

    @property
    def uses_orders(self) -> bool:
        """The orders decide what is done now."""
        return True

    @property
    def orders(self) -> Orders:
        """Of each input, the others in the order its elements visit them."""
        return self._orders

    def is_legal(self, orders: Orders) -> bool:
        """`reorder` takes these orders."""
        return self.graph.is_legal(orders)

    def reorder(self, orders: Orders) -> None:
        """Let the pipelines visit the inputs in these orders, which are legal, from the next slice on."""
        assert self.is_legal(orders), f"{orders} take a Cartesian step where an input is linked, or leave one out"
        self._orders = orders
        self._steps, self._checks = self.graph.pipelines(orders)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Probe and index the batches' elements; one batch of output per full buffer of tuples."""
        few = sum(len(b.ts) for b in batches if b is not None) <= _PART
        watch = self.watch
        limit = _unlimited if watch is None else watch.limit
        for part in (batches,) if few and watch is None else _parts(batches, limit):
            yield from self._join(part) if self.ranges is None else self._join_entering(part)
            if watch is not None:
                watch.joined(part)
        if self.ranges is not None:
            self._index.expire(until)
        for window in self._index.windows:
            window.settle()

    @property
    def adapting(self) -> tuple[Adapting, ...]:
        """What may change the plan."""
        return () if self.watch is None else self.watch.adapting

    def _join(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        index, state = self._index, self._state
        index.admit(batches)
        found, status = 0, -1
        while status != DONE:
            found = mjoin(
                index.runs, index.instants, index.inputs, index.keys, self._steps, self._checks, index.nodes,
                index.heads, index.places, index.backs, index.marks, self._stamps, self._walks, self._stops, state,
                self.leaves_out, *self._buffers, found,
            )  # fmt: skip
            status = int(state[STATUS])
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            complete = int(state[FIRST]) if status != DONE and self.leaves_out else found
            if complete:
                yield self._output(complete)
            found = self._keep(complete, found) if status != DONE else 0

    def _join_entering(self, batches: Sequence[Batch | None]) -> Iterator[Batch]:
        index, state = self._index, self._state
        index.arrive(batches)
        place_steps(self._steps, index.inputs, index.keys, self._placed)
        if self._scratch is None:
            self._scratch = _scratch(self.graph.n, _BLOCK)
        scratch = self._scratch
        status = -1
        while status != DONE:
            slots, ts, sign = self._buffers
            found = join_entering(
                index.instants, index.inputs, *scratch, self._placed, self._checks, index.keys, index.nodes,
                index.heads, index.marks, self._stamps, self._walks, state, slots, ts, sign,
            )  # fmt: skip
            status = int(state[STATUS])
            if found:
                yield self._output(found)
            if status == CROWDED:
                scratch = _scratch(self.graph.n, int(state[NEEDED]))  # for this part alone
            elif status != DONE and (not found or len(ts) < _TUPLES):
                self._buffers = _buffers(len(slots), max(_TUPLES, len(ts) * 2))

    def _output(self, found: int) -> Batch:
        """The rows of the first tuples found."""
        slots, ts, sign = self._buffers
        has_deletions = self._state[DELETED] > 0 if self.leaves_out else bool((sign[:found] < 0).any())
        self._state[DELETED] = 0
        columns: list[Column | None] = [None] * len(self.outputs_of)
        for window, (places, gives), of_input in zip(self._index.windows, self._gives, slots):
            for j, column in zip(places, window.gather(gives, of_input[:found])):
                columns[j] = column
        signs = sign[:found].copy() if has_deletions else None
        return Batch(ts[:found].copy(), signs, columns, is_own=True)  # type: ignore[arg-type]

    def _keep(self, first: int, found: int) -> int:
        """Make room in the buffer: the tuples of the open instant move to its beginning, or it grows."""
        slots, ts, sign = self._buffers
        kept = found - first
        if kept * 2 > len(ts) or len(ts) < _TUPLES:
            self._buffers = _buffers(len(slots), max(_TUPLES, len(ts) * 2))
        new_slots, new_ts, new_sign = self._buffers
        new_slots[:, :kept] = slots[:, first:found].copy()
        new_ts[:kept] = ts[first:found].copy()
        new_sign[:kept] = sign[first:found].copy()
        self._state[FIRST] -= first
        self._state[MIDDLE] -= first
        return kept

    def wakes_at(self) -> int:
        """The instant at which the next row leaves; never, where deletions come as elements."""
        if self.ranges is None:
            return MAX_INSTANT
        inputs = self._index.inputs
        return min(inputs.item(i, LEAVES) for i in range(len(inputs)))

    def describe(self) -> Description:
        """Equalities, rows and bytes held, slots inspected by all probes so far."""
        names = [q.schema.names for q in self.inputs]
        detail = equalities_text(self.graph.written, names, self.names)
        if self.ranges is not None:
            detail += " of " + ", ".join("RANGE UNBOUNDED" if r is None else f"RANGE {r}" for r in self.ranges)
        windows = self._index.windows
        return Description(
            self.name,
            detail,
            {
                "rows": "+".join(str(len(w)) for w in windows),
                "netted": self.leaves_out,
                "bytes": sum(w.nbytes for w in windows),
                "inspected": int(self._state[INSPECTED]),
            },
            tuple(line for adapting in self.adapting for line in adapting.describe()),
        )

    def work(self) -> tuple[int, int, int, int]:
        """Since the beginning: nanoseconds, slots inspected, elements taken, tuples put out."""
        counters = self.counters
        return counters.time_ns, int(self._state[INSPECTED]), counters.elements_in, counters.elements_out

    def adaptations(self) -> tuple[Loop[Any], ...]:
        """See `minidsms.streamon.loop.Adaptive`."""
        return tuple(adapting.adaptation for adapting in self.adapting if adapting.has_choice)

    def close(self) -> None:
        """End the claims on the inputs' stores."""
        for window in self._index.windows:
            window.release()

    def synopses(self) -> tuple[IndexedWindow | BagWindow, ...]:
        """The inputs' rows."""
        return tuple(self._index.windows)


def _unlimited(waiting: int) -> int:
    return waiting


def _parts(batches: Sequence[Batch | None], limit: Callable[[int], int]) -> Iterator[Sequence[Batch | None]]:
    """The batches cut at instants into parts of about _PART elements of each input.

    limit: of so many elements that wait, how many a part may have; it has whole instants, and at least one.
    """
    waiting = sum(len(b) for b in batches if b is not None)
    starts = [0] * len(batches)
    while waiting:
        most = limit(waiting)
        if most == waiting and not any(starts) and all(b is None or len(b) <= _PART for b in batches):
            yield batches
            return
        ends = [int(b.ts[at + _PART]) for b, at in zip(batches, starts) if b is not None and at + _PART < len(b)]
        if most < waiting:
            soon = [b.ts[at : at + most] for b, at in zip(batches, starts) if b is not None]
            ends.append(int(np.sort(np.concatenate(soon))[most - 1]))
        part: list[Batch | None] = []
        for i, b in enumerate(batches):
            at = starts[i]
            stop = 0 if b is None else int(np.searchsorted(b.ts, min(ends), side="right")) if ends else len(b)
            part.append(b.slice(at, stop) if b is not None and stop > at else None)
            starts[i] = max(stop, at)
        waiting -= sum(len(b) for b in part if b is not None)
        yield part


def _scratch(n: int, capacity: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    return np.empty((n, capacity), np.int64), np.empty((n, n - 1, capacity), np.int64), np.zeros((2, n), np.int64)


def _buffers(n: int, capacity: int) -> tuple[Int64Array, Int64Array, Int8Array]:
    return np.empty((n, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8)
