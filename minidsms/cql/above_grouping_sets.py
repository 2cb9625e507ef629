"""What of a query stands above its grouping sets: what has OVER, QUALIFY, and ORDER BY .. LIMIT (docs/semantics R10).

Invariant: the select lists of the sets' queries have a column for each value of a set's rows that is needed above them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from minidsms.cql import syntax
from minidsms.cql.aggregates import is_aggregate
from minidsms.cql.scope import Ambiguous, Scope
from minidsms.cql.session import Session, parts


class AboveSets:
    """Takes a query apart into what is of each set's rows, whose values are columns, and what is of the rows of all."""

    def __init__(self, session: Session, select: syntax.Select, scope: Scope) -> None:
        self._session, self._select, self._scope = session, select, scope
        self._below: list[syntax.SelectItem] = []
        self._names: dict[syntax.Syntax, str] = {}
        aliases = [(item.alias or "").lower() for item in select.items]
        self._aliases = {alias for alias in aliases if alias}
        self._unique = {alias for alias in self._aliases if aliases.count(alias) == 1}
        self._called: dict[str, syntax.Expr] = {}
        self._parameters: frozenset[str] = frozenset()  # of the lambdas around what is looked at
        for alias, item in zip(aliases, select.items):
            if alias and self._is_above(item.expr):
                self._called[alias] = item.expr

    def taken_apart(self, query: syntax.Select | syntax.Limited) -> Callable[[syntax.Query], syntax.Query]:
        """What makes the query of the rows of all sets."""
        select = self._select
        items = tuple(map(self._item, select.items))
        qualify = None if select.qualify is None else syntax.rewritten(select.qualify, self._seen)
        order = tuple(map(self._key, query.order)) if isinstance(query, syntax.Limited) else ()

        def over(rows: syntax.Query) -> syntax.Query:
            source = syntax.QueryRef(rows, span=select.span)
            whole = syntax.Select(items, (source,), distinct=select.distinct, qualify=qualify, span=select.span)
            return replace(query, query=whole, order=order) if isinstance(query, syntax.Limited) else whole

        return over

    def below(self) -> syntax.Select:
        """The query of each set's rows, with what `taken_apart` has found to be needed of them."""
        written = self._select.written or self._select.items
        having = syntax.rewritten(self._select.having, self._told)
        items = tuple(self._below)
        return replace(self._select, items=items, distinct=False, having=having, qualify=None, written=written)

    def _told(self, part: syntax.Syntax) -> syntax.Syntax | None:
        """What has OVER in the place of its name, for HAVING to refuse it."""
        if isinstance(part, syntax.Name) and self._is_named_above(part):
            return self._called[part.name.lower()]
        return part if isinstance(part, syntax.Query) else None

    def _key(self, key: syntax.SortKey) -> syntax.SortKey:
        expr = key.expr
        if isinstance(expr, syntax.Name) and expr.qualifier is None and expr.name.lower() in self._aliases:
            return key
        return replace(key, expr=syntax.rewritten(expr, self._seen))

    def _item(self, item: syntax.SelectItem) -> syntax.SelectItem:
        is_called = item.alias is not None and item.alias.lower() in self._unique
        if item.alias is not None and is_called and not self._is_above(item.expr):
            self._give(item.expr, item.alias)  # others may call it so
        name = item.expr.name if isinstance(item.expr, syntax.Name) else self._session.snippet(item.expr.span)
        return replace(item, expr=syntax.rewritten(item.expr, self._seen), alias=item.alias or name or None)

    def _give(self, expr: syntax.Expr, name: str) -> None:
        self._names[expr] = name
        self._below.append(syntax.SelectItem(expr, name, span=expr.span))

    def _stays(self, expr: syntax.Syntax) -> bool:
        """It is no value of a set's rows: its parts may be."""
        return isinstance(expr, syntax.Star) or self._is_constant(expr) or self._is_above(expr)

    def _seen(self, part: syntax.Syntax) -> syntax.Syntax | None:
        """What stands above for a part of what was written; None: its own parts are looked at."""
        if isinstance(part, syntax.Over):
            call, seen = part.call, partial(syntax.rewritten, change=self._seen)
            call = replace(call, args=seen(call.args), order=seen(call.order))
            return replace(part, call=call, partition=seen(part.partition), order=seen(part.order))
        if isinstance(part, syntax.Query):
            return part
        if isinstance(part, syntax.Lambda):
            around, self._parameters = self._parameters, self._parameters.union(map(str.lower, part.parameters))
            body = syntax.rewritten(part.body, self._seen)
            self._parameters = around
            return replace(part, body=body)
        if isinstance(part, syntax.Pair) or not isinstance(part, syntax.Expr):
            return None
        if self._stays(part):
            return part if isinstance(part, syntax.Name | syntax.Star) or self._is_constant(part) else None
        if part not in self._names:
            self._give(part, f"value {len(self._below) + 1}")
        return syntax.Name(self._names[part], span=part.span)

    def _is_above(self, expr: syntax.Syntax) -> bool:
        """Something in it has OVER, is called as what has, or is a parameter of a lambda around it."""
        return any(
            isinstance(part, syntax.Over) or (isinstance(part, syntax.Name) and self._is_named_above(part))
            for part in parts(expr, syntax.Query)
        )

    def _is_named_above(self, name: syntax.Name) -> bool:
        if (name.qualifier or name.name).lower() in self._parameters:
            return True
        return name.qualifier is None and name.name.lower() in self._called and not self._is_column(name.name)

    def _is_column(self, name: str) -> bool:
        try:
            return self._scope.find(name, None) is not None
        except Ambiguous:
            return True

    def _is_constant(self, expr: syntax.Syntax) -> bool:
        return not any(
            isinstance(part, syntax.Name | syntax.Query)
            or (isinstance(part, syntax.Call) and is_aggregate(part.function, self._session.catalog))
            for part in parts(expr)
        )
