"""What a SQL user's typical mistakes get for an answer: the reason, the column it points at, and the way out."""

from __future__ import annotations

import time

import pytest

from minidsms import CqlError, Error, connect

DECLARATIONS = """
CREATE STREAM Pos (car INTEGER, speed FLOAT, road TEXT, at TIMESTAMP);
CREATE STREAM S (k INTEGER, v INTEGER);
CREATE STREAM T (k INTEGER, w INTEGER);
CREATE RELATION Cars (car INTEGER, owner TEXT);
"""

WINDOW_FORMS = (
    "a window is [RANGE 10 SECONDS SLIDE 2 SECONDS], [TUMBLE 1 MINUTE], [HOP 5 MINUTES EVERY 1 MINUTE], [ROWS 10], "
    "[PARTITION BY k ROWS 10], [SESSION 30 MINUTES PARTITION BY k] or [NOW]"
)
UNITS = (
    "units are NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS, WEEKS; a bare number is ticks"
)
JOIN_FORMS = "JOIN takes ON condition or USING (columns); a join without either is CROSS JOIN or a comma"
NO_CLOCK = (
    "a CQL query has no clock: a window such as [NOW] or [RANGE 10 SECONDS] says what is current, and "
    "CURRENT_TIMESTAMP is the instant of a row"
)

MISTAKES = [
    (
        "SELECT speed FROM Pos [RANGE 30 SECONDS] GROUP BY car",
        8,
        'column "speed" has no single value in a group',
        "add it to GROUP BY, or aggregate it, as in MIN(speed)",
    ),
    (
        "SELECT car, speed FROM Pos [RANGE 30 SECONDS] GROUP BY car",
        13,
        'column "speed" has no single value in a group',
        "add it to GROUP BY, or aggregate it, as in MIN(speed)",
    ),
    (
        "SELECT car, AVG(speed) FROM Pos [RANGE 30 SECONDS]",
        8,
        'column "car" has no single value in a group',
        "add it to GROUP BY, or aggregate it, as in MIN(car)",
    ),
    (
        "SELECT car FROM Pos [ROWS 5] WHERE AVG(speed) > 3",
        36,
        "the aggregate AVG may not stand in WHERE",
        "put the condition in HAVING",
    ),
    (
        "SELECT car FROM Pos [ROWS 5] WHERE car = '7'",
        42,
        "cannot compare INTEGER and TEXT",
        "a number stands without quotes: 7",
    ),
    (
        "SELECT car + road FROM Pos [ROWS 5]",
        8,
        "+ takes numbers, TIMESTAMP, DATE, TIME and INTERVAL, not INTEGER, TEXT",
        "convert it: CAST(road AS INTEGER)",
    ),
    (
        "SELECT STREAM car FROM Pos",
        8,
        'unknown column "STREAM"',
        "leave STREAM out: a query over a stream goes on; ISTREAM(..) around the select list makes it a stream",
    ),
    (
        "SELECT COUNT(*) FROM Pos GROUP BY window(ts, '9 seconds')",
        35,
        'unknown function "window"',
        "the window stands behind the stream: SELECT COUNT(*) FROM Pos [TUMBLE 9 SECONDS] GROUP BY window_start",
    ),
    ("SELECT car FROM Pos [ROWS 5] WHERE road = main", 43, 'unknown column "main"', "a text stands in quotes: 'main'"),
    ("SELECT car FROM Pos [ROWS 5] WHERE speed == 3", 43, 'unexpected "=" after "="', 'equality is written "="'),
    (
        "SELECT car FROM Pos [ROWS 5] LIMIT 10",
        36,
        'unexpected "10" after "LIMIT"',
        "LIMIT stands behind ORDER BY, which says which rows are the first; a stream is bounded by [ROWS 10]",
    ),
    (
        "SELECT car FROM Pos [ROWS 5] ORDER BY car",
        39,
        "a relation has no order",
        "ORDER BY car LIMIT n keeps its first n rows, and snapshot() gives them in this order",
    ),
    ("SELECT owner FROM Cars [ROWS 5]", 24, "a window needs a stream", "leave the window out"),
    ("SELECT medain(speed) FROM Pos [ROWS 5]", 8, 'unknown function "medain"', 'did you mean "median"?'),
    (
        "SELECT top_k(speed) FROM Pos [ROWS 5]",
        8,
        'unknown function "top_k"',
        "write MAX(x, n): the n greatest, the greatest first",
    ),
    ("SELECT now() FROM Pos [ROWS 5]", 8, 'unknown function "now"', NO_CLOCK),
    ("SELECT car FROM Pos [ROWS 5] WHERE at < CURRENT_DATE", 41, 'unknown column "CURRENT_DATE"', NO_CLOCK),
    ("SELECT car FROM Pos [ROWS 5] WHERE at < CURRENT_TIME", 41, 'unknown column "CURRENT_TIME"', NO_CLOCK),
    ("SELECT car FROM Pos [RANGE 5 SECOND SLIDE]", 42, 'unexpected "]" after "SLIDE"', WINDOW_FORMS),
    (
        "SELECT car FROM Pos [5 SECONDS]",
        22,
        'unexpected "5" after "["',
        "say what the number counts: [ROWS 10] or [RANGE 10 SECONDS]",
    ),
    ("SELECT car FROM Pos [LAST 5 SECONDS]", 22, 'unexpected "LAST" after "["', WINDOW_FORMS),
    ("SELECT car FROM Pos [SIZE 5 SECONDS ADVANCE 1 SECOND]", 22, 'unexpected "SIZE" after "["', WINDOW_FORMS),
    (
        "SELECT car FROM Pos [RANGE '5' SECONDS]",
        28,
        "unexpected '5' after \"RANGE\"",
        "a length of time is a bare number and a unit: [RANGE 10 SECONDS]",
    ),
    (
        "SELECT car FROM Pos [RANGE INTERVAL '5' SECOND]",
        28,
        'unexpected "INTERVAL" after "RANGE"',
        "a length of time is a bare number and a unit: [RANGE 10 SECONDS]",
    ),
    (
        "SELECT car FROM Pos RANGE 5 SECONDS",
        27,
        'unexpected "5" after "RANGE"',
        "a window stands in brackets: S [RANGE 10 SECONDS], S [ROWS 10]",
    ),
    (
        "SELECT car FROM Pos ROWS 5",
        26,
        'unexpected "5" after "ROWS"',
        "a window stands in brackets: S [RANGE 10 SECONDS], S [ROWS 10]",
    ),
    (
        "SELECT car FROM Pos [PARTITION BY car]",
        38,
        'unexpected "]" after "car"',
        "say how many rows of each key: [PARTITION BY k ROWS 10]",
    ),
    (
        "SELECT car FROM Pos [ROWS 5 PARTITION BY car]",
        29,
        'unexpected "PARTITION" after "5"',
        "the keys stand first: [PARTITION BY k ROWS 10]",
    ),
    (
        "SELECT car FROM Pos [RANGE 5 MONTHS]",
        30,
        'unexpected "MONTHS" after "5"',
        f"there are no units longer than a week; {UNITS}",
    ),
    (
        "SELECT car FROM Pos [UNBOUNDED]",
        22,
        'unexpected "UNBOUNDED" after "["',
        "write [RANGE UNBOUNDED] or [ROWS UNBOUNDED]",
    ),
    ("SELECT car FROM Pos [ROWS 0]", 21, "ROWS must be at least 1", "[NOW] holds the rows of the present instant"),
    ("SELECT car FROM Pos [ROWS -5]", 27, 'unexpected "-" after "ROWS"', "the size of a window is positive"),
    (
        "SELECT car FROM Pos [RANGE 5 SECONDS] HAVING speed > 3",
        8,
        'column "car" has no single value in a group',
        "add it to GROUP BY, or aggregate it, as in MIN(car); conditions on rows stand in WHERE",
    ),
    ("SELECT SUM(AVG(speed)) FROM Pos [ROWS 3]", 12, "the aggregate AVG may not stand in the aggregate SUM", ""),
    ("SELECT SUM(road) FROM Pos [ROWS 3]", 12, "SUM does not take TEXT", "convert it: CAST(road AS FLOAT)"),
    ("SELECT car FROM Poss", 17, 'unknown stream, relation or view "Poss"', 'did you mean "Pos"?'),
    ("SELECT sped FROM Pos", 8, 'unknown column "sped"', 'did you mean "speed"?'),
    ("SELECT k FROM S [ROWS 2], T [ROWS 2]", 8, 'the column name "k" is ambiguous', "write S.k or T.k"),
    ("SELECT S.k FROM S [ROWS 2] x", 8, 'unknown table "S"', '"S" is called "x" here'),
    (
        "SELECT car AS order, car AS group FROM Pos",
        29,
        'unexpected "group" after "AS"',
        "GROUP is a reserved word; a column or stream of that name stands in backquotes: `group`",
    ),
    (
        "CREATE STREAM Q (from INTEGER, select TEXT)",
        18,
        'unexpected "from" after "("',
        "FROM is a reserved word; a column of that name stands in backquotes: `from`",
    ),
    (
        "CREATE STREAM Q (a INT, b STRING, c TIMESTAMP_NTZ, d BIGINT, e DOUBLE)",
        37,
        'unknown type "TIMESTAMP_NTZ"',
        "use TIMESTAMP, an instant in UTC",
    ),
    ("CREATE STREAM Q (a MONEY)", 20, 'unknown type "MONEY"', ""),
    (
        "CREATE STREAM Q (a INTEGER PRIMARY KEY)",
        36,
        'unexpected "KEY" after "PRIMARY"',
        "KEY (columns) stands behind the columns: CREATE STREAM S (a INTEGER) KEY (a)",
    ),
    (
        "CREATE STREAM Q (a INTEGER NOT NULL)",
        28,
        'unexpected "NOT" after "INTEGER"',
        "any column may be NULL: a column is a name and a type",
    ),
    (
        "CREATE STREAM Q (a INTEGER) FROM 'x.csv'",
        29,
        "a stream that is read FROM a file, a table or a generator needs TIMESTAMP BY",
        "say which column carries the time: TIMESTAMP BY column",
    ),
    ("CREATE STREAM Q (a INTEGER, a TEXT)", 29, 'the column "a" stands twice', ""),
    ("CREATE STREAM S (a INTEGER)", 15, 'there is a stream "S" already', "DROP STREAM S first"),
    ("CREATE STREAM Q (a INTEGER) TIMESTAMP BY b", 42, 'unknown column "b"', ""),
    (
        "CREATE STREAM Q (a TEXT) TIMESTAMP BY a",
        39,
        "TIMESTAMP BY needs a TIMESTAMP or INTEGER column, and this is TEXT",
        "declare it as a TIMESTAMP, which reads texts such as '2024-05-01 12:30:00'",
    ),
    (
        "SELECT COUNT(DISTINCT *) FROM S [ROWS 2]",
        23,
        'unexpected "*" after "DISTINCT"',
        "DISTINCT stands inside the parentheses and before an expression: COUNT(DISTINCT x)",
    ),
    (
        "SELECT COUNT DISTINCT (k) FROM S [ROWS 2]",
        14,
        'unexpected "DISTINCT" after "COUNT"',
        "DISTINCT stands inside the parentheses and before an expression: COUNT(DISTINCT x)",
    ),
    (
        "SELECT DISTINCT(k, v) FROM S [ROWS 2]",
        16,
        "a row of several values may only stand before IN and in comparisons",
        "leave the parentheses out",
    ),
    (
        "SELECT ISTREAM k FROM S [ROWS 2]",
        8,
        'unknown column "ISTREAM"',
        "it takes the whole select list, in parentheses: SELECT ISTREAM(a, b) FROM .., or ISTREAM (SELECT ..)",
    ),
    (
        "ISTREAM SELECT k FROM S [ROWS 2]",
        9,
        'unexpected "SELECT" after "ISTREAM"',
        "ISTREAM takes a select list or a query: SELECT ISTREAM(a, b) FROM .., or ISTREAM (SELECT ..)",
    ),
    (
        "SELECT k, ISTREAM(v) FROM S [ROWS 2]",
        11,
        'unexpected "ISTREAM" after ","',
        "ISTREAM takes a select list or a query: SELECT ISTREAM(a, b) FROM .., or ISTREAM (SELECT ..)",
    ),
    (
        "SELECT k FROM S [ROWS 2] WHERE k IN 1, 2",
        37,
        'unexpected "1" after "IN"',
        "the values stand in parentheses: x IN (1, 2)",
    ),
    ("SELECT k FROM S [ROWS 2] WHERE k IN (SELECT k, w FROM T [ROWS 2])", 37, "IN compares 1 value with 2 columns", ""),
    (
        "SELECT k FROM S [ROWS 2] WHERE k = (SELECT * FROM T [ROWS 2])",
        36,
        "the subquery must give one column, not 2",
        "",
    ),
    (
        "SELECT k FROM S [ROWS 2] UNION SELECT car, owner FROM Cars",
        32,
        "UNION needs as many columns on the right as on the left: 2 are not 1",
        "",
    ),
    (
        "SELECT k FROM S [ROWS 2] UNION SELECT owner FROM Cars",
        32,
        "UNION cannot bring together k, which is INTEGER, and owner, which is TEXT",
        "convert one of them: CAST(k AS TEXT)",
    ),
    ("SELECT k FROM S [ROWS 2] JOIN T [ROWS 2]", 41, 'the statement ends too early, after "]"', JOIN_FORMS),
    ("SELECT k FROM S [ROWS 2] INNER JOIN T [ROWS 2] WHERE S.k = T.k", 48, 'unexpected "WHERE" after "]"', JOIN_FORMS),
    ("SELECT k FROM S [ROWS 2] JOIN T [ROWS 2] ON k", 45, 'the column name "k" is ambiguous', "write S.k or T.k"),
    (
        "SELECT IIF(k > 1, 2, 3) FROM S [ROWS 2]",
        8,
        'unknown function "IIF"',
        "write IF(condition, a, b)",
    ),
    (
        "SELECT k FROM S [ROWS 2] WHERE v",
        32,
        "WHERE needs a condition, and this is INTEGER",
        "compare it, as in x <> 0",
    ),
    (
        "SELECT CASE WHEN k > 1 THEN 'a' ELSE 2 END FROM S [ROWS 2]",
        38,
        "the branches of CASE differ: TEXT and INTEGER",
        "convert one of them: CAST(2 AS TEXT)",
    ),
    ("SELECT CASE k > 1 THEN 'a' END FROM S [ROWS 2]", 19, 'unexpected "THEN" after "1"', ""),
    (
        "SELECT k FROM S [ROWS 2] WHERE k > '2020-01-01'",
        36,
        "cannot compare INTEGER and TEXT",
        "convert one of them: CAST('2020-01-01' AS INTEGER)",
    ),
    (
        "SELECT car FROM Pos [ROWS 2] WHERE at > '2020-13-01'",
        41,
        "'2020-13-01' is not an ISO time: month must be in 1..12",
        "write it as '2024-05-01 12:30:00'",
    ),
    ("SELECT k::TEX FROM S [ROWS 2]", 11, 'unknown type "TEX"', 'did you mean "TEXT"?'),
    (
        "SELECT k FROM S [ROWS 2] WHERE k ! 'a'",
        34,
        'unexpected character "!"',
        'negation is NOT, inequality "<>" or "!="',
    ),
    (
        "SELECT k FROM S [ROWS 2] WHERE k LIKE 'a'",
        32,
        "LIKE takes TEXT, not INTEGER, TEXT",
        "convert it: CAST(k AS TEXT)",
    ),
    (
        "SELECT k v w FROM S [ROWS 2]",
        12,
        'unexpected "w" after "v"',
        "columns stand apart by commas; a name behind one is its alias",
    ),
    (
        "SELECT k FROM 'S' [ROWS 2]",
        15,
        "unexpected 'S' after \"FROM\"",
        "names stand bare or in double quotes: \"a name\"; '..' is a text",
    ),
    (
        'SELECT k FROM S [ROWS 2] WHERE k = "red"',
        36,
        'unknown column "red"',
        "double quotes enclose names; a text stands in single quotes: 'red'",
    ),
    (
        'CREATE STREAM N (a INTEGER) FROM "n.csv"',
        34,
        'unexpected "n.csv" after "FROM"',
        "a text stands in single quotes: '..'; double quotes enclose names",
    ),
    (
        "SELECT * FROM (SELECT k FROM S [ROWS 2]) [ROWS 3]",
        42,
        "a window needs a stream, and the subquery is a relation that can lose rows",
        "say which stream of it is meant: (ISTREAM (SELECT ..)) [ROWS 3], or DSTREAM or RSTREAM",
    ),
    (
        "SELECT SUM(v) OVER w FROM S [ROWS 2]",
        8,
        'there is no window "w"',
        "FROM .. WINDOW w AS (PARTITION BY k ORDER BY ts)",
    ),
    (
        "SELECT k FROM S GROUP BY TUMBLE(at, INTERVAL '5' SECOND)",
        26,
        'unknown function "TUMBLE"',
        "the window stands behind the stream: SELECT k FROM S [TUMBLE 5 SECOND] GROUP BY window_start",
    ),
    (
        "SELECT k, COUNT(*) FROM S [ROWS 5] GROUP BY 'k'",
        45,
        "GROUP BY a constant makes no groups",
        "name the column, or its place in the list",
    ),
    (
        "SELECT k, COUNT(*) FROM S [ROWS 5] GROUP BY 3",
        45,
        "GROUP BY 3: the select list has 2 columns",
        "",
    ),
    (
        "SELECT *, COUNT(*) FROM S [ROWS 5] GROUP BY 2",
        45,
        "GROUP BY 2 counts past a *",
        "name the column",
    ),
    (
        "SELECT FIRST(k) FILTER (WHERE k > 1) FROM S [ROWS 5]",
        8,
        "FILTER stands behind an aggregate that passes over NULLs",
        "IGNORE NULLS before FILTER makes it one",
    ),
    (
        "SELECT k AS x, SUM(x) FROM S [ROWS 5] GROUP BY k",
        20,
        'unknown column "x"',
        "the select list gives this name after the aggregate SUM: repeat the expression",
    ),
    (
        "SELECT k AS x, COUNT(*) FROM S [ROWS 5] GROUP BY x HAVING n > 1",
        59,
        'unknown column "n"',
        "a text stands in quotes: 'n'; a column of the select list has the name that AS gives it: COUNT(*) AS n",
    ),
    (
        "SELECT k FROM S [ROWS 5] WHERE S > 1",
        32,
        'unknown column "S"',
        '"S" is a whole row here: name one of its columns, or use it in S IN (SELECT * ..)',
    ),
    (
        "SELECT round(speed, 'a') FROM Pos [ROWS 2]",
        8,
        "ROUND takes a number and INTEGER places, not FLOAT, TEXT",
        "convert it: CAST('a' AS INTEGER)",
    ),
    (
        "SELECT time_bucket('1 while', at) FROM Pos [ROWS 2]",
        20,
        "this is not a length of time",
        "INTERVAL '90' MINUTE, INTERVAL '1 hour 30 minutes' or INTERVAL '1 day 02:30:00'; units are nanosecond, "
        "microsecond, millisecond, second, minute, hour, day, week, month, quarter, year",
    ),
    (
        "SELECT car FROM Pos [ROWS 2] WHERE road IN 'A1'",
        36,
        "LIST_CONTAINS takes a list and a value, not TEXT, TEXT",
        "what stands behind IN is a list or in parentheses: x IN ('a', 'b'); part of a text is CONTAINS(t, 'a')",
    ),
    (
        "SELECT road + '!' FROM Pos [ROWS 2]",
        8,
        "+ takes numbers, TIMESTAMP, DATE, TIME and INTERVAL, not TEXT, TEXT",
        "texts are put together with ||",
    ),
    (
        "SELECT road * road FROM Pos [ROWS 2]",
        8,
        "* takes numbers, or INTERVAL and a number, not TEXT, TEXT",
        "convert it: CAST(road AS FLOAT)",
    ),
    (
        "SELECT AVG(speed) OVER (ORDER BY speed RANGE 1.5 PRECEDING) FROM Pos [ROWS 2]",
        40,
        "RANGE with a distance needs one key, an INTEGER, a TIMESTAMP, an INTERVAL or a DATE",
        "ORDER BY ts RANGE 10 SECONDS PRECEDING, or count rows: ROWS n PRECEDING",
    ),
    (
        "SELECT S.k FROM S [ROWS 2], (SELECT v FROM T [ROWS 2] WHERE T.k = S.k) AS x",
        67,
        'unknown table "S"',
        "name it in FROM; a query in FROM sees the tables before its comma behind LATERAL",
    ),
    ("SELECT length(road, 2) FROM Pos [ROWS 2]", 8, "length takes 1 argument, not 2", ""),
    (
        "SELECT EXTRACT(YEARN FROM at) FROM Pos [ROWS 2]",
        16,
        "a part of a TIMESTAMP is one of dow, doy, milliseconds, microseconds, year, month, day, hour, minute, second, "
        "dayofweek, quarter, week, isoyear, isodow, dayofyear, millisecond, microsecond, epoch, epoch_ms, decade, "
        "century, millennium",
        "",
    ),
    ("SELECT CURRENT_DATE FROM Pos [ROWS 2]", 8, 'unknown column "CURRENT_DATE"', NO_CLOCK),
    ("SELECT FIRST() FROM S [ROWS 2]", 8, "FIRST takes one argument, not 0", ""),
    ("SELECT k FROM", 14, 'the statement ends too early, after "FROM"', ""),
    (
        "SELECT ISTREAM(1)",
        18,
        'the statement ends too early, after ")"',
        "a query reads something: SELECT .. FROM a stream, relation or view; one row by itself is SELECT 1",
    ),
    ("SELECT FIRST(k) FROM S [ROWS 2], T [ROWS 2]", 14, 'the column name "k" is ambiguous', "write S.k or T.k"),
    (
        "DELETE Cars",
        8,
        'unexpected "Cars" after "DELETE"',
        "DELETE FROM Cars WHERE k = 2 takes rows out of a relation",
    ),
    (
        "SELECT * FROM VALUES (1), (2) AS t(k)",
        15,
        "VALUES is no relation with arguments",
        "rows written out stand in parentheses: FROM (VALUES (1, 'a'), (2, 'b')) AS t(k, name)",
    ),
    (
        "CREATE STREAM Fast AS SELECT car FROM Pos",
        20,
        'unexpected "AS" after "Fast"',
        "a query's answer is read by others as a view: CREATE VIEW Fast AS SELECT car FROM Pos",
    ),
    (
        "CREATE STREAM U (k TEXT) SLACK 5 SECONDS LATE IGNORE",
        47,
        'unexpected "IGNORE" after "LATE"',
        "LATE DROP leaves late rows out, SLACK 5 SECONDS waits for them; without either they are refused",
    ),
    (
        "SELECT ISTREAM * FROM Pos [NOW]",
        18,
        'unexpected "FROM" after "*"',
        "ISTREAM takes a select list or a query: SELECT ISTREAM(a, b) FROM .., or ISTREAM (SELECT ..)",
    ),
    ("DROP TABLE S", 6, 'unexpected "TABLE" after "DROP"', "write DROP STREAM S, or DROP RELATION S"),
    ("SHOW TABELS", 6, 'there is no SHOW "TABELS"', 'did you mean "tables"?'),
    (
        "SELECT ISTREAM(car) AS c FROM Pos",
        21,
        'unexpected "AS" after ")"',
        "names stand inside the parentheses: SELECT ISTREAM(a AS b) FROM ..",
    ),
    ("DESC S", 1, 'no statement begins with "DESC"', "write DESCRIBE S"),
    ("SELECT k FROM S WHERE k = ANY('{1,2}')", 31, "ALL and ANY take a list or a query, not TEXT", ""),
    (
        "SELECT k FROM S WHERE S.ts > TIMESTAMP '2024-13-01 10:00:00'",
        40,
        "'2024-13-01 10:00:00' is not an ISO time: month must be in 1..12",
        "write it as '2024-05-01 12:30:00'",
    ),
    ("SELECT DATE '2024-02-30' FROM S", 13, "'2024-02-30' cannot be read as DATE", "write it like 2024-05-01"),
    (
        "CREATE STREAM U (k INTEGER CHECK (k > 0))",
        37,
        'unexpected ">" after "k"',
        "a declaration has no conditions on its rows: CREATE VIEW x AS SELECT .. WHERE .. keeps those that fit",
    ),
    (
        "CREATE STREAM U (k INTEGER UNIQUE)",
        28,
        'unexpected "UNIQUE" after a type',
        "KEY (columns) stands behind the columns: CREATE RELATION R (a INTEGER) KEY (a)",
    ),
    (
        "SELECT DATE_ADD(S.ts, 1) FROM S",
        8,
        'unknown function "DATE_ADD"',
        "write t + INTERVAL '1 day', or TIMESTAMPADD(DAY, n, t)",
    ),
    (
        "SELECT k FROM S [RANGE 0.5 MILLISECONDS]",
        24,
        "0.5 millisecond does not fall on a tick of 1 millisecond",
        "ticks are shorter in minidsms.connect(time_unit='us'), or 'ns'",
    ),
    ("SELECT k FROM S [ROWS 2] a, S [ROWS 3] a", 29, '"a" stands twice in FROM', "give one another name: a AS .."),
    (
        "SELECT k FROM (SELECT k AS a FROM S [ROWS 2]) NATURAL JOIN T [ROWS 2]",
        15,
        "a NATURAL JOIN of sides that have no column name in common",
        "name the columns with ON, or write CROSS JOIN",
    ),
    ("DROP STREAM Nope", 13, 'no stream "Nope"', ""),
    ("EXPLAIN ANALYZE nope", 17, 'no query "nope"', ""),
    (
        "SELECT k FROM (SELECT k AS a FROM T [ROWS 2]) AS s, S (ROWS 2)",
        61,
        'unexpected "2" after "ROWS"',
        "a window stands in brackets: S [RANGE 10 SECONDS], S [ROWS 10]",
    ),
    (
        "SELECT k FROM S [ROWS 2] LEFT JOIN T [ROWS 2] ON S.k IN (SELECT car FROM Cars)",
        8,
        'the column name "k" is ambiguous',
        "write S.k or T.k",
    ),
]
"""(text, column of the caret, reason, hint)."""


@pytest.mark.parametrize(("text", "column", "reason", "hint"), MISTAKES, ids=[m[0][:60] for m in MISTAKES])
def test_a_mistake_gets_a_place_a_reason_and_a_way_out(text: str, column: int, reason: str, hint: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
    error = caught.value
    assert (error.position, error.reason, error.hint) == ((1, column), reason, hint)


def test_a_query_in_from_is_told_from_what_is_unknown() -> None:
    db = connect()
    db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY recent AS SELECT k FROM S [ROWS 2]")
    with pytest.raises(CqlError) as caught:
        db.query("SELECT k FROM Recent")
    assert (
        caught.value.hint == '"Recent" is a query, and queries read views: CREATE VIEW names what several of them read'
    )
    db.execute("DROP QUERY recent")
    with pytest.raises(CqlError, match=r"CREATE STREAM Recent"):
        db.query("SELECT k FROM Recent")


def test_the_way_from_a_stream_to_present_rows_holds_for_a_query_that_wrote_no_istream() -> None:
    db = connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    with pytest.raises(Error, match=r"the answer is a relation where rows can leave it"):
        db.query("SELECT k FROM S WHERE k > 1").snapshot()
    assert db.query("SELECT k FROM S [RANGE 10 SECONDS] WHERE k > 1").snapshot() == []


@pytest.mark.parametrize("text", ["SELECT RANGE('a')", "SELECT * FROM RANGE(2.5)", "SELECT k FROM S, RANGE(k, 'b') r"])
def test_a_function_in_other_words_is_called_as_it_is_written(text: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
    assert caught.value.reason == "RANGE takes INTEGER, from, to and optionally a step"


def test_a_conversion_is_only_proposed_where_there_is_one() -> None:
    db = connect()
    db.execute("CREATE STREAM B (b TIME, v TIMESTAMP)")
    with pytest.raises(CqlError) as caught:
        db.query("SELECT ISTREAM(v) FROM B [NOW] WHERE b = v")
    assert caught.value.hint == "convert one of them: CAST(v AS TIME)"


@pytest.mark.parametrize("cql", ["SELECT `a\nhelp` FROM S", "DROP STREAM `a\nhelp`", "SELECT `a\nhelp`(k) FROM S"])
def test_a_name_of_several_lines_is_shown_on_one(cql: str) -> None:
    db = connect()
    db.execute("CREATE STREAM S (k INTEGER)")
    with pytest.raises(CqlError) as caught:
        db.execute(cql)
    assert str(caught.value).split("\n")[0].endswith('"a\\nhelp"')


HABITS = [
    ("INSERT INTO Pos SELECT car FROM Pos", "VALUES (..)"),
    ("MERGE INTO Roads USING Pos ON 1 = 1", "push("),
    ("CREATE INDEX i ON Pos (car)", "no indexes"),
    ("CREATE MATERIALIZED VIEW V AS SELECT car FROM Pos", "CREATE VIEW"),
    ("BEGIN", "no transactions"),
    ("EXPLAIN PLAN FOR SELECT car FROM Pos", "EXPLAIN SELECT"),
    ("SELECT TOP 5 car FROM Pos", "LIMIT"),
    ("SELECT car INTO T FROM Pos", "CREATE QUERY"),
    ("SELECT car MOD 2 FROM Pos", "a % b"),
    ("SELECT car ^ 2 FROM Pos", "POWER"),
    ("SELECT car ** 2 FROM Pos", "POWER"),
    ("SELECT RANK() FROM Pos", "RANK() OVER"),
    ("SELECT ARRAY(SELECT k FROM S ORDER BY v) FROM T", "(SELECT ARRAY_AGG(x ORDER BY k) FROM ..)"),
    ("SELECT ARRAY(SELECT k FROM S ORDER BY v LIMIT 3) FROM T", "(SELECT ARRAY_AGG(x ORDER BY k) FROM (SELECT x, k"),
    ("SELECT ARRAY[k], k FROM (SELECT k FROM S ORDER BY k)", "ORDER BY k LIMIT n keeps its first n rows"),
    ("SELECT ARRAY(k, v) FROM S", "a list is [a, b]"),
    ("SELECT k FROM S WHERE (k, v) > ALL (SELECT k, w FROM T)", "column by column"),
    ("SELECT SUM(k) OVER (ORDER BY v ROWS 2 PRECEDING EXCLUDE TIES) FROM S", "are two frames"),
    ("SELECT SUM(k) OVER (PARTITION BY v GROUPS 2 PRECEDING) FROM S", "ORDER BY .. GROUPS .."),
    ("SELECT SUM(k) OVER (ORDER BY v GROUPS 2 SECONDS PRECEDING) FROM S", "stands behind RANGE"),
    ("SELECT car, COUNT(*) FROM Pos [NOW] GROUP BY Pos.car, speed + 1 WITH ROLLUP", "ROLLUP (Pos.car, speed + 1)"),
    ("SELECT car, COUNT(*) FROM Pos [NOW] GROUP BY car WITH CUBE", "write GROUP BY CUBE (car)"),
    ("UPDATE Cars AS c SET c.owner = 'x'", "SET owner = .."),
    ("SELECT LEAD(k, v) OVER (ORDER BY ts) FROM S", "CASE n WHEN 1 THEN LEAD(x, 1) OVER w"),
    ("SELECT ARRAY_LOWER([k], 1) FROM S", "a list begins at 1"),
    ("SELECT ARRAY_FILL(k, [2]) FROM S", "write LIST_TRANSFORM(GENERATE_SERIES(1, n), i -> x)"),
    ("SELECT QUOTE_IDENT(road) FROM Pos", "REPLACE(name,"),
    ("SELECT UNISTR(road) FROM Pos", "CHR(n)"),
    ("SELECT SUM(v) OVER (ORDER BY DATE '2020-01-01' + k RANGE 36 HOURS PRECEDING) FROM S", "INTERVAL '3 days'"),
    ("SELECT car FROM Pos TABLESAMPLE (10 PERCENT)", "no samples"),
    ("SELECT car FROM Pos [NOW] SAMPLE (x)", "no samples"),
    ("SELECT NOLOCK FROM Pos WITH (NOLOCK)", "AS WITH (NOLOCK)"),
    ("SELECT LAG(car) FROM Pos", "LAG(x) OVER"),
    ("SELECT spread(speed) FILTER (WHERE car > 1) FROM Pos", "spread(CASE WHEN condition THEN x END)"),
    ("SELECT SUM(RANK() OVER (ORDER BY car)) FROM Pos", "FROM (SELECT *, RANK() OVER (ORDER BY car) AS x FROM ..)"),
    ("SELECT car FROM Pos RIGHT JOIN LATERAL (SELECT 1 FROM Pos) AS x ON TRUE", "LEFT JOIN LATERAL (..) ON condition"),
    ("SELECT x.a FROM Pos, LATERAL (SELECT Pos.car AS a) AS x RIGHT JOIN Pos AS o ON TRUE", "make it one table"),
    ("SELECT car FROM Pos JOIN LATERAL (SELECT car FROM Pos) AS x USING (car)", "JOIN LATERAL (..) ON condition"),
    ("SELECT p.car FROM Pos p ASOF JOIN Pos o ON p.car = o.car AND p.ts >= o.ts AND p.car > 1", "stands in WHERE"),
    ("SELECT p.car FROM Pos p ASOF JOIN Pos o ON p.ts >= o.ts AND o.car > 1", "(SELECT * FROM Pos AS o WHERE ..) AS o"),
    ("SELECT p.car FROM Pos p ASOF JOIN Pos o ON o.car = o.speed AND p.ts >= o.ts", "stands in WHERE"),
    (
        "SELECT p.car FROM Pos p ASOF JOIN Pos o ON p.car = o.car + 1 AND p.ts >= o.ts",
        "(SELECT *, o.car + 1 AS key FROM Pos AS o) AS o, and p.car = o.key",
    ),
    ("SELECT p.car FROM Pos p ASOF JOIN Pos o ON car = 1 AND p.ts >= o.ts", "write p.car or o.car"),
    ("SELECT Pos.car FROM Pos ASOF JOIN Pos ON Pos.ts >= Pos.ts", "Pos AS .."),
    (
        "SELECT p.car FROM Pos [ROWS 2] p ASOF JOIN Pos o ON p.ts >= o.ts",
        "FROM (SELECT * FROM S ASOF JOIN T ON ..) AS x",
    ),
    ("SELECT p.car FROM Pos p ASOF JOIN Pos [RANGE 2] o ON p.ts >= o.ts", "[PARTITION BY k ROWS 1 RANGE 5 SECONDS]"),
    ("SELECT p.car FROM Pos p ASOF JOIN Cars c ON p.car = c.car AND p.ts >= c.ts", "Pos [NOW] AS s JOIN Cars ON"),
    ("SELECT p.car FROM Pos p JOIN Pos q USING (car) ASOF JOIN Pos o ON p.ts >= o.ts", "joins stand behind it"),
    ("SELECT p.car FROM (Pos p ASOF JOIN S ON p.ts >= S.ts) j ASOF JOIN T ON j.ts >= T.ts", "ASOF JOIN U ON"),
    ("SELECT 1 FROM Pos, UNNEST([1]) AS e ASOF JOIN S ON TRUE", "UNNEST stands behind the join"),
    ("SELECT p.car FROM Pos p ASOF JOIN (SELECT * FROM Pos [NOW]) o ON p.ts >= o.ts", "(ISTREAM (SELECT ..)), or"),
    ("SELECT p.car FROM Pos p ASOF RIGHT JOIN Pos o ON p.ts >= o.ts", "ASOF LEFT JOIN"),
    ("SELECT Pos.car FROM Pos FULL ASOF JOIN Pos o ON Pos.ts >= o.ts", "ASOF LEFT JOIN"),
    ("SELECT DISTINCT 1", "one row by itself is SELECT 1"),
    ("SELECT (SELECT 1 WHERE TRUE) FROM S", "no WHERE: SELECT x FROM (SELECT 1 AS x) AS one WHERE x > 0"),
    ("SELECT k FROM S WHERE (k, v) = (SELECT MAX(k), 1 FROM T)", "write (k, v) IN (SELECT MAX(k), 1 FROM T)"),
    ("SELECT k FROM S WHERE (SELECT 1, 2) <> (k, v)", "write (k, v) NOT IN (SELECT 1, 2)"),
    ("SELECT k FROM S ORDER BY k LIMIT 5 WITH TIES", "QUALIFY RANK() OVER (ORDER BY k DESC) <= 5"),
    ("SELECT IRSTREAM * FROM S", "leave IRSTREAM out"),
    ("ON S SELECT * FROM T", "FROM S [NOW] JOIN W ON"),
    ("SELECT TIMESTAMPTOSTRING(at, 'yyyy') FROM Pos", "FORMAT_TIMESTAMP(t, pattern)"),
    ("SELECT DATETOSTRING(CAST(at AS DATE), 'yyyy') FROM Pos", "FORMAT_DATE(d, pattern)"),
    ("SELECT FROM_UNIXTIME(at) FROM Pos", "is one already"),
    ("SELECT k FROM S WHERE k IN (1, 2) || v > 2", "OR"),
    ("SELECT k FROM S WHERE k = 1 || v = 2", "OR"),
    ("SELECT k FROM [S]", "backquotes"),
    ("SELECT S.k FROM S JOIN [T] ON S.k = T.k", "backquotes"),
    ("SELECT k v w FROM S", "commas"),
    ("SELECT k FROM S WINDOW (SIZE 5 SECONDS)", "FROM S [TUMBLE 1 MINUTE]"),
    ("DESC S", "write DESCRIBE S"),
    ("DESCRIBE FORMATTED S", "write DESCRIBE S"),
    (
        "SELECT 1 FROM TABLE(CUMULATE(TABLE S, DESCRIPTOR(ts), INTERVAL '2' HOUR, INTERVAL '1' DAY))",
        "running aggregate",
    ),
    *(
        (f"SELECT STREAM {items} FROM S", "leave STREAM out")
        for items in ("*", "S.k", "DISTINCT k", "COUNT(*)", "1", "k + 1")
    ),
    ("SELECT AVG(k) FROM S OUTPUT LAST EVERY 10 SECONDS", "S [TUMBLE 10 SECONDS]"),
    ("SELECT * FROM S(k > 5, NOT v = 3)", "FROM S WHERE k > 5 AND NOT v = 3"),
    ("SELECT * FROM S(v + 1)", "UNNEST(list) AS name"),
    ("SELECT * FROM (S JOIN T ON S.k = T.k) AS j (a, b, c, d, e)", "the table in parentheses gives: k, v, k"),
    ("SELECT * FROM PATTERN [EVERY a=S -> b=S]", "a.ts < b.ts"),
    ("SELECT MAX(k) KEEP (DENSE_RANK FIRST ORDER BY v) FROM S", "ARG_MAX(x, k)"),
    ("CREATE SCHEMA X (a INTEGER)", "CREATE STREAM S (a INTEGER, b TEXT)"),
    ("CREATE CONTEXT X PARTITION BY k FROM S", "[PARTITION BY k ROWS 10]"),
    ("SELECT 0x1F FROM S", "decimal"),
    ("SELECT VERSION() FROM S", "minidsms.__version__"),
    ("SELECT TO_TIMESTAMP(road) FROM Pos", "write CAST(road AS TIMESTAMP)"),
    ("SELECT GENERATE_SERIES(at, at, INTERVAL '1 hour') FROM Pos", "i * INTERVAL '1 hour'"),
    ("SELECT Pos.car FROM Pos ASOF NATURAL JOIN S", "ASOF LEFT JOIN"),
    ("SELECT Pos.car FROM Pos ASOF CROSS JOIN S", "ASOF LEFT JOIN"),
    ("SELECT Pos.car FROM Pos ASOF JOIN S", "ON s.k = t.k AND s.ts >= t.ts"),
    ("SELECT S.k FROM S ASOF JOIN T ON S.k = T.k MATCH_CONDITION (S.ts >= T.ts)", "and then ON s.k = t.k"),
    ("SELECT car FROM TABLE(TUMBLE(TABLE Pos, DESCRIPTOR(at), 5))", "[TUMBLE 1 MINUTE]"),
    ("SELECT car FROM Pos TABLESAMPLE (10)", "no samples"),
    ("SELECT car FROM Pos MATCH_RECOGNIZE (PATTERN (A))", "a.ts < b.ts"),
    ("SELECT car FROM Pos PIVOT (COUNT(*) FOR car IN (1))", "FILTER"),
    ("SELECT car FROM Pos WATERMARK FOR at", "SLACK"),
    ("SELECT car FROM Pos EMIT CHANGES", "ISTREAM"),
    ("SELECT road #>> '{a,b}' FROM Pos", "->> '$.user"),
    ("SELECT TRUNC(ts, 'hour') FROM Pos [NOW]", "DATE_TRUNC('hour', t)"),
    ("SELECT road.a.b FROM Pos", "road ->> 'a'"),
    ("SELECT road['a'] FROM Pos", "j ->> 'a'"),
    ("SELECT JSON_QUERY(road, '$.a') FROM Pos", "JSON_EXTRACT"),
    ("SELECT JSON_VALUE(road, '$.a' RETURNING INTEGER) FROM Pos", "CAST(JSON_VALUE"),
    ("SELECT FROM_JSON(road, 'a INTEGER') FROM Pos", "AS STRUCT("),
    ("SELECT car FROM Pos, UNNEST(road -> 'a') AS x", "JSON_ITEMS"),
    ("SELECT car FROM Pos FOR SYSTEM_TIME AS OF at", "[NOW]"),
    ("SELECT car FROM Pos RIGHT ANTI JOIN Pos AS p USING (car)", "exchange the sides"),
    ("SELECT car FROM Pos MINUS SELECT car FROM Pos", "EXCEPT"),
    ("SELECT car FROM Pos WHERE road SIMILAR TO '^a.*'", "REGEXP_FULL_MATCH(road, '^a.*')"),
    ("SELECT car FROM Pos WHERE road = {name}", "$name"),
    ("SELECT {} FROM Pos", "{'a': 1}"),
    ("SELECT MAPS {'a': 1} FROM Pos", "MAP {'a': 1}"),
    ("SELECT {1: 2} FROM Pos", "{'a': 1}"),
    ("SELECT {[1]: 2} FROM Pos", "{'a': 1}"),
    ("CREATE OR REPLACE VIEW Made AS SELECT car, FROM Pos", 'there is a "," too many before FROM'),
    ("CREATE TABLE Made (a INT, b AS a + 1)", "declare a STREAM or a RELATION"),
    ("SELECT ROLLUP(car) FROM Pos GROUP BY car", "GROUP BY ROLLUP(a, b)"),
    ("SELECT car FROM Pos GROUP BY GROUPING SETS car", "in parentheses"),
    ("SELECT car FROM Pos GROUP BY car WHERE car > 1", "before GROUP BY"),
    ("SELECT car FROM Pos WHERE RANK() OVER (ORDER BY car) = 1", "QUALIFY"),
    ("SELECT SUM(car) OVER (ORDER BY road RANGE 5 PRECEDING) FROM Pos", "ROWS n PRECEDING"),
    ("SELECT SUM(car) OVER (ORDER BY at ROWS 5 SECONDS PRECEDING) FROM Pos", "behind RANGE"),
    ("SELECT SUM(car) OVER (ORDER BY at ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) FROM Pos", "BETWEEN n PRECEDING"),
    ("SELECT car FROM Pos ORDER BY car LIMIT 2, 3", "LIMIT n OFFSET m"),
    ("SELECT car FROM Pos ORDER BY ALL LIMIT 2", "ORDER BY 1, 2"),
    ("SELECT car // 2 FROM Pos", "truncates"),
    ("SELECT car, car FROM Pos UNION BY NAME SELECT car FROM Pos", "rename one with AS"),
    ("SELECT car FROM Pos EXCEPT BY NAME SELECT car FROM Pos", "behind UNION and UNION ALL"),
    ("SELECT car FROM Pos INTERSECT ALL BY NAME SELECT car FROM Pos", "behind UNION and UNION ALL"),
    ("SELECT a.car FROM Pos a JOIN Pos b ON TRUE JOIN Pos c USING (car)", "write ON with a.car or b.car"),
    ("SELECT car FROM Pos WHERE car NOTNULL", "IS NOT NULL"),
    ("SELECT car NOTNULL FROM Pos", "IS NOT NULL; an alias of that name stands behind AS"),
    ("SELECT car isnull FROM Pos", "write IS NULL; an alias of that name stands behind AS"),
    ("SELECT car FROM Pos WHERE COLUMNS('c.*') > 1", "in a select list"),
    ("SELECT COLUMNS(c -> c LIKE 'a%') FROM Pos", "COLUMNS('^a|b$')"),
    ("SELECT COLUMNS('(') FROM Pos", "COLUMNS('^a|b$')"),
    ("SELECT COLUMNS('r|s') AS x FROM Pos", "leave AS out"),
    ("SELECT * LIKE 'c%' FROM Pos", "COLUMNS("),
    ("SELECT * RENAME (carr AS c) FROM Pos", 'did you mean "car"'),
    ("SELECT * EXCLUDE (car) RENAME (car AS c) FROM Pos", "leave one of them out"),
    ("SELECT * EXCLUDE (road, carr) FROM Pos", 'did you mean "car"'),
    ("SELECT * FROM 'file.csv'", "CREATE STREAM S"),
    ("SELECT * FROM read_csv('file.csv')", "CREATE STREAM S"),
    ("SELECT SAFE_CAST(road AS INTEGER) FROM Pos", "TRY_CAST(x AS type)"),
    ("SELECT car FROM Pos WHERE car > $1", "$name"),
    ("COPY Pos FROM 'file.csv'", "CREATE STREAM S"),
    ("COPY (SELECT car FROM Pos) TO 'file.csv'", "INTO 'file'"),
    ("INSERT OR IGNORE INTO Roads VALUES ('A1', 1)", "INSERT OR REPLACE"),
    ("INSERT INTO Roads VALUES ('A1', 1) ON CONFLICT DO NOTHING", "INSERT OR REPLACE"),
    ("CREATE FUNCTION f(x) AS x + 1", "db.create_function"),
    ("CREATE STREAM C (t TIMESTAMP, WATERMARK FOR t AS t - INTERVAL '5' SECOND)", "SLACK"),
    ("CREATE STREAM C (t TIMESTAMP, p AS PROCTIME())", "a name and a type"),
    ("CREATE STREAM C (k TEXT) WITH ('connector' = 'kafka')", "behind FROM"),
    ("DROP TABLE Pos", "DROP STREAM"),
    ("SHOW CREATE TABLE Pos", "DESCRIBE"),
    ("PREPARE p AS SELECT 1", "params="),
    ("TABLE Pos", "SELECT * FROM"),
    ("VACUUM", "by itself"),
    ("SELECT car, name FROM Pos JOIN VALUES (1, 'a'), (2, 'b') AS t(car, name) USING (car)", "stand in parentheses"),
    ("SELECT * FROM (VALUES ROW(1, 'a'), ROW(2, 'b')) AS t(car, name)", "FROM (VALUES (1, 'a'), (2, 'b'))"),
    ("SELECT * FROM TUMBLE(S, ts, INTERVAL '1 hour')", "FROM S [TUMBLE 1 HOUR]"),
    ("PRAGMA table_info('Pos')", "DESCRIBE"),
    ("SELECT k FROM S WHERE ts > '2026-01-01 00:00:00.0001'", "time_unit='us'"),
    ("SELECT ts + INTERVAL 1 MICROSECOND FROM S", "time_unit='us'"),
]


@pytest.mark.parametrize(("text", "hint"), HABITS, ids=[text[:60] for text, _ in HABITS])
def test_habits_of_other_systems_get_help(text: str, hint: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
    assert hint in caught.value.hint


def test_columns_of_rows_without_a_name_are_told() -> None:
    with connect() as db, pytest.raises(CqlError) as caught:
        db.execute("SELECT 3 AS a, 4 AS c ORDER BY b")
    assert caught.value.note == "the columns are: a, c"


@pytest.mark.parametrize(
    ("text", "column"), [("CREATE STREAM Z (a INTEGER)", 1), ("SELECT k FROM S; SELECT k FROM S", 18)]
)
def test_query_takes_one_query_and_points_to_execute(text: str, column: int) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.query(text)
    assert caught.value.position == (1, column) and "db.execute" in caught.value.hint


def test_only_what_can_be_dropped_is_proposed() -> None:
    with connect() as db, pytest.raises(CqlError) as caught:
        db.execute("CREATE STREAM S (k INTEGER); DROP STREAM Nope")
    assert caught.value.note == "there are: S"


def test_a_long_line_is_cut_visibly_around_the_place() -> None:
    with connect() as db, pytest.raises(CqlError) as caught:
        db.execute(f"CREATE STREAM S (k INTEGER); SELECT {'k, ' * 60}nope, {'k, ' * 60}k FROM S")
    line, marker = caught.value.caret.splitlines()
    assert line.startswith("  1 | ..") and line.endswith("..") and len(line) < 150
    assert line[marker.index("^") :].startswith("nope")


ELSEWHERE = [
    ("SELECT k FROM S [SESSION 30 MINUTES BY k]", "[SESSION 30 MINUTES PARTITION BY k]"),
    ("SELECT k FROM S [RANGE 1 HOUR 30 MINUTES]", "[RANGE 90 MINUTES]"),
    ("SELECT k FROM S [RANGE 5 MINUTES ON k]", "TIMESTAMP BY"),
    ("SELECT k FROM S [RANGE 5 MINUTES PRECEDING]", "[RANGE 10 SECONDS]"),
    ("SELECT k FROM S LATEST ON k", "[PARTITION BY k ROWS 1]"),
    ("SELECT k FROM TUMBLE(S, k, INTERVAL '1' MINUTE)", "FROM S [TUMBLE 1 MINUTE]"),
    ("SELECT s.k FROM S s JOIN T t ON s.k = t.k WITHIN 5 MINUTES", "S [RANGE 15 MINUTES] JOIN T [RANGE 15 MINUTES]"),
    ("SELECT k FROM S WHERE MZ_NOW() > 3", "no clock"),
    ("SELECT WINDOWSTART FROM S [TUMBLE 5]", "write window_start"),
    ("SELECT S.k FROM S JOIN T ON S.k = T.k EMIT CHANGES", "leave EMIT out"),
    ("CREATE RELATION R (k INTEGER KEY)", "KEY (columns) stands behind the columns"),
    ("PRINT S", "SELECT * FROM S;"),
    ("SHOW COLUMNS FROM S", "DESCRIBE name"),
    ("SHOW COLUMNS IN S", "DESCRIBE name"),
    ("MERGE INTO Cars USING S ON Cars.car = S.k", "INSERT OR REPLACE INTO Cars VALUES (..)"),
    ("INSERT INTO Cars VALUES (1, 'a') ON CONFLICT DO NOTHING", "db.push('Cars', rows, sign=..)"),
    ("INSERT INTO Made (k) SELECT k FROM S", "CREATE VIEW Made AS SELECT .."),
    ('DROP TABLE "my cars"', "write DROP STREAM `my cars`, or DROP RELATION `my cars`"),
    ('DROP TABLE "select"', "write DROP STREAM `select`"),
    ('MERGE INTO "my cars" SET a = 1', "db.upsert('my cars', rows) and INSERT OR REPLACE INTO `my cars` VALUES (..)"),
    ("DROP TABLE main.cars", "write DROP STREAM name"),
    ("SELECT PERCENTILE(v, 95) FROM S", "QUANTILE_CONT(x, 0.95)"),
    ("SELECT SUM(v) OVER (ORDER BY ts RANGE INTERVAL '1 day 2 hours' PRECEDING) FROM S", "INTERVAL '90' MINUTE"),
    ("SELECT SUM(v) OVER (ORDER BY ts RANGE INTERVAL '1 month' PRECEDING) FROM S", "write it in DAYS"),
    ("UPDATE Cars SET owner = D.name FROM Drivers D", "the values come from subqueries"),
    ("TRUNCATE TABLE Cars", "DELETE FROM Cars takes out all rows"),
    ("DROP TABLE IF EXISTS Cars", "write DROP STREAM Cars, or DROP RELATION Cars"),
    ("SELECT k FROM S#time(30 sec)", "write S [RANGE 30 SECONDS]"),
    ("SELECT k FROM S#length(5) OUTPUT LAST EVERY 5 EVENTS", "write S [ROWS 5]"),
    ("SELECT k FROM S.win:time_batch(5 min)", "write S [TUMBLE 5 MINUTES]"),
    ("SELECT k FROM S#unique(k) AS s", "write S [PARTITION BY k ROWS 1]"),
    ("SELECT k FROM S.std:lastevent()", "write S [ROWS 1]"),
    ("SELECT k FROM S#keepall", "write S [RANGE UNBOUNDED]"),
    ('SELECT k FROM "S"#time_batch(1.5 min)', 'write "S" [TUMBLE 1.5 MINUTES]'),
    ("SELECT k FROM S#time(1 hour 30 min)", "write S with its window in brackets"),
    ("SELECT k FROM S.win:ext_timed(ts, 5 sec)", "write S [RANGE 5 SECONDS]"),
    ("SELECT k FROM S#groupwin(k)#length(5)", "write S [PARTITION BY k ROWS 5]"),
    ("SELECT k FROM S#sort(5, v)", "write S with its window in brackets"),
    ("FROM S#window.lengthBatch(5) SELECT k", "write S [ROWS 5 SLIDE 5]"),
    ("SELECT IRSTREAM k FROM S", "leave IRSTREAM out"),
    ("SELECT PREV(1, v) FROM S", "LAG(x) OVER"),
    ("INSERT INTO Made SELECT k FROM S", "CREATE VIEW Made AS SELECT .."),
    ("CREATE TABLE Made AS SELECT * FROM 'a.parquet'", "CREATE STREAM S (..) FROM 'file'"),
    ("SELECT k, v FROM S ORDER BY v DESC, k", "ORDER BY v DESC, k LIMIT n"),
    (
        "SELECT SUM(LAG(v) OVER (ORDER BY ts)) OVER (ORDER BY ts) FROM S",
        "FROM (SELECT *, LAG(v) OVER (ORDER BY ts) AS x",
    ),
    ("SELECT QUANTILE_CONT(v, [0.5, 0.9]) FROM S", "a call for each"),
    ("TERMINATE QUERY q", "write DROP QUERY q, or ALTER QUERY q PAUSE"),
    ("DESCRIBE S EXTENDED", "write DESCRIBE S"),
    (
        "CREATE TABLE X (t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '5' SECOND)",
        "CREATE STREAM X (t TIMESTAMP) TIMESTAMP BY t SLACK 5 SECOND",
    ),
    (
        "CREATE TABLE X (t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '0.5' SECOND)",
        "CREATE STREAM X (t TIMESTAMP) TIMESTAMP BY t SLACK 0.5 SECOND",
    ),
    ("CREATE QUERY q INTO 'x.csv' AS SELECT k FROM S", "CREATE QUERY name AS SELECT .. INTO 'file'"),
    ("SELECT FLOOR(at TO MINUTE) FROM Pos", "DATE_TRUNC('minute', at)"),
    ("SELECT CEIL(at TO HOUR) FROM Pos", "DATE_TRUNC('hour', at), and add INTERVAL '1' HOUR"),
    ("SELECT CAST(at AS TIMESTAMP WITH TIME ZONE) FROM Pos", "write TIMESTAMP;"),
    ("CREATE STREAM X (a TIMESTAMP(3) WITH TIME ZONE)", "write TIMESTAMP;"),
    ("CREATE STREAM X (a TIMESTAMP WITH LOCAL TIME ZONE)", "write TIMESTAMP;"),
    ("SELECT INTERVAL '01:90:00' FROM Pos", "'1 day 02:30:00'"),
    ("SELECT INTERVAL 1 MONTH FROM Pos", "t + INTERVAL '1' month"),
    ("SELECT at - at > INTERVAL '1 month' FROM Pos", "t + INTERVAL '1' month"),
    ("SELECT at + INTERVAL v DAY FROM Pos", "write INTERVAL (v) DAY"),
    ("SELECT at + TO_DAYS(3) FROM Pos", "write INTERVAL (n) DAY"),
    ("SELECT SUM(v) OVER (ORDER BY at RANGE INTERVAL '1' MONTH PRECEDING) FROM Pos", "DAYS"),
    ("SELECT EXTRACT(MINUTE FROM at - at) FROM Pos", "x / INTERVAL '1' MINUTE, an INTEGER"),
    ("SELECT EXTRACT(HOUR FROM at - at) FROM Pos", "x / INTERVAL '1' HOUR"),
    ("SELECT EXTRACT(YEAR FROM at - at) FROM Pos", "EXTRACT(EPOCH FROM x), its seconds"),
    ("SELECT CAST(at - at AS FLOAT) FROM Pos", "x / INTERVAL '1' MINUTE"),
    ("SELECT VARIANCE(at - at) FROM Pos [NOW]", "CAST(at - at AS INTEGER)"),
    ("SELECT VARIANCE(at) FROM Pos [NOW]", "CAST(at AS INTEGER)"),
    (
        "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE Pos, DESCRIPTOR(at), INTERVAL '1' HOUR)) GROUP BY car",
        "FROM Pos [TUMBLE 1 HOUR]",
    ),
    (
        "SELECT COUNT(*) FROM TABLE(HOP(TABLE Pos, DESCRIPTOR(at), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))",
        "FROM Pos [HOP 5 MINUTES EVERY 1 MINUTE]",
    ),
    ("SELECT COUNT(*) FROM HOP(Pos, at, INTERVAL '1 minute', INTERVAL '1 hour')", "[HOP 1 HOUR EVERY 1 MINUTE]"),
    ("SELECT car, COUNT(*) FROM Pos WINDOW TUMBLING (SIZE 30 SECONDS) GROUP BY car", "FROM Pos [TUMBLE 30 SECONDS]"),
    (
        "SELECT car, COUNT(*) FROM Pos WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) GROUP BY car",
        "FROM Pos [HOP 1 HOUR EVERY 5 MINUTES]",
    ),
    (
        "SELECT car, road FROM Pos WINDOW SESSION (60 SECONDS) GROUP BY car, road EMIT CHANGES",
        "FROM Pos [SESSION 60 SECONDS PARTITION BY car, road]",
    ),
    (
        "SELECT car, COUNT(*) FROM Pos GROUP BY car, SESSION(at, INTERVAL '30' MINUTE)",
        "FROM Pos [SESSION 30 MINUTE PARTITION BY car]",
    ),
    ("SELECT car FROM Pos GROUP BY car, TumblingWindow(minute, 5)", "FROM Pos [TUMBLE 5 MINUTE]"),
    ("SELECT car FROM Pos GROUP BY car, HoppingWindow(second, 10, 5)", "FROM Pos [HOP 10 SECOND EVERY 5 SECOND]"),
    (
        "SELECT car FROM Pos GROUP BY car; SELECT road FROM Pos GROUP BY road, SessionWindow(second, 9)",
        "FROM Pos [SESSION 9 SECOND PARTITION BY road]",
    ),
    ("SELECT EXTRACT(HOUR FROM at) AS h FROM Pos GROUP BY h, TUMBLE(at, INTERVAL '1' HOUR)", "S [TUMBLE 1 MINUTE]"),
    ("SELECT car FROM Pos GROUP BY car, SlidingWindow(second, 10)", "FROM Pos [RANGE 10 SECOND]"),
    ("SELECT COUNT(*) FROM Pos TIMESTAMP BY at", "TIMESTAMP BY stands with the declaration"),
    ("SELECT System.Timestamp() AS t FROM Pos", "CURRENT_TIMESTAMP"),
    ("SELECT COUNT(*) FILTER (car = 1) FROM Pos", "FILTER (WHERE condition)"),
    ("SELECT (REGEXP_MATCHES(road, 'a'))[1] FROM Pos", "REGEXP_EXTRACT(text, 'pattern', 1)"),
    ("SELECT SUBSTRING(road FROM 'a(.)') FROM Pos", "REGEXP_EXTRACT(road, 'a(.)', 1)"),
    ("SELECT REGEXP_SUBSTR(road, 'a') FROM Pos", "REGEXP_EXTRACT(text, pattern)"),
    ("SELECT road:user:name FROM Pos", "road ->> '$.user.name'"),
    ("SELECT * LIKE 'c%' FROM Pos", "EXCLUDE"),
    ("SELECT ISNAN(speed) FROM Pos", "NaN is NULL"),
    ("SELECT COUNT(DISTINCT (k, v)) FROM S [NOW]", "leave the parentheses out"),
    ("SELECT car FROM Pos WHERE road", "x IS NOT NULL"),
    ("SELECT DATE_FORMAT(at, 'yyyy') FROM Pos", "FORMAT_TIMESTAMP(t, 'yyyy-MM-dd')"),
    ("SELECT DATE(at) FROM Pos", "CAST(x AS DATE)"),
    ("SELECT DATETIME(road) FROM Pos", "CAST(x AS TIMESTAMP)"),
    ("SELECT k FROM S WHERE NOT (k <=> 3)", "IS NOT DISTINCT FROM"),
    ("SELECT k FROM S WHERE [k] @> [1]", "LIST_HAS_ALL(list, [x, y])"),
    ("SELECT k FROM S WHERE [k] CONTAINS 1", "LIST_CONTAINS(list, x)"),
    ("SELECT car FROM Pos [NOW] UNION SELECT owner FROM Cars", "CAST(car AS TEXT)"),
    ("CREATE QUERY q AS SELECT k FROM S INTO T", "CREATE VIEW"),
    ("CREATE STREAM X (a TIMESTAMP) WATERMARK 5 SECONDS", "SLACK 5 SECONDS"),
    ("CREATE STREAM X (a INTEGER, KEY (a))", "(a INTEGER) KEY (a)"),
    ("CREATE STREAM X (a INTEGER, PRIMARY KEY (a))", "(a INTEGER) KEY (a)"),
    ("CREATE STREAM X (a SERIAL)", "use INTEGER"),
    ("ALTER TABLE S ADD COLUMN w INTEGER", "ALTER STREAM"),
    ("ALTER STREAM S DROP COLUMN IF EXISTS v", "CREATE VIEW v AS SELECT * EXCLUDE (v) FROM S"),
    ("ALTER STREAM S RENAME COLUMN v TO w", "CREATE VIEW v AS SELECT * RENAME (v AS w) FROM S"),
    ("ALTER STREAM S RENAME v TO `a b`", "SELECT * RENAME (v AS `a b`) FROM S"),
    ("ALTER STREAM S RENAME TO N", "CREATE VIEW N AS SELECT * FROM S"),
    ("ALTER STREAM S ALTER COLUMN v TYPE FLOAT", "SELECT * REPLACE (CAST(v AS ..) AS v) FROM S"),
    ("ALTER STREAM S SET (slack = 5)", "DROP STREAM S"),
    ("ALTER STREAM S PUASE", "did you mean PAUSE?"),
    ("ALTER RELATION Cars DROP COLUMN owner", "DROP RELATION Cars"),
    ("ALTER VIEW v AS SELECT 1", "CREATE OR REPLACE VIEW v AS SELECT .."),
    ("SELECT k FROM S UNION (SELECT k FROM T) LIMIT 1", "LIMIT stands behind ORDER BY"),
    ("INSERT INTO Cars VALUES (1, 2)", "a text stands in quotes: '2'"),
    ("INSERT INTO Cars VALUES (1, true)", "CAST(true AS TEXT)"),
    ("INSERT INTO Cars VALUES (1, DATE '2024-05-01')", "CAST(DATE '2024-05-01' AS TEXT)"),
    ("INSERT INTO Cars VALUES ('1', 'a')", "a number stands without quotes: 1"),
    ("INSERT INTO S VALUES (2.5, 1)", "CAST(2.5 AS INTEGER)"),
    ("SELECT k, COUNT(*) FROM S GROUP BY k HAVING n > 3", "COUNT(*) AS n"),
    ("DELETE FROM S", "S [RANGE 10 SECONDS]"),
    ("UPDATE S SET v = 1", "S [RANGE 10 SECONDS]"),
    ("CREATE STREAM X (a TEXT) WITH (KAFKA_TOPIC = 'x', VALUE_FORMAT = 'JSON')", "FROM 'kafka://host:9092/topic'"),
    ("CREATE STREAM X (a TIMESTAMP) TIMESTAMP BY (a)", "TIMESTAMP BY a"),
    ("SELECT COUNT(k, v) FROM S", "COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)"),
    ("SELECT v / '2' FROM S", "a number stands without quotes: 2"),
    ("SELECT v FROM S WHERE v IS 5", "values are compared by ="),
    ("Pos", "write SELECT * FROM Pos; db.queries"),
    ("DESCRIBE TABLE Cars", "DESCRIBE Cars"),
    ('INSERT INTO Cars VALUES (1, "Ada")', "'Ada'"),
    ('INSERT INTO Cars VALUES (1, "O\'Neil")', "'O''Neil'"),
]
"""(what another system has, what its hint names)."""


@pytest.mark.parametrize(("text", "named"), ELSEWHERE, ids=[text[:60] for text, _ in ELSEWHERE])
def test_a_form_of_another_system_gets_that_of_this_one(text: str, named: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
    assert named in caught.value.hint


@pytest.mark.parametrize("low", ["- 1", "-1", "+ v", "-(v) + 2", "/* c */ - 1"])
def test_symmetric_before_a_sign_is_no_column_and_is_refused_where_it_may_be_one(low: str) -> None:
    with connect() as db:
        db.execute("CREATE STREAM A (v INTEGER); CREATE STREAM B (v INTEGER, symmetric INTEGER)")
        q = db.query(f"SELECT v FROM A WHERE v BETWEEN SYMMETRIC {low} AND 3")
        assert "OR v BETWEEN 3 AND" in q.expanded
        with pytest.raises(CqlError, match="may be the column") as caught:
            db.query(f"SELECT v FROM B WHERE v BETWEEN symmetric {low} AND 3")
        assert "`symmetric` - 1" in caught.value.hint
        quoted = db.query(f"SELECT v FROM B WHERE v BETWEEN `symmetric` {low} AND 3")
        db.query(f"SELECT v FROM B WHERE v BETWEEN SYMMETRIC ({low}) AND 3")
        db.query(quoted.expanded)


DECLARED_ELSEWHERE = [
    ("CREATE TABLE Made (a INTEGER, b VARCHAR(9))", "CREATE RELATION Made (a INTEGER, b VARCHAR(9))"),
    (
        "CREATE TEMP TABLE IF NOT EXISTS main.Made (id BIGINT PRIMARY KEY, v DECIMAL(9, 2) NOT NULL DEFAULT (1))",
        "CREATE RELATION Made (id BIGINT, v DECIMAL(9, 2)) KEY (id)",
    ),
    (
        'CREATE TABLE "my T" (a INT, b TEXT[], CONSTRAINT p PRIMARY KEY (a, b), FOREIGN KEY (a) REFERENCES U (a))',
        'CREATE RELATION "my T" (a INT, b TEXT[]) KEY (a, b)',
    ),
    (
        "CREATE TABLE Made (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('a' = 'b')",
        "CREATE STREAM Made (a INT, ts TIMESTAMP) TIMESTAMP BY ts SLACK 5 SECOND",
    ),
    ("CREATE TABLE Made AS SELECT car FROM Pos [NOW]", "CREATE VIEW Made AS SELECT car FROM Pos [NOW]"),
    ("CREATE OR REPLACE TABLE Made AS (SELECT car FROM Pos)", "CREATE OR REPLACE VIEW Made AS (SELECT car FROM Pos)"),
    ("CREATE MATERIALIZED VIEW Made AS SELECT car FROM Pos [NOW]", "CREATE VIEW Made AS SELECT car FROM Pos [NOW]"),
    (
        "CREATE TEMP VIEW Made (a, b) AS SELECT car, road FROM Pos",
        "CREATE VIEW Made (a, b) AS SELECT car, road FROM Pos",
    ),
    ("CREATE TABLE Made (a TEXT DEFAULT ')', b INT DEFAULT (1))", "CREATE RELATION Made (a TEXT, b INT)"),
    (
        "CREATE STREAM Made WITH (kafka_topic = 't') AS SELECT car, speed FROM Pos WHERE speed > 3 EMIT CHANGES",
        "CREATE VIEW Made AS SELECT car, speed FROM Pos WHERE speed > 3",
    ),
    (
        "CREATE TABLE Made AS SELECT car, COUNT(*) AS n, WINDOWSTART AS w FROM Pos p WINDOW TUMBLING (SIZE 5 SECONDS, "
        "GRACE PERIOD 1 HOUR) WHERE speed > 3 GROUP BY car HAVING COUNT(*) > 1 EMIT CHANGES",
        "CREATE VIEW Made AS SELECT car, COUNT(*) AS n, window_start AS w FROM Pos [TUMBLE 5 SECONDS] p "
        "WHERE speed > 3 GROUP BY car, window_start HAVING COUNT(*) > 1",
    ),
    (
        "CREATE TABLE Made AS -- of all\n SELECT 'a  b'/* c */, k\nFROM S",
        "CREATE VIEW Made AS SELECT 'a  b' , k FROM S",
    ),
    (
        "SELECT car, 'a  b' -- it's each\nFROM Pos # ..\n GROUP BY car, TUMBLE(at, INTERVAL '1' HOUR) /* one */",
        "SELECT car, 'a  b' FROM Pos [TUMBLE 1 HOUR] GROUP BY car, window_start",
    ),
    (
        "SELECT car FROM Pos WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY car EMIT CHANGES LIMIT 5",
        "SELECT car FROM Pos [TUMBLE 1 HOUR] GROUP BY car",
    ),
    (
        "SELECT car FROM TABLE(TUMBLE(DATA => TABLE Pos, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '9' MINUTES))",
        "SELECT car FROM Pos [TUMBLE 9 MINUTES]",
    ),
    (
        "SELECT S.k, 'a  b' AS c -- it's each\nFROM S JOIN T WITHIN 9 SECONDS ON S.k = T.k EMIT CHANGES LIMIT 5",
        "SELECT ISTREAM(S.k, 'a  b' AS c) FROM S [RANGE 9 SECONDS] JOIN T [RANGE 9 SECONDS] ON S.k = T.k",
    ),
    (
        "CREATE TABLE Made AS SELECT p.car, 1 AS n FROM Pos AS p WINDOW SESSION (9 SECONDS) GROUP BY p.car EMIT FINAL",
        "CREATE VIEW Made AS SELECT p.car, 1 AS n FROM Pos [SESSION 9 SECONDS PARTITION BY p.car] AS p GROUP BY p.car",
    ),
    (
        "CREATE TABLE Made AS SELECT 1 AS n FROM Pos WINDOW HOPPING (SIZE 9 DAYS, ADVANCE BY 1 DAY, RETENTION 9 DAYS)",
        "CREATE VIEW Made AS SELECT 1 AS n FROM Pos [HOP 9 DAYS EVERY 1 DAY]",
    ),
    (
        "CREATE MATERIALIZED VIEW Made AS SELECT window_end, 1 FROM S JOIN TUMBLE(T, ts, INTERVAL '1 minute') "
        "ON S.k = T.k GROUP BY window_end",
        "CREATE VIEW Made AS SELECT window_end, 1 FROM S JOIN T [TUMBLE 1 MINUTE] ON S.k = T.k GROUP BY window_end",
    ),
    (
        "CREATE TABLE Made AS SELECT car FROM TABLE(TUMBLE(TABLE Pos, DESCRIPTOR(at), INTERVAL '9' DAY)) "
        "UNION ALL SELECT k FROM S",
        "CREATE VIEW Made AS SELECT car FROM Pos [TUMBLE 9 DAY] UNION ALL SELECT k FROM S",
    ),
    (
        "SELECT HOP_START(at, INTERVAL '1' HOUR, INTERVAL '2' HOUR) AS a, car, "
        "HOP_END(at, INTERVAL '1' HOUR, INTERVAL '2' HOUR) AS b FROM Pos "
        "GROUP BY HOP(at, INTERVAL '1' HOUR, INTERVAL '2' HOUR), car",
        "SELECT window_start AS a, car, window_end AS b FROM Pos [HOP 2 HOUR EVERY 1 HOUR] "
        "GROUP BY window_start, car, window_end",
    ),
    (
        "SELECT car FROM Pos [TUMBLE 1 HOUR] GROUP BY car, TUMBLE(at, INTERVAL '1' HOUR)",
        "SELECT car FROM Pos [TUMBLE 1 HOUR] GROUP BY car, window_start",
    ),
    (
        "SELECT window(at, '9 seconds', '3 seconds').end AS e, COUNT(*) FROM Pos "
        "GROUP BY window(at, '9 seconds', '3 seconds')",
        "SELECT window_end AS e, COUNT(*) FROM Pos [HOP 9 SECONDS EVERY 3 SECONDS] GROUP BY window_start, window_end",
    ),
    (
        "SELECT session_window.start, car FROM Pos GROUP BY session_window(at, '9 seconds'), car",
        "SELECT window_start, car FROM Pos [SESSION 9 SECONDS PARTITION BY car] GROUP BY window_start, car",
    ),
]


@pytest.mark.parametrize(("text", "meant"), DECLARED_ELSEWHERE, ids=[text[:60] for text, _ in DECLARED_ELSEWHERE])
def test_a_statement_of_another_system_is_shown_as_one_that_can_be_carried_out(text: str, meant: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
        assert caught.value.hint.endswith(meant)
        db.execute(meant)


@pytest.mark.parametrize(
    "text", ["CREATE TABLE Made AS SELECT '{}' FROM Pos", "SELECT '{}' FROM Pos WINDOW TUMBLING (SIZE 1 HOUR)"]
)
def test_a_long_text_in_a_statement_of_another_system_takes_no_time_of_its_square(text: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        began_s = time.process_time()
        with pytest.raises(CqlError):
            db.execute(text.format(" " * 100_000))
        assert time.process_time() - began_s < 5


def test_no_part_of_a_join_of_another_system_is_shown_as_the_whole() -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute("SELECT S.k FROM S JOIN T WITHIN 9 SECONDS ON S.k = T.k WHERE " + "S.k > 1 AND " * 200 + "TRUE")
        assert "SELECT" not in caught.value.hint


@pytest.mark.parametrize(
    "text", ["CREATE TABLE", "CREATE TABLE T", "CREATE TABLE T (", "CREATE TABLE T (a", "CREATE TEMP"]
)
def test_a_declaration_that_ends_early_is_refused(text: str) -> None:
    with connect() as db, pytest.raises(CqlError):
        db.execute(text)


@pytest.mark.parametrize(
    "text", ["SELECT CAST(at - at AS DATE) FROM Pos", "SELECT [k] FROM S [NOW] UNION SELECT car FROM Cars"]
)
def test_no_cast_is_advised_that_there_is_not(text: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.execute(text)
    assert not caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM S [SESSION 30 MINUTES PARTITION BY k]",
        "SELECT STRFTIME(at, '%Y-%m-%d'), FORMAT_TIMESTAMP(at, 'yyyy-MM-dd'), CAST(at AS DATE) FROM Pos",
        "SELECT DATE_TRUNC('hour', at), TIMESTAMPADD(MONTH, 1, at), TIMESTAMPDIFF(MONTH, at, at) FROM Pos",
        "SELECT (at - at) / INTERVAL '1' SECOND, (at - at) / INTERVAL '1' MILLISECOND / 1000.0 FROM Pos",
        "SELECT ARG_MIN(road, at), APPROX_QUANTILE(speed, 0.95), TO_JSON(ARRAY_AGG(road)) FROM Pos [NOW]",
        "SELECT LIST_HAS_ALL([k], [1]), LIST_CONTAINS([k], 1), STRUCT(a := k, b := v) FROM S",
        "SELECT STRPOS(road, 'a'), CONTAINS(road, 'a'), SHA256(road), at AT TIME ZONE 'Europe/Berlin' FROM Pos",
        "SELECT COUNT(DISTINCT k, v) FROM S [PARTITION BY k ROWS 1]",
        "SELECT TIMESTAMP '2000-01-01' + MEDIAN(at - TIMESTAMP '2000-01-01') FROM Pos [NOW]",
        "SELECT COUNT(*) FROM Pos [HOP 1 HOUR EVERY 5 MINUTES]",
        "SELECT REGEXP_EXTRACT(road, 'a(.)', 1), road ->> '$.b.c' FROM Pos [SESSION 30 MINUTE PARTITION BY car]",
        "SELECT at + INTERVAL '1' month, at + INTERVAL (car) DAY FROM Pos",
        "SELECT CASE k WHEN 1 THEN LAG(v, 1) OVER w WHEN 2 THEN LAG(v, 2) OVER w END FROM S WINDOW w AS (ORDER BY ts)",
        "SELECT LIST_TRANSFORM(GENERATE_SERIES(0, 23), i -> TIMESTAMP '2024-05-01' + i * INTERVAL '1 hour') FROM S",
        "SELECT x FROM (SELECT 1 AS x) AS one, S WHERE x > 0 AND (k, v) NOT IN (SELECT MAX(k), 1 FROM T)",
        "SELECT LIST_TRANSFORM(GENERATE_SERIES(1, k), i -> v), '\"' || REPLACE('', '\"', '\"\"') || '\"' FROM S",
    ],
)
def test_what_hints_say_is_accepted(text: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        assert db.query(text).schema


JOINS = [
    (
        "SELECT p.speed, owner FROM Pos p JOIN Cars FOR SYSTEM_TIME AS OF p.at AS c ON p.car = c.car",
        "SELECT RSTREAM(p.speed, owner) FROM Pos [NOW] AS p JOIN Cars AS c ON p.car = c.car",
    ),
]


@pytest.mark.parametrize(("text", "meant"), JOINS)
def test_a_join_as_of_an_instant_is_shown_as_the_query_it_means(text: str, meant: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.query(text)
        assert f"write {meant}" in caught.value.hint
        assert db.query(meant).kind == "stream"


def test_apply_is_shown_as_the_standard_writes_it() -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        for word, meant in (
            ("CROSS", "CROSS JOIN LATERAL (..) AS x"),
            ("OUTER", "LEFT JOIN LATERAL (..) AS x ON TRUE"),
        ):
            query = "(SELECT v FROM S [ROWS 9] WHERE S.k = Cars.car)"
            with pytest.raises(CqlError) as caught:
                db.query(f"SELECT owner, x.v FROM Cars {word} APPLY {query} AS x")
            assert caught.value.hint == f"write {meant}"
            db.query(f"SELECT owner, x.v FROM Cars {meant.replace('(..)', query)}")


def test_a_pattern_of_rows_is_shown_as_joins_in_the_order_of_time() -> None:
    joins = (
        "SELECT RSTREAM(..) FROM S [RANGE 10 MINUTES] AS A JOIN S [RANGE 10 MINUTES] AS B ON A.k = B.k AND A.ts < B.ts "
        "JOIN S [NOW] AS C ON B.k = C.k AND B.ts < C.ts"
    )
    pattern = "PARTITION BY k ORDER BY ts MEASURES A.v AS v PATTERN (A B+ C) DEFINE B AS B.v > A.v"
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError) as caught:
            db.query(f"SELECT * FROM S MATCH_RECOGNIZE ({pattern})")
        assert joins in caught.value.hint and "LAG(x) OVER (PARTITION BY k ORDER BY ts)" in caught.value.hint
        db.query(joins.replace("..", "A.v"))


def test_types_of_times_take_other_names_and_a_precision() -> None:
    with connect() as db:
        db.execute("CREATE STREAM X (a TIMESTAMP(3), b TIMESTAMPTZ, c TIMESTAMP_LTZ(3), d DATETIME, e TIME(6))")
        query = db.query("SELECT *, CAST(a AS TIMESTAMP(0)) AS f FROM X")
        assert str(query.schema) == "a TIMESTAMP, b TIMESTAMP, c TIMESTAMP, d TIMESTAMP, e TIME, f TIMESTAMP"


@pytest.mark.parametrize(
    "condition",
    [
        "ON p.car = o.car AND p.ts > o.ts",
        "ON p.car = o.car AND p.ts <= o.ts",
        "ON p.ts >= o.ts AND o.ts <= p.ts",
        "ON p.car = o.car",
        "ON p.car + 1 = o.car AND p.car >= o.ts",
        "ON p.car = o.car AND p.ts = o.ts",
        "ON p.ts - INTERVAL 1 SECOND >= o.ts",
        "ON p.ts >= o.at",
        "USING (car)",
        "USING (ts, car)",
        "USING (car, at)",
        "MATCH_CONDITION (p.at >= o.at) USING (car)",
        "MATCH_CONDITION (p.ts >= o.ts) USING (car, ts)",
        "MATCH_CONDITION (p.ts < o.ts) ON p.car = o.car",
    ],
)
@pytest.mark.parametrize("right", ["Pos", "(SELECT *, car AS `ts` FROM Pos)"])
def test_what_an_asof_join_may_compare_is_written_out(condition: str, right: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        text = f"SELECT p.car FROM Pos AS p ASOF JOIN {right} AS o "
        with pytest.raises(CqlError) as caught:
            db.query(text + condition)
        assert db.query(text + caught.value.hint.removeprefix("write ")).kind == "stream"


@pytest.mark.parametrize("call", ["execute", "query"])
def test_a_mistake_in_a_text_shows_no_frames_of_the_engine(call: str) -> None:
    with connect() as db:
        db.execute(DECLARATIONS)
        with pytest.raises(CqlError, match="unknown column") as caught:
            getattr(db, call)("SELECT speeed FROM Pos")
    assert [frame.name for frame in caught.traceback][-1] == call
