"""Where the order of arrival inside an instant matters: a derived stream is ordered by value (docs/semantics T3) for
no other reader.

Windows that count rows, and windows under FIRST or LAST, see which of two elements of one instant came first; a RANGE
window and what stands above it do not.
"""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node, WindowKind


def counting_windows(root: Node) -> set[int]:
    """The ids of the windows in a bound query, subqueries included, to which the order of arrival matters."""
    found: set[int] = set()
    for node in bound.with_subqueries(root):
        if isinstance(node, bound.Window) and (node.spec.kind is WindowKind.ROWS or node.spec.is_by_key):
            found.add(id(node))
        elif isinstance(node, bound.Aggregate) and any(c.is_by_arrival for c in node.aggregates):
            below = node.input
            while isinstance(below, bound.Filter | bound.Bounds):
                below = below.input
            found.add(id(below))
    return found
