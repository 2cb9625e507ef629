"""Screen: one look at a row for all filters that compare columns of one operator with constants.

Where many filters read one operator, each would evaluate its condition on every batch. A screen stands between them
and the operator. It looks a row up in the regions of the columns (`screens.asc`), finds all boxes that it lies in, and
hands every filter its rows; a filter without rows is not visited. Queries that do nothing else than to show columns of
such rows are folded into it (`screens.tail`).

Invariant: a filter gets every row for which its condition is TRUE, or counts as failed (docs/semantics R4), in order;
where its box is all of its condition, it gets no other.  Lee and Lee 2012; docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Int32Array, Int64Array
from minidsms.kernels.screening import by_member
from minidsms.operators.operator import Description, Operator
from minidsms.operators.select import Select
from minidsms.queues import Queue
from minidsms.screens.answers import SharedAnswers, Subscription
from minidsms.screens.box import Box
from minidsms.screens.level import Found, Level
from minidsms.screens.screening import Screening
from minidsms.screens.tail import Tail
from minidsms.streamon.loop import Loop
from minidsms.streamon.screening.adaptive_sequence import AdaptiveSequence

FEWEST = 8
"""Filters over one operator below which each looks for itself."""
SCREEN_COLUMNS = ("screen", "filters", "queries folded", "columns", "order", "arrows", "columns a row", "bytes")
"""Of SHOW SCREENS."""
_MOST = 16_384
"""Boxes of a level: bitmaps grow with their square, where every box has constants of its own."""
_MERGED = 4
"""Levels are made one when there are more, or the later ones have a quarter of the boxes, or a quarter has gone."""


class Woken:
    """The operators behind a screen that have been given something since the last rest, producers before consumers.

    behind: by the id of a filter's queue, the filter and all that reads it.
    """

    def __init__(self) -> None:
        self.operators: list[Operator] = []
        self.behind: dict[int, Sequence[Operator]] = {}
        self._known: set[int] = set()

    def wake(self, queue: Queue) -> None:
        """A filter has been given something."""
        if id(queue) not in self._known:
            self._known.add(id(queue))
            self.operators += self.behind[id(queue)]

    def rest(self) -> None:
        """All has been done."""
        if self._known:
            self._known.clear()
            self.operators.clear()


class _Member:
    """A box. select: the filter that wants its rows, with its queue; else the box is that of folded queries."""

    __slots__ = ("box", "level", "number", "place", "readers", "select", "slot")

    def __init__(self, box: Box, number: int, slot: int, select: Select | None) -> None:
        self.box = box
        self.number = number
        self.slot = slot
        self.select = select
        self.readers = 1
        self.level: Level | None = None
        self.place = 0


class Screen(Operator):
    """One operator's filters. woken: whom to tell of filters that are given something."""

    name = "Screen"
    is_stateless = True
    acts_on_time = False

    def __init__(self, producer: Operator, screening: Screening, woken: Woken) -> None:
        queue = Queue(producer.schema, screening.settings["queue_size"])
        queue.producer, queue.progress = producer, producer.progress
        super().__init__((queue,), producer.schema)
        self.is_immediate = producer.is_immediate
        self.progress = producer.progress
        self.answers = SharedAnswers(producer.schema)
        self.levels: list[Level] = []
        self._screening = screening
        self._woken = woken
        self._members: list[_Member | None] = []
        self._free: list[int] = []
        self._of_box: dict[Box, _Member] = {}
        self._of_select: dict[int, _Member] = {}
        self._fresh: list[_Member] = []
        self._slots = np.empty(0, np.int64)
        self.sequence = AdaptiveSequence(screening, f"Screen over {producer.describe().detail}", producer.schema.names)
        self._found = Found()
        self._given: list[Queue] = []
        self._grow: Any = None

    # ---------------------------------------------------------------------------------------------------- members

    @property
    def producer(self) -> Operator:
        """Whose rows it looks at."""
        producer = self.inputs[0].producer
        assert producer is not None
        return producer

    @property
    def filters(self) -> int:
        """Different filters behind it."""
        return len(self._of_box) + len(self._of_select)

    @property
    def folded(self) -> int:
        """Boxes of folded queries."""
        return len(self._of_box)

    @property
    def selects(self) -> list[Select]:
        """Those that are operators."""
        return [m.select for m in self._of_select.values() if m.select is not None]

    def fold(self, tail: Tail) -> Subscription:
        """One more query that only shows columns; it gets what comes from now on."""
        self._grow = tail.grow
        loop = self.sequence.adaptation
        loop.query = loop.query or tail.definition.query.name
        member = self._of_box.get(tail.box)
        if member is None:
            member = self._of_box[tail.box] = self._added(tail.box, self.answers.add_slot(), None)
        else:
            member.readers += 1
        return self.answers.subscribe(member.slot, tail.columns, tail.definition)

    def unfold(self, tail: Tail, subscription: Subscription) -> list[Batch]:
        """A folded query goes; the rows that waited for it."""
        member = self._of_box[tail.box]
        member.readers -= 1
        if not member.readers:
            del self._of_box[tail.box]
            self._remove(member)
        left = self.answers.leave(subscription)
        if not member.readers:
            self.answers.free_slot(member.slot)
        return left

    def keep(self, selects: Sequence[Select]) -> None:
        """Let it be these filters that are operators; those that were and are not go."""
        wanted = {id(select): select for select in selects}
        for key in [k for k in self._of_select if k not in wanted]:
            self._remove(self._of_select.pop(key))
        for key, select in wanted.items():
            if key not in self._of_select:
                assert select.box is not None
                self._of_select[key] = self._added(select.box, -1, select)
        self.outputs = [select.inputs[0] for select in selects]
        self._given = []

    def settle(self) -> None:
        """Build the tables of what has come. The engine is at rest."""
        settings = self._screening.settings
        self.inputs[0].limit(settings["queue_size"], settings["queue_bytes"])
        if not self._fresh and not any(level.gone for level in self.levels):
            return
        young = sum(len(level.boxes) for level in self.levels if len(level.boxes) < _MOST) + len(self._fresh)
        gone = sum(level.gone for level in self.levels)
        if len(self.levels) >= _MERGED + self.filters // _MOST or _MERGED * max(young, gone) > self.filters:
            self.levels = []
            self._fresh = [member for member in self._members if member is not None]
        fresh = [member for member in self._fresh if self._members[member.number] is member]
        self._fresh = []
        for start in range(0, len(fresh), _MOST):
            part = fresh[start : start + _MOST]
            level = Level([m.box for m in part], [m.number for m in part], self.schema.types)
            for place, member in enumerate(part):
                member.level, member.place = level, place
            self.levels.append(level)
        first = self.levels[0] if self.levels else None
        self.sequence.take(None if first is None or first.has_homes else first)
        self._slots = np.array([-1 if m is None else m.slot for m in self._members], np.int64)

    def _added(self, box: Box, slot: int, select: Select | None) -> _Member:
        number = self._free.pop() if self._free else len(self._members)
        member = _Member(box, number, slot, select)
        if number == len(self._members):
            self._members.append(member)
        else:
            self._members[number] = member
        self._fresh.append(member)
        return member

    def _remove(self, member: _Member) -> None:
        self._members[member.number] = None
        self._free.append(member.number)
        if member.level is not None:
            member.level.strike(member.place)

    # ------------------------------------------------------------------------------------------------------- rows

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        (batch,) = batches
        if batch is None:
            return
        start = 0
        while start < len(batch):
            room = self.sequence.limit(min(len(batch) - start, self._room(batch)))
            part = batch.slice(start, start + room)
            self._hand_out(part)
            start += len(part)
            yield part

    def _room(self, batch: Batch) -> int:
        """How many rows may go to every filter at once: their queues are empty."""
        room = len(batch)
        for queue in self.outputs:
            room = min(room, queue.bound, queue.byte_limit // batch.row_nbytes)
        return max(1, room)

    def _hand_out(self, batch: Batch) -> None:
        """Give every box its rows."""
        found = self._found
        found.count = 0
        for level in self.levels:
            keys, present = level.run(batch, self._screening.dictionary, found)
            if level is self.levels[0]:
                self.sequence.passed(keys, present, int(batch.ts[0]))
        if not found.count:
            return
        self.counters.elements_out += found.count
        members, firsts, counts, rows = _by_member(found, len(self._members))
        slots = self._slots[members]
        if self._of_select:
            for i in np.flatnonzero(slots < 0).tolist():
                self._put(batch, int(members[i]), rows[firsts[i] : firsts[i] + counts[i]])
            folded = slots >= 0
            firsts, counts, slots = firsts[folded], counts[folded], slots[folded]
            if not len(slots):
                return
        self._grow(self.answers.deliver(batch, rows, firsts, counts, slots))

    def _put(self, batch: Batch, number: int, rows: Int32Array) -> None:
        member = self._members[number]
        assert member is not None and member.select is not None
        queue = member.select.inputs[0]
        queue.put(batch if len(rows) == len(batch) else batch.take(rows.astype(np.int64)))
        self._given.append(queue)
        self._woken.wake(queue)

    def is_blocked(self) -> bool:
        """Some filter has not taken what it was given."""
        self._given = [queue for queue in self._given if queue.size]
        return bool(self._given)

    def _emit(self, emission: Iterable[Batch]) -> None:
        """The rows have been handed out by `process`, part by part, each when there was room."""
        for part in emission:
            if self.is_blocked():
                complete = int(part.ts[-1]) - 1
                for queue in self.outputs:
                    queue.progress = max(queue.progress, complete)
                self.counters.stalls += 1
                return
        self._emission = None
        self._complete()

    def _complete(self) -> None:
        """Filters that are immediate need not know the time: nothing behind them does."""
        self.progress = self._until
        if not self.is_immediate:
            for queue in self.outputs:
                queue.progress = max(queue.progress, self._until)

    def adaptations(self) -> tuple[Loop[Any], ...]:
        """See `minidsms.streamon.loop.Adaptive`."""
        return (self.sequence.adaptation,)

    def synopses(self) -> tuple[SharedAnswers, ...]:  # type: ignore[override]  # they wait for queries: no state of its own
        return (self.answers,)

    def describe(self) -> Description:
        columns = {c for level in self.levels for c in level.constructs.columns}
        detail = f"{self.filters:,} filters over {len(columns)} columns"
        if self.levels:
            detail += f", order {self.levels[0].sequence_text(self.schema.names)}"
        return Description(self.name, detail, self.figures())

    def figures(self) -> dict[str, Any]:
        """What its levels have counted."""
        rows = sum(level.rows for level in self.levels)
        if not rows:
            return {}
        first = self.levels[0]
        return {
            "columns_a_row": first.looked / max(1, first.rows),
            "dropped": first.dropped / max(1, first.rows),
            "arrows": len(first.sequence.arrows),
            "nbytes": self.table_nbytes,
        }

    def line(self) -> tuple[Any, ...]:
        """Of SHOW SCREENS."""
        columns = {c for level in self.levels for c in level.constructs.columns}
        first = self.levels[0] if self.levels else None
        order = "" if first is None else ", ".join(first.order_of(self.schema.names))
        arrows = 0 if first is None else len(first.sequence.arrows)
        looked = None if first is None or not first.rows else round(first.looked / first.rows, 2)
        readers = len(self.answers.subscriptions)
        over = self.producer.describe().detail
        return over, self.filters, readers, len(columns), order, arrows, looked, self.table_nbytes

    @property
    def table_nbytes(self) -> int:
        """Bytes of regions and bitmaps."""
        return sum(level.constructs.nbytes for level in self.levels)


def _by_member(found: Found, members: int) -> tuple[Int64Array, Int64Array, Int64Array, Int32Array]:
    """(members that have rows, where their rows begin, how many they are, the rows)."""
    n = found.count
    if 4 * n < members:
        order = np.argsort(found.members[:n], kind="stable")
        numbers, firsts, counts = np.unique(found.members[:n][order], return_index=True, return_counts=True)
        return numbers.astype(np.int64), firsts.astype(np.int64), counts.astype(np.int64), found.rows[:n][order]
    starts = np.empty(members + 1, np.int64)
    rows: Int32Array = np.empty(n, np.int32)
    by_member(found.rows, found.members, n, starts, rows)
    lengths: Int64Array = np.diff(starts)
    given: Int64Array = np.flatnonzero(lengths)
    return given, starts[given], lengths[given], rows
