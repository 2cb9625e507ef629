"""What each kind of entity tells in SysStream: rows of (entity, kind, property, ival, fval).

Invariant: reading changes nothing of what is read but the peaks of queues, which SysStream begins anew.
docs/sys-stream.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import islice
from numbers import Real
from typing import Any

from minidsms.elements import MAX_INSTANT, MIN_INSTANT
from minidsms.engine.held_back import held_back
from minidsms.engine.running_query import RunningQuery
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.operator import Operator
from minidsms.operators.screen import Screen
from minidsms.scheduler import Scheduler
from minidsms.streamon.loop import Loop, adaptations_of
from minidsms.streamon.stream_monitor import StreaMon

_MOST_STATISTICS = 50
"""Told of a place where a plan can change."""


class Rows:
    """Rows being gathered. told: (kind, entity, property, ival, fval) of each."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, int | None, float | None]] = []

    def add(self, kind: str, entity: str, name: str, ival: int | None = None, fval: float | None = None) -> None:
        """One row."""
        self.told.append((kind, entity, name, ival, fval))

    def columns(self) -> dict[str, Sequence[Any]]:
        """All rows, by the names of the columns."""
        names = ("kind", "entity", "property", "ival", "fval")
        return {name: [row[i] for row in self.told] for i, name in enumerate(names)}


class Since:
    """Totals as they were read last, so that the interval's share can be told."""

    __slots__ = ("_totals",)

    def __init__(self) -> None:
        self._totals: tuple[int, ...] = ()

    def growth(self, *totals: int) -> list[int]:
        """How much each has grown since the last call (the first time: since the beginning)."""
        before = self._totals or (0,) * len(totals)
        self._totals = totals
        return [now - then for now, then in zip(totals, before)]


Memory = MutableMapping[Any, Since]


def _since(memory: Memory, entity: Any) -> Since:
    known = memory.get(entity)
    if known is None:
        known = memory[entity] = Since()
    return known


def _rate(grown: int, seconds: float) -> float | None:
    return grown / seconds if seconds > 0 else None


def tell_operators(
    rows: Rows, operators: Sequence[tuple[str, Operator]], memory: Memory, seconds: float, resets_peaks: bool = True
) -> None:
    """Elements and rates in and out, selectivity, time and share of time, stalls, state; how its plans adapt; the
    queues it reads, whose peaks begin anew where told so.
    """
    names = {id(queue): name for name, operator in operators for queue in operator.outputs}
    grown = []
    for _, operator in operators:
        c = operator.counters
        grown.append(_since(memory, operator).growth(c.elements_in, c.elements_out, c.time_ns, c.stalls))
    total = sum(g[2] for g in grown)
    for (name, operator), (n_in, n_out, time_ns, stalls) in zip(operators, grown):
        add = rows.add
        add("operator", name, "elements_in", operator.counters.elements_in)
        add("operator", name, "elements_out", operator.counters.elements_out)
        add("operator", name, "rate_in", None, _rate(n_in, seconds))
        add("operator", name, "rate_out", None, _rate(n_out, seconds))
        if n_in:
            add("operator", name, "selectivity", None, n_out / n_in)
        add("operator", name, "time_ns", time_ns)
        add("operator", name, "total_ns", operator.counters.time_ns)
        if total:
            add("operator", name, "time_share", None, time_ns / total)
        add("operator", name, "stalls", stalls)
        add("operator", name, "nbytes", sum(s.nbytes for s in operator.synopses()))
        for place in adaptations_of((operator,)):
            _tell_place(rows, name, place)
        for i, queue in enumerate(operator.inputs):
            producer = names.get(id(queue), queue.name)
            entity = f"{producer} > {name}" + (f" input {i + 1}" if len(operator.inputs) > 1 else "")
            add("queue", entity, "elements", queue.size)
            add("queue", entity, "peak", queue.peak)
            add("queue", entity, "bound", queue.bound)
            if resets_peaks:
                queue.peak = queue.size


def tell_screens(rows: Rows, screens: Iterable[Screen], operators: Sequence[tuple[str, Operator]]) -> None:
    """Filters, queries folded, columns, arrows, bytes; columns looked at a row, share of the rows dropped. An entity is
    the operator that a screen reads.
    """
    names = {id(operator): name for name, operator in operators}
    for screen in screens:
        entity = names.get(id(screen.producer), screen.producer.name)
        _, filters, queries, columns, _, arrows, _, nbytes = screen.line()
        figures = screen.figures()
        rows.add("screen", entity, "filters", filters)
        rows.add("screen", entity, "queries", queries)
        rows.add("screen", entity, "columns", columns)
        rows.add("screen", entity, "arrows", arrows)
        rows.add("screen", entity, "nbytes", nbytes)
        rows.add("screen", entity, "elements_out", screen.counters.elements_out)
        for name in ("columns_a_row", "dropped"):
            if name in figures:
                rows.add("screen", entity, name, None, figures[name])
        for place in adaptations_of((screen,)):
            _tell_place(rows, entity, place)


def _tell_place(rows: Rows, name: str, place: Loop[Any]) -> None:
    """How often conditions and the plan have changed, and what is known on which the plan rests."""
    entity = f"{name}: {place.technique}"
    rows.add("adaptation", entity, "changes", place.changes)
    rows.add("adaptation", entity, "decisions", place.switches)
    for statistic, value in islice(_figures(place.profiler.statistics()), _MOST_STATISTICS):
        rows.add("adaptation", entity, statistic, None, value)


def _figures(known: Mapping[Any, Any], of: str = "") -> Iterator[tuple[str, float]]:
    """Statistics that are numbers, by name; those by place in an order by what has the place: `drop_rate of F3`."""
    order = [f"F{part + 1}" if isinstance(part, int) else part for part in known.get("order", ())]
    for name, value in known.items():
        if isinstance(value, Mapping):
            yield from _figures(value, f"{of}{name}: ")
        elif isinstance(value, Real):
            yield f"{of}{name}", float(value)
        elif order and name != "order" and isinstance(value, tuple):
            told = zip(order, value)
            yield from ((f"{of}{name.removesuffix('s')} of {part}", each) for part, each in told if each is not None)


def tell_constraints(rows: Rows, streamon: StreaMon, operators: Sequence[tuple[str, Operator]]) -> None:
    """k of every constraint that an operator uses and that has one."""
    for name, operator in operators:
        for constraint, k in streamon.constraints.used_by(operator):
            attributes = ", ".join(constraint.attributes)
            told = f"k of {constraint.stream}.{attributes} {constraint.kind.value}"
            rows.add("adaptation", f"{name}: k-Mon", told, k)


def tell_source(rows: Rows, source: StreamInput | RelationInput, memory: Memory, seconds: float) -> None:
    """What came in: elements, their rate, what was refused, what waits for slack, and the progress of time."""
    name = source.definition.name
    counters = source.counters
    (grown,) = _since(memory, source).growth(counters.accepted)
    rows.add("source", name, "accepted", counters.accepted)
    rows.add("source", name, "rate", None, _rate(grown, seconds))
    rows.add("source", name, "late_dropped", counters.late_dropped)
    rows.add("source", name, "rejected", counters.rejected)
    rows.add("source", name, "shed", counters.shed)
    if isinstance(source, StreamInput):
        rows.add("source", name, "waiting", source.waiting)
        rows.add("source", name, "progress", _instant(source.progress))
        rows.add("source", name, "ended", int(source.ended))


def tell_store(rows: Rows, source: StreamInput | RelationInput) -> None:
    """The size of the store of a stream or relation."""
    rows.add("store", source.definition.name, "elements", len(source.store))
    rows.add("store", source.definition.name, "nbytes", source.nbytes)


def tell_query(rows: Rows, query: RunningQuery, memory: Memory, seconds: float) -> None:
    """Answers, their rate and what waits to be fetched; the closed instant and how far it is behind; what waits."""
    figures = query.figures()
    (grown,) = _since(memory, query).growth(figures["results"])
    for name, value in figures.items():
        rows.add("query", query.name, name, _instant(value) if name == "closed_until" else int(value))
    rows.add("query", query.name, "rate", None, _rate(grown, seconds))
    stuck = held_back(query.network)
    if stuck is not None:
        rows.add("stall", query.name, stuck.stream, stuck.waiting, float(stuck.behind))


def tell_scheduler(rows: Rows, scheduler: Scheduler, operators: Sequence[Operator]) -> None:
    """How many turns it gave and the time they took, over all operators there are."""
    runs = sum(o.counters.runs for o in operators)
    time_ns = sum(o.counters.time_ns for o in operators)
    rows.add("scheduler", scheduler.name, "runs", runs)
    rows.add("scheduler", scheduler.name, "time_ns", time_ns)
    rows.add("scheduler", scheduler.name, "quantum", scheduler.quantum)
    rows.add("scheduler", scheduler.name, "operators", len(operators))


def _instant(ts: int) -> int | None:
    """An instant; None before the first and after the last."""
    return ts if MIN_INSTANT < ts < MAX_INSTANT else None
