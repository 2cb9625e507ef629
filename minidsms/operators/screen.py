"""Screens: one look at a batch for many filters that compare one of its columns with constants.

Where many filters read one operator, each would evaluate its condition on every batch. A screen sorts the batch's
values of the column once, finds by binary search the run of values that lie in each filter's interval, and hands a
filter the rows of its run; a filter whose run is empty is not even visited.

Invariant: a filter gets every row for which its condition is TRUE, or counts as failed (docs/semantics R4), in order;
where its interval is all of its condition, it gets no other. docs/design, point 3; docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class _ColumnScreen:
    """The filters on one column."""

    def __init__(self, column: int, selects: Sequence[Select]) -> None:
        self._column = column
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

    def __init__(self, producer: Operator, selects: Sequence[Select]) -> None:
        by_column: dict[int, list[Select]] = {}
        for select in selects:
            assert select.interval is not None
            by_column.setdefault(select.interval.column, []).append(select)
        worth = {column: few for column, few in by_column.items() if len(few) >= FEWEST}
        self._columns = [_ColumnScreen(column, many) for column, many in worth.items()]
        self.selects = [select for many in worth.values() for select in many]
        screened = {id(select.inputs[0]) for select in self.selects}
        self.others = [queue for queue in producer.outputs if id(queue) not in screened]
        self._given: list[Queue] = []
        self._bound = min((select.inputs[0].bound for select in self.selects), default=0)
        self._is_byte_bound = any(select.inputs[0].byte_bound is not None for select in self.selects)

    def fits(self, batch: Batch) -> bool:
        """Every filter surely has room for its part."""
        self._given = [queue for queue in self._given if queue.size]
        return not self._given and len(batch) <= self._bound and not self._is_byte_bound

    def put(self, batch: Batch) -> None:
        """Hand each filter its part; what goes to `others` is the operator's to put."""
        for column in self._columns:
            self._given += column.put(batch)

    def is_full(self) -> bool:
        """Some filter has not made room."""
        self._given = [queue for queue in self._given if queue.size]
        return any(queue.is_full for queue in self._given)


def screen(operators: Iterable[Operator]) -> None:
    """Put a screen before filters where many read one operator; take away what stood before them."""
    of_producer: dict[int, tuple[Operator, list[Select]]] = {}
    for operator in operators:
        operator.screen = None
        if isinstance(operator, Select):
            operator.is_screened = False
            producer = operator.inputs[0].producer
            if operator.interval is not None and producer is not None:
                of_producer.setdefault(id(producer), (producer, []))[1].append(operator)
    for producer, selects in of_producer.values():
        if len(selects) >= FEWEST:
            made = Screen(producer, selects)
            if made.selects:
                producer.screen = made
                for select in made.selects:
                    select.is_screened = select.interval is not None and select.interval.is_all
