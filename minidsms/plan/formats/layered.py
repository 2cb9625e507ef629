"""Where the boxes of a plan stand: in layers, sources below, the output above.

An operator's layer is the length of the longest way to it from a source. Inside a layer, nodes are put near the mean
place of their neighbours, in a few sweeps up and down, which removes most crossings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from minidsms.plan.plan_graph import PlanGraph

_SWEEPS = 4


def layers(graph: PlanGraph) -> list[list[int]]:
    """The numbers of the nodes of each layer, from left to right; the layer of the output comes first."""
    drawn: Any = nx.DiGraph()
    drawn.add_nodes_from(node.number for node in graph.nodes)
    drawn.add_edges_from((edge.producer, edge.consumer) for edge in graph.edges)
    # From the output down, so that what is read last stands just below its reader.
    below = [sorted(layer) for layer in nx.topological_generations(drawn.reverse())]
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        order = range(1, len(below)) if downwards else range(len(below) - 2, -1, -1)
        for i in order:
            place = {n: k for layer in below for k, n in enumerate(layer)}
            near = drawn.successors if downwards else drawn.predecessors
            below[i].sort(key=lambda n: _mean(place, list(near(n)), place[n]))
    return below


def _mean(place: Mapping[int, int], neighbours: list[int], own: int) -> float:
    return sum(place[n] for n in neighbours) / len(neighbours) if neighbours else float(own)
