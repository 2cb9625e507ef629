"""The value of an expression on one row, by definition.

Values are None (NULL), bool, int, float and str; TIMESTAMP and INTERVAL are ints of ticks. A fourth truth value,
`Failed`, stands for what cannot be computed, such as an overflow: it travels like a value and is judged where rows are.
docs/semantics R2 and R4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.cql.times import iso_ticks
from minidsms.elements import Type

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Failed:
    """The result of an expression that cannot be computed."""

    reason: str


Value = None | bool | int | float | str
Row = tuple[Value, ...]
Result = Value | Failed


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: the rows of the enclosing queries, nearest first, and how a subquery is answered."""

    answer: Callable[[bound.Node, tuple[Row, ...]], Sequence[Row]]
    outer: tuple[Row, ...] = ()
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    tick_ns: int = 1_000_000


def evaluate(expr: bound.Expr, row: Row, scope: Scope) -> Result:
    """The value of the expression on the row, or why it has none."""
    match expr:
        case bound.ColumnRef(index=index):
            return row[index]
        case bound.Literal(value=value):
            return value
        case bound.Call(function="and", args=args):
            return conjunction(evaluate(a, row, scope) for a in args)
        case bound.Call(function="or", args=args):
            return _disjunction(evaluate(a, row, scope) for a in args)
        case bound.Call(function="in", args=(needle, *items)):
            # The OR of its equalities: an item that fails does not count beside one that is equal.
            sought = evaluate(needle, row, scope)
            return _disjunction(_equal(sought, evaluate(item, row, scope)) for item in items)
        case bound.Call(function="coalesce", args=args):
            for arg in args:
                result = evaluate(arg, row, scope)
                if result is not None:
                    return result
            return None
        case bound.Call(function=function, args=args):
            return _call(function, expr, [evaluate(a, row, scope) for a in args], scope)
        case bound.OuterRef(index=index, level=level):
            return scope.outer[level - 1][index]
        case bound.Case(whens=whens, otherwise=otherwise):
            for condition, chosen in whens:
                truth = evaluate(condition, row, scope)
                if isinstance(truth, Failed):
                    return truth
                if truth is True:
                    return evaluate(chosen, row, scope)
            return evaluate(otherwise, row, scope)
        case bound.Cast(arg=arg):
            result = evaluate(arg, row, scope)
            if result is None or isinstance(result, Failed):
                return result
            return _normal(_cast(result, arg.type, expr.type, scope.tick_ns))
        case bound.UserCall(function=function, args=args):
            values = [evaluate(a, row, scope) for a in args]
            failed = next((v for v in values if isinstance(v, Failed)), None)
            return failed or _normal(_user_call(scope.functions[function.lower()], values))
        case _:
            return _subquery(expr, row, scope)


def _subquery(expr: bound.Expr, row: Row, scope: Scope) -> Result:
    """EXISTS, IN, scalar and quantified subqueries, answered anew for this row."""
    inside = (row, *scope.outer)
    match expr:
        case bound.Exists(query=query):
            return len(scope.answer(query, inside)) > 0
        case bound.ScalarQuery(query=query):
            rows = scope.answer(query, inside)
            if len(rows) > 1:
                return Failed("a scalar subquery has more than one row")
            return rows[0][0] if rows else None
        case bound.InQuery(args=args, query=query):
            values = [evaluate(a, row, scope) for a in args]
            for value in values:
                if isinstance(value, Failed):
                    return value
            return _disjunction(
                conjunction(_compare("=", a, b) for a, b in zip(values, other))  # type: ignore[arg-type]
                for other in scope.answer(query, inside)
            )
        case bound.Quantified(op=op, quantifier=quantifier, arg=arg, query=query):
            value = evaluate(arg, row, scope)
            if isinstance(value, Failed):
                return value
            combine = conjunction if quantifier == "all" else _disjunction
            return combine(_compare(op, value, other[0]) for other in scope.answer(query, inside))
    raise TypeError(f"no expression: {expr!r}")


def conjunction(results: Iterable[Result]) -> Result:
    """FALSE if any is FALSE, else NULL if any is NULL, else failed if any failed, else TRUE (R4)."""
    null, failed = False, None
    for result in results:
        if result is False:
            return False
        if result is None:
            null = True
        elif isinstance(result, Failed):
            failed = failed or result
    return None if null else failed or True


def _disjunction(results: Iterable[Result]) -> Result:
    """The mirror image of `conjunction`."""
    null, failed = False, None
    for result in results:
        if result is True:
            return True
        if result is None:
            null = True
        elif isinstance(result, Failed):
            failed = failed or result
    return None if null else failed or False


def _compare(op: str, a: Value, b: Value) -> Value:
    """A comparison: NULL beside NULL; text by code point; FALSE before TRUE."""
    if a is None or b is None:
        return None
    match op:
        case "=":
            return a == b
        case "<>":
            return a != b
        case "<":
            return a < b  # type: ignore[operator]
        case "<=":
            return a <= b  # type: ignore[operator]
        case ">":
            return a > b  # type: ignore[operator]
        case _:
            return a >= b  # type: ignore[operator]


def _equal(a: Result, b: Result) -> Result:
    """a = b of evaluated operands; a failed one makes it fail."""
    for operand in (a, b):
        if isinstance(operand, Failed):
            return operand
    return _compare("=", a, b)  # type: ignore[arg-type]


COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def _call(function: str, expr: bound.Expr, args: list[Result], scope: Scope) -> Result:
    """A built-in function of evaluated arguments."""
    values: list[Value] = []
    for arg in args:
        if isinstance(arg, Failed):
            return arg
        values.append(arg)
    if function in COMPARISONS:
        return _compare(function, values[0], values[1])
    if function == "is null":
        return values[0] is None
    if function == "is distinct from":
        return values[0] != values[1]
    if function in ("least", "greatest"):
        known = [v for v in values if v is not None]
        return (min if function == "least" else max)(known) if known else None
    if function == "nullif":
        return None if _compare("=", values[0], values[1]) is True else values[0]
    if any(v is None for v in values):
        return None
    if function in CALENDAR:
        return CALENDAR[function](int(values[0] or 0) * scope.tick_ns)
    if function in ("round", "floor", "ceil", "abs", "sign") and expr.type is not Type.FLOAT:
        return _integer(INTEGER_FUNCTIONS[function](*values))
    if function in ARITHMETIC and expr.type is not Type.FLOAT:
        return _integer(INTEGER_FUNCTIONS[function](*values))
    return _normal(FUNCTIONS[function](*values))


def _integer(value: int | None) -> Result:
    """An int64, or a failure: integers never wrap."""
    if value is not None and not MIN_INTEGER <= value <= MAX_INTEGER:
        return Failed("integer overflow")
    return value


def _normal(value: Result) -> Result:
    """NaN is NULL and -0.0 is 0.0."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


def _truncated_quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    """With the dividend's sign."""
    return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def _round_integer(a: int, digits: int = 0) -> int:
    if digits >= 0:
        return a
    unit: int = 10 ** min(-digits, 20)
    return (abs(a) + unit // 2) // unit * unit * (-1 if a < 0 else 1)


def _float_quotient(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _float_remainder(a: float, b: float) -> float | None:
    return None if b == 0 or math.isinf(a) else math.fmod(a, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:  # 0 to a negative power is infinite, a root of a negative number is no number
        return math.inf if a == 0 else math.nan
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _round_float(a: float, digits: int = 0) -> float:
    """Half away from zero."""
    scale = 10.0**digits
    scaled = a * scale
    if not math.isfinite(scaled) or abs(scaled) >= 2.0**52:
        return a
    return math.copysign(math.floor(abs(scaled) + 0.5), a) / scale


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda a: float(function(a)) if math.isfinite(a) else a


def _substring(s: str, start: int, length: int | None = None) -> str:
    """The characters at positions start to start + length - 1, counted from 1, as far as there are any."""
    end = len(s) + 1 if length is None else start + length
    return s[max(start - 1, 0) : max(end - 1, 0)]


@lru_cache(maxsize=256)
def _like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    parts, i = [], 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape and i + 1 < len(pattern):
            i += 1
            parts.append(re.escape(pattern[i]))
        else:
            parts.append(".*" if c == "%" else "." if c == "_" else re.escape(c))
        i += 1
    return re.compile("".join(parts), re.DOTALL)


def _like(s: str, pattern: str, escape: str = "") -> bool:
    return _like_pattern(pattern, escape).fullmatch(s) is not None


INTEGER_FUNCTIONS: dict[str, Callable[..., int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _truncated_quotient,
    "%": _remainder,
    "mod": _remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "floor": lambda a: a,
    "ceil": lambda a: a,
    "round": _round_integer,
}
ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "mod", "neg"})

FUNCTIONS: dict[str, Callable[..., Result]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _float_quotient,
    "%": _float_remainder,
    "mod": _float_remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "floor": _whole(math.floor),
    "ceil": _whole(math.ceil),
    "round": _round_float,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else None,
    "power": _power,
    "exp": _exp,
    "ln": lambda a: math.log(a) if a > 0 else None,
    "log10": lambda a: math.log10(a) if a > 0 else None,
    "not": lambda a: not a,
    "like": _like,
    "||": lambda *texts: "".join(texts),
    "concat": lambda *texts: "".join(texts),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "substring": _substring,
    "trim": lambda s: s.strip(" "),
    "ltrim": lambda s: s.lstrip(" "),
    "rtrim": lambda s: s.rstrip(" "),
    "replace": lambda s, old, new: s.replace(old, new) if old else s,
    "starts_with": str.startswith,
}

DAY_NS = 86_400 * 10**9


def _civil(ns: int) -> tuple[int, int, int]:
    """(year, month, day) of an instant, in the proleptic Gregorian calendar, UTC; for any int64."""
    era, day_of_era = divmod(ns // DAY_NS + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


CALENDAR: dict[str, Callable[[int], int]] = {
    "year": lambda ns: _civil(ns)[0],
    "month": lambda ns: _civil(ns)[1],
    "day": lambda ns: _civil(ns)[2],
    "hour": lambda ns: ns % DAY_NS // (3_600 * 10**9),
    "minute": lambda ns: ns // (60 * 10**9) % 60,
    "second": lambda ns: ns // 10**9 % 60,
    "dayofweek": lambda ns: (ns // DAY_NS + 4) % 7,
}


def _cast(value: bool | int | float | str, source: Type, target: Type, tick_ns: int) -> Result:
    """CAST; unreadable texts and floats beyond int64 fail."""
    if target is Type.TEXT:
        if source is Type.TIMESTAMP:
            return _iso(int(value), tick_ns)
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else repr(value)
    if isinstance(value, str):
        return _read(value.strip(), target, tick_ns)
    if target is Type.FLOAT:
        return float(value)
    if isinstance(value, float):
        return _integer(int(value)) if math.isfinite(value) else Failed("out of the range of INTEGER")
    return int(value)


def _iso(ticks: int, tick_ns: int) -> str:
    ns = ticks * tick_ns
    year, month, day = _civil(ns)
    fraction = f".{ns % 10**9:09d}".rstrip("0") if ns % 10**9 else ""
    clock = ":".join(f"{CALENDAR[unit](ns):02d}" for unit in ("hour", "minute", "second"))
    return f"{year:04d}-{month:02d}-{day:02d} {clock}{fraction}"


def _read(text: str, target: Type, tick_ns: int) -> Result:
    """A text as a value of the target type."""
    try:
        if target is Type.FLOAT:
            return float(text)
        return _integer(iso_ticks(text, tick_ns) if target is Type.TIMESTAMP else int(text))
    except ValueError:
        return Failed(f"{text!r} is no {target}")


def _user_call(function: FunctionDef, values: Sequence[Result]) -> Result:
    """A registered scalar function; None stands for NULL. What it raises is a failure."""
    try:
        result: Result = function.function(*values)
    except Exception as error:  # the function is the user's: whatever it raises is its failure
        return Failed(f"{function.name} raised {type(error).__name__}: {error}")
    return result
