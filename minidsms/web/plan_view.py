"""The plans of all running queries as one picture's data: where its boxes stand and what is written in them.

What stands in `picture` changes only with a plan; figures, which change all the time, are in `figures`.
Invariant: everything is text or a number; nothing is markup.
"""

from __future__ import annotations

from typing import Any

from minidsms.past.pictures import Drawn, plan_lines
from minidsms.plan.formats.labels import WIDTH, detail_lines, plain, sharing_line
from minidsms.plan.formats.placing import placed
from minidsms.plan.plan_graph import PlanEdge, PlanGraph, PlanNode

_COUNTED = (
    "elements_in", "elements_out", "selectivity", "ns_per_element", "time_ms", "time_share", "stalls", "state_bytes",
    "bytes",
)  # fmt: skip
_FIGURE_LINES = 2
_LEAST_WIDTH = 26


def picture(drawn: Drawn) -> dict[str, Any]:
    """Boxes, lines and ways."""
    graph, undrawn = drawn.graph, drawn.undrawn
    if not graph.nodes:
        return {"width": 0, "height": 0, "nodes": [], "edges": [], "undrawn": undrawn}
    written = {node.number: _written(node) for node in graph.nodes}
    room = {
        n: ["x" * max(_LEAST_WIDTH, *map(len, lines))] * (len(lines) + _FIGURE_LINES) for n, lines in written.items()
    }
    placing = placed(graph, room)
    nodes = []
    for node in graph.nodes:
        box = placing.boxes[node.number]
        nodes.append(
            {
                "id": node.number,
                "entity": drawn.entities[node.number],
                "kind": node.kind,
                "name": plain(node.name),
                "detail": detail_lines(node),
                "plan": [_cut(line) for line in plan_lines(node)],
                "serves": sharing_line(node),
                "queries": list(node.queries),
                "box": [round(v, 1) for v in (box.x, box.y, box.width, box.height)],
            }
        )
    edges = [
        {"key": _key(edge), "from": edge.producer, "to": edge.consumer, "curve": [round(v, 1) for v in curve]}
        for edge, curve in ((edge, placing.curve(edge)) for edge in graph.edges)
    ]
    return {"width": placing.width, "height": placing.height, "nodes": nodes, "edges": edges, "undrawn": undrawn}


def figures(graph: PlanGraph) -> dict[str, Any]:
    """What changes: what waits in queues, and the lines of the nodes' parts as measured, by the nodes' numbers."""
    waiting = {_key(edge): edge.figures.get("elements", 0) for edge in graph.edges if edge.figures.get("elements")}
    parts = {node.number: [plain(part) for part in node.parts] for node in graph.nodes if node.parts}
    state = {node.number: _state(node) for node in graph.nodes}
    return {"waiting": waiting, "parts": parts, "state": state}


def _state(node: PlanNode) -> dict[str, Any]:
    """What it says of its state: rows, groups, hits, by name; what every operator counts is told elsewhere."""
    if node.kind == "store":
        return node.figures
    return {k: v for k, v in node.figures.items() if k not in _COUNTED}


def _written(node: PlanNode) -> list[str]:
    return [plain(node.name)[:WIDTH], *detail_lines(node), *(_cut(line) for line in plan_lines(node))] + [
        line for line in [sharing_line(node)] if line
    ]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 2]}.."


def _key(edge: PlanEdge) -> str:
    return f"{edge.producer}-{edge.consumer}-{edge.input}"
