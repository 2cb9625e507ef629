"""How far back a plan's state reaches: what must be read again so that a query can go on from an instant.

Only plans whose state is their windows' rows have a reach: RANGE, HOP and ROWS windows directly over streams, what is
computed of them instant by instant, and whether anything has arrived (docs/semantics R3). PARTITION and UNBOUNDED
windows, windows over derived streams and what counts instants (S2) need the whole past. A horizon is a reach in ticks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind, WindowKind, WindowSpec
from minidsms.plan.logical import FirstArrival, KeepArrival, MultiJoin, RestoreArrival, SemiJoin, Stop, nodes


def horizon(root: Node) -> int | None:
    """Ticks before an instant that hold all elements which matter after it; None: the whole past does."""
    found = reach_of(root)
    return None if found is None or found.rows else found.ticks


@dataclass
class Reach:
    """What matters of the past: the elements of so many ticks, and of some streams so many of the last."""

    ticks: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    def add_rows(self, node: Node, n: int) -> bool:
        """So many elements of what a window is over; False where it is no stream as it was declared."""
        while isinstance(node, bound.Project | bound.Stamped):
            node = node.inputs[0]
        if isinstance(node, bound.BaseStream):
            self.rows[node.name.lower()] = max(n, self.rows.get(node.name.lower(), 0))
        return isinstance(node, bound.BaseStream)

    def add_window(self, spec: WindowSpec, node: Node) -> bool:
        """A window over a node; False where it needs the whole past."""
        if spec.kind is WindowKind.ROWS and spec.rows is not None and spec.slide is None:
            return self.add_rows(node, spec.rows)
        if spec.kind not in (WindowKind.RANGE, WindowKind.HOP) or spec.range_ is None:
            return False
        self.ticks = max(self.ticks, spec.range_ + (spec.slide or 0) + spec.lag + 1)
        return _is_over_stream(node)


def reach_of(root: Node, kept: Collection[Node] = ()) -> Reach | None:
    """What matters after an instant of what came up to it; None: everything. kept: nodes whose state is there."""
    reach = Reach(1)
    for node in nodes(root, kept):
        match node:
            case _ if node in kept:
                continue
            case bound.Window():
                if not reach.add_window(node.spec, node.input):
                    return None
            case MultiJoin():
                windows = [(spec, w) for spec, w in zip(node.specs or (), node.windows) if spec is not None]
                if not all([reach.add_window(spec, w) for spec, w in windows]):
                    return None
            case bound.Aggregate(start=None):
                continue
            case bound.Aggregate(start=FirstArrival(sources=sources)):
                if not all([reach.add_rows(source, 1) for source in sources]):
                    return None
            case bound.RelationToStream():
                if node.op is StreamKind.RSTREAM or node.instants:
                    return None
                continue
            case (
                bound.BaseStream()
                | bound.BaseRelation()
                | bound.Constant()
                | bound.ByRow()
                | bound.Stamped()
                | bound.Bounds()
                | bound.Unnest()
                | bound.Join()
                | bound.Distinct()
                | bound.Top()
                | bound.Over()
                | bound.SetOperation()
                | SemiJoin()
                | FirstArrival()
                | KeepArrival()
                | RestoreArrival()
                | Stop()
            ):
                continue
            case _:
                return None
    return reach


def _is_over_stream(node: Node) -> bool:
    while isinstance(node, bound.ByRow | bound.Stamped):
        node = node.inputs[0]
    return isinstance(node, bound.BaseStream)
