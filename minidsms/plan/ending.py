"""Where the answer of a query ends when its sources have: docs/semantics T4."""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node


def end_of(node: Node, greatest: int) -> int:
    """The instant at which the last window that moves in steps shows the last of what came.

    greatest: the greatest instant that came. Windows over derived streams come behind those below them.
    """
    ends: dict[int, int] = {}
    pending = [node]
    while pending:
        one = pending[-1]
        left = [child for child in one.inputs if id(child) not in ends]
        if left:
            pending += left
            continue
        end = max((ends[id(child)] for child in one.inputs), default=greatest)
        if isinstance(one, bound.Window) and one.spec.step is not None:
            end = -(-(end + one.spec.lag) // one.spec.step) * one.spec.step
        ends[id(one)] = end
        pending.pop()
    return ends[id(node)]
