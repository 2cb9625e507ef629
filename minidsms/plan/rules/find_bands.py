"""Joins by bands: where a condition bounds the difference of two inputs' columns, the join looks into cells.

`ABS(a.x - b.y) < 5`, `a.x BETWEEN b.y - 5 AND b.y + 5` and `a.t = b.t + 1` are such, and, with one bound, `a.t < b.t`.
The condition stays above the join, which may put out pairs outside of the band (`joins.bands`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node, Type
from minidsms.cql.origins import equal_pair
from minidsms.joins.bands import Band, band_of
from minidsms.joins.equal_columns import Attribute, EqualColumns
from minidsms.plan.logical import MultiJoin, conjuncts, filtered, reader_counts, rebuilt, substitute, unfiltered

MOST = 2
"""Bands of two inputs that are used together: a step looks into two cells of each, in all combinations."""
_TICKS = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL)


def find_bands(root: Node) -> Node:
    """Tell n-way joins their bands, and make such joins of those of two inputs that no equality links."""
    readers = reader_counts(root)

    def change(node: Node, new: Node) -> Node:
        below, parts = unfiltered(new)
        if bound.is_inner_join(new) and new.condition is not None:
            new = _banded(new, []) or new
        elif parts and readers[id(node.inputs[0])] == 1:
            new = _banded(below, parts) or new
            if isinstance(below, bound.Project) and below.only_chooses and readers[id(node.inputs[0].inputs[0])] == 1:
                # What ordering the joins has left: columns as FROM has them.
                banded = _banded(below.input, [substitute(part, below.exprs) for part in parts])
                new = new if banded is None else below.over([banded])
        return new

    return rebuilt(root, change)


def _banded(node: Node, conditions: Sequence[Expr]) -> Node | None:
    """The join with its bands, below the conditions and its own; None where there are none, or equalities link it."""
    node, parts = unfiltered(node)
    conditions = [*conditions, *parts]
    if bound.is_inner_join(node):
        width = len(node.left.schema)
        conditions += conjuncts(node.condition)
        if any(equal_pair(condition, width) for condition in conjuncts(node.condition)):
            return None
        sides = node.left, node.right
        columns = tuple((i, c) for i, side in enumerate(sides) for c in range(len(side.schema)))
        node = MultiJoin(node.schema, sides, (), columns)
    if type(node) is not MultiJoin or node.bands or node.outer:
        return None
    bands = tuple(_bands(conditions, node))
    return filtered(dataclasses.replace(node, bands=bands), conditions) if bands else None


# ------------------------------------------------------------------------------------------------- differences


@dataclass(frozen=True)
class _Sum:
    """What is added up: columns, each once, those subtracted, and a constant.

    is_whole: of integers alone.  greatest: what the constants add up to at most, in any order.
    """

    added: tuple[int, ...] = ()
    subtracted: tuple[int, ...] = ()
    constant: float = 0
    is_whole: bool = True
    greatest: float = 0

    def __neg__(self) -> _Sum:
        return dataclasses.replace(self, added=self.subtracted, subtracted=self.added, constant=-self.constant)

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(
            self.added + other.added,
            self.subtracted + other.subtracted,
            self.constant + other.constant,
            self.is_whole and other.is_whole,
            self.greatest + other.greatest,
        )


def _sum(expr: Expr) -> _Sum | None:
    """The expression as a sum; None where it is none."""
    match expr:
        case bound.ColumnRef(type=t, index=index) if t in _TICKS or t is Type.FLOAT:
            return _Sum(added=(index,), is_whole=t in _TICKS)
        case bound.Literal(type=t, value=int() | float() as value) if t in _TICKS or t is Type.FLOAT:
            return _Sum(constant=value, is_whole=t in _TICKS, greatest=abs(value))
        case bound.Cast(type=Type.FLOAT) if expr.arg.type in _TICKS:
            of = _sum(expr.arg)
            return None if of is None else dataclasses.replace(of, is_whole=False)
        case bound.Call(function="neg", args=(arg,)):
            of = _sum(arg)
            return None if of is None else -of
        case bound.Call(function="+" | "-", args=(a, b)):
            left, right = _sum(a), _sum(b)
            if left is None or right is None:
                return None
            return left + (right if expr.function == "+" else -right)
    return None


def _at_most_zero(condition: Expr) -> Iterator[_Sum]:
    """Sums that are zero or less wherever the condition is TRUE."""
    if not isinstance(condition, bound.Call) or condition.function not in ("<", "<=", ">", ">=", "="):
        return
    one, other = condition.args
    at_most = [(one, other)] if condition.function in ("<", "<=", "=") else []
    at_most += [(other, one)] if condition.function in (">", ">=", "=") else []
    for lesser, greater in at_most:
        able = [lesser]
        if isinstance(lesser, bound.Call) and lesser.function == "abs":
            able = [lesser.args[0], bound.Call(lesser.type, "neg", lesser.args)]
        limit = _sum(greater)
        for expr in able:
            of = _sum(expr)
            if of is not None and limit is not None:
                yield of + -limit


def _bands(conditions: Sequence[Expr], join: MultiJoin) -> Sequence[Band]:
    """Of each two groups of inputs that equalities link the bands of one pair of inputs, at most MOST; where no
    difference has both bounds, one that has one. Of two inputs that an equality links, those with both.
    """
    linked = EqualColumns()
    for (i, _), (j, _) in join.equalities:
        linked.join((i, 0), (j, 0))
    uppers: dict[tuple[Attribute, Attribute], list[_Sum]] = {}
    for of in (of for condition in conditions for of in _at_most_zero(condition)):
        if len(of.added) == len(of.subtracted) == 1:
            pair = join.columns[of.added[0]], join.columns[of.subtracted[0]]
            uppers.setdefault(pair, []).append(of)
    known: dict[frozenset[Attribute], list[Band]] = {}
    for (a, b), above in sorted(uppers.items(), key=lambda each: each[0][::-1] not in uppers):
        groups = frozenset(linked.root((i, 0)) for i, _ in (a, b))
        below = uppers.get((b, a), [])
        is_linked = len(groups) == 1
        if a[0] == b[0] or (below and a > b) or (is_linked and (not below or len(join.windows) > 2)):
            continue
        every = above + below
        least = max((of.constant for of in below), default=-math.inf)
        most, greatest = min(-of.constant for of in above), max(of.greatest for of in every)
        band = band_of(a, b, least, most, all(of.is_whole for of in every), greatest)
        found = known.setdefault(groups, [])
        is_beside = not found or (below and len(found) < MOST and {a[0], b[0]} == {found[0].a[0], found[0].b[0]})
        if band is not None and is_beside:
            found.append(band)
    return [band for found in known.values() for band in found]
