"""Correlated subqueries of any form: the subquery's answer for every distinct outer row, as one relation.

Where `correlation.lift` can only turn equalities into join columns, this carries the outer columns a subquery mentions
through it: its innermost FROM is joined with the distinct outer rows D, every step up keeps D's columns beside its own,
groups are formed per row of D. The answer for one outer row is then looked up by D's columns, NULL equal to NULL.

Invariant: what `PerOuterRow.apply(node)` gives holds, for every row d of D, exactly the rows of node at d, each
followed by d.  docs/semantics R1, R3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.errors import CqlError
from minidsms.cql.node import Carried
from minidsms.cql.rewriting import outer_columns
from minidsms.cql.scalar import rewrite_through
from minidsms.elements import Type
from minidsms.plan.correlation import is_correlated
from minidsms.plan.logical import (
    column_refs,
    conjunction,
    conjuncts,
    projected,
    renumbered,
    taken_as_where,
)
from minidsms.plan.matching import never_null

if TYPE_CHECKING:
    from minidsms.plan.unnesting import Builder


def for_each_outer_row(builder: Builder, source: Node, query: Node, text: str) -> tuple[Node, list[tuple[Expr, int]]]:
    """The query's rows for the rows of source, and by which columns each source row finds its own.

    The first columns of the result are the query's; the pairs are (expression over the source's row, column of the
    result), to be equal and never NULL.  Raises CqlError for FIRST and LAST, which go by arrival.
    """
    needed = sorted(outer_columns(query))
    refs = [bound.ColumnRef(source.schema[i].type, i, source.schema[i].name) for i in needed]
    values = projected(source, refs)
    outer = bound.Distinct(values.schema, values)
    rows = PerOuterRow(builder, outer, {i: place for place, i in enumerate(needed)}, text).apply(query)
    width = len(query.schema)
    keys = [key for ref in column_refs(outer.schema, width) for key in never_null(ref)]
    right = projected(rows, [*column_refs(query.schema), *keys])
    pairs = [key for ref in refs for key in never_null(ref)]
    return right, [(key, width + k) for k, key in enumerate(pairs)]


def _same_row(mine: Sequence[Expr], theirs: Sequence[Expr]) -> list[Expr]:
    """That two rows are equal column by column, NULL to NULL."""
    pairs = (pair for a, b in zip(mine, theirs) for pair in zip(never_null(a), never_null(b)))
    return [bound.Call(Type.BOOLEAN, "=", pair) for pair in pairs]


class PerOuterRow:
    """Carries the rows of `outer` through a subquery. places: outer column number to its place in `outer`."""

    def __init__(self, builder: Builder, outer: Node, places: dict[int, int], text: str) -> None:
        self._builder = builder
        self._outer = outer
        self._places = places
        self._text = text

    def apply(self, node: Node) -> Node:
        """The node's rows for every outer row: the node's columns, then the outer row's."""
        if not is_correlated(node):
            return bound.Join.of(self._builder.build(node), self._outer)
        below, parts = taken_as_where(node)
        if parts:
            return self._builder.where(self.apply(below), [self._over_row(part, len(below.schema)) for part in parts])
        if isinstance(node, bound.Join):
            return self._joined(node)
        if isinstance(node, bound.Lateral):
            return self._beside(node)
        if not isinstance(node, bound.Aggregate):
            return self._carried(node)
        by_arrival = next((c for c in node.aggregates if c.is_by_arrival), None)
        if by_arrival is not None:
            raise CqlError(
                f"{by_arrival.function.upper()} is not supported in a subquery that compares with an outer column so",
                self._text,
                by_arrival.span,
                "only equalities with outer columns can be used here",
                "correlate by equality, or write a join",
            )
        return self._one_group(node) if node.is_global else self._carried(node)

    def _carried(self, node: Node) -> Node:
        """What is asked of the columns below, then the outer row."""
        inputs = [Carried.beside(self.apply(child), len(child.schema)) for child in node.inputs]
        if node.expressions:
            (below,), (child,) = inputs, node.inputs
            over = tuple(self._over_row(e, len(child.schema)) for e in node.expressions)
            source, found = self._builder.looked_up(below.node, over)
            exprs = iter(found)
            node, inputs = node.rewritten(lambda e: next(exprs)), [below.over(source)]
        carried = node.carrying(inputs)
        assert carried is not None, f"the binder lets no outer column into {type(node).__name__}"
        return bound.further_last(carried)

    def _joined(self, node: bound.Join) -> Node:
        """The left side for every outer row, and the right one, too, where it depends on it or may stand alone."""
        is_left = node.join in (bound.JoinKind.INNER, bound.JoinKind.LEFT)
        for_each = not is_left or is_correlated(node.right)
        left, right = self.apply(node.left), self.apply(node.right) if for_each else self._builder.build(node.right)
        a, b, x = len(node.left.schema), len(node.right.schema), len(self._outer.schema)
        refs = column_refs(left.schema + right.schema)
        mine, theirs = refs[a : a + x], refs[a + x + b :]
        own = [*refs[:a], *refs[a + x : a + x + b]]
        places = [ref.index for ref in (*own, *mine)]
        parts = [renumbered(self._over_row(e, a + b), places.__getitem__) for e in conjuncts(node.condition)]
        same = _same_row(mine, theirs) if for_each else []
        if node.join is bound.JoinKind.INNER:
            joined = self._builder.where(bound.Join.of(left, right, conjunction(same)), parts)
        else:
            joined = self._builder.joined(node.join, left, right, conjunction([*same, *parts]))
        # A row without a partner has the outer row on its own side.
        either = [bound.Call(m.type, "coalesce", pair) for m, pair in zip(mine, zip(mine, theirs))]
        return projected(joined, [*own, *(mine if is_left else either)])

    def _beside(self, node: bound.Lateral) -> Node:
        """The rows that a query has for each row of the input, which has the outer row behind it."""
        left = self.apply(node.input)
        a, b, x = len(node.input.schema), len(node.rows.query.schema), len(self._outer.schema)
        places = [*range(a), *range(a + x, a + x + b), *range(a, a + x)]
        rows = self._over_row(node.rows, a)
        assert isinstance(rows, bound.Exists)
        condition = node.condition
        if condition is not None:
            condition = renumbered(self._over_row(condition, a + b), places.__getitem__)
        found = self._builder.lateral(left, dataclasses.replace(node, rows=rows, condition=condition))
        refs = column_refs(found.schema)
        return projected(found, [refs[i] for i in places])

    def _one_group(self, node: bound.Aggregate) -> Node:
        """A row for every outer row once the block has begun (R3): of no rows COUNT is 0, the others are NULL."""
        grouped = self._carried(dataclasses.replace(node, is_global=False, events=()))
        start = self._builder.first_arrival(node.events)
        x, width = len(self._outer.schema), len(node.schema)
        begun = bound.Join.of(self._outer, start)
        mine, found = column_refs(self._outer.schema), column_refs(grouped.schema, x)
        joined = bound.Join.of(begun, grouped, conjunction(_same_row(mine, found[width:])), bound.JoinKind.LEFT)
        results = node.or_of_no_rows(found[:width])
        return bound.Project(node.schema + self._outer.schema, joined, (*results, *mine))

    # ---------------------------------------------------------------------------------------------- expressions

    def _over_row(self, expr: Expr, width: int) -> Expr:
        """An expression over a row of this subquery, with the outer columns it mentions read from that row, where they
        begin at `width`.
        """

        def change(e: Expr, depth: int) -> Expr | None:
            if not isinstance(e, bound.OuterRef) or e.level <= depth:
                return None
            assert e.level == depth + 1, "queries are taken apart from the outside in"
            place = width + self._places[e.index]
            if depth == 0:
                return bound.ColumnRef(e.type, place, e.name, span=e.span)
            return bound.OuterRef(e.type, place, e.name, depth, span=e.span)

        return rewrite_through(expr, change)
