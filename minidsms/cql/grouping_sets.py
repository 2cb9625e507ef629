"""GROUP BY GROUPING SETS, ROLLUP and CUBE: a query for each set of keys, joined by UNION ALL (docs/semantics R10).

Invariant: in a set's query an expression of GROUP BY that is not in the set is NULL, but inside aggregates. In what is
written it is replaced; what subqueries see of it is NULL in `Groups`, for only there it is known what they mean.
What stands above the rows of all sets is in `cql/above_grouping_sets.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, combinations, islice, product
from typing import Any

from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.above_grouping_sets import AboveSets
from minidsms.cql.aggregates import has_aggregates, is_aggregate
from minidsms.cql.scope import Ambiguous, Scope
from minidsms.cql.session import Session, parts

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


def one_by_one(session: Session, query: syntax.Select | syntax.Limited, scope: Scope) -> syntax.Query:
    """The queries of the sets, one after the other, and what is of the rows of all above them."""
    select = query.query if isinstance(query, syntax.Limited) else query
    clauses = {name: getattr(select, name) for name in ("items", "group_by", "having", "qualify")}
    select = replace(select, **{name: syntax.rewritten(each, _without_own_names) for name, each in clauses.items()})
    if isinstance(query, syntax.Limited):
        query = replace(query, query=select, order=syntax.rewritten(query.order, _without_own_names))
    choices = _some(product(*(_some(_sets(e)) for e in select.group_by)))
    if len(choices) > MOST_SETS:
        raise session.error(f"these are more than {MOST_SETS} sets of keys", select.group_by[0].span)
    sets = [_together(choice) for choice in choices]
    every = {key: key_meant(session, key, select, scope) for keys in sets for key in keys}
    shown = [item.expr for item in select.items] + ([] if select.qualify is None else [select.qualify])
    has_over = any(isinstance(part, syntax.Over) for expr in shown for part in parts(expr, syntax.Query))
    if not has_over and not isinstance(query, syntax.Limited):
        return _of_sets(session, select, sets, every, scope)
    above = AboveSets(session, select, scope)
    rows_of = above.taken_apart(query if isinstance(query, syntax.Limited) else select)
    return rows_of(_of_sets(session, above.below(), sets, every, scope))


def _of_sets(
    session: Session,
    select: syntax.Select,
    sets: Sequence[Keys],
    every: dict[syntax.Expr, syntax.Expr],
    scope: Scope,
) -> syntax.Query:
    queries: list[syntax.Query] = [_of_set(session, select, keys, every, scope) for keys in sets]
    return reduce(
        lambda left, right: syntax.SetOperation("union", not select.distinct, left, right, span=select.span), queries
    )


def _without_own_names(part: syntax.Syntax) -> syntax.Syntax | None:
    """A lambda with parameters that no column is called as, the names of a STRUCT's fields as texts."""
    if isinstance(part, syntax.Query):
        return part
    if isinstance(part, syntax.Call) and part.function.lower() == "struct":
        return replace(part, args=tuple(map(_named_by_text, part.args)))
    if not isinstance(part, syntax.Lambda):
        return None
    own = {parameter.lower(): f"the {parameter}" for parameter in part.parameters}

    def renamed(inner: syntax.Syntax) -> syntax.Syntax | None:
        if isinstance(inner, syntax.Name):
            name, qualifier = inner.name, inner.qualifier
            if qualifier is None:
                return replace(inner, name=own.get(name.lower(), name))
            return replace(inner, qualifier=own.get(qualifier.lower(), qualifier))
        return None

    body = syntax.rewritten(syntax.rewritten(part.body, _without_own_names), renamed)
    return replace(part, parameters=tuple(own.values()), body=body)


def _named_by_text(arg: syntax.Expr) -> syntax.Expr:
    """`a := 1` and `a` in STRUCT."""
    name, value = (arg.name, arg.value) if isinstance(arg, syntax.Pair) else (arg, arg)
    if isinstance(name, syntax.Name):
        name = syntax.Literal(name.name, span=name.span)
    return syntax.Pair(name, syntax.rewritten(value, _without_own_names), span=arg.span)


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
    session: Session, select: syntax.Select, keys: Keys, every: dict[syntax.Expr, syntax.Expr], scope: Scope
) -> syntax.Select:
    folded = partial(_folded, scope)
    present = {folded(every[key]) for key in keys} | {folded(key) for key in keys}
    absent = {folded(e) for pair in every.items() for e in pair} - present

    def seen(expr: syntax.Syntax) -> syntax.Syntax | None:
        if isinstance(expr, syntax.Call) and _is_call(expr, "grouping", "grouping_id") and expr.args:
            arguments = [folded(argument) for argument in expr.args]
            if not absent | present >= {*arguments}:
                raise session.error("GROUPING tells of expressions of GROUP BY", expr.span)
            digits = "".join(str(int(argument in absent)) for argument in arguments)
            return syntax.Literal(int(digits, 2), span=expr.span)
        if isinstance(expr, syntax.Expr) and folded(expr) in absent:
            return syntax.Literal(None, span=expr.span)
        is_whole = isinstance(expr, syntax.Call) and is_aggregate(expr.function, session.catalog)
        is_key = isinstance(expr, syntax.Expr) and folded(expr) in present
        return expr if is_whole or is_key or isinstance(expr, syntax.Query) else None

    items = tuple(syntax.rewritten(item, seen) for item in select.items)
    having = None if select.having is None else syntax.rewritten(select.having, seen)
    if not keys and having is None and not any(has_aggregates(i.expr, session.catalog) for i in items):
        having = syntax.Literal(True)  # one group of all rows, though nothing says so
    group_by = tuple(every[k] for k in keys)
    written = select.written or select.items
    others = tuple(e for e in every.values() if folded(e) in absent)
    return replace(
        select, items=items, group_by=group_by, having=having, distinct=False, written=written, absent=others
    )


def _folded(scope: Scope, expr: Any) -> syntax.Syntax:
    """The expression with its names as those of columns, the others in lower case, to be compared with others."""

    def known(part: syntax.Syntax) -> syntax.Syntax | None:
        if not isinstance(part, syntax.Name):
            return part if isinstance(part, syntax.Query) else None
        try:
            column = scope.find(part.name, part.qualifier)
        except Ambiguous:
            column = None
        if isinstance(column, bound.ColumnRef):
            return syntax.Name(f"column {column.index}")
        return syntax.Name(part.name.lower(), None if part.qualifier is None else part.qualifier.lower())

    folded: syntax.Syntax = syntax.rewritten(expr, known)
    return folded
