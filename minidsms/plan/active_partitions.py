"""Of the last row of each key, only those that a join with the keys of a recent window still asks for.

`S [PARTITION BY k ROWS 1]` holds a row for every k that has ever come. Joined by k with `SELECT DISTINCT k FROM S
[RANGE T]` it is asked for the keys of the last T only, and a key is among those as long as its last row is: the join is
`S [PARTITION BY k ROWS 1 RANGE T]` (docs/semantics W1, W5), whose state does not grow with the stream. So the current
segments of Linear Road's cars are kept for the cars on the road and no others (CurCarSeg in Babu 2005, section 6.11,
where that it is a many-one join lets the last reports go).

Invariant: the join's rows, and the order of its columns, stay what they were; a NULL key joins nothing and is dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.origins import equal_pair
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import Type
from minidsms.plan.logical import MultiJoin, column_refs, conjuncts, filtered, projected, rebuilt


def keep_active_partitions(root: Node) -> tuple[Node, list[str]]:
    """The plan with such joins replaced, and what became of them, in words."""
    notes: list[str] = []

    def change(node: Node, new: Node) -> Node:
        if bound.is_inner_join(new):
            return _binary(new, notes)
        if isinstance(new, MultiJoin) and new.specs is None and not new.outer:
            return _n_way(new, notes)
        if isinstance(new, bound.Project) and new.input is not node.inputs[0]:
            return projected(new.input, new.exprs, new.schema.names)
        return new

    return rebuilt(root, change), notes


# ------------------------------------------------------------------------------------------------------------- sides


@dataclass(frozen=True)
class _LastRows:
    """`[PARTITION BY keys ROWS 1]`, filtered and projected. keys: the output column that shows each key of the stream,
    by its number there.
    """

    window: bound.Window
    stream: Node
    keys: Mapping[int, int]


@dataclass(frozen=True)
class _RecentKeys:
    """`SELECT DISTINCT keys FROM stream [RANGE length]`. keys: the stream's column of each output column."""

    stream: Node
    keys: tuple[int, ...]
    length: int


def _last_rows(node: Node) -> _LastRows | None:
    shown: list[int | None] = list(range(len(node.schema)))
    while isinstance(node, bound.ByRow):
        if isinstance(node, bound.Project):
            shown = [None if c is None else _column(node.exprs[c]) for c in shown]
        node = node.input
    if not isinstance(node, bound.Window) or node.spec.kind is not WindowKind.PARTITION or node.spec.rows != 1:
        return None
    window, below = node, node.input
    keys = {c: place for place, c in reversed(list(enumerate(shown))) if c in node.spec.keys}
    if len(keys) != len(set(node.spec.keys)):
        return None
    stream, columns = _stream(below)
    found = {columns[c]: place for c, place in keys.items() if c is not None}
    return None if None in found else _LastRows(window, stream, {c: p for c, p in found.items() if c is not None})


def _recent_keys(node: Node) -> _RecentKeys | None:
    if not isinstance(node, bound.Distinct):
        return None
    below, shown = _stream(node.input)
    if not isinstance(below, bound.Window) or below.spec.kind is not WindowKind.RANGE:
        return None
    length = below.spec.range_
    if below.spec.slide is not None or not length:
        return None
    stream, columns = _stream(below.input)
    keys = tuple(None if c is None else columns[c] for c in shown)
    plain = tuple(c for c in keys if c is not None)
    return _RecentKeys(stream, plain, length) if len(set(plain)) == len(keys) else None


def _stream(node: Node) -> tuple[Node, list[int | None]]:
    """What stands below projections, and which of its columns each column is; None: it is computed."""
    columns: list[int | None] = list(range(len(node.schema)))
    while isinstance(node, bound.Project):
        columns = [None if c is None else _column(node.exprs[c]) for c in columns]
        node = node.input
    return node, columns


def _column(expr: Expr) -> int | None:
    return expr.index if isinstance(expr, bound.ColumnRef) else None


def _is_same(one: Node, other: Node) -> bool:
    return one is other or (
        isinstance(one, bound.BaseStream)
        and isinstance(other, bound.BaseStream)
        and one.name.lower() == other.name.lower()
    )


def _matching(left: Node, right: Node, equal: set[tuple[int, int]]) -> dict[int, int] | None:
    """For each column of the recent keys (right) the column of the last rows that it equals; None: this is no such
    join. equal: (column of left, column of right).
    """
    last, recent = _last_rows(left), _recent_keys(right)
    if last is None or recent is None or not _is_same(last.stream, recent.stream):
        return None
    if set(last.keys) != set(recent.keys):
        return None
    pairs = {d: last.keys[key] for d, key in enumerate(recent.keys)}
    return pairs if all((c, d) in equal for d, c in pairs.items()) else None


def _bounded(node: Node, length: int) -> Node:
    """The last rows, of those keys only whose last row is recent."""
    window = bound.beneath(node)
    assert isinstance(window, bound.Window)
    spec, stream = window.spec, window.input
    shorter = length if spec.range_ is None else min(length, spec.range_)
    known = [
        bound.Call(Type.BOOLEAN, "not", (bound.Call(Type.BOOLEAN, "is null", (column_refs(stream.schema)[c],)),))
        for c in dict.fromkeys(spec.keys)
    ]
    bounded = WindowSpec(WindowKind.PARTITION, shorter, spec.rows, keys=spec.keys)
    return bound.moved_onto(node, dataclasses.replace(window, input=filtered(stream, known), spec=bounded))


def _note(last: Node, recent: Node) -> str:
    keys = _recent_keys(recent)
    assert keys is not None
    found = _last_rows(last)
    assert found is not None
    name = found.window.name or (found.stream.name if isinstance(found.stream, bound.BaseStream) else "a window")
    return f"Reduced: of the last rows of {name} those of the last {keys.length} ticks are kept: no others are joined"


# ------------------------------------------------------------------------------------------------------------- joins


def _binary(join: bound.Join, notes: list[str]) -> Node:
    width = len(join.left.schema)
    equalities: dict[Expr, tuple[int, int]] = {}
    for part in conjuncts(join.condition):
        pair = equal_pair(part, width)
        if pair is not None and isinstance(pair[0], bound.ColumnRef) and isinstance(pair[1], bound.ColumnRef):
            equalities[part] = pair[0].index, pair[1].index
    equal = set(equalities.values())
    for is_right in (True, False):
        last, recent = (join.left, join.right) if is_right else (join.right, join.left)
        pairs = _matching(last, recent, equal if is_right else {(d, c) for c, d in equal})
        if pairs is None:
            continue
        notes.append(_note(last, recent))
        recent_keys = _recent_keys(recent)
        assert recent_keys is not None
        kept = _bounded(last, recent_keys.length)
        own = column_refs(kept.schema)
        others = [own[pairs[d]] for d in range(len(recent.schema))]
        exprs = [*own, *others] if is_right else [*others, *own]
        used = {(c, d) if is_right else (d, c) for d, c in pairs.items()}
        rest = [part for part in conjuncts(join.condition) if equalities.get(part) not in used]
        return filtered(projected(kept, exprs, join.schema.names), rest)
    return join


def _n_way(join: MultiJoin, notes: list[str]) -> Node:
    for i, last in enumerate(join.windows):
        for j, recent in enumerate(join.windows):
            equal = {(a[1], b[1]) for pair in join.equalities for a, b in (pair, pair[::-1]) if (a[0], b[0]) == (i, j)}
            pairs = _matching(last, recent, equal) if equal else None
            if pairs is not None:
                notes.append(_note(last, recent))
                return _n_way(_without(join, i, j, pairs), notes)
    return join if len(join.windows) > 1 else projected(join.windows[0], _shown(join), join.schema.names)


def _shown(join: MultiJoin) -> list[Expr]:
    refs = column_refs(join.windows[0].schema)
    return [refs[c] for _, c in join.columns]


def _without(join: MultiJoin, i: int, j: int, pairs: Mapping[int, int]) -> MultiJoin:
    """The join without input j, whose columns are those of input i that equal them."""
    recent = _recent_keys(join.windows[j])
    assert recent is not None

    def moved(place: tuple[int, int]) -> tuple[int, int]:
        k, c = (i, pairs[place[1]]) if place[0] == j else place
        return k - (k > j), c

    windows = list(join.windows)
    windows[i] = _bounded(windows[i], recent.length)
    equalities = dict.fromkeys((moved(a), moved(b)) for a, b in join.equalities)
    return dataclasses.replace(
        join,
        windows=tuple(w for k, w in enumerate(windows) if k != j),
        equalities=tuple((a, b) for a, b in equalities if a != b),
        columns=tuple(map(moved, join.columns)),
        names=tuple(name for k, name in enumerate(join.names) if k != j),
    )
