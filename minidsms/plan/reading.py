"""What a logical plan reads, and how: its inputs, whether rows stay in a stream's store, whether they pass at once."""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node
from minidsms.cql.functions import can_fail
from minidsms.plan.logical import RelationEvents, Stop, nodes


def is_immediate(root: Stop) -> bool:
    """Only filters and projections of one stream, none of which can fail: what passes can never be taken back."""
    node = root.input
    while isinstance(node, bound.ByRow | bound.Stamped):
        if any(can_fail(e) for e in node.expressions):
            return False
        node = node.inputs[0]
    return isinstance(node, bound.BaseStream)


def inputs_of(root: Node) -> tuple[list[str], list[str]]:
    """The streams and the relations that a plan reads, by lower-case name."""
    streams: dict[str, None] = {}
    relations: dict[str, None] = {}
    for node in nodes(root):
        match node:
            case bound.BaseStream():
                streams[node.name.lower()] = None
            case bound.BaseRelation():
                relations[node.name.lower()] = None
            case RelationEvents():
                relations[node.relation.lower()] = None
    return list(streams), list(relations)
