"""Activity: what a connection is doing, as figures to be compared: how much came in and went out, how far time is.

The figures of one measurement belong together: they are read under the engine's lock, in microseconds. Rates come from
two measurements.  docs/semantics T4 (closed instants).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minidsms.elements import MAX_INSTANT, MIN_INSTANT

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


@dataclass(frozen=True)
class InputActivity:
    """One stream or relation.

    accepted, late_dropped, rejected: rows since it was declared.  latest: the greatest instant seen, or None.
    """

    name: str
    kind: str
    accepted: int
    late_dropped: int
    rejected: int
    latest: int | None
    has_ended: bool


@dataclass(frozen=True)
class QueryActivity:
    """One query.

    results: changes delivered.  closed_until: the last answered instant.  lag: ticks from there to the newest instant
    its inputs have seen, or None before there is one.  state: running, paused, failed or ended (its inputs
    have).
    """

    name: str
    kind: str
    results: int
    closed_until: int
    lag: int | None
    state: str


@dataclass(frozen=True)
class Activity:
    """A measurement.

    at_s: when, of a clock that never falls.  nbytes: held by streams, relations and operators.  Streams that the engine
    writes itself are left out.
    """

    at_s: float
    inputs: Mapping[str, InputActivity] = field(default_factory=dict)
    queries: Mapping[str, QueryActivity] = field(default_factory=dict)
    nbytes: int = 0

    @property
    def lag(self) -> int:
        """The greatest lag of a running query, in ticks."""
        return max((q.lag for q in self.queries.values() if q.lag is not None and q.state == "running"), default=0)


@dataclass(frozen=True)
class Rates:
    """Per second of the wall's clock, between two measurements: elements in by input, changes out by query."""

    inputs: Mapping[str, float] = field(default_factory=dict)
    queries: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def between(cls, before: Activity, after: Activity) -> Rates:
        """What came since `before`; what was not there then counts from zero."""
        seconds = after.at_s - before.at_s
        if seconds <= 0:
            return cls()
        came = {
            key: (now.accepted - (before.inputs[key].accepted if key in before.inputs else 0)) / seconds
            for key, now in after.inputs.items()
        }
        went = {
            key: (now.results - (before.queries[key].results if key in before.queries else 0)) / seconds
            for key, now in after.queries.items()
        }
        # A name that was dropped and declared anew begins again.
        return cls({k: max(0.0, r) for k, r in came.items()}, {k: max(0.0, r) for k, r in went.items()})


def measure(db: Connection, clock: Callable[[], float] = time.monotonic) -> Activity:
    """The connection's activity now.

    >>> import minidsms
    >>> db = minidsms.connect()
    >>> db.execute("CREATE STREAM S (v INTEGER)")
    >>> q = db.query("SELECT COUNT(*) FROM S [RANGE 10]")
    >>> db.push("S", [(1,), (2,)], ts=[1, 5])
    2
    >>> activity = measure(db)
    >>> activity.inputs["s"].accepted, activity.queries["q1"].results, activity.queries["q1"].lag
    (2, 1, 1)
    """
    with db.lock:
        return Activity(clock(), _inputs(db), {key: _query(query) for key, query in db.queries.items()}, db.nbytes)


def _inputs(db: Connection) -> dict[str, InputActivity]:
    inputs = {}
    for kind, table in (("stream", db.catalog.streams), ("relation", db.catalog.relations)):
        for key, definition in table.items():
            if key in db.system_streams.definitions():
                continue
            taken = db.stream_input(key)
            counters = taken.counters
            inputs[key] = InputActivity(
                definition.name,
                kind,
                counters.accepted,
                counters.late_dropped,
                counters.rejected,
                taken.greatest_ts,
                taken.ended,
            )
    return inputs


def _query(query: Query) -> QueryActivity:
    closed = query.closed_until
    latest = query.latest_seen
    lag = None
    if latest is not None:
        lag = 0 if closed == MAX_INSTANT else latest - closed if closed > MIN_INSTANT else None
    state = query.state
    if state == "running" and query.inputs_ended:
        state = "ended"
    lag = None if lag is None else max(0, lag)
    return QueryActivity(query.name, query.kind, query.results, closed, lag, state)
