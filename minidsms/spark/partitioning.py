"""Whether a query can be cut into parts that separate engines answer: by a key, or by slices of time; or not at all.

By a key: every join, group, partition and set operation compares a column that leads back to the same column of every
input, and the answer carries it; then rows of different keys never meet. By time: every window is a RANGE, so that the
answer at an instant depends on a known length of time before it; a slice is run with that much before it, and with
the first element of each stream, from which aggregates over all and sliding windows count (docs/semantics R3, S2;
`own_slices`).
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, Node, StreamKind, WindowKind
from minidsms.plan.logical import (
    FirstArrival,
    RelationEvents,
    SemiJoin,
    Stop,
    WindowEvents,
    conjuncts,
    nodes,
)
from minidsms.plan.rules.expand_outer_joins import equal_pair

Origin = frozenset[tuple[str, int]]
"""Which columns of which inputs a column's value is equal to: (input, column), at most one of each input."""


@dataclass(frozen=True)
class ByKey:
    """columns: of each input, by lower-case name, the column that holds the key."""

    columns: dict[str, int]

    def __str__(self) -> str:
        return "by key"


@dataclass(frozen=True)
class BySlices:
    """lookback: how many ticks before an instant its answer depends on."""

    lookback: int

    def __str__(self) -> str:
        return f"by slices of time that they read from the archives themselves, with the {self.lookback} ticks before"


@dataclass(frozen=True)
class Alone:
    """It is not cut: one engine replays what the archives hold."""

    def __str__(self) -> str:
        return "one in one task that replays the archives"


@dataclass(frozen=True)
class Whole:
    """It cannot be cut; the reasons."""

    no_key: str
    no_time: str


def partitioning(root: Stop) -> BySlices | ByKey | Whole:
    """How the plan can be cut; by time where both ways are open, for then nothing is sent from task to task."""
    obstacle, lookback = lookback_of(root)
    if obstacle is None:
        return BySlices(lookback)
    found = by_key(root)
    return Whole(found, obstacle) if isinstance(found, str) else found


def by_key(root: Stop) -> ByKey | str:
    """How the plan can be cut by a key, or why it cannot."""
    keys = _Keys(root)
    columns = keys.choice()
    return keys.obstacle if columns is None else ByKey(columns)


# ------------------------------------------------------------------------------------------------------------- time


def lookback_of(root: Stop) -> tuple[str | None, int]:
    """What keeps the plan from being cut by time, or how long ago an answer begins."""
    depth: dict[int, int] = {}
    for node in nodes(root):
        below = max((depth[id(child)] for child in node.inputs), default=0)
        if isinstance(node, bound.Window | WindowEvents):
            spec = node.spec
            if spec.kind is WindowKind.SESSION:
                return "a SESSION window reaches back without bound", 0
            if spec.range_ is None:
                words = "UNBOUNDED" if spec.kind is WindowKind.UNBOUNDED else f"{spec.kind.value} without RANGE"
                return f"a window is {words}, which reaches back without bound", 0
            below += max(spec.range_, 1) + (spec.slide or 0)
        if isinstance(node, bound.RelationToStream):
            below += 1
        depth[id(node)] = below
    return None, depth[id(root)] + 1


# -------------------------------------------------------------------------------------------------------------- key


class _Keys:
    """Follows columns from the inputs to the answer."""

    def __init__(self, root: Stop) -> None:
        self.obstacle = "no column of the answer is compared wherever rows of the inputs meet"
        self._origins: dict[int, list[Origin | None]] = {}
        self._inputs: set[str] = set()
        self._root = root
        for node in nodes(root):
            self._origins[id(node)] = self._follow(node)

    def choice(self) -> dict[str, int] | None:
        """Of each input the column that is the key; None where there is none."""
        for origin in self._origins[id(self._root)]:
            if origin is not None and {name for name, _ in origin} == self._inputs:
                return dict(origin)
        return None

    def _follow(self, node: Node) -> list[Origin | None]:
        nothing: list[Origin | None] = [None] * len(node.schema)
        below = [self._origins[id(child)] for child in node.inputs]
        match node:
            case bound.BaseStream(name=name) | bound.BaseRelation(name=name):
                self._inputs.add(name.lower())
                return [frozenset({(name.lower(), i)}) for i in range(len(node.schema))]
            case bound.Filter() | bound.Distinct() | Stop():
                return below[0]
            case bound.Project(exprs=exprs):
                return [below[0][e.index] if isinstance(e, bound.ColumnRef) else None for e in exprs]
            case bound.Window(spec=spec):
                if spec.kind is WindowKind.ROWS:
                    self.obstacle = "a ROWS window counts the rows of all keys"
                    return nothing
                if spec.kind is WindowKind.SESSION:
                    self.obstacle = "a SESSION window numbers the sessions of all keys"
                    return nothing
                if spec.kind is WindowKind.PARTITION:
                    return [o if i in spec.keys else None for i, o in enumerate(below[0])]
                return below[0]
            case bound.Stamped() | bound.Bounds() | bound.Unnest():
                return [*below[0], *nothing[len(below[0]) :]]
            case bound.Join(join=JoinKind.INNER):
                return self._join(node, below[0], below[1])
            case SemiJoin(pairs=pairs):
                places = [(a.index, b.index) for a, b in pairs if _are_columns(a, b)]  # type: ignore[attr-defined]
                found = list(nothing)
                for i, j in places:
                    found[i] = _together(below[0][i], below[1][j])
                return found
            case bound.Aggregate(start=None, keys=keys):
                found = [below[0][k.index] if isinstance(k, bound.ColumnRef) else None for k in keys]
                return [*found, *([None] * len(node.aggregates))]
            case bound.Aggregate():
                self.obstacle = "an aggregate without GROUP BY is over all keys"
                return nothing
            case bound.Top():
                self.obstacle = "ORDER BY .. LIMIT sorts the rows of all keys"
                return nothing
            case bound.Over():
                self.obstacle = "OVER looks at rows beside a row"
                return nothing
            case bound.SetOperation():
                return [_together(a, b) for a, b in zip(below[0], below[1])]
            case bound.RelationToStream(op=op, ticks=ticks):
                if op is StreamKind.RSTREAM and not ticks:
                    self.obstacle = "RSTREAM speaks when anything changes, whatever its key"
                    return nothing
                return below[0]
            case RelationEvents() | FirstArrival() | WindowEvents():
                return []
            case _:
                return nothing

    @staticmethod
    def _join(node: bound.Join, left: list[Origin | None], right: list[Origin | None]) -> list[Origin | None]:
        width = len(node.left.schema)
        found: list[Origin | None] = [None] * (len(left) + len(right))
        for part in conjuncts(node.condition):
            pair = equal_pair(part, width)
            if pair is not None and _are_columns(*pair):
                a, b = left[pair[0].index], right[pair[1].index]  # type: ignore[attr-defined]
                both = _together(a, b)
                # Columns that were equal to one of the two before are equal to both now.
                for i, origin in enumerate((*left, *right)):
                    if both is not None and origin == (a if i < width else b):
                        found[i] = both
        return found


def _are_columns(a: bound.Expr, b: bound.Expr) -> bool:
    return isinstance(a, bound.ColumnRef) and isinstance(b, bound.ColumnRef)


def _together(a: Origin | None, b: Origin | None) -> Origin | None:
    """What two equal columns are equal to; None where that would be two columns of one input."""
    if a is None or b is None:
        return None
    both = a | b
    return both if len({name for name, _ in both}) == len(both) else None
