"""Values of parameters become literals, whatever they hold."""

from __future__ import annotations

import datetime as dt
import enum
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minidsms
from minidsms.cql import syntax
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parameters import literal, written
from minidsms.cql.parser import parse_query

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["'; DROP STREAM S; --", "\\'", "?", "$a", '"', "--", "/*", "''"]),
)


@given(VALUES, VALUES)
def test_a_value_is_one_literal(first: Any, second: Any) -> None:
    query = parse_query(written("SELECT ? AS a, '?' AS b, `?` AS c /* ? */ FROM S -- ?\n WHERE x = ?", [first, second]))
    assert isinstance(query, syntax.Select) and isinstance(query.where, syntax.Binary)
    assert [item.alias for item in query.items] == ["a", "b", "c"]
    for tree, value in ((query.items[0].expr, first), (query.where.right, second)):
        assert isinstance(tree, syntax.Literal)
        assert tree.value == value and type(tree.value) is type(value)


def test_lists_stand_behind_in_and_rows_compare() -> None:
    text = written("SELECT k FROM S WHERE k IN $ks AND t NOT IN $ts", {"KS": [1, -2], "ts": ("a", None)})
    assert text == "SELECT k FROM S WHERE k IN (1, (-2)) AND t NOT IN ('a', NULL)"


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("k = ANY(?)", [[1, 2]], "k = ANY([1, 2])"),
        ("l = $l", {"l": [1, None]}, "l = [1, NULL]"),
        ("LIST_CONTAINS(?, k)", [np.array([1, 2])], "LIST_CONTAINS([1, 2], k)"),
        ("k in\n ?", [np.array([1, 2])], "k in\n (1, 2)"),
        ("(k, v) IN ?", [[[1, 2], (3, 4)]], "(k, v) IN ((1, 2), (3, 4))"),
        ("(k, v) <> ? AND LIST_SORT(l) = ?", [(1, 2), [1, 2]], "(k, v) <> (1, 2) AND LIST_SORT(l) = [1, 2]"),
        ("join = ? OR s.in > ?", [[1], [2]], "join = [1] OR s.in > [2]"),
        ("VALUES ?, ?, (?, ?)", [[1, [2]], (3, [4]), [5], (6, 7)], "VALUES (1, [2]), (3, [4]), ([5], (6, 7))"),
        ("k NOT IN /* in */ ? -- not in\n", [[1]], "k NOT IN /* in */ (1) -- not in\n"),
        ("k IN -- ' \n ? OR l = /* in */ ?", [[1], [2]], "k IN -- ' \n (1) OR l = /* in */ [2]"),
        ("SELECT k IN ?, ? AS l", [[1], [3]], "SELECT k IN (1), [3] AS l"),
        ("l IN ? AND (k) NOT IN ?", [[[1, 2], [3]], [[1]]], "l IN ([1, 2], [3]) AND (k) NOT IN ((1))"),
        ("l = ?", [np.array([[1, 2], [3, 4]])], "l = [[1, 2], [3, 4]]"),
    ],
)
def test_a_list_is_a_row_only_where_rows_stand(text: str, values: Any, expected: str) -> None:
    assert written(text, values) == expected


def test_times_of_numpy_are_times_whatever_their_unit() -> None:
    for unit in ("ms", "us", "ns"):
        times = np.array(["2020-01-01", "NaT"], f"datetime64[{unit}]")
        assert written("t IN ?", [times]) == "t IN (TIMESTAMP '2020-01-01 00:00:00', NULL)"
        assert literal(times[0]) == "TIMESTAMP '2020-01-01 00:00:00'"
        assert literal(np.timedelta64(3, "ms").astype(f"timedelta64[{unit}]")) == "(INTERVAL '3000' MICROSECOND)"
    with pytest.raises(Error, match="finer than a microsecond"):
        literal(np.datetime64(1, "ns"))


def test_what_pandas_misses_is_null() -> None:
    pandas = pytest.importorskip("pandas")
    assert written("t IN ? OR v = ?", [[pandas.NaT], pandas.NA]) == "t IN (NULL) OR v = NULL"


def test_lists_of_a_table_are_rows_behind_in() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, l INTEGER[]); CREATE RELATION L (who TEXT, l INTEGER[]) KEY (who)")
        db.push("L", [("x", [1, None])])
        passed = db.query_each("SELECT ISTREAM(k) FROM S WHERE k NOT IN $l", "L")
        unknown = db.query_each("SELECT ISTREAM(k) FROM S WHERE (k IN $l) IS NULL AND l <> $l", "L", "unknown")
        db.push("S", [(1, [1]), (2, [3])], ts=1)
        db.advance(2)
        assert passed.fetch() == [] and [(key, change.row) for key, change in unknown.fetch()] == [("x", (2,))]


def test_lists_of_parameters_are_compared_with_lists() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, l INTEGER[])")
        same = db.query("SELECT k FROM S WHERE l = ? AND k = ANY(?)", params=[[1, 2], [3, 4]])
        db.push("S", [(3, [1, 2]), (4, [2, 1]), (5, [1, 2])], ts=1)
        db.advance(1)
        assert [change.row for change in same.fetch()] == [(3,)]


def test_an_empty_list_has_the_type_of_what_is_compared_with_it() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k TEXT)")
        kept = db.query("SELECT k FROM S WHERE k <> ALL(?) AND NOT k = ANY(?)", params=[[], []])
        db.push("S", [("a",), (None,)], ts=1)
        db.advance(1)
        assert [change.row for change in kept.fetch()] == [("a",), (None,)]


def test_times_decimals_and_numbers_of_numpy() -> None:
    berlin = dt.timezone(dt.timedelta(hours=1))
    assert literal(dt.datetime(2026, 1, 2, 3, 4, 5, 600, berlin)) == "TIMESTAMP '2026-01-02 02:04:05.000600'"
    assert literal(dt.date(2026, 1, 2)) == "DATE '2026-01-02'"
    assert literal(dt.time(3, 4, 5, 600)) == "TIME '03:04:05.000600'"
    assert literal(dt.timedelta(milliseconds=-5)) == "(-INTERVAL '5000' MICROSECOND)"
    assert literal(Decimal("1E-7")) == "DECIMAL '0.0000001'"
    assert literal(Decimal("-1E+20")) == "DECIMAL '-100000000000000000000'"
    assert literal(float("-inf")) == "CAST('-Infinity' AS FLOAT)"
    assert literal(np.float64(2.5)) == "2.5" and literal(np.int8(-1)) == "(-1)" and literal(np.str_("a")) == "'a'"


@pytest.mark.parametrize(
    ("text", "values", "reason"),
    [
        ("SELECT k FROM S WHERE k = ?", [], r"1 \?, and 0 values"),
        ("SELECT k FROM S WHERE k = '?'", [1], r"0 \?, and 1 value is given"),
        ("SELECT k FROM S WHERE k = $a", {}, "no value for \\$a"),
        ("SELECT k FROM S WHERE k = $a", {"a": 1, "b": 2}, "no parameter \\$b"),
        ("SELECT k FROM S WHERE k = $a", [1], "needs a dict"),
        ("SELECT k FROM S WHERE k = ?", {"a": 1}, "this is \\?"),
        ("SELECT k FROM S WHERE k = ?", [float("nan")], "no literal for NaN"),
        ("SELECT k FROM S WHERE k IN ?", [[]], "empty list"),
        ("SELECT k FROM S WHERE k = ?", [b"a"], "cannot be a bytes"),
        ("SELECT k FROM S WHERE k = ?", [Decimal("NaN")], "no literal for NaN"),
        ("SELECT k FROM S LIMIT ?", [Decimal("sNaN")], "no literal for NaN"),
        (
            "SELECT k FROM S WHERE k = ?",
            [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))],
            "years 1 to",
        ),
        ("SELECT k FROM S WHERE k = ?", "a", "params takes a list"),
    ],
)
def test_what_is_refused(text: str, values: Any, reason: str) -> None:
    with pytest.raises(Error, match=reason):
        written(text, values)


SECOND = dt.timedelta(seconds=1)


class Colour(enum.IntEnum):
    RED = 3


class Shown(float):
    def __repr__(self) -> str:
        return "1) OR (TRUE"


class Quoted(str):
    def replace(self, *_: Any) -> str:
        return "' OR TRUE OR '"

    def translate(self, *_: Any) -> str:
        return "' OR TRUE OR '"


class Day(dt.date):
    def isoformat(self) -> str:
        return "2026-01-01' OR TRUE OR '"


class Moment(dt.datetime):
    def isoformat(self, *_: Any, **__: Any) -> str:
        return "2026-01-01' OR TRUE OR '"


class Clock(dt.time):
    def isoformat(self, *_: Any) -> str:
        return "10:00' OR TRUE OR '"


class Price(Decimal):
    def __format__(self, *_: Any) -> str:
        return "1' OR TRUE OR '"


class Rate(Decimal, enum.Enum):
    FULL = Decimal("0.19")


def test_values_of_other_classes_are_what_they_are_and_not_what_they_show() -> None:
    assert literal(Colour.RED) == "3" and literal(Shown(1.5)) == "1.5" and literal(Quoted("it's")) == "'it''s'"
    assert literal(Day(2026, 1, 2)) == "DATE '2026-01-02'" and literal(Clock(3, 4)) == "TIME '03:04:00'"
    assert (
        literal(Moment(2026, 1, 2)) == literal(Moment(2026, 1, 2, tzinfo=dt.UTC)) == "TIMESTAMP '2026-01-02 00:00:00'"
    )
    assert literal(Price("1.5")) == "DECIMAL '1.5'" and literal(Rate.FULL) == "DECIMAL '0.19'"
    assert written("[ROWS ?]", [Price(3)]) == "[ROWS 3]"


def test_nanoseconds_of_pandas_are_written_or_refused() -> None:
    moment = pd.Timestamp("2026-01-02 03:04:05.000000007", tz="Europe/Berlin")
    assert literal(moment) == "TIMESTAMP '2026-01-02 02:04:05.000000007'"
    assert literal(pd.Timestamp("2026-01-02 03:04:05.5")) == "TIMESTAMP '2026-01-02 03:04:05.500000'"
    assert literal(pd.Timedelta("5us")) == "(INTERVAL '5' MICROSECOND)"
    with pytest.raises(minidsms.Error, match="finer than a microsecond"):
        literal(pd.Timedelta("5ns"))


def test_a_decimal_of_more_digits_than_a_decimal_has_is_a_float() -> None:
    assert literal(Decimal.from_float(0.1)) == "0.1" and literal(Decimal("-1E-40")) == "(-1e-40)"
    assert literal(Decimal("1E+37")) == "DECIMAL '1" + 37 * "0" + "'" and literal(Decimal("1E+38")) == "1e+38"
    assert literal(Decimal("1E+999999999")) == "CAST('Infinity' AS FLOAT)"
    assert written("LIMIT ?", [Decimal("1E+999999999")]) == "LIMIT CAST('Infinity' AS FLOAT)"


def test_a_decimal_is_a_decimal_wherever_it_stands() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, f FLOAT, p DECIMAL(9, 2))")
        items = "? AS a, v * ? AS b, v / ? AS c, f + ? AS d, p + ? AS e, [?, ?] AS l, COALESCE(NULL, ?) AS n"
        values = [Decimal(text) for text in ("1.50", "1.5", "2", "0.5", "0.001", "1", "2.5", "-7")]
        query = db.query(f"SELECT RSTREAM({items}) FROM S [NOW] WHERE v BETWEEN ? AND ? AND f IN ?",
                         params=[*values, Decimal("4.5"), Decimal(5), [Decimal("0.1"), Decimal("0.2")]])  # fmt: skip
        half = db.query("SELECT QUANTILE_DISC(v, ?) FROM S", params=[Decimal("0.5")])
        db.push("S", [(5, 0.1, Decimal("1.00")), (4, 0.1, None)], ts=1)
        db.advance(1)
        ((_, _, row),) = query.fetch()
        expected = (
            Decimal("1.50"),
            Decimal("7.5"),
            2.5,
            0.6,
            Decimal("1.001"),
            [Decimal("1.0"), Decimal("2.5")],
            Decimal(-7),
        )
        assert row == expected and [type(value) for value in row] == [type(value) for value in expected]
        assert half.snapshot() == [(4,)]


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("[RANGE ? SLIDE ?]", [SECOND, 2 * SECOND], "[RANGE 1000000 MICROSECONDS SLIDE 2000000 MICROSECONDS]"),
        ("[ROWS ?]", [Decimal(3)], "[ROWS 3]"),
        ("[RANGE ? SECONDS]", [Decimal("1.5")], "[RANGE 1.5 SECONDS]"),
        ("ORDER BY v LIMIT ? OFFSET ?", [Decimal(3), 1], "ORDER BY v LIMIT 3 OFFSET 1"),
        ("RANGE BETWEEN ? PRECEDING AND", [SECOND], "RANGE BETWEEN 1000000 MICROSECONDS PRECEDING AND"),
        ("v BETWEEN ? AND ?", [Decimal(3), dt.timedelta(0)], "v BETWEEN DECIMAL '3' AND (INTERVAL '0' MICROSECOND)"),
        ("s.rows = ?", [Decimal(3)], "s.rows = DECIMAL '3'"),
    ],
)  # fmt: skip
def test_lengths_and_counts_are_written_as_windows_and_limits_take_them(text: str, values: Any, expected: str) -> None:
    assert written(text, values) == expected


def test_a_query_answers_with_its_parameters_and_shows_them() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
    query = db.query("SELECT k FROM S WHERE t = ? AND k > ?", params=["it's", 1])
    other = db.execute("CREATE QUERY q AS SELECT k FROM S WHERE t = $t", params={"t": "it's"})
    db.push("S", [(1, "it's"), (2, "it's"), (3, "?")], ts=1)
    db.advance(1)
    assert [change.row for change in query.fetch()] == [(2,)]
    assert [change.row for change in other.fetch()] == [(1,), (2,)]
    assert query.text == "SELECT k FROM S WHERE t = 'it''s' AND k > 1"
    with pytest.raises(CqlError, match="params="):
        db.query("SELECT k FROM S WHERE k = ?")


VALUES_OF = {
    "INTEGER": [0, -1, 2**63 - 1, -(2**63)],
    "FLOAT": [0.1, -1.5, float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308],
    "TEXT": ["", "it's", "$v", "a\nb", "\0", "😀"],
    "BOOLEAN": [True, False],
    "TIMESTAMP": [0, -1, 2**62, -(2**63)],
    "INTERVAL": [1, -1, 2**63 - 1, -(2**63)],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIME": [dt.time(0), dt.time(23, 59, 59, 999_999)],
    "DECIMAL(9, 2)": [Decimal("-1.50"), Decimal("9999999.99")],
    "DECIMAL(38, 4)": [Decimal("230584300921369.3951"), Decimal(f"-{'9' * 34}.9999"), Decimal("1E+30")],
}


@pytest.mark.parametrize("type_", VALUES_OF)
def test_a_parameter_and_a_value_of_a_rule_find_the_rows_that_have_it(type_: str) -> None:
    values = VALUES_OF[type_]
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v {type_}, n INTEGER); CREATE RELATION R (k INTEGER, v {type_}) KEY (k)")
        db.push("R", list(enumerate(values)))
        rules = db.query_each("SELECT ISTREAM(n) FROM S WHERE v = $v", "R")
        queries = [db.query("SELECT ISTREAM(n) FROM S WHERE v = ?", params=[value]) for value in values]
        for n, value in enumerate(values):
            db.execute("INSERT INTO S (v, n, ts) VALUES (?, ?, ?)", [value, n, n])
        db.advance(len(values))
        assert [(key, change.row) for key, change in rules.fetch()] == [(n, (n,)) for n in range(len(values))]
        assert [[change.row for change in query.fetch()] for query in queries] == [[(n,)] for n in range(len(values))]


def test_a_day_is_an_instant_too() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (at TIMESTAMP)")
        query = db.query("SELECT ISTREAM(1) FROM S WHERE at = ?", params=[dt.date(1970, 1, 2)])
        db.execute("INSERT INTO S (at, ts) VALUES (?, 1)", [dt.date(1970, 1, 2)])
        db.advance(2)
        assert len(query.fetch()) == 1


@pytest.mark.parametrize("form", [":v", "%(v)s", "{v}"])
def test_a_parameter_written_as_elsewhere_is_told(form: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        with pytest.raises(minidsms.CqlError, match=re.escape(f"write $v, not {form}")):
            db.query(f"SELECT v FROM S WHERE v = {form}", params={"v": 1})
