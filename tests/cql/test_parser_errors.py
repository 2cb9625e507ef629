"""A text that is no CQL gives a CqlError with a place, what was expected, and a way out."""

from __future__ import annotations

import pytest

from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse, parse_query


def refused(text: str) -> CqlError:
    with pytest.raises(CqlError) as caught:
        parse(text)
    return caught.value


def test_an_error_shows_line_and_column_of_the_first_wrong_token() -> None:
    error = refused("SELECT a\nFROM S\nWHERE a > > 3")
    assert error.position == (3, 11)
    assert str(error).splitlines()[:3] == [
        'error: unexpected ">" after ">"',
        "  3 | WHERE a > > 3",
        "    |           ^ expected an expression, ALL or ANY",
    ]


def test_an_error_in_a_later_statement_has_its_place_in_the_whole_text() -> None:
    assert refused("SHOW STREAMS;\nSELECT a FROM S;\nSELECT FROM S").position == (3, 8)


def test_an_end_that_comes_too_soon_is_shown_behind_the_last_token() -> None:
    error = refused("SELECT a FROM S WHERE  ")
    assert error.position == (1, 22)
    assert "ends too early" in error.reason


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT a FROM S [RANGE 10 SECONDS", '"]" is missing'),
        ("SELECT a FROM S [RANGE 10 SECONDS WHERE a > 1", '"]" is missing'),
        ("SELECT a FROM S [RANGE 10 SECONDS, T", "window is"),
        ("SELECT a FROM S [10 SECONDS]", "say what the number counts"),
        ("SELECT a FROM S [ROWS 10 SECONDS]", "ROWS counts rows"),
        ("SELECT a FROM S [RANGE SECONDS 10]", "before its unit"),
        ("SELECT a FROM S [RANGE 10 S]", "units are"),
        ("SELECT a FROM S [RANGE 10 SECS]", "did you mean SECONDS"),
        ("SELECT a FROM S [RANGE 10s]", "stand apart"),
        ("SELECT a FROM S [NOW] AS x [ROWS 5]", "one window"),
        ("SELECT a FROM S LIMIT 5", "LIMIT stands behind ORDER BY"),
        ("SELECT a FROM S GROUP BY a LIMIT 5", "LIMIT stands behind ORDER BY"),
        ("WITH RECURSIVE x AS (SELECT a FROM S) SELECT a FROM x", "no recursion"),
        ("WITH x AS (SELECT a FROM S), X AS (SELECT a FROM S) SELECT a FROM x", "another name"),
        ("INSERT INTO S SELECT a FROM S", "VALUES (..)"),
        ("CREATE TABLE T (a INTEGER)", "CREATE RELATION T (a INTEGER)"),
        ("CREATE TABLE T LIKE U", "STREAM or a RELATION"),
        ("SELECT a FORM S", "did you mean FROM"),
        ("SELEC a FROM S", "did you mean SELECT"),
        ("SELECT a FROM S WHER a > 3", "did you mean WHERE"),
        ("SELECT a FROM S GRUOP BY a", "did you mean GROUP BY"),
        ("CREATE STREM S (a INTEGER)", "did you mean STREAM"),
        ("CREAT STREAM S (a INTEGER)", "did you mean CREATE"),
        ("SELECT a FROM S WHERE a == 3", 'equality is written "="'),
        ("SELECT a FROM S WHERE 1 < a < 3", "do not chain"),
        ("SELECT a FROM S WHERE a & b", "AND"),
        ("SELECT a FROM S WHERE a | b", "OR"),
        ("SELECT a FROM S WHERE ! a", "NOT"),
        ("SELECT a, FROM S", 'a "," too many before FROM'),
        ("SELECT a FROM S, WHERE a > 1", 'a "," too many before WHERE'),
        ("SELECT a AS select FROM S", "stands in backquotes: `select`"),
        ("CREATE STREAM S (a INTEGER, group INTEGER)", "stands in backquotes: `group`"),
        ("CREATE STREAM S (a INTEGER) SLACK '5 seconds'", "SLACK 5 SECONDS"),
        ("CREATE STREAM cars FROM 'cars.csv'", "minidsms.declaration('file')"),
        ("SET memory_limit = 1GB", "a size is a text: '1 GB'"),
        ("SET memory_limit TO '1 GB'", "SET name = value"),
        ("SELECT a FROM S WHERE a = %s", "? or $name"),
        (".tables", "commands of the shell"),
        ("SELECT a AS 'total' FROM S", "double quotes"),
        ("SELECT (a FROM S", '"(" before is not closed'),
        ("SELECT a FROM A JOIN B", "ON condition or USING"),
        ("SELECT 'abc FROM S", "ends with '"),
        ("CREATE STREAM S (a INTEGR)", 'did you mean "INTEGER"'),
        ("CREATE STREAM S (a NUMBER(8, 2))", "DECIMAL(p, s)"),
        ("CREATE STREAM S (a INTEGER) FROM 'x' FORMAT cvs", 'did you mean "csv"'),
        ("CREATE RELATION R (a INTEGER) SLACK 5", "no slack"),
        ("CREATE STREAM S (a INTEGER) FORMAT csv", "FROM 'path'"),
        ("CREATE STREAM S (a INTEGER) WITH (follow = true)", "FROM 'path'"),
        ("CREATE QUERY q AS SELECT a FROM S WITH (append = true)", "INTO 'path'"),
        ("CREATE STREAM S (a INTEGER) FROM 'x' WITH (n = 1, N = 2)", "leave one of them out"),
        ("SHOW STREMS", 'did you mean "streams"'),
        ("SHOW", "SHOW knows TABLES, STREAMS"),
        ("table : register stream S (A integer);", "STREAM script"),
    ],
)
def test_a_common_mistake_gets_its_own_hint(text: str, hint: str) -> None:
    error = refused(text)
    assert hint in error.hint
    assert error.position is not None


@pytest.mark.parametrize("text", ["SELEC 1", "  help", "quit", "PRAGMA x", "COPY S TO 'x.csv'"])
def test_a_word_that_begins_no_statement_is_the_place_of_the_error(text: str) -> None:
    error, word = refused(text), text.split()[0]
    assert error.reason == f'no statement begins with "{word}"'
    assert error.position == (1, 1 + text.index(word))
    assert "a query (SELECT ..)" in str(error) and "UNION" not in str(error)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT", "an expression"),
        ("CREATE x", "QUERY, RELATION, STREAM or VIEW"),
        ("SET x 3", '"="'),
        ("SELECT a FROM S GROUP a", "expected BY"),
        ("SELECT a FROM S [RANGE x]", "a number or UNBOUNDED"),
        ("CREATE QUERY q AS SELECT a FROM S INTO path", "a text in quotes"),
        ("CREATE STREAM S (a INTEGER) FROM 'x' WITH (n)", '"="'),
        ("SELECT a FROM", 'a name or "("'),
        ("CREATE STREAM S (a INTEGER NOT NULL)", '",", a name, "(" or ")"'),
    ],
)
def test_what_was_expected_is_said_in_words(text: str, expected: str) -> None:
    note = refused(text).note
    assert expected in note
    for terminal in ("IDENT", "LPAR", "RSQB", "$END", "COMMA", "BRACKETS", "LANGLE"):
        assert terminal not in note


def test_a_clause_is_given_once() -> None:
    assert "SLACK is given twice" in refused("CREATE STREAM S (a INTEGER) SLACK 5 SLACK 6").reason
    assert "INTO is given twice" in refused("CREATE QUERY q AS SELECT a FROM S INTO 'a' INTO 'b'").reason


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 9223372036854775808 FROM S",
        "SELECT - -9223372036854775808 FROM S",
        f"SELECT {'9' * 9000} FROM S",
        f"SELECT a FROM S [ROWS {'9' * 9000}]",
        f"SELECT a FROM S [RANGE {'9' * 9000} DAYS]",
        "SELECT a FROM S [ROWS 9223372036854775808]",
        "SELECT 1e999 FROM S",
        "SELECT INTERVAL '99999999999999999999' DAY FROM S",
        "SET x = 9223372036854775808",
    ],
)
def test_a_number_out_of_range_is_an_error(text: str) -> None:
    assert refused(text).position is not None


def test_an_interval_holds_a_number() -> None:
    assert "length of time" in refused("SELECT INTERVAL 'ten' SECOND FROM S").reason
    assert "rows" in refused("SELECT a FROM S [ROWS 1.5]").reason


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 2_000,
        "SELECT " + "(" * 201 + "1" + ")" * 201 + " FROM S",
        "SELECT " + "NOT " * 2_000 + "TRUE FROM S",
        "SELECT " + "- " * 2_000 + "a FROM S",
        "SELECT 1" + " + 1" * 2_000 + " FROM S",
        "SELECT a" + " IS NULL" * 2_000 + " FROM S",
        "SELECT " + "CASE WHEN a THEN " * 1_500 + "1" + " END" * 1_500 + " FROM S",
        "SELECT a FROM S" + " UNION ALL SELECT a FROM S" * 2_000,
        "SELECT a FROM S" + " CROSS JOIN S" * 2_000,
        "SELECT a FROM " + "(SELECT a FROM " * 250 + "S" + ")" * 250,
    ],
)
def test_nesting_beyond_the_limit_is_a_clear_error_and_no_recursion(text: str) -> None:
    assert "200" in refused(text).reason


def test_nesting_up_to_the_limit_is_read() -> None:
    parse("SELECT " + "(" * 200 + "1" + ")" * 200 + " FROM S")
    parse("SELECT 1" + " + 1" * 190 + " FROM S")
    parse("SELECT a FROM " + "(SELECT a FROM " * 99 + "S" + ")" * 99)


def test_long_lists_and_chains_of_connectives_are_not_deep() -> None:
    parse("SELECT a FROM S WHERE " + " AND ".join(["a > 1"] * 3000))
    parse(f"SELECT a FROM S WHERE a IN ({', '.join(['1'] * 5000)})")


def test_a_statement_beyond_a_million_characters_is_refused() -> None:
    assert "longer than" in refused("SELECT '" + "x" * 1_000_001 + "' FROM S").reason
    assert "longer than" in refused("SELECT a FROM S WHERE a IN (" + "1, " * 400_000 + "1)").reason
    assert len(parse("SELECT a FROM S;\n" + "-- " + "x" * 1_000_001 + "\nSELECT a FROM S")) == 2


def test_one_query_is_one_statement_and_nothing_else() -> None:
    assert parse_query(" SELECT a FROM S ; ") == parse_query("SELECT a FROM S")
    for text in ("", ";", "SELECT a FROM S; SELECT b FROM S", "SHOW STREAMS", "S"):
        with pytest.raises(CqlError):
            parse_query(text)


def test_odd_characters_do_not_drive_a_terminal() -> None:
    assert "\x1b" not in str(refused("SELECT \x1b[31m FROM S"))
    assert refused("SELECT \u201ca\u201d FROM S").hint == "texts stand in straight quotes"
