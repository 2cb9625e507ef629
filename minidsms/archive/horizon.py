"""How far back a plan's state reaches: what must be read again so that a query can go on from an instant.

Only plans whose state is their windows' rows have a horizon: RANGE and HOP windows directly over streams, and what is
computed of them instant by instant. ROWS, PARTITION and UNBOUNDED windows, windows over derived streams, and what
counts from the first arrival (docs/semantics R3, S2) need the whole past.
"""

from __future__ import annotations

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind, WindowKind, WindowSpec
from minidsms.plan.logical import KeepArrival, MultiJoin, RestoreArrival, SemiJoin, Stop, nodes


def horizon(root: Node) -> int | None:
    """Ticks before an instant that hold all elements which matter after it; None: the whole past does."""
    reach = 0
    for node in nodes(root):
        match node:
            case bound.Window():
                specs: tuple[WindowSpec, ...] = (node.spec,)
                if not _is_over_stream(node.input):
                    return None
            case MultiJoin():
                specs = tuple(spec for spec in node.specs or () if spec is not None)
                if any(s is not None and not _is_over_stream(w) for s, w in zip(node.specs or (), node.windows)):
                    return None
            case bound.Aggregate(start=None):
                continue
            case bound.RelationToStream():
                if node.op is StreamKind.RSTREAM or node.instants:
                    return None
                continue
            case (
                bound.BaseStream()
                | bound.BaseRelation()
                | bound.Filter()
                | bound.Project()
                | bound.Stamped()
                | bound.Bounds()
                | bound.Unnest()
                | bound.Join()
                | bound.Distinct()
                | bound.Top()
                | bound.Over()
                | bound.SetOperation()
                | SemiJoin()
                | KeepArrival()
                | RestoreArrival()
                | Stop()
            ):
                continue
            case _:
                return None
        for spec in specs:
            if spec.kind not in (WindowKind.RANGE, WindowKind.HOP) or spec.range_ is None:
                return None
            reach = max(reach, spec.range_ + (spec.slide or 0) + spec.lag)
    return reach + 1


def _is_over_stream(node: Node) -> bool:
    while isinstance(node, bound.Filter | bound.Project | bound.Stamped):
        node = node.inputs[0]
    return isinstance(node, bound.BaseStream)
