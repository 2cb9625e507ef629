"""Where the boxes of a drawn plan stand, and how large they are, from the lines written in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from minidsms.plan.formats.layered import layers
from minidsms.plan.plan_graph import PlanEdge, PlanGraph

CHARACTER = 7.0
LINE = 16
PAD = 10
MARGIN = 20
_GAP_X = 28
_GAP_Y = 44


@dataclass(frozen=True)
class Box:
    """Of a node, in the picture's units; x, y: its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Placing:
    """boxes: by the nodes' numbers.  width, height: of the whole picture, margins included."""

    boxes: Mapping[int, Box]
    width: float
    height: float

    def curve(self, edge: PlanEdge) -> tuple[float, float, float, float, float, float, float, float]:
        """The way of an edge, from the top of its producer to the bottom of its consumer: a cubic curve's points."""
        below, above = self.boxes[edge.producer], self.boxes[edge.consumer]
        x1, y1 = below.x + below.width / 2, below.y
        x2, y2 = above.x + above.width / 2, above.y + above.height
        bend = (y1 - y2) / 2
        return x1, y1, x1, y1 - bend, x2, y2 + bend, x2, y2


def placed(graph: PlanGraph, lines: Mapping[int, Sequence[str]], top: float = MARGIN, least: float = 0.0) -> Placing:
    """Place a plan, what does not hang together side by side.

    lines: of each node, by its number.  top: where the boxes begin.  least: width of the picture.
    """
    sizes = {
        n: (max(map(len, texts)) * CHARACTER + 2 * PAD, len(texts) * LINE + 2 * PAD - 4) for n, texts in lines.items()
    }
    boxes: dict[int, Box] = {}
    left, below = float(MARGIN), top
    for part in _parts(graph):
        rows = layers(part)
        widths = [sum(sizes[n][0] for n in row) + _GAP_X * (len(row) - 1) for row in rows]
        y = top
        for row, taken in zip(rows, widths):
            x = left + (max(widths) - taken) / 2
            for n in row:
                boxes[n] = Box(x, y, *sizes[n])
                x += sizes[n][0] + _GAP_X
            y += max(sizes[n][1] for n in row) + _GAP_Y
        left, below = left + max(widths) + 2 * _GAP_X, max(below, y)
    width = max(left - 2 * _GAP_X - MARGIN, least) + 2 * MARGIN
    return Placing(boxes, width, below - _GAP_Y + MARGIN)


def _parts(graph: PlanGraph) -> list[PlanGraph]:
    """What hangs together, part by part, in the order of their first nodes."""
    whole: Any = nx.Graph()
    whole.add_nodes_from(node.number for node in graph.nodes)
    whole.add_edges_from((edge.producer, edge.consumer) for edge in graph.edges)
    parts = []
    for numbers in sorted(nx.connected_components(whole), key=min):
        nodes = tuple(node for node in graph.nodes if node.number in numbers)
        parts.append(replace(graph, nodes=nodes, edges=tuple(e for e in graph.edges if e.producer in numbers)))
    return parts
