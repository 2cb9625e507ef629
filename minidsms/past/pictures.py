"""The plans of all running queries as they were: what ran, with its order of filters, caches and trees, no figures.

Invariant: a picture is kept as compressed text; what is written in it changes with a plan only.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minidsms.engine.running_query import RunningQuery
from minidsms.plan.formats.labels import plain
from minidsms.plan.plan_graph import PlanEdge, PlanGraph, PlanNode, common_graph
from minidsms.system_streams.sys_stream import operator_names

MOST_OPERATORS = 150
"""Of a picture; the queries that would bring more are left out of it."""
_MEASURED = re.compile(r" {3}\[[^\[\]]*\]$| \[[^\[\]]*(%|ns|cost)[^\[\]]*\]")
_HELD = re.compile(r": [\d,]+ tuples, [\d,]+ bytes$")
_FORM = re.compile(r"^(compiled: \w+).*")
_NOTES = ("expected", "watched by", "generic kernel")
_MOST_LINES = 8


@dataclass(frozen=True)
class Drawn:
    """The common plan of queries.  entities: of SysStream, by the numbers of its nodes.  undrawn: queries left out."""

    graph: PlanGraph
    entities: Mapping[int, str]
    undrawn: int


@dataclass(frozen=True)
class Picture:
    """A plan that ran. at_s: since when, in seconds since the connection began."""

    at_s: float
    text: bytes

    def drawn(self) -> Drawn:
        """The plan; its nodes say what their plan was as parts."""
        nodes, edges, undrawn = json.loads(zlib.decompress(self.text))
        kept = (
            PlanNode(number, kind, name, detail, tuple(queries), {}, tuple(lines))
            for number, kind, _, name, detail, queries, lines in nodes
        )
        graph = PlanGraph("", len(nodes), tuple(kept), tuple(PlanEdge(*edge) for edge in edges))
        return Drawn(graph, {node[0]: node[2] for node in nodes}, undrawn)


def queries_drawn(queries: Sequence[RunningQuery]) -> list[RunningQuery]:
    """Those that a picture has room for, of many the newest. The caller holds the lock."""
    seen: set[int] = set()
    drawn: list[RunningQuery] = []
    for query in reversed(queries):
        seen |= {id(op) for op in query.network.working}
        if len(seen) > MOST_OPERATORS and drawn:
            break
        drawn.append(query)
    return drawn[::-1]


def draw(queries: Sequence[RunningQuery], running: int) -> Drawn:
    """The common plan of some queries of so many, with figures. The caller holds the lock."""
    graph = common_graph([(query.name, query.network) for query in queries])
    operators = list({id(op): op for query in queries for op in query.network.working}.values())
    named = {id(op): name for name, op in operator_names(queries)}
    entities = {i: named.get(id(op), f"{op.name} {i}") for i, op in enumerate(operators, 1)}
    entities |= {n.number: n.detail for n in graph.nodes if n.kind == "store"}
    return Drawn(graph, entities, running - len(queries))


def written(drawn: Drawn) -> str:
    """What of a plan is kept, before it is compressed: alike, where nothing but figures has changed."""
    nodes = [
        (n.number, n.kind, drawn.entities[n.number], n.name, n.detail, n.queries, plan_lines(n))
        for n in drawn.graph.nodes
    ]
    edges = [(edge.producer, edge.consumer, edge.input) for edge in drawn.graph.edges]
    return json.dumps((nodes, edges, drawn.undrawn))


def compressed(text: str) -> bytes:
    """As a picture holds it."""
    return zlib.compress(text.encode(), 1)


def plan_lines(node: PlanNode) -> list[str]:
    """What its present plan is: order of filters, pipelines, caches, trees; without what was measured of them."""
    told = (part for part in node.parts if not part.startswith(_NOTES))
    lines = (_FORM.sub(r"\1", _HELD.sub("", _MEASURED.sub("", part))) for part in told)
    return [plain(line).strip() for line in lines][:_MOST_LINES]
