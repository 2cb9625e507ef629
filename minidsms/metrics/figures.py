"""What is told of a connection, whoever asks: metrics with their values, read in one go under the engine's lock.

Invariant: the number of values is bounded: queries and inputs beyond MOST_LABELLED are told as one, `(others)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minidsms.connection import Connection

MOST_LABELLED = 500
OTHERS = "(others)"


@dataclass
class Metric:
    """label: what its values are told by, "" of one at most.  is_total: it never falls.  values: by label."""

    name: str
    about: str
    unit: str
    label: str = ""
    is_total: bool = False
    values: dict[str, float] = field(default_factory=dict)


def figures(db: Connection) -> list[Metric]:
    """Every metric; none of a connection that has been closed."""
    with db.lock:
        if db.is_closed:
            return []
        inputs = [each for each in db.inputs if not getattr(each, "is_system", False)]
        accepted = Metric("elements_accepted", "Elements that streams and relations have taken.", "", "input", True)
        late = Metric("elements_late", "Elements dropped because they came too late.", "", "input", True)
        rejected = Metric("elements_rejected", "Rows that could not be taken.", "", "input", True)
        shed = Metric("elements_shed", "Elements that overload has cost queries.", "", "input", True)
        for name, each in _labelled((each.definition.name, each) for each in inputs):
            _add(accepted, name, each.counters.accepted)
            _add(late, name, each.counters.late_dropped)
            _add(rejected, name, each.counters.rejected)
            _add(shed, name, each.counters.shed)
        results = Metric("answers", "Changes that queries have answered.", "", "query", True)
        waiting = Metric("answers_waiting", "Changes that wait to be fetched.", "", "query")
        behind = Metric("input_waiting", "Elements of the input that a query has before it.", "", "query")
        lag = Metric("lag", "Event time between the newest element and what is answered.", "seconds", "query")
        failed = Metric("query_failed", "1 where a query has stopped with an error.", "", "query")
        paused = Metric("query_paused", "1 where a query is paused.", "", "query")
        for name, query in _labelled((query.name, query) for query in db.queries.values()):
            told = query.figures()
            _add(results, name, told["results"])
            _add(waiting, name, told["waiting"])
            _add(behind, name, told["input_waiting"])
            lag.values[name] = max(lag.values.get(name, 0.0), told["lag"] * db.tick_ns / 1e9)
            _add(failed, name, told["failed"])
            _add(paused, name, int(query.network.is_paused))
        operators = {id(op): op for query in db.queries.values() for op in query.network.working}.values()
        queued = sum(queue.size for operator in operators for queue in operator.inputs)
        spent_ns = sum(operator.counters.time_ns for operator in operators)
        limit, checkpointed_s = db.settings["memory_limit"], db.checkpointed_s
        single = [
            _one("queries", "Queries that are registered.", "", len(db.queries)),
            _one("queue_elements", "Elements in queues between operators.", "", queued),
            _one("memory", "Held by streams, relations, operators and answers.", "bytes", db.nbytes),
            _one("operators", "Time of all operators that run.", "seconds", spent_ns / 1e9),
            _one("plan_changes", "Decisions that have changed a running plan.", "", db.streamon.plan_log.taken, True),
            _one("memory_limit", "What may be held.", "bytes", limit),
            _one("last_checkpoint", "When, since 1970.", "seconds", checkpointed_s),
        ]
        return [accepted, late, rejected, shed, results, waiting, behind, lag, failed, paused, *single]


def _one(name: str, about: str, unit: str, value: float | None, is_total: bool = False) -> Metric:
    return Metric(name, about, unit, "", is_total, {} if value is None else {"": float(value)})


def _add(metric: Metric, label: str, value: float) -> None:
    metric.values[label] = metric.values.get(label, 0.0) + value


def _labelled(named: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for i, (name, each) in enumerate(named):
        yield (name if i < MOST_LABELLED else OTHERS), each


def labels_of(metric: Metric, value: str) -> Mapping[str, str]:
    """The labels of one value."""
    return {metric.label: value} if metric.label else {}
