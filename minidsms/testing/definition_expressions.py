"""The value of an expression on one row, by definition.

Values are None (NULL), bool, int, float and str; TIMESTAMP and INTERVAL are ints of ticks. What cannot be computed,
such as an overflow, raises `Failed`; AND and OR take that as a fourth truth value. docs/semantics R2 and R4.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import add, eq, ge, gt, le, lt, mul, ne, neg, not_, sub
from typing import Any

import numpy as np

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.cql.times import iso_ticks
from minidsms.elements import Type
from minidsms.testing.civil_time import CALENDAR, iso_text
from minidsms.testing.definition_documents import OF_DOCUMENTS
from minidsms.testing.definition_library import OF_TIMES, OF_VALUES, Failure
from minidsms.testing.definition_lists import OF_LISTS
from minidsms.testing.definition_nested import OF_DECIMALS, OF_NESTED, literal, of_dates, of_decimals
from minidsms.testing.definition_nested import cast as cast_nested
from minidsms.testing.history import Row, Value
from minidsms.values.types import MOST_DIGITS

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1


class Failed(Exception):
    """An expression cannot be computed; its text says why."""


Result = Value | Failed


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: the rows of the enclosing queries, nearest first, and how a subquery is answered."""

    answer: Callable[[bound.Node, tuple[Row, ...]], Sequence[Row]]
    outer: tuple[Row, ...] = ()
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    tick_ns: int = 1_000_000
    parameters: tuple[Value, ...] = ()

    def within(self, row: Row) -> tuple[Row, ...]:
        """The rows around a subquery in an expression over the row."""
        return (row, *self.outer)


_BY_CASE = {"list_transform", "list_filter", "list_reduce", "struct", "and", "or", "in", "coalesce"}
"""Calls that are more than a function of the values of their arguments."""


def evaluate(expr: bound.Expr, row: Row, scope: Scope) -> Value:
    """The value of the expression on the row. Raises Failed where it has none."""
    match expr:
        case bound.ColumnRef(index=index):
            return row[index]
        case bound.Call(function=function, args=(a, b)) if function in COMPARISONS:
            return compare(function, evaluate(a, row, scope), evaluate(b, row, scope))
        case bound.Call(function=function, args=args) if function not in _BY_CASE:
            return normal(call(function, [evaluate(a, row, scope) for a in args], scope.tick_ns, expr.type))
        case bound.Literal(value=value):
            return literal(value, expr.type)  # type: ignore[no-any-return]
        case bound.Parameter(slot=slot):
            return scope.parameters[slot]
        case bound.Call(function="list_transform" | "list_filter" | "list_reduce", args=(listed, *_)):
            elements = evaluate(listed, row, scope)
            return None if elements is None else with_lambda(expr, elements, row, scope)
        case bound.Call(function="struct", args=args):
            return tuple((name, evaluate(a, row, scope)) for (name, _), a in zip(expr.type.fields, args))
        case bound.OuterRef(index=index, level=level):
            return scope.outer[level - 1][index]
        case bound.Call(function="and", args=args):
            return known(conjunction(judged(a, row, scope) for a in args))
        case bound.Call(function="or", args=args):
            return known(disjunction(judged(a, row, scope) for a in args))
        case bound.Call(function="in", args=(needle, bound.LiteralList(type=type_, values=constants))):
            items = tuple(bound.Literal(type_, each) for each in constants)
            return evaluate(bound.Call(Type.BOOLEAN, "in", (needle, *items)), row, scope)
        case bound.Call(function="in", args=(needle, *items)):
            equalities = (bound.Call(Type.BOOLEAN, "=", (needle, item)) for item in items)
            return known(disjunction(judged(equality, row, scope) for equality in equalities))
        case bound.Call(function="coalesce", args=args):
            values = (evaluate(a, row, scope) for a in args)
            return next((value for value in values if value is not None), None)
        case bound.Case(whens=whens, otherwise=otherwise):
            chosen = (then for condition, then in whens if evaluate(condition, row, scope) is True)
            return evaluate(next(chosen, otherwise), row, scope)
        case bound.Cast(arg=arg, or_null=or_null):
            found = evaluate(arg, row, scope)
            try:
                return None if found is None else normal(cast(found, arg.type, expr.type, scope.tick_ns))
            except Failed:
                if or_null:
                    return None
                raise
        case bound.UserCall(function=function, args=args):
            return normal(user_call(scope.functions[function.lower()], [evaluate(a, row, scope) for a in args]))
        case bound.Exists() | bound.ScalarQuery() | bound.InQuery() | bound.Quantified():
            return _of_query(expr, scope.answer(expr.query, scope.within(row)), row, scope)
    raise TypeError(f"no expression: {expr!r}")


def _of_query(expr: bound.Expr, rows: Sequence[Row], row: Row, scope: Scope) -> Value:
    """The value of an expression with a subquery, whose rows these are."""
    match expr:
        case bound.ScalarQuery():
            if len(rows) > 1:
                raise Failed("a scalar subquery has more than one row")
            return rows[0][0] if rows else None
        case bound.InQuery(args=args):
            sought = [evaluate(a, row, scope) for a in args]
            return known(disjunction(conjunction(map(compare, "=" * len(sought), sought, r)) for r in rows))
        case bound.Quantified(op=op, quantifier=quantifier, arg=arg):
            found = evaluate(arg, row, scope)
            combine = conjunction if quantifier == "all" else disjunction
            return known(combine(compare(op, found, other[0]) for other in rows))
    return len(rows) > 0


def judged(expr: bound.Expr, row: Row, scope: Scope) -> Result:
    """The value of the expression, or the failure it ends in."""
    try:
        return evaluate(expr, row, scope)
    except Failed as failed:
        return failed


def known(result: Result) -> Value:
    """The result; a failure is raised."""
    if isinstance(result, Failed):
        raise result
    return result


def conjunction(results: Iterable[Result]) -> Result:
    """FALSE if any is FALSE, else NULL if any is NULL, else failed if any failed, else TRUE (R4)."""
    found: Result = True
    for result in results:
        if result is None:
            found = None
        elif not result:
            return False
        elif found is True and isinstance(result, Failed):
            found = result
    return found


def disjunction(results: Iterable[Result]) -> Result:
    """The mirror image of `conjunction`."""
    return _negated(conjunction(map(_negated, results)))


def _negated(result: Result) -> Result:
    return not result if isinstance(result, bool) else result


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def compare(op: str, a: Value, b: Value) -> Value:
    """A comparison: NULL beside NULL; text by code point; FALSE before TRUE."""
    return None if a is None or b is None else COMPARISONS[op](a, b)


def with_lambda(expr: bound.Call, elements: Any, row: Row, scope: Scope) -> Value:
    """TRANSFORM, FILTER and REDUCE: the body once for each element, in their order."""
    taken = expr.args[-1]
    assert isinstance(taken, bound.Lambda)

    def called(*values: Value) -> Value:
        return evaluate(taken.body, row, replace(scope, parameters=(*scope.parameters[: taken.first], *values)))

    if expr.function == "list_reduce":
        found = evaluate(expr.args[1], row, scope)
        for element in elements:
            found = called(found, element)
        return found
    results = [called(element, place) for place, element in enumerate(elements, 1)]
    if expr.function == "list_filter":
        return tuple(e for e, keeps in zip(elements, results) if keeps is True)
    return tuple(results)


def call(function: str, values: Sequence[Any], tick_ns: int, type_: Type) -> Any:
    """A built-in function of values; all but those of OF_NULLS are NULL where a value is."""
    if function in OF_NULLS:
        return OF_NULLS[function](*values)
    if None in values and function not in ("list_value", "map"):
        return None
    if function in CALENDAR:
        return CALENDAR[function](values[0] * tick_ns)
    try:
        if type_.kind == "DECIMAL" and function in OF_DECIMALS:
            return of_decimals(function, values, type_)
        if function in ("+", "-") and any(isinstance(v, datetime.date) for v in values):
            return of_dates(function, *values)
        if function in OF_TIMES:
            return OF_TIMES[function](*values, tick_ns)
        if function in _OF_TABLE:
            return _OF_TABLE[function](*values)
    except Failure as failure:
        raise Failed(f"{function}: {failure}") from None
    return FUNCTIONS[function](*values)


_OF_TABLE = OF_VALUES | OF_DOCUMENTS | OF_LISTS | OF_NESTED


def normal(value: Value) -> Value:
    """NaN is NULL, -0.0 is 0.0; an integer beyond int64 and a DECIMAL of more than 38 digits are failures."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        raise Failed("integer overflow")
    if isinstance(value, Decimal) and len(value.as_tuple().digits) > MOST_DIGITS:
        raise Failed("too many digits")
    return value


def _quotient(a: Any, b: Any) -> Any:
    """NULL by 0; of integers truncated toward zero."""
    if b == 0 or isinstance(a, float):
        return None if b == 0 else a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Any, b: Any) -> Any:
    """NULL by 0 and of infinity; with the dividend's sign."""
    if b == 0 or isinstance(a, float):
        return None if b == 0 or math.isinf(a) else math.fmod(a, b)
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _round(a: Any, digits: int = 0) -> Any:
    """Half away from zero."""
    if isinstance(a, int):
        unit = 10 ** min(max(-digits, 0), 20)
        return (abs(a) + unit // 2) // unit * unit * (-1 if a < 0 else 1)
    if digits < -308:
        return 0.0
    scale = 10.0 ** min(digits, 308)
    if not math.isfinite(a * scale) or abs(a * scale) >= 2.0**52:
        return a
    return math.copysign(math.floor(abs(a * scale) + 0.5), a) / scale


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:  # 0 to a negative power is infinite, a root of a negative number is no number
        return math.inf if a == 0 else math.nan
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _substring(s: str, start: int, length: int | None = None) -> str:
    """The characters at positions start to start + length - 1, counted from 1, as far as there are any."""
    end = len(s) + 1 if length is None else start + length
    return s[max(start - 1, 0) : max(end - 1, 0)]


def _like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    tokens = re.findall(f"{re.escape(escape)}.|." if escape else ".", pattern, re.DOTALL)
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(t) or re.escape(t[-1]) for t in tokens), re.DOTALL)


OF_NULLS: dict[str, Callable[..., Any]] = {
    "is null": lambda a: a is None,
    "is distinct from": lambda a, b: a != b,
    "least": lambda *values: min((v for v in values if v is not None), default=None),
    "greatest": lambda *values: max((v for v in values if v is not None), default=None),
    "nullif": lambda a, b: None if a == b else a,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **COMPARISONS,
    "+": add,
    "-": sub,
    "*": mul,
    "/": _quotient,
    "%": _remainder,
    "neg": neg,
    "abs": abs,
    "sign": lambda a: type(a)((a > 0) - (a < 0)),
    "floor": lambda a: a if math.isinf(a) else type(a)(math.floor(a)),
    "ceil": lambda a: a if math.isinf(a) else type(a)(math.ceil(a)),
    "round": _round,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else None,
    "power": _power,
    "exp": lambda a: math.exp(a) if a <= math.log(sys.float_info.max) else math.inf,
    "ln": lambda a: math.log(a) if a > 0 else None,
    "log10": lambda a: math.log10(a) if a > 0 else None,
    "not": not_,
    "like": lambda s, pattern, escape="": _like_pattern(pattern, escape).fullmatch(s) is not None,
    "||": lambda *texts: "".join(texts),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "substring": _substring,
    "trim": lambda s, characters=" ": s.strip(characters),
    "ltrim": lambda s, characters=" ": s.lstrip(characters),
    "rtrim": lambda s, characters=" ": s.rstrip(characters),
    "replace": lambda s, old, new: s.replace(old, new) if old else s,
    "starts_with": str.startswith,
}


def cast(value: Any, source: Type, target: Type, tick_ns: int) -> Value:
    """CAST of a value that is not NULL; unreadable texts and floats beyond int64 fail."""
    if target is Type.BOOLEAN or not (source.is_basic and target.is_basic):
        try:
            return cast_nested(value, source, target, tick_ns)  # type: ignore[no-any-return]
        except Failure as failure:
            raise Failed(f"{value!r}: {failure}") from None
    if target is Type.TEXT:
        if source is Type.TIMESTAMP:
            return iso_text(value * tick_ns)
        return value if isinstance(value, str) else repr(value).lower() if isinstance(value, bool) else repr(value)
    try:
        if target is Type.TIMESTAMP and isinstance(value, str):
            return iso_ticks(value.strip(), tick_ns)
        return float(value) if target is Type.FLOAT else int(value)
    except (ValueError, OverflowError):
        raise Failed(f"{value!r} is no {target}") from None


def user_call(function: FunctionDef, values: Sequence[Value]) -> Value:
    """A registered function; a vectorized one is given columns of one row, and none that holds a NULL."""
    try:
        if not function.vectorized:
            result: Any = function.function(*values)
        elif None in values:
            return None
        else:
            columns = [np.array([v], object if isinstance(v, str) else None) for v in values]
            result = np.asarray(function.function(*columns)).tolist()[0]
    except (Exception, SystemExit) as error:  # the function is the user's: whatever it raises is its failure
        raise Failed(f"{function.name} raised {type(error).__name__}: {error}") from None
    return float(result) if function.type is Type.FLOAT and result is not None else result
