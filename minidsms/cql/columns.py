"""COLUMNS('regex') and COLUMNS(*) in a select list: an item for each of the columns that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from minidsms.cql import syntax
from minidsms.cql.scope import NO_COLUMN, Ambiguous, Column, Scope, listing
from minidsms.cql.session import Session, cut, parts

_HINT = "COLUMNS('^a|b$') are the columns of such names, COLUMNS(*) all"


def with_columns(session: Session, select: syntax.Select, scope: Scope, hidden: str) -> syntax.Select:
    """Each item with COLUMNS(..) once for each column, which takes its place and, in the name of the item, its text.

    hidden: the table of which it names none.
    """
    if "columns" in session.catalog.functions:
        return select
    items: list[syntax.SelectItem] = []
    for item in select.items:
        calls = [part for part in parts(item.expr, syntax.Query) if _is_columns(part)]
        items += _each(session, item, calls, scope, hidden) if calls else (item,)
    return replace(select, items=tuple(items))


def name_of(scope: Scope, alias: str, column: Column) -> syntax.Name | None:
    """How a column that `*` stands for is named: bare where that is clear; None where it cannot be named."""
    for qualifier in (None, alias) if alias else (None,):
        try:
            if scope.find(column.name, qualifier) == column.expr:
                return syntax.Name(column.name, qualifier)
        except Ambiguous:
            continue
    return None


def _is_columns(part: object) -> bool:
    return isinstance(part, syntax.Call) and part.function.lower() == "columns"


def _in_place(name: syntax.Name, part: syntax.Syntax) -> syntax.Syntax | None:
    """The name in the place of COLUMNS; queries inside have columns of their own."""
    return name if _is_columns(part) else part if isinstance(part, syntax.Query) else None


def _each(
    session: Session, item: syntax.SelectItem, calls: Sequence[syntax.Syntax], scope: Scope, hidden: str
) -> list[syntax.SelectItem]:
    first = calls[0]
    there = [(alias, c) for alias, c in scope.star() if c.name != NO_COLUMN and alias != (hidden or None)]
    chosen, *others = (_chosen(session, call, there) for call in calls)
    found = [(alias, column) for alias, column in there if column.name in chosen]
    names = listing(column.name for _, column in there)
    if any(other != chosen for other in others):
        raise session.error("COLUMNS stands for different columns in one item", item.span, "", "write two items")
    if not found:
        raise session.error("no column has such a name", first.span, f"there are: {names}")
    if item.alias is not None and len(found) > 1:
        raise session.error(
            "AS names one column, and these are several", item.span, f"there are: {names}", "leave AS out"
        )
    written = session.text[slice(*item.expr.span)]
    places = {session.text[slice(*call.span)] for call in calls}
    items = []
    for alias, column in found:
        name = name_of(scope, alias, column)
        if name is None:
            raise session.error(f'several columns are called "{column.name}"', first.span, "", "rename one in a query")
        name = replace(name, span=first.span)
        expr = syntax.rewritten(item.expr, partial(_in_place, name))
        told = written
        for place in places:
            told = told.replace(place, column.name)
        shown = item.alias or (None if expr is name else cut(told))
        items.append(syntax.SelectItem(expr, shown, span=item.span))
    return items


def _chosen(session: Session, call: syntax.Syntax, there: Sequence[tuple[str, Column]]) -> frozenset[str]:
    """The names of the columns that a call stands for."""
    assert isinstance(call, syntax.Call)
    match call.args:
        case (syntax.Star(),):
            return frozenset(column.name for _, column in there)
        case (syntax.Literal(value=str() as pattern),):
            from minidsms.functions.patterns import matches, pattern_problem

            problem = pattern_problem(pattern)
            if problem is not None:
                raise session.error(problem, call.span, "", _HINT)
            return frozenset(column.name for _, column in there if matches(column.name, pattern))
    raise session.error("COLUMNS takes a regular expression in quotes, or *", call.span, "", _HINT)
