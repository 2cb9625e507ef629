"""GROUP BY GROUPING SETS, ROLLUP and CUBE: a query for each set of keys, joined by UNION ALL (docs/semantics R10).

Invariant: in a set's query an expression of GROUP BY that is not in the set is NULL; not in aggregates and subqueries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain, combinations, islice, product
from typing import Any

from minidsms.counted import counted
from minidsms.cql import syntax
from minidsms.cql.aggregates import has_aggregates, is_aggregate
from minidsms.cql.scope import Ambiguous, Scope
from minidsms.cql.session import Session

Keys = tuple[syntax.Expr, ...]
MOST_SETS = 64
"""Of keys, in one query."""


def has_sets(select: syntax.Select) -> bool:
    """Whether GROUP BY says more than one set of keys."""
    return any(
        isinstance(e, syntax.GroupingSets | syntax.Row) or _is_call(e, "rollup", "cube") for e in select.group_by
    )


def key_meant(session: Session, key: syntax.Expr, select: syntax.Select, scope: Scope) -> syntax.Expr:
    """A bare name that is no column of FROM may be an alias of the select list, a number the place of a column."""
    if isinstance(key, syntax.Literal) and type(key.value) is int:
        return _at_place(session, key, key.value, select)
    if not isinstance(key, syntax.Name) or key.qualifier is not None:
        return key
    try:
        if scope.find(key.name, None) is not None:
            return key
    except Ambiguous:
        return key
    alias = key.name.lower()
    return next((i.expr for i in select.items if i.alias is not None and i.alias.lower() == alias), key)


def one_by_one(session: Session, select: syntax.Select, scope: Scope) -> syntax.Query:
    """The queries of the sets, one after the other."""
    choices = _some(product(*(_some(_sets(e)) for e in select.group_by)))
    if len(choices) > MOST_SETS:
        raise session.error(f"these are more than {MOST_SETS} sets of keys", select.group_by[0].span)
    sets = [_together(choice) for choice in choices]
    every = {key: key_meant(session, key, select, scope) for keys in sets for key in keys}
    queries: list[syntax.Query] = [_of_set(session, select, keys, every) for keys in sets]
    return reduce(
        lambda left, right: syntax.SetOperation("union", not select.distinct, left, right, span=select.span), queries
    )


def _is_call(expr: syntax.Syntax, *names: str) -> bool:
    return isinstance(expr, syntax.Call) and expr.function.lower() in names


def _some(items: Iterable[Any]) -> list[Any]:
    """No more than what shows that there are too many."""
    return list(islice(items, MOST_SETS + 1))


def _sets(element: syntax.Expr) -> Iterator[Keys]:
    """The sets of one element of GROUP BY."""
    if isinstance(element, syntax.GroupingSets):
        for item in element.items:
            yield from _sets(item)
    elif isinstance(element, syntax.Call) and _is_call(element, "rollup", "cube"):
        parts = [_keys(argument) for argument in element.args]
        for n in range(len(parts), -1, -1):
            chosen = combinations(parts, n) if _is_call(element, "cube") else [parts[:n]]
            yield from map(_together, chosen)
    else:
        yield _keys(element)


def _keys(element: syntax.Expr) -> Keys:
    return element.items if isinstance(element, syntax.Row) else (element,)


def _together(parts: Iterable[Keys]) -> Keys:
    """Each key once."""
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def _at_place(session: Session, key: syntax.Literal, place: int, select: syntax.Select) -> syntax.Expr:
    if not 1 <= place <= len(select.items):
        columns = counted(len(select.items), "column")
        raise session.error(f"GROUP BY {place}: the select list has {columns}", key.span)
    if any(isinstance(item.expr, syntax.Star) for item in select.items[:place]):
        raise session.error(f"GROUP BY {place} counts past a *", key.span, "", "name the column")
    return select.items[place - 1].expr


def _of_set(
    session: Session, select: syntax.Select, keys: Keys, every: dict[syntax.Expr, syntax.Expr]
) -> syntax.Select:
    present = {_folded(every[key]) for key in keys} | {_folded(key) for key in keys}
    absent = {_folded(e) for pair in every.items() for e in pair} - present

    def seen(expr: syntax.Syntax) -> syntax.Syntax | None:
        if isinstance(expr, syntax.Call) and _is_call(expr, "grouping") and expr.args:
            arguments = [_folded(argument) for argument in expr.args]
            if not absent | present >= {*arguments}:
                raise session.error("GROUPING tells of expressions of GROUP BY", expr.span)
            digits = "".join(str(int(argument in absent)) for argument in arguments)
            return syntax.Literal(int(digits, 2), span=expr.span)
        if isinstance(expr, syntax.Expr) and _folded(expr) in absent:
            return syntax.Literal(None, span=expr.span)
        is_whole = isinstance(expr, syntax.Call) and is_aggregate(expr.function, session.catalog)
        is_key = isinstance(expr, syntax.Expr) and _folded(expr) in present
        return expr if is_whole or is_key or isinstance(expr, syntax.Query) else None

    items = tuple(syntax.rewritten(item, seen) for item in select.items)
    having = None if select.having is None else syntax.rewritten(select.having, seen)
    if not keys and having is None and not any(has_aggregates(i.expr, session.catalog) for i in items):
        having = syntax.Literal(True)  # one group of all rows, though nothing says so
    group_by = tuple(every[k] for k in keys)
    return replace(select, items=items, group_by=group_by, having=having, distinct=False, written=select.items)


def _folded(expr: Any) -> syntax.Syntax:
    """The expression with its names in lower case, to be compared with others."""

    def lowered(part: syntax.Syntax) -> syntax.Syntax | None:
        if isinstance(part, syntax.Name):
            return syntax.Name(part.name.lower(), None if part.qualifier is None else part.qualifier.lower())
        return None

    folded: syntax.Syntax = syntax.rewritten(expr, lowered)
    return folded
