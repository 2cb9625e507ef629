"""Screen: one look at a row for all filters that compare columns of one operator with constants.

Where many filters read one operator, each would evaluate its condition on every batch. A screen stands between them
and the operator. It looks a row up in the regions of the columns (`screens.asc`), finds all boxes that it lies in, and
hands every filter its rows; a filter without rows is not visited. Queries that do nothing else than to show columns of
such rows are folded into it (`screens.tail`).

Invariant: a filter gets every row for which its condition is TRUE, or counts as failed (docs/semantics R4), in order;
where its box is all of its condition, it gets no other.  Lee and Lee 2012; docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.counted import counted
from minidsms.elements import Batch, Int32Array, Int64Array
from minidsms.kernels.screening import by_member
from minidsms.operators.operator import Description, Operator
from minidsms.operators.select import Select
from minidsms.queues import Queue
from minidsms.screens.answers import Portion, SharedAnswers, Subscription
from minidsms.screens.box import Box
from minidsms.screens.boxes import Boxes
from minidsms.screens.level import Level
from minidsms.screens.screening import Screening
from minidsms.screens.tail import Tail

FEWEST = 8
"""Filters over one operator below which each looks for itself."""
SCREEN_COLUMNS = ("screen", "filters", "queries folded", "columns", "order", "arrows", "columns a row", "bytes")
"""Of SHOW SCREENS."""
_PAIRS = 1 << 22
"""Pairs of a row and a filter that are looked for at once, at most, where a call may not take all it likes."""


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
    """A box. select: the filter that wants its rows, with its queue; else the box is that of folded queries, and slot
    where their answers are.
    """

    __slots__ = ("number", "readers", "select", "slot")

    def __init__(self, number: int, slot: int, select: Select | None) -> None:
        self.number = number
        self.slot = slot
        self.select = select
        self.readers = 1


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
        self._boxes = Boxes(producer.schema.types)
        self._screening = screening
        self._woken = woken
        self._members: list[_Member | None] = []
        self._of_box: dict[Box, _Member] = {}
        self._of_select: dict[int, _Member] = {}
        self._slots = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self.sequence = screening.look_ups(f"Screen over {producer.describe().detail}", producer.schema.names)
        self._given: list[Queue] = []
        self._grow: Any = None
        self._is_by_column = screening.is_by_column

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

    def unfold(self, tail: Tail, subscription: Subscription) -> list[Batch | Portion]:
        """A folded query goes; the rows that waited for it."""
        left = self.answers.leave(subscription)
        member = self._of_box[tail.box]
        member.readers -= 1
        if not member.readers:
            del self._of_box[tail.box]
            self._remove(member)
            self.answers.free_slot(member.slot)
        return left

    def keep(self, selects: Sequence[Select]) -> None:
        """Let it be these filters that are operators; those that were and are not go."""
        if self._is_by_column is not self._screening.is_by_column:
            self._is_by_column = self._screening.is_by_column
            for key in list(self._of_select):
                self._remove(self._of_select.pop(key))
        wanted = {id(select): select for select in selects}
        for key in [k for k in self._of_select if k not in wanted]:
            self._remove(self._of_select.pop(key))
        for key, select in wanted.items():
            if key not in self._of_select:
                self._of_select[key] = self._added(self.box_of(select), -1, select)
        self.outputs = [select.inputs[0] for select in selects]
        self._given = []

    def box_of(self, select: Select) -> Box:
        """What it looks at for a filter."""
        assert select.box is not None
        return select.box.of_one_column() if self._is_by_column else select.box

    def settle(self) -> None:
        """Build the tables of what has come. The engine is at rest."""
        settings = self._screening.settings
        self.inputs[0].limit(settings["queue_size"], settings["queue_bytes"])
        if not self._boxes.settle():
            return
        first = self.levels[0] if self.levels else None
        self.sequence.take(first)
        self._slots = np.array([-1 if m is None else m.slot for m in self._members], np.int64)
        self._counts = np.zeros(len(self._members), np.int64)

    def _added(self, box: Box, slot: int, select: Select | None) -> _Member:
        member = _Member(self._boxes.add(box), slot, select)
        self._members += [None] * (self._boxes.end - len(self._members))
        self._members[member.number] = member
        return member

    def _remove(self, member: _Member) -> None:
        self._members[member.number] = None
        self._boxes.remove(member.number)

    @property
    def levels(self) -> list[Level]:
        """Its boxes as they are looked up."""
        return self._boxes.levels

    # ------------------------------------------------------------------------------------------------------- rows

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        (batch,) = batches
        if batch is None:
            return
        start = 0
        while start < len(batch):
            room = self.sequence.limit(min(len(batch) - start, self._room(batch)))
            part = batch.slice(start, start + room)
            self._latest = int(part.ts[0])
            self._hand_out(part)
            start += len(part)
            yield part

    def _room(self, batch: Batch) -> int:
        """How many rows may go to every filter at once: their queues are empty."""
        room = len(batch)
        for queue in self.outputs:
            room = min(room, queue.bound, queue.byte_limit // batch.row_nbytes)
        if not self.allowance.is_open:
            room = min(room, _PAIRS // max(1, self.filters))
        return max(1, room)

    def _hand_out(self, batch: Batch) -> None:
        """Give every box its rows."""
        found = self._boxes.look_up(batch, self._screening.dictionary, self.sequence.passed)
        if not found.count:
            return
        self.counters.elements_out += found.count
        self.claim(found.count * found.rows.itemsize + len(batch) * batch.row_nbytes)
        given: Int64Array = np.empty((3, min(found.count, len(self._members)) + 1), np.int64)
        rows: Int32Array = np.empty(found.count, np.int32)
        n = by_member(found.rows, found.members, found.count, self._counts, given, rows)
        members, firsts, counts = given[:, :n]
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

    def _emit(self, emission: Iterator[Batch]) -> None:
        """The rows have been handed out by `process`, part by part, each when there was room."""
        for part in emission:
            if self.is_blocked():
                complete = int(part.ts[-1]) - 1
                for queue in self.outputs:
                    queue.progress = max(queue.progress, complete)
                self.counters.stalls += 1
                self._emission = emission
                return
        self._complete()

    def _complete(self) -> None:
        """Filters that are immediate need not know the time: nothing behind them does."""
        self.progress = self._until if self.failure is None else min(self._until, self.failure.ts - 1)
        if not self.is_immediate:
            for queue in self.outputs:
                queue.progress = max(queue.progress, self.progress)

    def adaptations(self) -> tuple[Any, ...]:
        return (self.sequence.adaptation,)

    def synopses(self) -> tuple[SharedAnswers, ...]:  # type: ignore[override]  # they wait for queries: no state of its own
        return (self.answers,)

    def describe(self) -> Description:
        detail = f"{counted(self.filters, 'filter')} over {counted(len(self._boxes.columns), 'column')}"
        if self.levels:
            first = self.levels[0]
            detail += f", {first.plan.kind} {first.plan_text(self.schema.names)}"
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
            "arrows": len(first.plan.arrows),
            "nbytes": self._boxes.nbytes,
        }

    def line(self) -> tuple[Any, ...]:
        """Of SHOW SCREENS."""
        first = self.levels[0] if self.levels else None
        order = "" if first is None else ", ".join(first.order_of(self.schema.names))
        arrows = 0 if first is None else len(first.plan.arrows)
        looked = None if first is None or not first.rows else round(first.looked / first.rows, 2)
        readers = len(self.answers.subscriptions)
        over = self.producer.describe().detail
        return over, self.filters, readers, len(self._boxes.columns), order, arrows, looked, self._boxes.nbytes
