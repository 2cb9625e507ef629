"""Unions lose a side that never has a row.

A comparison with NULL is never TRUE, so a filter by one lets no row pass. Such filters come from outer joins whose
unmatched rows the query compares with a padded column: most look-ups of scalar subqueries are compared so.

A side is dropped only where nobody misses it: what it reads is read by the other side, too, and nothing that it
evaluates can fail (docs/semantics R4).
"""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node
from minidsms.cql.functions import can_fail
from minidsms.plan.logical import column_refs, nodes, projected, transform, unfiltered


def drop_empty(root: Node) -> Node:
    """Replace each such union by its other side."""
    return transform(root, _other_side)


def _other_side(node: Node) -> Node:
    if isinstance(node, bound.SetOperation) and node.is_union_all:
        for empty, other in ((node.right, node.left), (node.left, node.right)):
            if _is_empty(empty) and _is_missed_by_nobody(empty, other) and other.schema.types == node.schema.types:
                return projected(other, column_refs(other.schema), node.schema.names)
    return node


def _is_empty(node: Node) -> bool:
    while node.is_empty_with_input:
        _, parts = unfiltered(node)
        if any(isinstance(part, bound.Literal) and part.value is not True for part in parts):
            return True
        node = node.inputs[0]
    return False


def _is_missed_by_nobody(side: Node, other: Node) -> bool:
    kept = {id(node) for node in nodes(other)}
    return all(
        node.is_empty_with_input and not any(map(can_fail, node.expressions))
        for node in nodes(side)
        if id(node) not in kept
    )
