"""Rows that are written out: VALUES, and SELECT without FROM (docs/semantics R9).

Invariant: what is bound here reads no row, neither of FROM nor of an enclosing query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.blocks import ELEMENTS
from minidsms.cql.coercion import agree
from minidsms.cql.errors import CqlError
from minidsms.cql.expression_binder import Context, ExpressionBinder, needs_from
from minidsms.cql.scope import NO_COLUMN, Scope
from minidsms.cql.session import Piece, Session, parts
from minidsms.elements import Field, Schema


def bind_values(session: Session, query: syntax.Values) -> Piece:
    """The relation of the rows; its columns are called as the items of SELECT are written, else column1, column2, .."""
    first = query.rows[0]
    check_widths([len(row) for row in query.rows], session.text, query)
    session.check_width(len(first), query.span)
    value = constant_binder(session)
    columns = [
        agree(session, [value(row[i].expr) for row in query.rows], "a column of VALUES has") for i in range(len(first))
    ]
    names = [
        item.alias or ((query.is_select and session.snippet(item.expr.span)) or f"column{i + 1}")
        for i, item in enumerate(first)
    ]
    schema = Schema(tuple(Field(name, column[0].type) for name, column in zip(names, columns)))
    return Piece(bound.Constant(schema, tuple(zip(*columns))), query)


_OverNothing: TypeAlias = syntax.Select | syntax.SetOperation


def over_one_row(session: Session, query: syntax.Values, correlated: bool) -> _OverNothing | None:
    """SELECT without FROM as one over a row that has nothing, where subqueries, UNNEST, names given before or, in a
    subquery that sees an enclosing row, columns stand in it, VALUES there as the UNION ALL of such; None for any other.
    """
    written = (part for row in query.rows for item in row for part in parts(item.expr, syntax.Query))
    looks_out = correlated and any(isinstance(part, syntax.Name) for part in written)
    if looks_out and not query.is_select:
        check_widths([len(row) for row in query.rows], session.text, query)
        rows = [[replace(item, alias=f"column{i + 1}") for i, item in enumerate(row)] for row in query.rows]
        selects: list[_OverNothing] = [_over_nothing(tuple(row), query) for row in rows]
        return reduce(lambda a, b: syntax.SetOperation("union", True, a, b, span=query.span), selects)
    items, given, is_over = query.rows[0], set[str](), False
    for item in items:
        for part in parts(item.expr, syntax.Query):
            is_given = isinstance(part, syntax.Name) and part.qualifier is None and part.name.lower() in given
            is_element = isinstance(part, syntax.Call) and part.function.lower() in ELEMENTS
            is_over = is_over or is_given or is_element or isinstance(part, syntax.Query)
        if item.alias is not None:
            given.add(item.alias.lower())
    if not (query.is_select and (is_over or looks_out)):
        return None
    for item in items:
        for part in parts(item.expr, syntax.Query):
            is_nothing = isinstance(part, syntax.Name) and part.name == NO_COLUMN
            if is_nothing or (part is item.expr and isinstance(part, syntax.Star)):
                raise needs_from(session, part)
    return _over_nothing(items, query)


def _over_nothing(items: tuple[syntax.SelectItem, ...], query: syntax.Values) -> syntax.Select:
    nothing = syntax.Values(((syntax.SelectItem(syntax.Literal(None)),),))
    return syntax.Select(items, (syntax.QueryRef(nothing, None, "one", (NO_COLUMN,)),), span=query.span)


def check_widths(widths: Sequence[int], text: str, written: syntax.Syntax) -> None:
    """CqlError where rows differ in how many values they have."""
    other = next((width for width in widths if width != widths[0]), None)
    if other is not None:
        raise CqlError(f"a row has {counted(other, 'value')}, not {widths[0]}", text, written.span)


def constant_binder(session: Session) -> Callable[[syntax.Expr], bound.Expr]:
    """What binds an expression over no row."""

    def no_query(query: syntax.Query, context: Context) -> Piece:
        raise session.error(
            "a subquery where there are only constants", query.span, "", "SELECT without FROM may have subqueries"
        )

    binder = ExpressionBinder(session, Context(Scope([]), "a row without FROM"), no_query)

    def value(expr: syntax.Expr) -> bound.Expr:
        if isinstance(expr, syntax.Star):
            raise needs_from(session, expr)
        return binder.value(expr)

    return value
