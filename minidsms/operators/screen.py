"""Screens: one look at a batch for many filters that compare one of its columns with constants.

Where many filters read one operator, each would evaluate its condition on every batch. A screen sorts the batch's
values of the column once, finds by binary search the run of values that lie in each filter's interval, and hands a
filter the rows of its run; a filter whose run is empty is not even visited.

Invariant: a filter gets every row for which its condition is TRUE, or counts as failed (docs/semantics R4), in order;
where its interval is all of its condition, it gets no other. docs/design, point 3; docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Batch, Column
from minidsms.operators.operator import Operator
from minidsms.operators.select import Select
from minidsms.queues import Queue

FEWEST = 8
"""Filters on one column of one operator below which each looks for itself."""


@dataclass(frozen=True)
class Interval:
    """The values [low, high] of a column that a condition lets through; NULL is not among them.

    is_all: the condition says nothing else.  held: keeps a text's code from being given to another text.
    """

    column: int
    low: int | float
    high: int | float
    is_all: bool
    held: object = None


class Woken:
    """The operators behind screens that have been given something since the last rest, producers before consumers.

    behind: by the id of a filter's queue, the filter and all that reads it.
    """

    def __init__(self, behind: Mapping[int, Sequence[Operator]]) -> None:
        self.operators: list[Operator] = []
        self._behind = behind
        self._known: set[int] = set()

    def wake(self, queue: Queue) -> None:
        """A filter has been given something."""
        if id(queue) not in self._known:
            self._known.add(id(queue))
            self.operators += self._behind[id(queue)]

    def rest(self) -> None:
        """All has been done."""
        if self._known:
            self._known.clear()
            self.operators.clear()


class _ColumnScreen:
    """The filters on one column."""

    def __init__(self, column: int, selects: Sequence[Select], woken: Woken) -> None:
        self._column = column
        self._woken = woken
        intervals = [s.interval for s in selects if s.interval is not None]
        is_float = any(isinstance(i.low, float) for i in intervals)
        dtype = np.float64 if is_float else np.int64
        self._low = np.array([i.low for i in intervals], dtype)
        self._high = np.array([i.high for i in intervals], dtype)
        self._queues = [s.inputs[0] for s in selects]

    def put(self, batch: Batch) -> list[Queue]:
        """Hand out the rows; the queues that got some."""
        values, rows = _sorted(batch.column(self._column))
        first = np.searchsorted(values, self._low, "left")
        last = np.searchsorted(values, self._high, "right")
        given = []
        for i in np.flatnonzero(last > first).tolist():
            taken = rows[first[i] : last[i]]
            part = batch if len(taken) == len(batch) else batch.take(np.sort(taken))
            queue = self._queues[i]
            queue.put(part)
            self._woken.wake(queue)
            given.append(queue)
        return given


def _sorted(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """The values that are not NULL, ascending, and their rows."""
    if column.valid is None:
        rows = np.argsort(column.values, kind="stable")
        return column.values[rows], rows
    there = np.flatnonzero(column.valid)
    values = column.values[there]
    order = np.argsort(values, kind="stable")
    return values[order], there[order]


class Screen:
    """The filters that read one operator, by column. others: the operator's queues to which every batch goes."""

    def __init__(self, producer: Operator, by_column: Mapping[int, Sequence[Select]], woken: Woken) -> None:
        self._columns = [_ColumnScreen(column, selects, woken) for column, selects in by_column.items()]
        self.selects = [select for selects in by_column.values() for select in selects]
        screened = {id(select.inputs[0]) for select in self.selects}
        self.others = [queue for queue in producer.outputs if id(queue) not in screened]
        self._given: list[Queue] = []
        self._bound = min(select.inputs[0].bound for select in self.selects)
        byte_bounds = [select.inputs[0].byte_bound for select in self.selects]
        self._byte_bound = min((b for b in byte_bounds if b is not None), default=None)

    def fits(self, batch: Batch) -> bool:
        """Every filter surely has room for its part."""
        self._given = [queue for queue in self._given if queue.size]
        if self._given or len(batch) > self._bound:
            return False
        return self._byte_bound is None or len(batch) * batch.row_nbytes <= self._byte_bound

    def put(self, batch: Batch) -> None:
        """Hand each filter its part; what goes to `others` is the operator's to put."""
        for column in self._columns:
            self._given += column.put(batch)

    def is_full(self) -> bool:
        """Some filter has not made room."""
        self._given = [queue for queue in self._given if queue.size]
        return any(queue.is_full for queue in self._given)


def screen(operators: Sequence[Operator]) -> tuple[list[Operator], Woken]:
    """Put a screen before filters where many read one operator; take away what stood before them.

    Returns the operators that are behind no screen, and who wakes those that are.
    """
    columns: dict[int, dict[int, list[Select]]] = {}
    for operator in operators:
        operator.screen = None
        if isinstance(operator, Select):
            operator.is_screened = False
            if operator.interval is not None and operator.inputs[0].producer is not None:
                by_column = columns.setdefault(id(operator.inputs[0].producer), {})
                by_column.setdefault(operator.interval.column, []).append(operator)
    worth = {
        producer: {column: selects for column, selects in by_column.items() if len(selects) >= FEWEST}
        for producer, by_column in columns.items()
    }
    if not any(worth.values()):
        return list(operators), Woken({})
    reader = {id(queue): operator for operator in operators for queue in operator.inputs}
    screened = [s for by_column in worth.values() for selects in by_column.values() for s in selects]
    behind = {id(select.inputs[0]): _behind(select, reader) for select in screened}
    woken = Woken(behind)
    for operator in operators:
        if worth.get(id(operator)):
            operator.screen = Screen(operator, worth[id(operator)], woken)
    for select in screened:
        select.is_screened = select.interval is not None and select.interval.is_all
    asleep = {id(operator) for reading in behind.values() for operator in reading}
    return [operator for operator in operators if id(operator) not in asleep], woken


def _behind(select: Select, reader: Mapping[int, Operator]) -> list[Operator]:
    """The filter and all that reads it, nearer ones first."""
    found: dict[int, Operator] = {id(select): select}
    todo: list[Operator] = [select]
    for operator in todo:
        for queue in operator.outputs:
            if id(reader[id(queue)]) not in found:
                found[id(reader[id(queue)])] = reader[id(queue)]
                todo.append(reader[id(queue)])
    return list(found.values())
