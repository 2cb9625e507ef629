"""Every row of the table of functions: its example, the definition, and DuckDB where it has the function."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import string
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import minidsms
from minidsms.aggregates import AGGREGATES
from minidsms.cql import scalar
from minidsms.cql.functions import CALLED, SYNONYMS, can_fail
from minidsms.elements import Type
from minidsms.expressions.compiler import Context, Evaluator
from minidsms.functions import FAMILIES, LIBRARY, WRITTEN
from minidsms.testing.definition_documents import OF_DOCUMENTS
from minidsms.testing.definition_expressions import Failed, Scope, evaluate
from minidsms.testing.definition_library import OF_TIMES, OF_VALUES
from minidsms.testing.definition_lists import OF_LISTS
from minidsms.testing.definition_nested import OF_NESTED
from minidsms.values.coded import value_of
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import SCHEMA, batch_of

INTEGER, FLOAT, TEXT, TIMESTAMP, INTERVAL = Type.INTEGER, Type.FLOAT, Type.TEXT, Type.TIMESTAMP, Type.INTERVAL
ADDRESS = "https://shop.example:8443/a/b?k=v%20w&e=#top"

texts = st.one_of(
    st.sampled_from(
        ["", "a", "ab-c", "-7.5", "new YORK, o'neil", "é😀b", " x ", ADDRESS, "http://[", "31.05.2013 14:35"]
    ),
    st.text(st.sampled_from("abAB12 -.,é"), max_size=8),
)
integers = st.one_of(
    st.integers(-5, 12), st.sampled_from([65, 233, 0xD800, 0x110000, 10**7, 2**62, -(2**62), 2**63 - 1])
)
floats = st.one_of(
    st.integers(-40, 40).map(lambda n: n / 4 + 0.0),
    st.sampled_from([1e-9, 1e300, -1e300, 2.0**60, 1234.5678, math.inf]),
)
# Around 1970 and the present, at month ends and leap days, in summer time and at its edges, and out of every calendar.
instants = st.one_of(
    st.integers(-(10**12), 2 * 10**12),
    st.sampled_from(
        [
            0,
            -1,
            1_362_009_599_999,
            1_362_096_000_000,
            951_782_400_000,
            1_364_691_600_000,
            1_382_835_600_000,
            2**62,
            -(2**63),
        ]
    ),
    st.integers(-3_000, 3_000).map(lambda day: day * 86_400_000),
)
intervals = st.sampled_from([-1, 0, 1, 7, 900_000, 86_400_000, 604_800_000, 2**61])
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    TEXT: texts,
    INTEGER: integers,
    FLOAT: floats,
    TIMESTAMP: instants,
    INTERVAL: intervals,
    Type.BOOLEAN: st.booleans(),
}
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), integers, st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b c", "tags", "é"]), inner, max_size=3)
    ),
    max_leaves=6,
)
JSON_TEXTS = st.one_of(
    DOCUMENTS.map(json.dumps),
    DOCUMENTS.map(lambda value: json.dumps({"a": [value, {"b c": value}], "tags": value}, ensure_ascii=False)),
    st.sampled_from(
        ["", "{", "[1, 2", "NaN", "1e999", '"\\ud800"', "[" * 300 + "1" + "]" * 300, " [1 , 1.50 ]", '{"a": 1, "a": 2}']
    ),
)
PATHS = ("$", "$.a", "$.a[0]", '$.a[-1]."b c"', "$.tags.é", "a", "b c", "tags", "$[1]")
LISTS = {
    type_: st.lists(st.one_of(VALUES[type_.element], st.none()), min_size=1, max_size=4).map(tuple)
    for type_ in (t.list_type for t in Type.SCALARS)
    if type_.element in VALUES
}
NESTED = {t.list_type: st.lists(st.one_of(LISTS[t], st.none()), min_size=1, max_size=3).map(tuple) for t in LISTS}
UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "Day", "week", "month", "quarter", "year", "decade")
PATTERNS = ("a", "[0-9]+", "(a)(b)?", "^-", "[A-Z]{2}|b", "", "(?:x|y)*", ".")
LITERALS: dict[str, tuple[Any, ...]] = {
    "regexp_replace": (None, PATTERNS, None, ("", "g", "i", "gi")),
    "regexp_extract": (None, PATTERNS, (0, 1, 2), ("", "i")),
    **dict.fromkeys(("regexp_matches", "regexp_split_to_array", "regexp_count"), (None, PATTERNS, ("", "i", "s"))),
    "regexp_extract_all": (None, PATTERNS, (0, 1, 2), ("", "i")),
    "list_sort": (None, ("asc", "DESC")),
    "geo_distance": (None, None, None, None, ("KM", "mi")),
    "from_char": (None, ("DD.MM.YYYY HH24:MI", "YYYY")),
    "regexp_full_match": (None, PATTERNS, ("", "i", "s")),
    "strftime": (None, ("%d.%m.%Y %H:%M:%S", "%j %p %I %%", "%A %b %y")),
    "to_char": (None, ("YYYY-MM-DD HH24:MI:SS", "DD/MM/YYYY")),
    "format_timestamp": (None, ("yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy")),
    "strptime": (None, ("%d.%m.%Y %H:%M", "%Y")),
    "try_strptime": (None, ("%d.%m.%Y %H:%M", "%Y")),
    "parse_timestamp": (None, ("dd.MM.yyyy HH:mm", "yyyy")),
    **dict.fromkeys(("json_extract", "json_extract_string", "json_value", "json_exists"), (None, PATHS)),
    **dict.fromkeys(("json_type", "json_array_length"), (None, PATHS)),
    "convert_tz": (
        None,
        ("UTC", "Europe/Berlin", "America/St_Johns", "-03:30"),
        ("UTC", "Asia/Kathmandu", "America/New_York", "+05:45"),
    ),
}


@functools.cache
def _arguments(name: str) -> st.SearchStrategy[tuple[tuple[Type, ...], tuple[Any, ...], tuple[bool, ...]]]:
    """(types, values, which of them are literals) of a call."""
    function = LIBRARY[name]
    most = function.least if function.most is None else function.most

    @functools.cache
    def of_count(count: int) -> st.SearchStrategy[Any]:
        candidates = (
            (INTERVAL, TIMESTAMP, TIMESTAMP),
            (INTEGER, INTEGER),
            (FLOAT, INTEGER),
            *[(t,) * 4 for t in (*VALUES, *LISTS, *NESTED)],
            *[(TEXT, t) for t in VALUES],
            *[pair for t in LISTS for pair in ((t, t.element), (t.element, t))],
            (Type.FLOAT.list_type, INTEGER, INTEGER),
            (Type.TEXT.list_type, INTEGER),
            *[(t, TEXT, TEXT) for t in LISTS],
        )
        tried = [function.resolve(list(types[:count])) for types in candidates if len(types) >= count]
        # What a fixed signature takes is told by the signature for NULLs.
        tried.append(function.resolve([Type.NULL] * count))
        signatures = list({s.args: s for s in tried if s is not None}.values())

        @functools.cache
        def of_signature(signature: Any) -> st.SearchStrategy[Any]:
            values, literal = [], []
            for i, type_ in enumerate(signature.args):
                words = UNITS if name not in LITERALS and i == 0 and i in function.literals else None
                words = words or (LITERALS[name][i] if name in LITERALS else None)
                if words is not None and isinstance(words[0], str) != (type_ is TEXT):
                    words = None  # another form of the call
                if words is not None:
                    values.append(st.sampled_from(words))
                    literal.append(st.just(True))
                else:
                    values.append(
                        JSON_TEXTS if name in OF_DOCUMENTS and type_ is TEXT else {**VALUES, **LISTS, **NESTED}[type_]
                    )
                    literal.append(st.booleans())
            return st.tuples(st.just(signature.args), st.tuples(*values), st.tuples(*literal))

        return st.sampled_from(signatures).flatmap(of_signature)

    return st.integers(function.least, most).flatmap(of_count)


def _alike(got: Any, want: Any) -> bool:
    if isinstance(got, float) and isinstance(want, float):
        return got == want or math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-12)
    return type(got) is type(want) and got == want


def _by_engine(expr: scalar.Expr, rows: list[tuple[Any, ...]], dictionary: TextDictionary, tick_ns: int) -> list[Any]:
    found = Evaluator(expr, Context(dictionary, tick_ns))(batch_of(rows, dictionary).column, len(rows))
    results = []
    for i in range(len(rows)):
        if found.failed is not None and found.failed[i]:
            results.append("failed")
        elif found.valid is not None and not found.valid[i]:
            results.append(None)
        else:
            value = found.values[i].item()
            results.append(value_of(dictionary.text(value), expr.type) if expr.type.is_coded else value)
    return results


def _by_definition(expr: scalar.Expr, row: tuple[Any, ...], tick_ns: int) -> Any:
    try:
        return evaluate(expr, row, Scope(lambda query, outer: [], tick_ns=tick_ns))
    except Failed:
        return "failed"


def _list(type_: Type, value: tuple[Any, ...], cells: dict[str, Any]) -> scalar.Expr:
    """A list written out; one of texts is put together in a column where that is free."""
    if type_ is Type.TEXT.list_type and "t" not in cells and None not in value and not any("|" in v for v in value):
        cells["t"] = "|".join(value)
        column = scalar.ColumnRef(TEXT, SCHEMA.names.index("t"), "t")
        return scalar.Call(type_, "string_split", (column, scalar.Literal(TEXT, "|")))
    inside = type_.element
    assert inside is not None
    if inside.element is not None:
        elements = [scalar.Literal(inside, None) if v is None else _list(inside, v, {"t": None}) for v in value]
        return scalar.Call(type_, "list_value", tuple(elements))
    return scalar.Call(type_, "list_value", tuple(scalar.Literal(inside, v) for v in value))


BY_SYNTAX = {"struct", "list_transform", "list_filter", "list_reduce", "to_json"}
"""What their types do not tell; tests/types has cases of these, and of structs and maps."""
COLUMNS = {TEXT: ("t", "u"), INTEGER: ("i", "j"), FLOAT: ("f", "g"), TIMESTAMP: ("at", "at")}


@pytest.mark.parametrize("name", sorted(set(LIBRARY) - set(OF_NESTED) - BY_SYNTAX))
@given(data=st.data(), tick_ns=st.sampled_from([1_000_000, 1_000, 1_000_000_000]))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_a_function_gives_what_its_definition_gives(name: str, data: Any, tick_ns: int) -> None:
    function = LIBRARY[name]
    types, values, literal = data.draw(_arguments(name))
    cells: dict[str, Any] = {}
    args: list[scalar.Expr] = []
    for type_, value, is_literal in zip(types, values, literal):
        free = [c for c in COLUMNS.get(type_, ()) if c not in cells]
        if type_.element is not None:
            args.append(_list(type_, value, cells))
        elif is_literal or not free:
            args.append(scalar.Literal(type_, value))
        else:
            cells[free[0]] = value
            args.append(scalar.ColumnRef(type_, SCHEMA.names.index(free[0]), free[0]))
    signature = function.resolve(list(types))
    assert signature is not None
    expr = scalar.Call(signature.result, name, tuple(args))
    row = tuple(cells.get(c) for c in SCHEMA.names)
    # A row of NULLs and a repetition beside it: neither may change what the row gives.
    rows = [row, (None,) * len(row), row]
    got = _by_engine(expr, rows, TextDictionary(), tick_ns)
    for one, each in zip(got, rows):
        want = _by_definition(expr, each, tick_ns)
        want = tuple(want) if isinstance(want, list) else want
        assert _alike(one, want), (expr, each, one, want)
        assert one != "failed" or can_fail(expr)


def test_every_function_has_its_definition_and_no_definition_lacks_a_function() -> None:
    named = set(OF_VALUES) | set(OF_TIMES) | set(OF_DOCUMENTS) | set(OF_LISTS) | set(OF_NESTED)
    assert named | BY_SYNTAX == set(LIBRARY)
    assert {name for name, f in LIBRARY.items() if f.in_ticks} == set(OF_TIMES)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "NULL" if value is None else repr(value)


def test_cube_roots_are_the_same_on_any_machine_and_that_of_a_cube_is_the_number_itself() -> None:
    numbers = [*range(-300, 300), 2_000_003, 0.5, -1.25]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (x FLOAT)")
        roots = db.query("SELECT CBRT(x) FROM S")
        db.push("S", [(float(n) ** 3,) for n in numbers], ts=1)
        db.advance(1)
        assert sorted(change.row[0] for change in roots.fetch()) == sorted(map(float, numbers))
    of_array, by_definition = CALLED["cbrt"].of_arrays, OF_VALUES["cbrt"]
    assert of_array is not None
    values = np.random.default_rng(1).standard_normal(5_070) * 10.0 ** np.arange(-200, 307, 0.1)
    values = np.append(values, [np.finfo(float).max, np.finfo(float).min, 1e300, -1e300])
    assert list(of_array(values)) == [by_definition(float(x)) for x in values]


def test_the_examples_of_functions_come_out_as_written() -> None:
    examples = {name: function.example for name, function in CALLED.items()}
    assert all(name.upper() in call and CALLED[name].summary for name, (call, _) in examples.items())
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        calls = ", ".join(f"{call} AS r{i}" for i, (call, _) in enumerate(examples.values()))
        query = db.query(f"SELECT RSTREAM({calls}) FROM S [NOW]")
        db.push("S", (1,), ts=1)
        db.advance(2)
        ((*row,),) = [change.row for change in query.fetch()]
    assert dict(zip(examples, map(_shown, row))) == {name: value for name, (_, value) in examples.items()}


IN_DUCKDB = {
    "instr": "instr({0}, {1})", "contains": "contains({0}, {1})", "ends_with": "ends_with({0}, {1})",
    "reverse": None, "left": "left({0}, {1})", "right": "right({0}, {1})", "repeat": "repeat({0}, {1})",
    "split_part": "split_part({0}, {1}, {2})", "translate": "translate({0}, {1}, {2})", "ascii": "ascii({0})",
    "regexp_matches": "regexp_matches({0}, {1})", "regexp_full_match": "regexp_full_match({0}, {1})",
    "regexp_extract": "regexp_extract({0}, {1})", "md5": "md5({0})", "sha256": "sha256({0})", "sha1": "sha1({0})",
    "url_encode": "url_encode({0})", "date_trunc": "date_trunc({0}, {1})", "date_diff": "date_diff({0}, {1}, {2})",
    "timestampdiff": "date_sub({0}, {1}, {2})", "quarter": "quarter({0})", "week": "week({0})",
    "isoyear": "isoyear({0})", "isodow": "isodow({0})", "dayofyear": "dayofyear({0})",
    "millisecond": "millisecond({0})", "microsecond": "microsecond({0})", "epoch_ms": "epoch_ms({0})",
    "dayname": "dayname({0})", "monthname": "monthname({0})", "strftime": "strftime({0}, {1})",
    "time_bucket": "time_bucket(to_milliseconds({0}), {1})", "gcd": "gcd({0}, {1})", "atan2": "atan2({0}, {1})",
    "json_extract": "json_extract({0}, {1})", "json_extract_string": "json_extract_string({0}, {1})",
    "json_exists": "json_exists({0}, {1})", "json_valid": "json_valid({0})",
    "element_at": "list_extract({0}, {1})", "cardinality": "len({0})", "list_contains": "list_contains({0}, {1})",
    "list_concat": "list_concat({0}, {1})", "list_append": "list_append({0}, {1})", "list_min": "list_min({0})",
    "list_reverse": "list_reverse({0})", "list_sort": "list_sort({0}, 'ASC', 'NULLS LAST')",
    "list_sum": "list_sum({0})", "list_avg": "list_avg({0})", "list_max": "list_max({0})",
    "string_split": "string_split({0}, {1})", "generate_series": "generate_series({0}, {1})",
    "hex": "hex({0})", "to_base64": "to_base64(encode({0}))", "to_hex": "lower(to_hex({0}))",
    "octet_length": "strlen({0})", "regexp_extract_all": "regexp_extract_all({0}, {1})",
    "regexp_split_to_array": None, "list_has_all": "list_has_all({0}, {1})",
    "list_has_any": "list_has_any({0}, {1})", "factorial": "factorial({0})", "bitand": "({0} & {1})",
    "bitor": "({0} | {1})", "bitxor": "xor({0}, {1})", "bitnot": "(~({0}))", "asinh": "asinh({0})",
    "list_slice": "({0})[{1}:{2}]", "list_distinct": None, "list_position": "list_position({0}, {1})",
    "list_prepend": "list_prepend({0}, {1})", "array_to_string": "array_to_string({0}, {1})",
    "cbrt": "cbrt({0})", "degrees": "degrees({0})", "radians": "radians({0})", "sin": "sin({0})", "tanh": "tanh({0})",
}  # fmt: skip
"""Functions that DuckDB has, too, as it writes them."""


@pytest.fixture(scope="module")
def duck() -> Any:
    with duckdb.connect() as connection:
        yield connection


def _fits_duckdb(name: str, types: tuple[Type, ...], values: tuple[Any, ...]) -> bool:
    """Left out: texts that DuckDB takes by graphemes, sizes and times it does not take, lists of NULLs only."""
    if name in OF_DOCUMENTS:
        # DuckDB takes NaN; other forms of the same numbers, members of one name, half characters, places from the end.
        document, path = values[0], values[-1]
        differs = re.search("[0-9]e[-+]?[0-9]|ud8|NaN", document) or document.count('"a"') > 1 or "[" * 200 in document
        has_form = name != "json_exists" or isinstance(path, str)
        return has_form and not differs and path != '$.a[-1]."b c"'
    if name == "array_to_string" and set(values[0]) == {None}:
        return False
    if name == "string_split" and values[0] == values[1] == "":
        return False  # no part at all since DuckDB 2.0, one empty part before
    for type_, value in zip(types, values):
        if type_.element is not None:
            if type_.element not in (INTEGER, FLOAT, TEXT):
                return False
            if not all(v is None or _fits_duckdb("", (type_.element,), (v,)) for v in value):
                return False
        # Before 1970 DuckDB rounds weeks toward it.
        if type_ is TIMESTAMP and not 7 * 86_400_000 <= value < 4 * 10**12:
            return False
        if type_ is INTEGER and not abs(value) < 1000:
            return False
        if type_ is FLOAT and not abs(value) < 100:
            return False
        if type_ is INTERVAL and not 0 < value < 10**10:
            return False
        if name in ("split_part", "translate") and value == "":
            return False
    if name == "date_diff" and values[0] == "week":
        return False  # DuckDB counts whole weeks since 1970 there, which began on a Thursday
    # TIMESTAMPDIFF counts back as it counts forward; DuckDB does not at the ends of months.
    return not (name == "timestampdiff" and values[1] > values[2])


@pytest.mark.parametrize("name", sorted(name for name, call in IN_DUCKDB.items() if call))
@given(data=st.data())
@settings(max_examples=7, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_function_gives_what_duckdb_gives(name: str, duck: Any, data: Any) -> None:
    call = IN_DUCKDB[name]
    assert call is not None
    arguments = _arguments(name).filter(lambda a: len(a[0]) == call.count("{") and _fits_duckdb(name, a[0], a[1]))
    types, values, _ = data.draw(arguments)
    written = [
        f"make_timestamp(CAST({value} AS BIGINT) * 1000)" if type_ is TIMESTAMP else _sql(value, type_)
        for type_, value in zip(types, values)
    ]
    try:
        (want,) = duck.execute(f"SELECT {call.format(*written)}").fetchone()
    except (duckdb.InvalidInputException, duckdb.OutOfRangeException):
        want = "failed"
    signature = LIBRARY[name].resolve(list(types))
    assert signature is not None
    args = [scalar.Literal(t, v) if t.element is None else _list(t, v, {"t": None}) for t, v in zip(types, values)]
    expr = scalar.Call(signature.result, name, tuple(args))
    (got,) = _by_engine(expr, [(None,) * len(SCHEMA.names)], TextDictionary(), 1_000_000)
    if hasattr(want, "timestamp"):
        want = (want - type(want)(1970, 1, 1)).total_seconds() * 1000
        assert got == want
    elif isinstance(want, list):
        assert got == tuple(want)
    else:
        assert got == want or _alike(float(got), float(want)), (values, got, want)


def _sql(value: Any, type_: Type = TEXT) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        assert type_.element is not None
        name = {INTEGER: "BIGINT", FLOAT: "DOUBLE", TEXT: "VARCHAR"}[type_.element]
        return f"CAST([{', '.join(_sql(v, type_.element) for v in value)}] AS {name}[])"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


# ------------------------------------------------------------------------------------------------ as people write them


def _answer(expression: str, rows: list[tuple[Any, ...]] | None = None) -> list[Any]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT, at TIMESTAMP)")
        query = db.query(f"SELECT RSTREAM({expression} AS value) FROM S [NOW]")
        for ts, row in enumerate(rows or [("Error 404", "2013-05-31 14:35")], 1):
            db.push("S", row, ts=ts)
        db.advance(100)
        return [change.row[0] for change in query.fetch()]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("t ILIKE 'error%'", True),
        ("t ~ '^E[a-z]+ '", True),
        ("t !~ '^E[a-z]+ ' OR t || '!' ~ '^e'", False),
        ("t ~* 'ERR' AND t !~* 'x' IS TRUE AND NOT t!~*'err'", True),
        ("t RLIKE '[0-9]$' AND t NOT RLIKE '^[0-9]'", True),
        ("t REGEXP 'E' AND t NOT REGEXP 'x'", True),
        ("t NOT ILIKE 'ERROR%'", False),
        ("EXTRACT(hour FROM at)", 14),
        ("EXTRACT(MILLISECONDS FROM TIME '14:35:01.25') + EXTRACT(microseconds FROM CAST(at AS TIME))", 1250),
        ("EXTRACT(doy FROM at) + 1", 152),
        ("DATE_PART('dow', at)", 5),
        ("CAST(at AT TIME ZONE 'Europe/Berlin' AS TEXT)", "2013-05-31 16:35:00"),
        (
            "(at AT TIME ZONE '+05:30')::TEXT || (at AT TIME ZONE '-00:15')::TEXT",
            "2013-05-31 20:05:002013-05-31 14:20:00",
        ),
        ("CONVERT_TZ(at, '-01:00', '+14:00') = at + INTERVAL '15' HOUR", True),
        ("SPLIT_PART(t, ' ', 2)::INTEGER + 1", 405),
        ("'7'::INTEGER::FLOAT", 7.0),
        ("[TRY_CAST(t AS INTEGER), TRY_CAST('7' AS INTEGER)][2]", 7),
        ("'Yes'::BOOLEAN AND NOT '0'::BOOLEAN AND 0.5::BOOLEAN", True),
        ("""'{"a": [0, {"b": "q"}]}' -> 'a' -> -1 ->> 'b' || 'z'""", "qz"),
        ("""('[1, 2]' ->> 0)::INTEGER + 1""", 2),
        ("""GET_JSON_OBJECT('{"a":{"b":[1]}}', '$.a') || JSON_EXTRACT_SCALAR('[7]', '$[0]')""", '{"b":[1]}7'),
        ("CONCAT_WS('-', t, NULL, 'x')", "Error 404-x"),
        ("TRIM('xxaxx', 'x') || LTRIM('xa', 'x') || RTRIM('ax', 'x')", "aaa"),
        ("TIMESTAMPDIFF(MINUTES, TIMESTAMP '2013-05-31', at)", 875),
        ("DATE_TRUNC('Hours', at) = DATE_TRUNC(HOURS, at) AND DATE_DIFF('DAYS', at, at) = 0", True),
        ("DATE_TRUNC(month, at) = TIMESTAMP '2013-05-01'", True),
        ("TIME_BUCKET(15 MINUTES, at, '2013-05-31 00:05') = TIMESTAMP '2013-05-31 14:35'", True),
        ("LEFT(t, 5) || RIGHT(t, 3)", "Error404"),
        ("POSITION('or' IN t)", 4),
        ("SUBSTRING(t FROM 2 FOR 3) || SUBSTRING(t FROM 7)", "rro404"),
        ("TRIM(BOTH 'E4' FROM t) || TRIM(LEADING FROM ' a ') || TRIM('x' FROM 'xbx')", "rror 40a b"),
        ("CONCAT(t, 1, TRUE) || CONCAT_WS('-', 1, NULL, 2)", "Error 4041true1-2"),
        ("CONCAT('a', 3 IN [1, 3], 2 NOT IN [1, 3])", "atruetrue"),
        ("COALESCE(3 IN [1, NULL], TRUE) OR COALESCE(3 NOT IN (1, NULL), FALSE)", False),
        ("3 NOT IN [1, NULL] AND (NULL IN [1]) IS NULL", True),
        ("t = ANY([]) OR [t] = ANY([]) OR NULL = ANY([]) OR NOT at > ALL([])", False),
        ("ARRAY_TO_STRING([1, 2] || 3, ',') || ARRAY_TO_STRING(0 || [1], ',')", "1,2,30,1"),
        ("TO_TIMESTAMP('31.05.2013', 'DD.MM.YYYY') = DATE_TRUNC('day', at)", True),
        ("EPOCH_MS(FROM_UNIXTIME(1078865861557))", 1078865861557),
        ("EPOCH_MS(TO_TIMESTAMP(EPOCH(FROM_UNIXTIME(-529047827))))", -529047827),
        ("EPOCH_MS(TO_TIMESTAMP(0.0016)) + EPOCH_MS(TO_TIMESTAMP(-0.0016))", 0),
        ("CAST(TO_DATE('2013-05-31', 'YYYY-MM-DD') + 1 AS TEXT)", "2013-06-01"),
        ("FORMAT_TIMESTAMP(at, 'HH:mm', 'Europe/Berlin') || FORMAT_TIME(CAST(at AS TIME), 'mm')", "16:3535"),
        ("PARSE_TIMESTAMP('31.05.2013 16:35', 'dd.MM.yyyy HH:mm', 'Europe/Berlin') = at", True),
        ("CAST(PARSE_TIME('16:35', 'HH:mm') AS TEXT)", "16:35:00"),
        ("TO_JSON(STRUCT(a := 1, b := ['x', NULL]))", '{"a":1,"b":["x",null]}'),
        ("CASE WHEN REGEXP_MATCHES(t, '^err', 'i') THEN REGEXP_EXTRACT(t, '[0-9]+') END", "404"),
    ],
)
def test_functions_read_as_people_write_them(expression: str, value: Any) -> None:
    assert _answer(expression) == [value]


def test_words_of_the_new_operators_are_names_elsewhere() -> None:
    with minidsms.connect() as db:
        db.execute(
            "CREATE STREAM S (at INTEGER, zone INTEGER, time INTEGER, ilike INTEGER, extract INTEGER, left TEXT)"
        )
        query = db.query(
            "SELECT RSTREAM(at, zone AS time, time AS zone, ilike, extract, left, LEFT(left, 1)) FROM S [NOW]"
        )
        db.push("S", (1, 2, 3, 4, 5, "abc"), ts=1)
        db.advance(2)
        assert [c.row for c in query.fetch()] == [(1, 2, 3, 4, 5, "abc", "a")]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("REGEXP_MATCHES(t, '(')", "the regular expression is wrong"),
        ("REGEXP_MATCHES(t, t)", "argument 2 of REGEXP_MATCHES must be a literal"),
        ("REGEXP_MATCHES(t, 'a', 'q')", "options are"),
        ("DATE_TRUNC('fortnight', at)", "a unit is one of"),
        ("DATE_PART('fortnight', at)", "a part of a TIMESTAMP is one of"),
        ("at AT TIME ZONE 'Mars'", "a time zone is a name of the IANA database"),
        ("STRFTIME(at, '%Q')", '"%Q", which is no field'),
        ("TO_CHAR(at, 'YYYY-QQ')", '"QQ", which is no field'),
        ("t -> '$.a..b'", "a path is like"),
        ("JSON_VALUE(t, t)", "argument 2 of JSON_VALUE must be a literal"),
        ("t -> -'a'", "a member's name takes no sign"),
        ("at -> 'a'", "JSON_EXTRACT takes JSON as TEXT, and a path, not TIMESTAMP"),
        ("LPAD(t)", "takes 2 to 3 arguments"),
        ("SIN(t)", "SIN takes INTEGER or FLOAT, not TEXT"),
    ],
)
def test_a_wrong_call_is_told_when_the_query_is_read(expression: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT, at TIMESTAMP)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(f"SELECT {expression} FROM S [NOW]")


LITERALS_OF_ANY_TYPE = ("0", "TRUE", "1.5", "'zz'", "DATE '2024-01-01'", "INTERVAL '1' DAY", "[1]", "MAP('a' := 1)")


@pytest.mark.parametrize("name", sorted(n for n, f in [*LIBRARY.items(), *AGGREGATES.items()] if f.literals))
def test_a_literal_of_another_type_is_a_query_or_an_error_with_a_place(name: str) -> None:
    function: Any = LIBRARY.get(name) or AGGREGATES[name]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        for place, literal in product(function.literals, LITERALS_OF_ANY_TYPE):
            for n in range(place + 1, place + 3):
                args = [literal if i == place else "t" for i in range(n)]
                with contextlib.suppress(minidsms.CqlError):
                    db.query(f"SELECT {name}({', '.join(args)}) FROM S [ROWS 3]")


def test_a_text_that_would_be_too_long_fails_the_query_and_makes_nothing() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (n INTEGER)")
        query = db.query("SELECT RSTREAM(REPEAT('abc', n)) FROM S [NOW]")
        db.push("S", (10**12,), ts=1)
        db.advance(2)
        with pytest.raises(minidsms.QueryError, match="REPEAT"):
            query.fetch()


@given(st.text(st.sampled_from(string.printable), max_size=12))
@example("(")
@example("[[:foo:]]")
@settings(max_examples=60, deadline=None)
def test_any_pattern_is_a_query_or_an_error_with_a_place(pattern: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        written = pattern.replace("'", "''")
        try:
            db.query(f"SELECT RSTREAM(REGEXP_EXTRACT(t, '{written}')) FROM S [NOW]")
        except minidsms.CqlError as error:
            assert error.span != (0, 0)


def test_show_functions_lists_what_is_built_in() -> None:
    with minidsms.connect() as db:
        listed = {row[0].lower() for row in db.execute("SHOW FUNCTIONS")}
        assert listed == set(CALLED) | set(AGGREGATES)


# ------------------------------------------------------------------------------------------------------- the page

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->"
FIRST = ("choices", "numbers", "text", "calendar")


def _tables() -> str:
    """The page's tables, of the rows of the functions."""
    own = {name: row for name, row in CALLED.items() if name not in LIBRARY and name not in WRITTEN}
    names = [*own]
    cuts = [0, names.index("abs"), names.index("length"), names.index("date_part"), len(names)]
    families = {title: [own[n] for n in names[a:b]] for title, a, b in zip(FIRST, cuts, cuts[1:])}
    parts = []
    said = "other functions in other words"
    for title in dict.fromkeys([*families, *FAMILIES, said]):
        rows = [*families.get(title, ()), *FAMILIES.get(title, ()), *(WRITTEN.values() if title == said else ())]
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n| | | |\n|---|---|---|\n")
        for row in rows:
            call, value = (text.replace("|", "\\|") for text in row.example)
            parts.append(f"| `{call}` | `{value}` | {row.summary.replace('|', chr(92) + '|')} |\n")
        parts.append("\n")
    spellings = ", ".join(f"`{a.upper()}` is `{b.upper()}`" for a, b in SYNONYMS.items())
    return "".join(parts) + f"Other spellings: {spellings}.\n"


def test_the_page_says_of_every_function_that_can_fail_that_it_does() -> None:
    text = PAGE.read_text()
    as_a_whole = ("JSON", "calendar", "times as text", "time zones")
    assert "Functions of JSON fail" in text and "those of the calendar, of times as text and of time zones may" in text
    each = [f.name for title, family in FAMILIES.items() if title not in as_a_whole for f in family if f.can_fail]
    assert [name for name in each if "fails" not in LIBRARY[name].summary] == []


def test_the_page_has_every_function_with_its_example(rewrite: bool) -> None:
    text = PAGE.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if rewrite:
        PAGE.write_text(text[:start] + _tables() + text[end:])
        return
    assert text[start:end] == _tables(), "pytest --rewrite writes the page's tables again"
