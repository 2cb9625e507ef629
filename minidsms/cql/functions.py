"""The built-in functions and operators: what they take, what they give, and which of them can fail.

The binder asks for types, the planner asks `can_fail` before it moves an expression (docs/semantics R4, W8). A function
that is not in `FUNCTIONS` does not exist; one that is there has a row in `minidsms.expressions` too.

Invariant: `resolve` is total on argument types; None means "not for these types", never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql import scalar
from minidsms.elements import Type
from minidsms.functions import LIBRARY
from minidsms.functions.function import Function, Signature, fixed

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


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
    return target in allowed.get(source, ())


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


def _order(types: Sequence[Type]) -> Signature | None:
    """As `_compare`, of what has an order; lists have none."""
    return None if any(t.element is not None for t in types) else _compare(types)


def _collect(types: Sequence[Type]) -> Signature | None:
    common = common_type(types)
    return None if common is None else Signature((common,) * len(types), common)


def _ordered(types: Sequence[Type]) -> Signature | None:
    return None if any(t.element is not None for t in types) else _collect(types)


def _anything(types: Sequence[Type]) -> Signature | None:
    return Signature(tuple(Type.INTEGER if t is Type.NULL else t for t in types), Type.BOOLEAN)


_NUMBERS = "INTEGER or FLOAT"
_SAME = "values of one type"
_AT = "TIMESTAMP '2013-05-31 14:35:07'"


def _operators() -> list[Function]:
    """What has signs or syntax of its own; `scalar.Call` has them under these names."""
    text, boolean = Type.TEXT, Type.BOOLEAN
    return [
        Function("+", 2, 2, _plus, "numbers, TIMESTAMP and INTERVAL"),
        Function("-", 2, 2, _minus, "numbers, TIMESTAMP and INTERVAL"),
        Function("*", 2, 2, _multiply, "numbers, or INTERVAL and INTEGER"),
        Function("/", 2, 2, _divide, "numbers, or INTERVAL by INTEGER or INTERVAL"),
        Function("%", 2, 2, _numbers, _NUMBERS),
        Function("neg", 1, 1, _number_or_interval, "INTEGER, FLOAT or INTERVAL"),
        Function("||", 2, 2, fixed(text, text), "TEXT"),
        Function("and", 2, None, fixed(boolean, boolean), "BOOLEAN"),
        Function("or", 2, None, fixed(boolean, boolean), "BOOLEAN"),
        Function("not", 1, 1, fixed(boolean, boolean), "BOOLEAN"),
        Function("like", 2, 3, fixed(boolean, text), "TEXT"),
        Function("in", 2, None, _compare, _SAME),
        Function("is null", 1, 1, _anything, "anything"),
        Function("is distinct from", 2, 2, _compare, _SAME),
        *(Function(op, 2, 2, _compare if op in ("=", "<>") else _order, _SAME) for op in sorted(COMPARISONS)),
    ]


OPERATORS = {f.name: f for f in _operators()}
"""Operators by the names `scalar.Call` gives them."""


def _called() -> list[Function]:
    """Functions that the planner, the kernels or the binder know by name."""
    text, boolean, float_, integer = Type.TEXT, Type.BOOLEAN, Type.FLOAT, Type.INTEGER
    number = (_numbers, _NUMBERS)
    rows = [
        Function("coalesce", 1, None, _collect, _SAME, "the first that is not NULL", ("COALESCE(NULL, 2, 3)", "2")),
        Function("nullif", 2, 2, _collect, _SAME, "NULL where both are equal, else the first", ("NULLIF(1, 2)", "1")),
        Function("least", 1, None, _ordered, _SAME, "the least; NULLs do not count", ("LEAST(3, NULL, 2)", "2")),
        Function("greatest", 1, None, _ordered, _SAME, "the greatest; NULLs do not count", ("GREATEST(3, 2)", "3")),
        Function("abs", 1, 1, _number_or_interval, "INTEGER, FLOAT or INTERVAL", "without its sign", ("ABS(-2)", "2")),
        Function("sign", 1, 1, *number, "-1, 0 or 1", ("SIGN(-2.5)", "-1.0")),
        Function("floor", 1, 1, *number, "the whole number at or below", ("FLOOR(-2.5)", "-3.0")),
        Function("ceil", 1, 1, *number, "the whole number at or above", ("CEIL(-2.5)", "-2.0")),
        Function(
            "round", 1, 2, _round, "a number and INTEGER places",
            "to so many decimal places, away from zero at the half", ("ROUND(2.45, 1)", "2.5"),
        ),
        Function("mod", 2, 2, *number, "the rest of a division, with the dividend's sign", ("MOD(-7, 3)", "-1")),
        Function("power", 2, 2, fixed(float_, float_), _NUMBERS, "the first to the second", ("POWER(2, 10)", "1024.0")),
        Function("sqrt", 1, 1, fixed(float_, float_), _NUMBERS, "the square root", ("SQRT(9)", "3.0")),
        Function("exp", 1, 1, fixed(float_, float_), _NUMBERS, "e to this", ("EXP(0)", "1.0")),
        Function("ln", 1, 1, fixed(float_, float_), _NUMBERS, "the natural logarithm", ("LN(1)", "0.0")),
        Function("log10", 1, 1, fixed(float_, float_), _NUMBERS, "the logarithm to the base 10", ("LOG10(100)", "2.0")),
        Function("length", 1, 1, fixed(integer, text), "TEXT", "how many characters", ("LENGTH('né')", "2")),
        Function("upper", 1, 1, fixed(text, text), "TEXT", "in upper case", ("UPPER('né')", "'NÉ'")),
        Function("lower", 1, 1, fixed(text, text), "TEXT", "in lower case", ("LOWER('NÉ')", "'né'")),
        *(
            Function(name, 1, 2, fixed(text, text), "TEXT", f"without spaces, or given characters, {where}", example)
            for name, where, example in (
                ("trim", "at both ends", ("TRIM('..a.', '.')", "'a'")),
                ("ltrim", "at the left", ("LTRIM(' a ')", "'a '")),
                ("rtrim", "at the right", ("RTRIM(' a ')", "' a'")),
            )
        ),
        Function(
            "substring", 2, 3, fixed(text, text, integer), "TEXT, INTEGER and perhaps INTEGER",
            "from a position, counted from 1, so many characters or all", ("SUBSTRING('stream', 3, 2)", "'re'"),
        ),
        Function(
            "replace", 3, 3, fixed(text, text), "three TEXT", "each occurrence of the second text as the third",
            ("REPLACE('a-b-c', '-', '+')", "'a+b+c'"),
        ),
        Function(
            "starts_with", 2, 2, fixed(boolean, text), "TEXT", "whether the first text begins with the second",
            ("STARTS_WITH('stream', 'st')", "true"),
        ),
        Function("concat", 1, None, fixed(text, text), "TEXT", "one after the other", ("CONCAT('a', 'b')", "'ab'")),
        Function(
            "concat_ws", 2, None, fixed(text, text), "TEXT",
            "with the first between the others; NULLs are passed over", ("CONCAT_WS('-', 'a', NULL, 'b')", "'a-b'"),
        ),
        Function(
            "date_part", 2, 2, fixed(integer, text, Type.TIMESTAMP), "a part and TIMESTAMP",
            "the part, as the function of its name gives it; also `EXTRACT(part FROM t)`",
            (f"DATE_PART('hour', {_AT})", "14"),
        ),
    ]  # fmt: skip
    parts = {"year": "2013", "month": "5", "day": "31", "hour": "14", "minute": "35", "second": "7", "dayofweek": "5"}
    for part, value in parts.items():
        summary = f"the {part}" if part != "dayofweek" else "the day of the week, Sunday is 0"
        types = fixed(integer, Type.TIMESTAMP)
        rows.append(Function(part, 1, 1, types, "TIMESTAMP", summary, (f"{part.upper()}({_AT})", value)))
    return rows


CALLED = {f.name: f for f in _called()} | LIBRARY
"""What is called by a name, by that name in lower case."""

FUNCTIONS = OPERATORS | CALLED
"""Every built-in by the name that `scalar.Call` gives it."""

SYNONYMS = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "strpos": "instr",
    "position": "instr",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "regexp_like": "regexp_matches",
    "datediff": "date_diff",
    "datetrunc": "date_trunc",
    "dateadd": "timestampadd",
    "truncate": "trunc",
    "unicode": "ascii",
    "ord": "ascii",
    "datepart": "date_part",
    "json_extract_path": "json_extract",
    "json_extract_path_text": "json_extract_string",
    "extractjsonfield": "json_extract_string",
    "is_json_string": "json_valid",
    "list_extract": "element_at",
    "array_length": "cardinality",
    "array_contains": "list_contains",
    "array_position": "list_position",
    "array_slice": "list_slice",
    "array_concat": "list_concat",
    "array_cat": "list_concat",
    "array_append": "list_append",
    "array_distinct": "list_distinct",
    "array_sort": "list_sort",
    "array_reverse": "list_reverse",
    "array_sum": "list_sum",
    "array_min": "list_min",
    "array_max": "list_max",
    "array_join": "array_to_string",
    "split": "string_split",
    "string_to_array": "string_split",
}
"""Other spellings of the same functions; the bound tree only knows the first one."""


# ------------------------------------------------------------------------------------------------------- failure


@scalar.kept
def can_fail(expr: scalar.Expr) -> bool:
    """Whether the expression, or anything inside it, can fail on some row (conservative: True when in doubt).

    Only what docs/semantics R4 lists can: int64 arithmetic, CASTs that may not fit or be readable, user functions, and
    a scalar subquery, which may find more than one row.
    """
    return any(map(_fails_itself, scalar.walk(expr)))


def _fails_itself(expr: scalar.Expr) -> bool:
    match expr:
        case scalar.ColumnRef() | scalar.Literal():
            return False
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
        case scalar.Call(function=function) if function in LIBRARY:
            return LIBRARY[function].can_fail
        case _:
            return False
