"""Lists in queries: how they read, what they are to windows, joins and groups, and how they come out."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.shell.modes.rows import sort_key
from minidsms.shell.showing import cell
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration

ROWS = [(1, 10, "a-b"), (1, None, "c"), (2, 5, "a-b")]


def _answer(query: str) -> list[Any]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER, t TEXT)")
        answer = db.query(query)
        db.push("S", ROWS, ts=[1, 2, 3])
        db.advance(3)
        return [c.row for c in answer.fetch()]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[k, v, NULL]", [2, 5, None]),
        ("ARRAY[1, 2.5]", [1.0, 2.5]),
        ("STRING_SPLIT(t, '-')[-1]", "b"),
        ("[10, 20, 30][k]", 20),
        ("[1, 2][3]", None),
        ("[k + 1,200][1]", 3),
        ("LIST_SORT([3, k])[1] IN (2, 7)", True),
        ("[k, 1] = [2, 1] AND [k] <> [3] AND [k] IN ([1], [2])", True),
        ("[NULL, 1] = [NULL, 1]", True),
        ("COALESCE(NULL, [k])", [2]),
        ("CAST([1.0, NULL] AS TEXT) || CAST(['é'] AS TEXT)", '[1.0, null]["é"]'),
        ("CASE WHEN k = 2 THEN ['x'] ELSE STRING_SPLIT(t, '') END", ["x"]),
        ("[]", []),
        ("CASE WHEN k = 2 THEN [] ELSE [t] END", []),
        ("CASE WHEN k = 2 THEN [t] ELSE [] END", ["a-b"]),
        ("IF(k = 1, [v / 2.0], [])", []),
        ("COALESCE(NULL, [], [t])", []),
        ("NULLIF([t], [])", ["a-b"]),
        ("[t] = [] OR [t] IN ([], ['x'])", False),
        ("[] || [t] || []", ["a-b"]),
        ("[] || t", ["a-b"]),
        ("LIST_APPEND([], v / 2.0)", [2.5]),
        ("LIST_CONTAINS([], t)", False),
        ("[[], [t], []]", [[], ["a-b"], []]),
        ("REDUCE([t, t], [], (s, x) -> x || s)", ["a-b", "a-b"]),
        ("TRANSFORM([], x -> x + 1)", []),
        ("CAST([] AS STRUCT(a TEXT)[])", []),
        ("MAP('a' := [], 'b' := [t])", {"a": [], "b": ["a-b"]}),
        ("CARDINALITY([])", 0),
        ("STRING_SPLIT('', '')", []),
        ("STRING_SPLIT('', '-')", [""]),
        ("LIST_SUM([CAST(1.25 AS DECIMAL(5, 2)), NULL, -2.05])", Decimal("-0.80")),
        ("LIST_AVG([CAST(1.25 AS DECIMAL(5, 2)), NULL, -2.05])", -0.4),
        ("LIST_SUM([CAST(NULL AS DECIMAL(5, 2))])", None),
    ],
)
def test_lists_read_as_people_write_them(expression: str, value: Any) -> None:
    assert _answer(f"SELECT ISTREAM({expression} AS value) FROM S [NOW] WHERE k = 2") == [(value,)]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("CASE WHEN k = 1 THEN [v] ELSE [t] END", "INTEGER[] and TEXT[]"),
        ("CASE WHEN k = 1 THEN v ELSE [] END", "INTEGER and INTEGER[]"),
        ("[1, 'a']", "INTEGER and TEXT"),
        ("[[1], ['a']]", "INTEGER[] and TEXT[]"),
        ("[1] < [2]", "lists have no order, for <"),
        ("MIN([v])", "MIN does not take INTEGER[]"),
        ("MODE([v])", "MODE does not take INTEGER[]"),
        ("ARRAY_AGG(v ORDER BY [v])", "lists have no order"),
        ("[v] < ANY (SELECT [v] FROM S [RANGE 5])", "lists have no order, for <"),
        ("FIRST_VALUE([v]) OVER (ORDER BY [v])", "lists have no order"),
        ("LIST_CONTAINS([1], 'a')", "LIST_CONTAINS takes a list and a value"),
    ],
)
def test_a_wrong_list_is_told_when_the_query_is_read(expression: str, told: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER, t TEXT)")
        with pytest.raises(minidsms.CqlError, match=re.escape(told)):
            db.query(f"SELECT {expression} FROM S [RANGE 5]")


QUERIES = (
    "SELECT x.l AS c0, COUNT(*) AS c1 FROM (SELECT [k, v] AS l FROM Sb [RANGE 3]) AS x GROUP BY x.l",
    "SELECT DISTINCT STRING_SPLIT(a.t, 'a') AS c0, [a.k] AS c1 FROM Sb [ROWS 3] AS a",
    "SELECT x.l AS c0, y.k AS c1 FROM (SELECT [v] AS l, k FROM Sb [RANGE 4]) AS x, (SELECT [a] AS l, k FROM Rel) AS y"
    " WHERE x.l = y.l",
    "SELECT x.l AS c0, y.v AS c1 FROM (SELECT [k] AS l FROM Sb [ROWS 2]) AS x LEFT JOIN"
    " (SELECT [k] AS l, v FROM Sb [RANGE 2]) AS y ON x.l = y.l",
    "SELECT [v, k] AS c0, k AS c1 FROM Sb [RANGE 3] ORDER BY k DESC LIMIT 2",
    "SELECT [v, k] AS c0 FROM Sb [RANGE 3] EXCEPT SELECT [v, k] AS c0 FROM Sb [RANGE 1]",
    "DSTREAM (SELECT ARRAY_AGG(v ORDER BY k, t DESC) AS c0, k AS c1 FROM Sb [RANGE 3] GROUP BY k)",
    "SELECT d.l AS c0, COUNT(DISTINCT d.l) AS c1, FIRST(d.l) AS c2 FROM"
    " (ISTREAM (SELECT ARRAY_AGG(v ORDER BY v) AS l, k FROM Sb [RANGE 3] GROUP BY k)) [ROWS 3] AS d GROUP BY d.l",
    "SELECT CASE WHEN COUNT(*) > 1 THEN ARRAY_AGG(t ORDER BY t) ELSE [] END AS c0,"
    " COALESCE(ARRAY_AGG(v ORDER BY v), []) AS c1 FROM Sb [RANGE 3] GROUP BY k",
    "SELECT STRING_SPLIT(SUBSTRING(t, 2), '') AS c0, LIST_SUM([CAST(v AS DECIMAL(20, 3)), 0.125]) AS c1,"
    " LIST_AVG([CAST(v AS DECIMAL(20, 3)), 0.125, 1.05]) AS c2 FROM Sb [RANGE 3]",
    "SELECT LIST_SUM(ARRAY_AGG(v)) AS c0, CARDINALITY(ARRAY_AGG(DISTINCT t)) AS c1 FROM Sb [RANGE 3 SLIDE 2]",
)


@pytest.mark.parametrize("query", QUERIES)
def test_lists_are_kept_compared_and_let_go_as_other_values_are(query: str) -> None:
    for seed in range(5):
        rng = random.Random(f"{query} {seed}")
        names = ["Sb", "Rel"] if "Rel" in query else ["Sb"]
        case = Case(tuple(map(declaration, names)), query, random_feed(rng, names, 16, False))
        check(case, batch_size=rng.choice((1, 2, 7, 1000)))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("t -> 'a'", "JSON_EXTRACT(t, 'a'): 'a-b' is no JSON; WHERE t IS JSON leaves such texts out"),
        ("JSON_KEYS('[' || t)", "'[a-b' is no JSON; WHERE '[' || t IS JSON leaves such texts out"),
        ("JSON_EXTRACT('{\"a\": \"\\ud800\"}', '$.a')", "it has no value for"),
        ("LIST_SUM([v, 9223372036854775807])", "it has no value for [5, 9223372036854775807]"),
        ("LIST_SUM([DECIMAL '99999999999999999999999999999999999999', 1])", "it has no value for"),
        ("GENERATE_SERIES(k, v, 0)", "it has no value for 2, 5, 0"),
    ],
)
def test_a_function_that_fails_names_what_it_was_given(expression: str, told: str) -> None:
    with pytest.raises(minidsms.QueryError, match=re.escape(told)):
        _answer(f"SELECT ISTREAM({expression}) FROM S [NOW] WHERE k = 2")


def test_arrow_tables_and_files_hold_lists(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER, t TEXT)")
        columns = "[k, v] AS n, STRING_SPLIT(t, '-') AS parts, [v / 4.0] AS f, [CAST(k AS TIMESTAMP)] AS at"
        answer = db.query(f"SELECT ISTREAM({columns}) FROM S [NOW]")
        for name in ("out.csv", "out.jsonl"):
            db.execute(f"CREATE QUERY {name[-3:]} AS SELECT ISTREAM({columns}) FROM S [NOW] INTO '{tmp_path / name}'")
        db.push("S", ROWS, ts=[1, 2, 3])
        db.advance(3)
        table = answer.arrow()
    assert table["n"].to_pylist() == [[1, 10], [1, None], [2, 5]]
    assert table["parts"].to_pylist() == [["a", "b"], ["c"], ["a", "b"]]
    assert str(table.schema.field("at").type) == "list<item: timestamp[ms, tz=UTC]>"
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["parts"] for line in lines] == [["a", "b"], ["c"], ["a", "b"]]
    assert [line["f"] for line in lines] == [[2.5], [None], [1.25]]
    assert '"[1, 10]","[""a"", ""b""]",[2.5]' in (tmp_path / "out.csv").read_text()


def test_codes_of_lists_survive_the_sweep_of_the_dictionary() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        answer = db.query("SELECT ARRAY_AGG(k) AS l FROM S [ROWS 3]")
        grouped = db.query("SELECT x.l FROM (SELECT [k] AS l FROM S [ROWS 2]) AS x GROUP BY x.l")
        for i in range(300):
            db.push("S", (i,), ts=i)
            if i % 50 == 0:
                answer.fetch(), grouped.fetch()
                db.memory.reclaim()
        answer.fetch(), grouped.fetch()
        db.memory.reclaim()
        assert len(db.dictionary) < 20
        db.advance(400)
        assert answer.snapshot() == [([297, 298, 299],)]
        assert sorted(grouped.snapshot()) == [([298],), ([299],)]


def test_the_shell_shows_and_sorts_lists() -> None:
    rows = [(1, [1, None]), (1, [1, 2]), (None, None)]
    assert sorted(rows, key=sort_key)[0] == (None, None)
    assert [cell(value) for value in rows[0]] == ["1", "[1, None]"]


def test_a_list_without_elements_is_inserted_and_set_in_columns_of_any_list() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER, tags TEXT[], pairs STRUCT(a TEXT, b FLOAT)[])")
        db.execute("INSERT INTO R VALUES (1, [], []), (2, ['a'], [])")
        db.execute("UPDATE R SET tags = [] WHERE k = 2")
        answer = db.query("SELECT k, tags, pairs FROM R")
        db.advance(1)
        assert sorted(answer.snapshot()) == [(1, [], []), (2, [], [])]
        assert db.query("SELECT k FROM R WHERE tags = []").expanded.endswith("WHERE tags = LIST_VALUE()")
