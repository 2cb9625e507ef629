"""What a query reads, and how: its inputs, whether rows pass at once, where their order of arrival matters, and where
the answer ends when they have.
"""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node
from minidsms.cql.functions import can_fail
from minidsms.plan.logical import RelationEvents, Stop, nodes


def is_immediate(root: Stop) -> bool:
    """Only filters and projections of one stream, none of which can fail: what passes can never be taken back."""
    return bound.is_of_declared(root.input) and not any(can_fail(e) for node in nodes(root) for e in node.expressions)


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


def ordered_streams(root: Node) -> set[int]:
    """The ids of the derived streams in a bound query, subqueries included, whose rows of one instant are ordered.

    Windows that count rows, and windows under FIRST or LAST, see which of two elements of one instant came first; a
    RANGE window and what stands above it do not. For no other reader a derived stream is ordered by value; one that
    keeps the order of another has it ordered (docs/semantics T3).
    """
    found: set[int] = set()
    for node in bound.with_subqueries(root):
        below = node if isinstance(node, bound.Window) else next(iter(node.inputs), None)
        while node.is_by_arrival and isinstance(below, bound.Extending | bound.ByRow | bound.Window):
            below = below.inputs[0]
            if isinstance(below, bound.RelationToStream):
                if not below.keeps_order:
                    found.add(id(below))
                    break
                below = below.input
    return found


def end_of(node: Node, greatest: int) -> int:
    """The instant at which the last window that moves in steps shows the last of what came (docs/semantics T4).

    greatest: the greatest instant that came. Windows over derived streams come behind those below them.
    """
    ends: dict[int, int] = {}
    for one in nodes(node):
        end = max((ends[id(child)] for child in one.inputs), default=greatest)
        if isinstance(one, bound.Window) and one.spec.step is not None:
            end = -(-(end + one.spec.lag) // one.spec.step) * one.spec.step
        ends[id(one)] = end
    return ends[id(node)]
