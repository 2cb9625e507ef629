"""The built-in functions and operators: what they take, what they give, and which of them can fail.

The binder asks for types, the planner asks `can_fail` before it moves an expression (docs/semantics R4, W8). A function
that is not in `FUNCTIONS` does not exist; one that is there has a row in `minidsms.expressions` too.

Invariant: `resolve` is total on argument types; None means "not for these types", never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql import scalar
from minidsms.elements import Type
from minidsms.functions import LIBRARY, WRITTEN
from minidsms.functions.function import Function, Signature, fixed
from minidsms.values.types import MOST_DIGITS, known_type

COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))


def common_type(types: Sequence[Type]) -> Type | None:
    """The type several values are compared or collected in; NULL takes the others' type. None where there is none.

    >>> str(common_type([Type.INTEGER, Type.NULL, Type.FLOAT]))
    'FLOAT'
    >>> common_type([Type.TEXT, Type.INTEGER]) is None
    True
    """
    found: Type | None = Type.NULL
    for type_ in dict.fromkeys(types):
        found = None if found is None else _common_of_two(found, type_)
    return found


def _common_of_two(a: Type, b: Type) -> Type | None:
    if a is b or b is Type.NULL:
        return a
    if a is Type.NULL:
        return b
    if a.is_nested:
        return _common_of_nested(a, b) if a.kind == b.kind else None
    for one, other in ((a, b), (b, a)):
        if one is Type.INTEGER and other in (Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL):
            return other
        if one is Type.DATE and other is Type.TIMESTAMP:
            return other
        if one.kind == "DECIMAL" and other is Type.FLOAT:
            return other
    numbers = as_decimal(a), as_decimal(b)
    if numbers[0] is None or numbers[1] is None or Type.INTEGER is a is b:
        return None
    return _decimal(max(n.digits - n.scale for n in numbers if n), max(n.scale for n in numbers if n))


def _common_of_nested(a: Type, b: Type) -> Type | None:
    """By parts: of elements, of keys and values, of fields of the same names."""
    if a.element is not None and b.element is not None:
        element = common_type([a.element, b.element])
        return None if element is None else element.list_type
    if [n.lower() for n, _ in a.fields] != [n.lower() for n, _ in b.fields]:
        return None
    parts = [common_type([t, u]) for (_, t), (_, u) in zip(a.fields, b.fields)]
    known = [t for t in parts if t is not None]
    if len(known) < len(parts):
        return None
    return Type.map(*known) if a.kind == "MAP" else Type.struct([(n, t) for (n, _), t in zip(a.fields, known)])


def as_decimal(type_: Type) -> Type | None:
    """The DECIMAL that holds all values of a DECIMAL or INTEGER; None for other types."""
    if type_ is Type.INTEGER:
        return Type.decimal(19, 0)
    return type_ if type_.kind == "DECIMAL" else None


def _decimal(whole: int, scale: int) -> Type:
    """With so many digits before and behind the point, as far as 38 go: what does not fit fails when it comes."""
    return Type.decimal(min(max(whole + scale, 1), MOST_DIGITS), scale)


def can_cast(source: Type, target: Type) -> bool:
    """Whether CAST goes from one type to the other."""
    if source is target or source is Type.NULL or target is Type.TEXT:
        return True
    if source.is_nested and source.kind == target.kind:
        parts = zip(*(t.fields or (("", t.element or t),) for t in (source, target)))
        return len(source.fields) == len(target.fields) and all(can_cast(s, t) for (_, s), (_, t) in parts)
    if target.kind == "DECIMAL" or source.kind == "DECIMAL":
        return {source.kind, target.kind} <= {"DECIMAL", "INTEGER", "FLOAT", "BOOLEAN"} or source is Type.TEXT
    allowed = {
        Type.INTEGER: (Type.FLOAT, Type.BOOLEAN, Type.TIMESTAMP, Type.INTERVAL),
        Type.FLOAT: (Type.INTEGER, Type.BOOLEAN),
        Type.BOOLEAN: (Type.INTEGER, Type.FLOAT),
        Type.TEXT: (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TIMESTAMP, Type.DATE, Type.TIME),
        Type.TIMESTAMP: (Type.INTEGER, Type.DATE, Type.TIME),
        Type.DATE: (Type.TIMESTAMP,),
        Type.INTERVAL: (Type.INTEGER,),
    }
    return target in allowed.get(source, ()) or (source is Type.TEXT and target.is_nested)


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


_TS, _IV, _INT, _DAY = Type.TIMESTAMP, Type.INTERVAL, Type.INTEGER, Type.DATE

_PLUS = _times(
    (_TS, _IV, _TS, _IV, _TS),
    (_IV, _TS, _IV, _TS, _TS),
    (_IV, _IV, _IV, _IV, _IV),
    (_TS, _INT, _TS, _IV, _TS),
    (_INT, _TS, _IV, _TS, _TS),
    (_IV, _INT, _IV, _IV, _IV),
    (_INT, _IV, _IV, _IV, _IV),
    (_DAY, _INT, _DAY, _INT, _DAY),
    (_INT, _DAY, _INT, _DAY, _DAY),
    (_DAY, _IV, _TS, _IV, _TS),
    (_IV, _DAY, _IV, _TS, _TS),
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
    (_DAY, _DAY, _DAY, _DAY, _INT),
    (_DAY, _INT, _DAY, _INT, _DAY),
    (_DAY, _IV, _TS, _IV, _TS),
    (_DAY, _TS, _TS, _TS, _IV),
    (_TS, _DAY, _TS, _TS, _IV),
)
_MULTIPLY = _times((_IV, _INT, _IV, _INT, _IV), (_INT, _IV, _INT, _IV, _IV))
_DIVIDE = _times((_IV, _IV, _IV, _IV, _INT), (_IV, _INT, _IV, _INT, _IV))


def _decimals(op: str, types: Sequence[Type]) -> Signature | None:
    """The exact result of two DECIMALs, one of which may be an INTEGER or NULL."""
    if not any(t.kind == "DECIMAL" for t in types):
        return None
    a, b = (as_decimal(known_type(t)) for t in types)
    if a is None or b is None:
        return None
    if op == "*":
        scale = a.scale + b.scale
        return Signature((a, b), _decimal(a.digits + b.digits - scale, scale)) if scale <= MOST_DIGITS else None
    whole = max(a.digits - a.scale, b.digits - b.scale)
    return Signature((a, b), _decimal(whole + (op != "%"), max(a.scale, b.scale)))


def _plus(types: Sequence[Type]) -> Signature | None:
    return _decimals("+", types) or _beside(types, _PLUS)


def _minus(types: Sequence[Type]) -> Signature | None:
    return _decimals("-", types) or _beside(types, _MINUS)


def _multiply(types: Sequence[Type]) -> Signature | None:
    return _decimals("*", types) or _beside(types, _MULTIPLY)


def _remainder(types: Sequence[Type]) -> Signature | None:
    return _decimals("%", types) or _numbers(types)


def _divide(types: Sequence[Type]) -> Signature | None:
    """DECIMALs are divided as FLOAT."""
    return _beside([Type.FLOAT if t.kind == "DECIMAL" else t for t in types], _DIVIDE)


def _numbers(types: Sequence[Type]) -> Signature | None:
    number = _number(types)
    return None if number is None else Signature((number,) * len(types), number)


def _number_or_interval(types: Sequence[Type]) -> Signature | None:
    same = types[0] is _IV or types[0].kind == "DECIMAL"
    return Signature((types[0],), types[0]) if same else _numbers(types)


def _number_or_decimal(types: Sequence[Type]) -> Signature | None:
    return _numbers(types) if types[0].kind != "DECIMAL" else Signature((types[0],), _rounded(types[0]))


def _rounded(type_: Type) -> Type:
    """9.9 is one digit longer when it is rounded."""
    return _decimal(type_.digits + 1 - type_.scale, type_.scale) if type_.kind == "DECIMAL" else type_


def _round(types: Sequence[Type]) -> Signature | None:
    number = types[0] if types[0].kind == "DECIMAL" else _number(types[:1])
    if number is None or any(t not in (Type.INTEGER, Type.NULL) for t in types[1:]):
        return None
    return Signature((number, *(Type.INTEGER for _ in types[1:])), _rounded(number))


def _compare(types: Sequence[Type]) -> Signature | None:
    common = common_type(types)
    if common is None:
        return None
    # Two bare NULLs are compared as integers: the answer is NULL whatever the type.
    type_ = known_type(common)
    return Signature((type_,) * len(types), Type.BOOLEAN)


def _order(types: Sequence[Type]) -> Signature | None:
    """As `_compare`, of what has an order; lists have none."""
    return None if any(t.is_nested for t in types) else _compare(types)


def _collect(types: Sequence[Type]) -> Signature | None:
    common = common_type(types)
    return None if common is None else Signature((common,) * len(types), common)


def _ordered(types: Sequence[Type]) -> Signature | None:
    return None if any(t.is_nested for t in types) else _collect(types)


def _anything(types: Sequence[Type]) -> Signature | None:
    return Signature(tuple(known_type(t) for t in types), Type.BOOLEAN)


_NUMBERS = "numbers"
_SAME = "values of one type"
_AT = "TIMESTAMP '2013-05-31 14:35:07'"


def _operators() -> list[Function]:
    """What has signs or syntax of its own; `scalar.Call` has them under these names."""
    text, boolean = Type.TEXT, Type.BOOLEAN
    return [
        Function("+", 2, 2, _plus, "numbers, TIMESTAMP, DATE, TIME and INTERVAL"),
        Function("-", 2, 2, _minus, "numbers, TIMESTAMP, DATE, TIME and INTERVAL"),
        Function("*", 2, 2, _multiply, "numbers, or INTERVAL and a number"),
        Function("/", 2, 2, _divide, "numbers, or INTERVAL by a number or INTERVAL"),
        Function("%", 2, 2, _remainder, _NUMBERS),
        Function("neg", 1, 1, _number_or_interval, "numbers or INTERVAL"),
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


_OF_FLOATS, _OF_TEXTS = fixed(Type.FLOAT, Type.FLOAT), fixed(Type.TEXT, Type.TEXT)
_CALLED = [
    Function("coalesce", 1, None, _collect, _SAME,
    "the first argument that is not NULL", ("COALESCE(NULL, 2, 3)", "2")),
    Function("nullif", 2, 2, _collect, _SAME, "NULL if both are equal, else the first", ("NULLIF(1, 2)", "1")),
    Function("least", 1, None, _ordered, _SAME, "the least; NULLs are ignored", ("LEAST(3, NULL, 2)", "2")),
    Function("greatest", 1, None, _ordered, _SAME, "the greatest; NULLs are ignored", ("GREATEST(3, 2)", "3")),
    Function("abs", 1, 1, _number_or_interval, "numbers or INTERVAL", "the absolute value", ("ABS(-2)", "2")),
    Function("sign", 1, 1, _numbers, _NUMBERS, "-1, 0 or 1", ("SIGN(-2.5)", "-1.0")),
    Function("floor", 1, 1, _number_or_decimal, _NUMBERS,
    "the greatest whole number not above it", ("FLOOR(-2.5)", "-3.0")),
    Function("ceil", 1, 1, _number_or_decimal, _NUMBERS,
    "the least whole number not below it", ("CEIL(-2.5)", "-2.0")),
    Function(
        "round", 1, 2, _round, "a number and INTEGER places",
        "rounded to this many decimal places, halves away from zero", ("ROUND(2.45, 1)", "2.5"),
    ),
    Function(
        "mod", 2, 2, _remainder, _NUMBERS,
        "the remainder of a division, with the dividend's sign", ("MOD(-7, 3)", "-1"),
    ),
    Function("power", 2, 2, _OF_FLOATS, _NUMBERS,
    "the first to the power of the second", ("POWER(2, 10)", "1024.0")),
    Function("sqrt", 1, 1, _OF_FLOATS, _NUMBERS, "the square root", ("SQRT(9)", "3.0")),
    Function("exp", 1, 1, _OF_FLOATS, _NUMBERS, "e to the power of it", ("EXP(0)", "1.0")),
    Function("ln", 1, 1, _OF_FLOATS, _NUMBERS, "the natural logarithm", ("LN(1)", "0.0")),
    Function("log10", 1, 1, _OF_FLOATS, _NUMBERS, "the logarithm to the base 10", ("LOG10(100)", "2.0")),
    Function(
        "length", 1, 1, fixed(Type.INTEGER, Type.TEXT), "TEXT",
        "the number of characters; of a list or MAP, as CARDINALITY", ("LENGTH('né')", "2"),
    ),
    Function("upper", 1, 1, _OF_TEXTS, "TEXT", "in upper case", ("UPPER('né')", "'NÉ'")),
    Function("lower", 1, 1, _OF_TEXTS, "TEXT", "in lower case", ("LOWER('NÉ')", "'né'")),
    *(
        Function(name, 1, 2, _OF_TEXTS, "TEXT", f"spaces, or given characters, removed {where}", example)
        for name, where, example in (
            ("trim", "at both ends", ("TRIM('..a.', '.')", "'a'")),
            ("ltrim", "at the left", ("LTRIM(' a ')", "'a '")),
            ("rtrim", "at the right", ("RTRIM(' a ')", "' a'")),
        )
    ),
    Function(
        "substring", 2, 3, fixed(Type.TEXT, Type.TEXT, Type.INTEGER), "TEXT, INTEGER and optionally INTEGER",
        "the characters from a position, counted from 1 (below it is before the text; `t[-3:]` is from the end); "
        "this many of them, or all",
        ("SUBSTRING('stream', 3, 2)", "'re'"),
    ),
    Function(
        "replace", 3, 3, _OF_TEXTS, "three TEXT",
        "each occurrence of the second text replaced by the third",
        ("REPLACE('a-b-c', '-', '+')", "'a+b+c'"),
    ),
    Function(
        "starts_with", 2, 2, fixed(Type.BOOLEAN, Type.TEXT), "TEXT", "whether the first text begins with the second",
        ("STARTS_WITH('stream', 'st')", "true"),
    ),
    Function(
        "concat", 1, None, _OF_TEXTS, "TEXT",
        "one after the other; NULL where one is NULL, which `CONCAT_WS('', ..)` skips",
        ("CONCAT('a', 'b')", "'ab'"),
    ),
    Function(
        "concat_ws", 2, None, _OF_TEXTS, "TEXT",
        "the others joined with the first as separator; NULLs are skipped",
        ("CONCAT_WS('-', 'a', NULL, 'b')", "'a-b'"),
    ),
    Function(
        "date_part", 2, 2, fixed(Type.INTEGER, Type.TEXT, Type.TIMESTAMP), "a part and TIMESTAMP",
        "the part, as the function of its name gives it; also `EXTRACT(part FROM t)`",
        (f"DATE_PART('hour', {_AT})", "14"),
    ),
]  # fmt: skip
"""Functions that the planner, the kernels or the binder know by name, but parts of a TIMESTAMP."""


def _parts_of_instants() -> list[Function]:
    """YEAR, MONTH, .. of a TIMESTAMP."""
    values = {"year": "2013", "month": "5", "day": "31", "hour": "14", "minute": "35", "second": "7", "dayofweek": "5"}
    types = fixed(Type.INTEGER, Type.TIMESTAMP)
    found = []
    for part, value in values.items():
        summary = f"the {part}" if part != "dayofweek" else "the day of the week, Sunday is 0"
        found.append(Function(part, 1, 1, types, "TIMESTAMP", summary, (f"{part.upper()}({_AT})", value)))
    return found


_NAMED = {f.name: f for f in (*_CALLED, *_parts_of_instants())} | LIBRARY
CALLED = _NAMED | WRITTEN
"""What is called by a name, by that name in lower case."""

FUNCTIONS = OPERATORS | _NAMED
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
    "dayofmonth": "day",
    "weekofyear": "week",
    "json_extract_path": "json_extract",
    "json_extract_path_text": "json_extract_string",
    "jsonb_extract_path": "json_extract",
    "jsonb_extract_path_text": "json_extract_string",
    "extractjsonfield": "json_extract_string",
    "get_json_object": "json_extract_string",
    "json_extract_scalar": "json_value",
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
    "transform": "list_transform",
    "array_transform": "list_transform",
    "list_apply": "list_transform",
    "filter": "list_filter",
    "array_filter": "list_filter",
    "reduce": "list_reduce",
    "array_reduce": "list_reduce",
    "as_map": "map_from_lists",
    "map_union": "map_concat",
    "map_cat": "map_concat",
    "map_length": "cardinality",
    "array_prepend": "list_prepend",
    "array_remove": "list_remove",
    "array_positions": "list_positions",
    "array_union": "list_union",
    "array_intersect": "list_intersect",
    "array_except": "list_except",
    "format_date": "format_timestamp",
    "parse_date": "parse_timestamp",
    "row": "struct",
    "ucase": "upper",
    "lcase": "lower",
    "string_to_array": "string_split",
    "slice": "list_slice",
    "len": "length",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "btrim": "trim",
    "date_bin": "time_bucket",
    "unix_timestamp": "epoch_ms",
    "url_decode_param": "url_decode",
    "url_encode_param": "url_encode",
    "jsonb_array_length": "json_array_length",
    "to_json_string": "to_json",
    "to_jsonb": "to_json",
    "string_split_regex": "regexp_split_to_array",
    "array_has_all": "list_has_all",
    "array_has_any": "list_has_any",
    "array_flatten": "flatten",
    "base64": "to_base64",
    "unbase64": "from_base64",
    "format_time": "format_timestamp",
    "parse_time": "parse_timestamp",
    "to_date": "from_char",
    "map_from_key_values": "map_from_lists",
    "map_filter": "list_filter",
    "jsonb_path_exists": "json_exists",
    "jsonb_path_query_first": "json_extract",
    "jsonb_typeof": "json_typeof",
    "array_upper": "cardinality",
}
"""Other spellings of the same functions; the bound tree only knows the first one."""


# ------------------------------------------------------------------------------------------------------- failure


@scalar.kept
def can_fail(expr: scalar.Expr) -> bool:
    """Whether the expression, or anything inside it, can fail on some row (conservative: True when in doubt).

    Only what docs/semantics R4 lists can: int64 arithmetic, CASTs that may not fit or be readable, user functions, and
    a scalar subquery, which may find more than one row.
    """
    pending = [expr]
    while pending:
        found = pending.pop()
        if _fails_itself(found):
            return True
        if not (isinstance(found, scalar.Call) and found.function == "try"):
            pending.extend(scalar.children(found))
    return False


def _fails_itself(expr: scalar.Expr) -> bool:
    match expr:
        case scalar.ColumnRef() | scalar.Literal():
            return False
        case scalar.UserCall() | scalar.ScalarQuery():
            return True
        case scalar.Cast(or_null=True):
            return False
        case scalar.Cast(type=target, arg=arg):
            if arg.type is Type.TEXT or target is Type.TEXT:
                return target is not arg.type and arg.type is Type.TEXT
            if not arg.type.is_basic or not target.is_basic:
                return arg.type is not Type.NULL
            return arg.type is Type.FLOAT and target is Type.INTEGER
        case scalar.Call(function="+" | "-" | "*" | "%" | "neg" | "abs" | "floor" | "ceil" | "round", args=args) if (
            expr.type.kind in ("DECIMAL", "DATE")
        ):
            return True
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
