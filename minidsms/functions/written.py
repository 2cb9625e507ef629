"""Functions that are other functions in other words: each is an expression of its parameters.

The binder binds the expression in place of the call, with the arguments where the parameters stand; so the evaluators
and Spark never see one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.elements import Type
from minidsms.functions.function import Function, Signature


@dataclass(frozen=True)
class Written(Function):
    """bodies: by the number of arguments, the names of the parameters and the expression."""

    bodies: tuple[tuple[tuple[str, ...], str], ...] = ()


def _unresolved(types: Sequence[Type]) -> Signature | None:
    """The types are those of the expression: the binder knows."""
    return None


def _row(name: str, takes: str, summary: str, example: str, value: str, *bodies: str) -> Written:
    """bodies: as `a, b: a + b`, the one with the fewest parameters first."""
    read = [body.split(": ", 1) for body in bodies]
    parts = tuple((tuple(names.split(", ")), body) for names, body in read)
    shown = (f"{name.upper()}({example})" if "(" not in example else example, value)
    return Written(name, len(parts[0][0]), len(parts[-1][0]), _unresolved, takes, summary, shown, bodies=parts)


_DAY = "DATE '1970-01-01'"
_UNIT = "a unit, INTEGER and"
_SECONDS = "CAST(ROUND(s * 1000) AS INTEGER)"
_DIGITS = "LPAD(CAST(y AS TEXT), GREATEST(4, LENGTH(CAST(y AS TEXT))), '0')"
_ON_DAY = f"{_DIGITS} || '-' || CAST(m AS TEXT) || '-' || CAST(d AS TEXT)"

FUNCTIONS: tuple[Written, ...] = (
    _row(
        "if", "BOOLEAN and two values of one type", "the second argument where the first is TRUE, else the third",
        "NULL, 'a', 'b'", "'b'", "c, a, b: CASE WHEN c THEN a ELSE b END",
    ),
    _row(
        "range", "INTEGER, from, to and optionally a step", "as GENERATE_SERIES, but without the end; RANGE(n) from 0",
        "2, 5", "[2, 3, 4]", "n: GENERATE_SERIES(0, n - 1)", "a, b: GENERATE_SERIES(a, b - 1)",
        "a, b, s: GENERATE_SERIES(a, b - SIGN(s), s)",
    ),
    _row("bit_length", "TEXT", "the number of bits of its UTF-8", "'né'", "24", "t: 8 * OCTET_LENGTH(t)"),
    _row(
        "quote_literal", "TEXT", "the text as SQL writes it", "'it''s'", "\"'it''s'\"",
        "t: '''' || REPLACE(t, '''', '''''') || ''''",
    ),
    _row(
        "encode", "TEXT, and its encoding by names as 'hex', 'base64' or 'utf8'",
        "the text in an encoding; of three arguments, from one encoding in another", "'né', 'hex'", "'6ec3a9'",
        "t, a: CASE LOWER(a) WHEN 'hex' THEN LOWER(HEX(t)) WHEN 'base64' THEN TO_BASE64(t) WHEN 'utf8' THEN t END",
        "t, a, b: ENCODE(DECODE(t, CASE LOWER(a) WHEN 'ascii' THEN 'utf8' ELSE a END),"
        " CASE LOWER(b) WHEN 'ascii' THEN 'utf8' ELSE b END)",
    ),
    _row(
        "decode", "TEXT, and its encoding as 'hex', 'base64' or 'utf8'",
        "the inverse of ENCODE; fails for any other text",
        "'6ec3a9', 'hex'", "'né'",
        "t, a: CASE LOWER(a) WHEN 'hex' THEN UNHEX(t) WHEN 'base64' THEN FROM_BASE64(t) WHEN 'utf8' THEN t END",
    ),
    _row("div", "two numbers", "the quotient toward zero", "-7, 2", "-3", "a, b: TRUNC(a / b)"),
    _row(
        "lcm", "two INTEGER", "the least common multiple", "4, 6", "12",
        "a, b: CASE WHEN a = 0 OR b = 0 THEN 0 ELSE ABS(a / GCD(a, b) * b) END",
    ),
    *(
        _row(f"{name}d", "a number", f"the {what} of an angle in degrees", f"ROUND({name.upper()}D(45), 4)", value,
             f"x: {name.upper()}(RADIANS(x))")
        for name, what, value in (
            ("sin", "sine", "0.7071"), ("cos", "cosine", "0.7071"), ("tan", "tangent", "1.0"),
            ("cot", "cotangent", "1.0"),
        )
    ),
    *(
        _row(f"{name}d", "a number", f"the angle of a {what} in degrees", f"ROUND({name.upper()}D(1), 4)", value,
             f"x: DEGREES({name.upper()}(x))")
        for name, what, value in (("asin", "sine", "90.0"), ("acos", "cosine", "0.0"), ("atan", "tangent", "45.0"))
    ),
    _row(
        "atan2d", "two numbers", "the angle of the point (second, first) in degrees", "ROUND(ATAN2D(1, 1), 4)", "45.0",
        "y, x: DEGREES(ATAN2(y, x))",
    ),
    *(
        _row(name, "TIMESTAMP", summary, "TIMESTAMP '2013-05-31 14:35'", value, f"t: {body}")
        for name, summary, value, body in (
            ("decade", "the year without its last digit", "201", "YEAR(t) / 10"),
            ("century", "the century, from 1 on", "21", "(YEAR(t) + 99) / 100"),
            ("millennium", "the millennium, from 1 on", "3", "(YEAR(t) + 999) / 1000"),
        )
    ),
    _row(
        "make_date", "three INTEGER", "the DATE of a year, month and day; fails where there is none",
        "CAST(MAKE_DATE(2013, 5, 31) AS TEXT)", "'2013-05-31'",
        f"y, m, d: CAST(STRPTIME({_ON_DAY}, '%Y-%m-%d') AS DATE)",
    ),
    _row(
        "make_time", "two INTEGER and a number",
        "the TIME of an hour, minute and second; fails where there is no such minute",
        "CAST(MAKE_TIME(14, 35, 7.25) AS TEXT)", "'14:35:07.250000'",
        "h, i, s: CAST(TIMESTAMPADD(MILLISECOND, "
        f"{_SECONDS}, STRPTIME(CAST(h AS TEXT) || ':' || CAST(i AS TEXT), '%H:%M')) AS TIME)",
    ),
    _row(
        "make_timestamp", "five INTEGER and a number",
        "the TIMESTAMP of a year, month, day, hour, minute and second; fails where there is no such minute",
        "CAST(MAKE_TIMESTAMP(2013, 5, 31, 14, 35, 7.25) AS TEXT)", "'2013-05-31 14:35:07.25'",
        f"y, m, d, h, i, s: TIMESTAMPADD(MILLISECOND, {_SECONDS}, STRPTIME({_ON_DAY}"
        " || ' ' || CAST(h AS TEXT) || ':' || CAST(i AS TEXT), '%Y-%m-%d %H:%M'))",
    ),
    _row(
        "from_days", "INTEGER", "the DATE this many days after the beginning of 1970", "CAST(FROM_DAYS(366) AS TEXT)",
        "'1971-01-02'", f"n: {_DAY} + n",
    ),
    _row(
        "unix_date", "DATE", "the number of days since the beginning of 1970", "DATE '1971-01-02'", "366",
        f"d: CAST(d AS DATE) - {_DAY}",
    ),
    _row(
        "from_unixtime", "INTEGER", "the TIMESTAMP this many milliseconds after the beginning of 1970",
        "CAST(FROM_UNIXTIME(1000) AS TEXT)", "'1970-01-01 00:00:01'", "n: TO_TIMESTAMP(n / 1000.0)",
    ),
    *(
        _row(name, f"{_UNIT} {kind}", f"the {kind} this many units earlier",
             f"CAST({name.upper()}(DAY, 1, {at}) AS TEXT)", value, "unit, n, t: TIMESTAMPADD(unit, -n, t)")
        for name, kind, at, value in (
            ("timestampsub", "TIMESTAMP", "TIMESTAMP '2013-05-31 14:35'", "'2013-05-30 14:35:00'"),
            ("datesub", "DATE", "DATE '2013-05-31'", "'2013-05-30'"),
        )
    ),
    *(
        _row(name, f"{_UNIT} TIME", f"the TIME this many units {when}",
             f"CAST({name.upper()}(HOUR, 1, TIME '14:35') AS TEXT)", value,
             f"unit, n, t: CAST(TIMESTAMPADD(unit, {sign}n, {_DAY} + t) AS TIME)")
        for name, when, sign, value in (
            ("timeadd", "later", "", "'15:35:00'"), ("timesub", "earlier", "-", "'13:35:00'"))
    ),
    _row(
        "datetostring", "INTEGER and a pattern",
        "the day this many days after the beginning of 1970, as text, by a pattern of Java",
        "366, 'dd/MM/yyyy'", "'02/01/1971'", f"n, pattern: FORMAT_DATE({_DAY} + n, pattern)",
    ),
    _row(
        "stringtodate", "TEXT and a pattern",
        "the days from 1970 to the day in a text, by a pattern of Java; fails if the text does not fit",
        "'02/01/1971', 'dd/MM/yyyy'", "366", f"t, pattern: PARSE_DATE(t, pattern) - {_DAY}",
    ),
    _row(
        "timestamptostring", "INTEGER, a pattern and optionally a zone",
        "the instant this many milliseconds after the beginning of 1970, as text, by a pattern of Java",
        "1000, 'HH:mm:ss'",
        "'00:00:01'", "n, pattern: FORMAT_TIMESTAMP(TO_TIMESTAMP(n / 1000.0), pattern)",
        "n, pattern, zone: FORMAT_TIMESTAMP(TO_TIMESTAMP(n / 1000.0), pattern, zone)",
    ),
    _row(
        "stringtotimestamp", "TEXT, a pattern and optionally a zone",
        "the milliseconds from 1970 to the instant in a text, by a pattern of Java; fails if the text does not fit",
        "'1970-01-02', 'yyyy-MM-dd'", "86400000", "t, pattern: EPOCH_MS(PARSE_TIMESTAMP(t, pattern))",
        "t, pattern, zone: EPOCH_MS(PARSE_TIMESTAMP(t, pattern, zone))",
    ),
    _row(
        "array_replace", "a list and two values",
        "the list with each first value replaced by the second; either may be NULL",
        "[1, 2, 1], 1, 7", "[7, 2, 7]",
        "l, a, b: LIST_TRANSFORM(l, `a part` -> CASE WHEN `a part` IS DISTINCT FROM a THEN `a part` ELSE b END)",
    ),
    _row("trim_array", "a list and INTEGER", "the list without this many elements at its end", "[1, 2, 3], 1", "[1, 2]",
         "l, n: LIST_SLICE(l, 1, -n - 1)"),
    _row("array_contained", "two lists", "whether all elements of the first are in the second", "[1], [1, 2]", "true",
         "a, b: LIST_HAS_ALL(b, a)"),
    _row("entries", "a MAP and BOOLEAN", "its keys and values as STRUCTs k and v, in the order of the keys",
         "ENTRIES(MAP('a' := 1), TRUE)[1]->v", "1",
         "m, is_sorted: LIST_TRANSFORM(MAP_ENTRIES(m), `an entry` ->"
         " STRUCT(k := `an entry`->key, v := `an entry`->value))"),
    _row("map_access", "a MAP and a key", "the value of the key", "MAP_ACCESS(MAP('a' := 1), 'a')", "1", "m, k: m[k]"),
    _row("map_insert", "a MAP, a key and a value", "the MAP with this value for the key",
         "MAP_INSERT(MAP('a' := 1), 'a', 2)['a']", "2", "m, k, v: MAP_CONCAT(m, MAP(k := v))"),
    _row("map_delete", "a MAP and a key", "the MAP without the key",
         "CARDINALITY(MAP_DELETE(MAP('a' := 1), 'a'))", "0",
         "m, k: LIST_FILTER(m, (`a key`, `a value`) -> `a key` <> k)"),
    _row(
        "json_typeof", "JSON", "object, array, string, number, boolean or null", "'[1]'", "'array'",
        "j: CASE WHEN JSON_TYPE(j) = 'VARCHAR' THEN 'string'"
        " WHEN JSON_TYPE(j) IN ('OBJECT', 'ARRAY', 'BOOLEAN', 'NULL') THEN LOWER(JSON_TYPE(j))"
        " WHEN JSON_TYPE(j) IS NOT NULL THEN 'number' END",
    ),
)  # fmt: skip

OTHER_COUNTS: dict[tuple[str, int], Written] = {
    (row.name, row.least): row
    for row in (
        _row(
            "date_trunc",
            "",
            "",
            "",
            "",
            "unit, t, zone: CONVERT_TZ(DATE_TRUNC(unit, CONVERT_TZ(t, 'UTC', zone)), zone, 'UTC')",
        ),
        _row("cardinality", "", "", "", "", "l, d: CASE WHEN d = 1 THEN CARDINALITY(l) END"),
        _row("array_to_string", "", "", "", "", "l: ARRAY_TO_STRING(l, ',')"),
        *(
            _row(
                name,
                "",
                "",
                "",
                "",
                f"j, a, b: {name}(JSON_EXTRACT(j, a), b)",
            )
            for name in ("json_extract", "json_extract_string")
        ),
    )
}
"""Calls of other functions with a number of arguments of their own, by name and number."""
