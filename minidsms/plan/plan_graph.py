"""A plan as data: operators, the queues between them and the stores they read, with their figures.

What the formats of EXPLAIN are made of. Operators are numbered as in SysStream: `cars.2` is the second of query cars.
Screens, which are no part of a query's plan, have the numbers behind its operators, then come the stores.
Invariant: operators stand in an order in which producers come before consumers.  docs/statements/explain.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minidsms.elements import MAX_INSTANT, MIN_INSTANT
from minidsms.engine.held_back import held_back
from minidsms.engine.network import Network
from minidsms.operators.operator import Operator
from minidsms.operators.screen import Screen
from minidsms.operators.select import Select
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.stream_store import StreamStore

Readers = Callable[[object], Sequence[str]]
"""Gives the names of the queries that use an operator or read a store, this one first."""


@dataclass(frozen=True)
class PlanNode:
    """An operator, or a store it reads (kind 'store'). number: within the plan, from 1.  parts: lines of its own.

    queries: the names of those it serves, this plan's first; () where the plan does not run.  figures: () unless asked
    for; of an operator elements, time and state.
    """

    number: int
    kind: str
    name: str
    detail: str
    queries: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanEdge:
    """A queue, or the reading of a store. figures: as for nodes."""

    producer: int
    consumer: int
    input: int
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanGraph:
    """query: its name, or "" where it is not registered.  root: the number of the output.

    closed_until: the greatest closed instant, None before the first and after the end.  waiting: why it is stuck, if
    it is.  shed: elements that overload has cost it, by stream.
    """

    query: str
    root: int
    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    closed_until: int | None = None
    failure: str | None = None
    waiting: str | None = None
    shed: dict[str, int] = field(default_factory=dict)

    def node(self, number: int) -> PlanNode:
        """The node of a number."""
        return self.nodes[number - 1]


def plan_graph(
    network: Network,
    query: str = "",
    readers: Readers | None = None,
    analyze: bool = False,
    shed: Mapping[str, int] | None = None,
) -> PlanGraph:
    """The plan of a network. readers: of a running query.  analyze: with figures.  shed: elements by stream."""
    operators = [*network.operators, *screens_of(network)]
    nodes, edges = _drawn(operators, readers or (lambda thing: ()), analyze)
    stuck = held_back(network)
    failure = None if network.failure is None else f"at {network.failure.ts}: {network.failure.reason}"
    return PlanGraph(
        query,
        len(network.operators),
        tuple(nodes),
        tuple(edges),
        network.progress if MIN_INSTANT < network.progress < MAX_INSTANT else None,
        failure,
        None if stuck is None else str(stuck),
        dict(shed or {}) if analyze else {},
    )


def common_graph(queries: Sequence[tuple[str, Network]]) -> PlanGraph:
    """The plans of several running queries, given as (name, network), with figures; what they share stands there once.

    Its root is the output of the last of them; nodes are numbered through.
    """
    operators = {id(op): op for _, network in queries for op in network.working}
    nodes, edges = _drawn(list(operators.values()), readers_among(queries, ""), analyze=True)
    return PlanGraph("", len(operators), tuple(nodes), tuple(edges))


def _drawn(operators: Sequence[Operator], serves: Readers, analyze: bool) -> tuple[list[PlanNode], list[PlanEdge]]:
    """The operators as nodes, numbered from 1, then the stores they read, and what runs between them."""
    total = sum(op.counters.time_ns for op in operators) or 1
    nodes: list[PlanNode] = []
    edges: list[PlanEdge] = []
    numbers = {id(operator): number for number, operator in enumerate(operators, 1)}
    stores: list[tuple[Operator, StreamStore | RelationStore]] = []
    for number, operator in enumerate(operators, 1):
        description = operator.describe()
        figures = _operator_figures(operator, total, description.figures) if analyze else {}
        served = tuple(serves(operator))
        told = (*description.parts, *(() if operator.compilation is None else operator.compilation.describe()))
        parts = tuple(part.strip() for part in told) if analyze else ()
        nodes.append(PlanNode(number, "operator", description.name, description.detail, served, figures, parts))
        screen = operator.screen if isinstance(operator, Select) else None
        for i, queue in enumerate(operator.inputs):
            known = {"elements": queue.size, "peak": queue.peak, "bound": queue.bound} if analyze else {}
            edges.append(PlanEdge(numbers[id(screen or queue.producer)], number, i, known))
        store = getattr(operator, "store", None)
        if not operator.inputs and isinstance(store, StreamStore | RelationStore):
            stores.append((operator, store))
    drawn: dict[int, int] = {}
    for operator, store in stores:
        if id(store) not in drawn:
            drawn[id(store)] = len(nodes) + 1
            figures = {"elements": len(store), "nbytes": store.nbytes} if analyze else {}
            detail = operator.describe().detail
            nodes.append(PlanNode(len(nodes) + 1, "store", "Store", detail, tuple(serves(store)), figures))
        edges.append(PlanEdge(drawn[id(store)], numbers[id(operator)], 0))
    return nodes, edges


def screens_of(network: Network) -> list[Screen]:
    """The screens that hand its filters their rows."""
    screens = [op.screen for op in network.operators if isinstance(op, Select) and op.screen is not None]
    return list({id(screen): screen for screen in screens}.values())


def _operator_figures(operator: Operator, total_ns: int, described: dict[str, Any]) -> dict[str, Any]:
    counters = operator.counters
    figures: dict[str, Any] = {"elements_in": counters.elements_in, "elements_out": counters.elements_out}
    if counters.elements_in:
        figures["selectivity"] = counters.elements_out / counters.elements_in
        figures["ns_per_element"] = counters.time_ns / counters.elements_in
    figures["time_ms"] = counters.time_ns / 1e6
    figures["time_share"] = counters.time_ns / total_ns
    figures["stalls"] = counters.stalls
    figures["state_bytes"] = sum(s.nbytes for s in operator.synopses())
    return figures | {k: v for k, v in described.items() if v is not None}


def readers_among(networks: Sequence[tuple[str, Network]], of: str) -> Readers:
    """Who uses what among running queries, given as (name, network); the query `of` stands first."""
    known: dict[int, list[str]] = {}
    ordered = sorted(networks, key=lambda pair: pair[0] != of)
    for name, network in ordered:
        for operator in network.working:
            known.setdefault(id(operator), []).append(name)
        for store in {id(getattr(source, "store", None)) for source in network.sources}:
            known.setdefault(store, []).append(name)
    return lambda thing: known.get(id(thing), ())
