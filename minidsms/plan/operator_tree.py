"""The running operators of a query as a tree of plain values, for those who draw them.

Invariant: an operator that several others read is one node, which stands under each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minidsms.engine.network import Network


@dataclass(frozen=True, eq=False)
class OperatorNode:
    """An operator and what it reads.

    elements_in, elements_out, time_ns: since it began.  figures: of its state, by name.
    """

    name: str
    detail: str
    elements_in: int
    elements_out: int
    time_ns: int
    figures: dict[str, Any]
    inputs: list[OperatorNode] = field(default_factory=list)


def operator_tree(network: Network) -> OperatorNode:
    """The tree from the output operator down."""
    assert network.output is not None, "a query that runs has an output"
    nodes: dict[int, OperatorNode] = {}
    # Producers stand before consumers.
    for op in network.operators:
        description = op.describe()
        nodes[id(op)] = OperatorNode(
            description.name,
            description.detail,
            op.counters.elements_in,
            op.counters.elements_out,
            op.counters.time_ns,
            description.figures,
            [nodes[id(queue.producer)] for queue in op.inputs],
        )
    return nodes[id(network.output)]
