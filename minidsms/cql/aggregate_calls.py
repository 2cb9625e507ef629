"""Calls of built-in aggregates: from the arguments and the order as bound to what a group's state is asked for.

Invariant: the values, sort keys and parameters of a call stand where its row of the table says, in the types it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minidsms.aggregates import AGGREGATES
from minidsms.aggregates.aggregate import Aggregate, Ordering, Settings, SortKey
from minidsms.cql import bound, syntax
from minidsms.cql.coercion import coerce, typed
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import can_cast
from minidsms.cql.long_number import LongNumber
from minidsms.cql.session import Session
from minidsms.elements import Type

_HINTS = {
    "min": "the least of several values is LEAST",
    "max": "the greatest of several values is GREATEST",
    "count": "rows where several are not NULL: COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)",
}


def _where(condition: bound.Expr, value: bound.Expr) -> bound.Expr:
    return bound.Case(value.type, ((condition, value),), bound.Literal(value.type, None))


def _of_pairs(value: bound.Expr, y: bound.Expr, x: bound.Expr) -> bound.Expr:
    """The value where neither y nor x is NULL."""
    some = [bound.Call(Type.BOOLEAN, "not", (bound.Call(Type.BOOLEAN, "is null", (e,)),)) for e in (y, x)]
    return _where(bound.Call(Type.BOOLEAN, "and", tuple(some)), value)


_ONE = bound.Literal(Type.INTEGER, 1)
_OF_ONE: dict[str, Callable[..., bound.Expr]] = {
    "count_if": lambda condition: _where(condition, _ONE),
    "regr_count": lambda y, x: _of_pairs(_ONE, y, x),
    "regr_avgy": lambda y, x: _of_pairs(y, y, x),
    "regr_avgx": lambda y, x: _of_pairs(x, y, x),
}
"""What the aggregate a kernel keeps is of."""


def _chosen(value: bound.Expr) -> tuple[bound.Expr, ...]:
    """A value that is one of a row or NULL, as FILTER makes it, perhaps in a list: the forms that order it alike."""
    match value:
        case bound.Case(whens=((_, one),), otherwise=bound.Literal(value=None)):
            inside = one.args if isinstance(one, bound.Call) and one.function == "list_value" else ()
            return value, one, *inside
    return (value,)


class AggregateCallBinder:
    """Binds one call. key: the aggregate's name in the table."""

    def __init__(self, session: Session, expr: syntax.Call, key: str) -> None:
        self._session = session
        self._expr = expr
        row = AGGREGATES[key]
        takes_several = bool(row.several) and len(expr.args) == row.most + 1
        self._row: Aggregate = AGGREGATES[row.several] if takes_several else row
        self._hint = _HINTS.get(key, "")

    def bind(self, args: Sequence[bound.Expr], order: Sequence[bound.Expr]) -> bound.AggregateCall:
        """The call over bound arguments. order: what ORDER BY names."""
        expr, row = self._expr, self._row
        self._check_shape(order)
        values, parameters = self._divided(args)
        if expr.within:
            values = list(order)
        if row.name == "sum" and values[0].type.kind == "DECIMAL":
            row = AGGREGATES["sum_decimal"]
        types = [v.type for v in values]
        # What takes FLOAT takes DECIMAL as FLOAT.
        signature = row.resolve(types) or row.resolve([Type.FLOAT if t.kind == "DECIMAL" else t for t in types])
        if signature is None:
            raise self._wrong_types(values)
        values = [coerce(self._session, v, t) for v, t in zip(values, signature.args)]
        if row.name in _OF_ONE:
            values = [_OF_ONE[row.name](*values)]
        if row.state is None:
            # MIN and MAX do not see repetitions, so that their DISTINCT is no difference.
            distinct = expr.distinct and row.distinct
            ignores_nulls = expr.nulls == "ignore" and not row.passes_nulls
            return bound.AggregateCall(
                row.kept_as, values[0], signature.result, distinct, ignores_nulls=ignores_nulls, span=expr.span
            )
        keys = tuple(SortKey(k.descending, bool(k.nulls_first)) for k in expr.order)
        behind: Sequence[bound.Expr] = ()
        if row.ordering is Ordering.INSIDE:
            behind, keys = self._sorted_by(values, order, keys)
        by_arrival = row.ordering is Ordering.INSIDE and not keys
        settings = Settings(len(values), parameters, keys, row.passes_nulls or expr.nulls == "ignore", by_arrival)
        return bound.AggregateCall(
            row.name, None, signature.result, expr.distinct, args=(*values, *behind), settings=settings, span=expr.span
        )

    def _check_shape(self, order: Sequence[bound.Expr]) -> None:
        """The number of arguments, and the words that not every aggregate takes."""
        expr, row = self._expr, self._row
        count = len(expr.args)
        if not row.least <= count <= row.most:
            wants = {(0, 0): "no argument", (1, 1): "one argument"}.get(
                (row.least, row.most),
                f"{row.least} arguments" if row.least == row.most else f"{row.least} to {row.most} arguments",
            )
            raise self._error(f"{expr.function} takes {wants}, not {count}", self._hint if count else "")
        takes_distinct = row.distinct or row.kept_as in ("min", "max")
        if expr.distinct and not takes_distinct:
            raise self._error(f"{expr.function} takes no DISTINCT")
        if expr.nulls == "respect" and row.passes_nulls:
            raise self._error(f"{expr.function} passes over NULLs")
        if expr.within and row.ordering is not Ordering.WITHIN:
            raise self._error(f"{expr.function} takes no WITHIN GROUP")
        if expr.order and not expr.within and row.ordering is not Ordering.INSIDE:
            hint = f"{expr.function}(..) WITHIN GROUP (ORDER BY ..)" if row.ordering is Ordering.WITHIN else ""
            raise self._error(f"{expr.function} takes no ORDER BY inside", hint)
        if row.ordering is Ordering.WITHIN:
            # MODE(x) needs none; the others have no value without.
            needs = 0 if row.least == 0 and count else 1
            if len(order) != needs:
                hint = f"{expr.function}(..) WITHIN GROUP (ORDER BY value)"
                raise self._error(f"{expr.function} takes {'one value' if needs else 'no'} WITHIN GROUP", hint)

    def _divided(self, args: Sequence[bound.Expr]) -> tuple[list[bound.Expr], tuple[Any, ...]]:
        """The arguments that are values, and the values of those that must be literals."""
        row = self._row
        parameters = []
        for i, check in row.literals.items():
            if i >= len(args):
                parameters.append(row.defaults[i])
                continue
            arg = args[i]
            if not isinstance(arg, bound.Literal) or arg.value is None:
                hint = "write a call for each" if arg.type.element is not None else self._hint
                raise self._error(f"argument {i + 1} of {self._expr.function} must be a literal", hint, arg)
            problem = check(arg.value)
            if problem is not None:
                raise self._error(f"{self._expr.function}: {problem}", place=arg)
            parameters.append(arg.value if arg.exact is None else LongNumber(str(arg.exact)))
        return [a for i, a in enumerate(args) if i not in row.literals], tuple(parameters)

    def _sorted_by(
        self, values: list[bound.Expr], order: Sequence[bound.Expr], keys: tuple[SortKey, ...]
    ) -> tuple[Sequence[bound.Expr], tuple[SortKey, ...]]:
        """What ORDER BY names, and how. Of DISTINCT values it can only name themselves."""
        if self._expr.distinct:
            passes_nulls = self._row.passes_nulls or self._expr.nulls == "ignore"
            same = _chosen(values[0]) if passes_nulls else (values[0],)
            other = next((key for key in order if key not in same), None)
            if other is not None:
                raise self._error("with DISTINCT the order can only be that of the values", "leave ORDER BY out", other)
            return (order, keys) if order else (values, (SortKey(),))
        unordered = next((e for e in order if e.type.is_nested), None)
        if unordered is not None:
            raise self._error("lists have no order", "order by an element or by CARDINALITY", unordered)
        return [typed(self._session, e) for e in order], keys

    def _wrong_types(self, values: Sequence[bound.Expr]) -> CqlError:
        name, row = self._expr.function, self._row
        single = [row.resolve([v.type if v is one else Type.NULL for v in values]) for one in values]
        wrong = next((v for v, found in zip(values, single) if found is None), values[0])
        numbers = (t for t in (Type.FLOAT, Type.INTEGER) if can_cast(wrong.type, t))
        fitting = next((t for t in numbers if row.resolve([t] * len(values)) is not None), None)
        written = self._session.snippet(wrong.span)
        return self._session.error(
            f"{name} does not take {wrong.type}",
            wrong.span,
            f"this is {wrong.type}",
            f"it takes {row.takes}" if fitting is None else f"convert it: CAST({written} AS {fitting})",
        )

    def _error(self, reason: str, hint: str = "", place: bound.Expr | None = None) -> CqlError:
        span = self._expr.span if place is None or place.span == (0, 0) else place.span
        return self._session.error(reason, span, "", hint)
