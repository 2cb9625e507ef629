"""The built-in functions and operators: what they take, what they give, and which of them can fail.

The binder asks for types, the planner asks `can_fail` before it moves an expression (docs/semantics R4, W8). A function
that is not in `FUNCTIONS` does not exist; one that is there has a row in `minidsms.expressions` too.

Invariant: `resolve` is total on argument types; None means "not for these types", never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minidsms.cql import scalar
from minidsms.elements import Type

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Signature:
    """The types the arguments are converted to, and the type of the result."""

    args: tuple[Type, ...]
    result: Type


@dataclass(frozen=True)
class Function:
    """A built-in. least and most: how many arguments (most None: any number). takes: the argument types in words."""

    name: str
    least: int
    most: int | None
    resolve: Callable[[Sequence[Type]], Signature | None]
    takes: str


def common_type(types: Sequence[Type]) -> Type | None:
    """The type several values are compared or collected in; NULL takes the others' type. None where there is none.

    >>> str(common_type([Type.INTEGER, Type.NULL, Type.FLOAT]))
    'FLOAT'
    >>> common_type([Type.TEXT, Type.INTEGER]) is None
    True
    """
    present = {t for t in types if t is not Type.NULL}
    if not present:
        return Type.NULL
    if len(present) == 1:
        return present.pop()
    if len(present) == 2 and Type.INTEGER in present:
        other = next(t for t in present if t is not Type.INTEGER)
        if other in (Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL):
            return other
    return None


def can_cast(source: Type, target: Type) -> bool:
    """Whether CAST goes from one type to the other."""
    if source is target or source is Type.NULL or target is Type.TEXT:
        return True
    allowed = {
        Type.INTEGER: (Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL),
        Type.FLOAT: (Type.INTEGER,),
        Type.BOOLEAN: (Type.INTEGER,),
        Type.TEXT: (Type.INTEGER, Type.FLOAT, Type.TIMESTAMP),
        Type.TIMESTAMP: (Type.INTEGER,),
        Type.INTERVAL: (Type.INTEGER,),
    }
    return target in allowed[source]


# ------------------------------------------------------------------------------------------------------- resolvers


def _number(types: Sequence[Type]) -> Type | None:
    common = common_type(types)
    if common is Type.NULL:
        return Type.INTEGER
    return common if common in (Type.INTEGER, Type.FLOAT) else None


def _beside(types: Sequence[Type], special: dict[tuple[Type, Type], Signature]) -> Signature | None:
    """A binary operator: numbers as numbers, else the table of time types; a NULL is whatever fits the other side."""
    left, right = types
    number = _number(types)
    if number is not None:
        return Signature((number, number), number)
    for (a, b), signature in special.items():
        if left in (a, Type.NULL) and right in (b, Type.NULL):
            return signature
    return None


def _times(*rows: tuple[Type, Type, Type, Type, Type]) -> dict[tuple[Type, Type], Signature]:
    return {(a, b): Signature((x, y), result) for a, b, x, y, result in rows}


_TS, _IV, _INT = Type.TIMESTAMP, Type.INTERVAL, Type.INTEGER

_PLUS = _times(
    (_TS, _IV, _TS, _IV, _TS),
    (_IV, _TS, _IV, _TS, _TS),
    (_IV, _IV, _IV, _IV, _IV),
    (_TS, _INT, _TS, _IV, _TS),
    (_INT, _TS, _IV, _TS, _TS),
    (_IV, _INT, _IV, _IV, _IV),
    (_INT, _IV, _IV, _IV, _IV),
)
# TIMESTAMP - TIMESTAMP stands first so that TIMESTAMP - NULL is a distance.
_MINUS = _times(
    (_TS, _TS, _TS, _TS, _IV),
    (_TS, _IV, _TS, _IV, _TS),
    (_IV, _IV, _IV, _IV, _IV),
    (_TS, _INT, _TS, _IV, _TS),
    (_INT, _TS, _TS, _TS, _IV),
    (_IV, _INT, _IV, _IV, _IV),
    (_INT, _IV, _IV, _IV, _IV),
)
_MULTIPLY = _times((_IV, _INT, _IV, _INT, _IV), (_INT, _IV, _INT, _IV, _IV))
_DIVIDE = _times((_IV, _IV, _IV, _IV, _INT), (_IV, _INT, _IV, _INT, _IV))


def _plus(types: Sequence[Type]) -> Signature | None:
    return _beside(types, _PLUS)


def _minus(types: Sequence[Type]) -> Signature | None:
    return _beside(types, _MINUS)


def _multiply(types: Sequence[Type]) -> Signature | None:
    return _beside(types, _MULTIPLY)


def _divide(types: Sequence[Type]) -> Signature | None:
    return _beside(types, _DIVIDE)


def _numbers(types: Sequence[Type]) -> Signature | None:
    number = _number(types)
    return None if number is None else Signature((number,) * len(types), number)


def _number_or_interval(types: Sequence[Type]) -> Signature | None:
    return Signature((_IV,), _IV) if types[0] is _IV else _numbers(types)


def _round(types: Sequence[Type]) -> Signature | None:
    number = _number(types[:1])
    if number is None or any(t not in (Type.INTEGER, Type.NULL) for t in types[1:]):
        return None
    return Signature((number, *(Type.INTEGER for _ in types[1:])), number)


def _compare(types: Sequence[Type]) -> Signature | None:
    common = common_type(types)
    if common is None:
        return None
    # Two bare NULLs are compared as integers: the answer is NULL whatever the type.
    type_ = Type.INTEGER if common is Type.NULL else common
    return Signature((type_,) * len(types), Type.BOOLEAN)


def _collect(types: Sequence[Type]) -> Signature | None:
    common = common_type(types)
    return None if common is None else Signature((common,) * len(types), common)


def _anything(types: Sequence[Type]) -> Signature | None:
    return Signature(tuple(Type.INTEGER if t is Type.NULL else t for t in types), Type.BOOLEAN)


def _fixed(result: Type, *params: Type) -> Callable[[Sequence[Type]], Signature | None]:
    """Fixed parameter types (the last repeats as needed); an INTEGER may stand where a FLOAT is wanted."""

    def resolve(types: Sequence[Type]) -> Signature | None:
        wanted = tuple(params[min(i, len(params) - 1)] for i in range(len(types)))
        fits = (
            have in (want, Type.NULL) or (have is Type.INTEGER and want is Type.FLOAT)
            for have, want in zip(types, wanted)
        )
        return Signature(wanted, result) if all(fits) else None

    return resolve


_NUMBERS = "INTEGER or FLOAT"
_SAME = "values of one type"


def _table() -> dict[str, Function]:
    text, boolean, float_, integer = Type.TEXT, Type.BOOLEAN, Type.FLOAT, Type.INTEGER
    rows = [
        Function("+", 2, 2, _plus, "numbers, TIMESTAMP and INTERVAL"),
        Function("-", 2, 2, _minus, "numbers, TIMESTAMP and INTERVAL"),
        Function("*", 2, 2, _multiply, "numbers, or INTERVAL and INTEGER"),
        Function("/", 2, 2, _divide, "numbers, or INTERVAL by INTEGER or INTERVAL"),
        Function("%", 2, 2, _numbers, _NUMBERS),
        Function("neg", 1, 1, _number_or_interval, "INTEGER, FLOAT or INTERVAL"),
        Function("||", 2, 2, _fixed(text, text), "TEXT"),
        Function("and", 2, None, _fixed(boolean, boolean), "BOOLEAN"),
        Function("or", 2, None, _fixed(boolean, boolean), "BOOLEAN"),
        Function("not", 1, 1, _fixed(boolean, boolean), "BOOLEAN"),
        Function("like", 2, 3, _fixed(boolean, text), "TEXT"),
        Function("in", 2, None, _compare, _SAME),
        Function("is null", 1, 1, _anything, "anything"),
        Function("is distinct from", 2, 2, _compare, _SAME),
        Function("abs", 1, 1, _number_or_interval, "INTEGER, FLOAT or INTERVAL"),
        Function("sign", 1, 1, _numbers, _NUMBERS),
        Function("floor", 1, 1, _numbers, _NUMBERS),
        Function("ceil", 1, 1, _numbers, _NUMBERS),
        Function("round", 1, 2, _round, "a number and INTEGER places"),
        Function("mod", 2, 2, _numbers, _NUMBERS),
        Function("least", 1, None, _collect, _SAME),
        Function("greatest", 1, None, _collect, _SAME),
        Function("coalesce", 1, None, _collect, _SAME),
        Function("nullif", 2, 2, _collect, _SAME),
        Function("length", 1, 1, _fixed(integer, text), "TEXT"),
        Function("substring", 2, 3, _fixed(text, text, integer), "TEXT, INTEGER and perhaps INTEGER"),
        Function("replace", 3, 3, _fixed(text, text), "three TEXT"),
        Function("starts_with", 2, 2, _fixed(boolean, text), "TEXT"),
        Function("concat", 1, None, _fixed(text, text), "TEXT"),
    ]
    rows += [Function(op, 2, 2, _compare, _SAME) for op in sorted(COMPARISONS)]
    rows += [Function(name, 1, 1, _fixed(float_, float_), _NUMBERS) for name in ("sqrt", "exp", "ln", "log10")]
    rows += [Function("power", 2, 2, _fixed(float_, float_), _NUMBERS)]
    rows += [Function(name, 1, 1, _fixed(text, text), "TEXT") for name in ("upper", "lower", "trim", "ltrim", "rtrim")]
    parts = ("year", "month", "day", "hour", "minute", "second", "dayofweek")
    rows += [Function(name, 1, 1, _fixed(integer, Type.TIMESTAMP), "TIMESTAMP") for name in parts]
    return {f.name: f for f in rows}


FUNCTIONS = _table()
"""Every built-in by its lower-case name; operators stand under the names `scalar.Call` gives them."""

SYNONYMS = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
}
"""Other spellings of the same functions; the bound tree only knows the first one."""

AGGREGATES = frozenset(("count", "sum", "avg", "min", "max", "variance", "stddev", "first", "last"))


def aggregate_type(function: str, arg: Type | None) -> Type | None:
    """The result type of a built-in aggregate (arg None: COUNT(*)), or None where it does not take the type."""
    if function == "count":
        return Type.INTEGER
    if arg is None:
        return None
    if arg is Type.NULL:
        arg = Type.INTEGER
    if function in ("min", "max", "first", "last"):
        return arg
    if function == "sum":
        return arg if arg in (Type.INTEGER, Type.FLOAT, Type.INTERVAL) else None
    return Type.FLOAT if arg in (Type.INTEGER, Type.FLOAT) else None


# ------------------------------------------------------------------------------------------------------- failure


def can_fail(expr: scalar.Expr) -> bool:
    """Whether the expression, or anything inside it, can fail on some row (conservative: True when in doubt).

    Only what docs/semantics R4 lists can: int64 arithmetic, CASTs that may not fit or be readable, user functions, and
    a scalar subquery, which may find more than one row.
    """
    pending = [expr]
    while pending:
        e = pending.pop()
        if _fails_itself(e):
            return True
        pending.extend(scalar.children(e))
    return False


def _fails_itself(expr: scalar.Expr) -> bool:
    match expr:
        case scalar.UserCall() | scalar.ScalarQuery():
            return True
        case scalar.Cast(type=target, arg=arg):
            if arg.type is Type.TEXT:
                return target is not Type.TEXT
            return arg.type is Type.FLOAT and target is not Type.TEXT and target is not Type.FLOAT
        case scalar.Call(function="+" | "-" | "*" | "neg" | "abs", args=args):
            return any(a.type is not Type.FLOAT for a in args)
        case scalar.Call(function="/", args=(dividend, divisor)):
            if dividend.type is Type.FLOAT:
                return False
            # Only the smallest integer divided by -1 leaves int64.
            return not (isinstance(divisor, scalar.Literal) and divisor.value != -1)
        case scalar.Call(function="single"):  # the planner's: the value of a scalar subquery
            return True
        case scalar.Call(function="round", args=(value, _)):
            return value.type is not Type.FLOAT
        case _:
            return False
