"""Which columns of which inputs a column's value is equal to, followed from the inputs of a plan to its answer.

A column that leads back to the same column of every input, wherever rows meet, is a key by which a query can be cut
into parts that never see each other's rows: each node says what becomes of the origins below it (`Node.origins`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql.functions import can_fail
from minidsms.cql.scalar import Call, ColumnRef, Expr, columns_used, shift

Origin = frozenset[tuple[str, int]]
"""(input, column), at most one of each input."""
Origins = Sequence[Origin | None]
"""Of each column; None where rows that differ in it may have met."""


def together(a: Origin | None, b: Origin | None) -> Origin | None:
    """What two equal columns are equal to; None where that would be two columns of one input."""
    if a is None or b is None:
        return None
    both = a | b
    return both if len({name for name, _ in both}) == len(both) else None


def equal_places(pairs: Sequence[tuple[Expr, Expr]]) -> list[tuple[int, int]]:
    """The pairs that are of two columns, by number."""
    return [(a.index, b.index) for a, b in pairs if isinstance(a, ColumnRef) and isinstance(b, ColumnRef)]


def equal_pairs(parts: Iterable[Expr], width: int) -> tuple[list[tuple[Expr, Expr]], list[Expr]]:
    """What `equal_pair` gives of the conjuncts that are equalities of both sides, and the other conjuncts."""
    pairs, rest = [], []
    for part in parts:
        pair = equal_pair(part, width)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


def equal_pair(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """(expression over left, expression over right) of a conjunct `left = right` that cannot fail, else None."""
    if not (isinstance(part, Call) and part.function == "=") or can_fail(part):
        return None
    for a, b in (part.args, part.args[::-1]):
        in_a, in_b = columns_used(a), columns_used(b)
        a_left = all(i < width for i in in_a)
        b_right = all(i >= width for i in in_b)
        if a_left and b_right and (in_a or in_b):
            return a, shift(b, -width)
    return None
