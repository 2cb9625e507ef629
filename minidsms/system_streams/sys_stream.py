"""SysStream: rates, selectivities, time shares, sizes, progress and stalls of everything in the engine, as a stream.

Every interval, as the connection's clock tells it, each entity gives a row per property. Totals since the beginning and
sizes are in `ival`; rates, shares and selectivities, which are of the interval that ends, in `fval`.
Invariant: what is read is counted anyway; nothing is counted for the sake of this stream.
Babu 2005, section 2.4; docs/sys-stream.md lists the properties.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.elements import Schema, Type
from minidsms.engine.running_query import RunningQuery
from minidsms.operators.operator import Operator
from minidsms.settings import interval_ticks
from minidsms.system_streams.figures import (
    Memory,
    Rows,
    Since,
    tell_constraints,
    tell_operators,
    tell_query,
    tell_scheduler,
    tell_screens,
    tell_source,
    tell_store,
)

if TYPE_CHECKING:
    from minidsms.engine.database import Database

SCHEMA = Schema.of(
    ("ts", Type.TIMESTAMP),
    ("entity", Type.TEXT),
    ("kind", Type.TEXT),
    ("property", Type.TEXT),
    ("ival", Type.INTEGER),
    ("fval", Type.FLOAT),
)


class SysStream:
    """The publisher of SysStream."""

    name = "SysStream"
    schema = SCHEMA
    is_prompt = False

    def __init__(self, db: Database) -> None:
        self._db = db
        self._last = 0
        self._setting: object = None
        self._interval = 0
        self._since: weakref.WeakKeyDictionary[Any, Since] = weakref.WeakKeyDictionary()

    def begin(self, now: int) -> None:
        """Rates are of what comes from now on."""
        self._last = now
        gather(self._db, self._db.queries.values(), Rows(), self._since, 0.0)

    def end(self) -> None:
        """Forget what was read."""
        self._since.clear()

    def is_due(self, now: int) -> bool:
        """The interval is over, or the clock has been set back."""
        setting = self._db.settings["sys_interval"]
        if setting is not self._setting:
            self._setting, self._interval = setting, interval_ticks(setting, self._db.tick_ns)
        return now - self._last >= self._interval or now < self._last

    def columns(self, now: int) -> Mapping[str, Sequence[Any]]:
        """A row per entity and property."""
        rows = Rows()
        seconds = (now - self._last) * self._db.tick_ns / 1e9
        gather(self._db, self._db.queries.values(), rows, self._since, seconds)
        self._last = now
        return rows.columns()


def gather(
    db: Database,
    queries: Collection[RunningQuery],
    rows: Rows,
    since: Memory,
    seconds: float,
    resets_peaks: bool = True,
) -> None:
    """Everything there is to tell of a connection, and of these of its queries. since: what was told last, so many
    seconds ago.  resets_peaks: those of queues are of the time since then.
    """
    operators = operator_names(queries)
    tell_operators(rows, operators, since, seconds, resets_peaks)
    tell_screens(rows, db.screens, operators)
    tell_constraints(rows, db.streamon, operators)
    for each in db.inputs:
        tell_source(rows, each, since, seconds)
        tell_store(rows, each)
    for query in queries:
        tell_query(rows, query, since, seconds)
    tell_scheduler(rows, db.scheduler, [operator for _, operator in operators])
    rows.add("connection", "connection", "nbytes", db.nbytes)


def operator_names(queries: Iterable[RunningQuery]) -> list[tuple[str, Operator]]:
    """Every running operator once, under the first query that has it: `cars.2 Select` is the second of query cars."""
    named: dict[int, tuple[str, Operator]] = {}
    for query in queries:
        for i, operator in enumerate(query.network.operators, 1):
            if id(operator) not in named:
                named[id(operator)] = f"{query.name}.{i} {operator.name}", operator
    return list(named.values())
