"""Queries that differ from earlier ones in constants: registered by a template, they are what their text says."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.plan.templates import kind_of
from minidsms.query import Query

DECLARED = "CREATE STREAM S (k INTEGER, v INTEGER, x FLOAT, t TEXT, w TIMESTAMP)"
TEXTS = (
    "SELECT ISTREAM(k) FROM S WHERE v > {0} AND x <= {1}.5",
    "SELECT ISTREAM(k, t) FROM S WHERE t = 'text {0}' OR t IN ('b''s', '{1}')",
    "SELECT k FROM S WHERE v BETWEEN -{0} AND {1} AND x > -{0}",
    "SELECT ISTREAM(k) FROM S WHERE {0} < v AND NOT (v = {1})",
    "SELECT ISTREAM(k) FROM S WHERE v > 1.5 + {0}",
    "SELECT ISTREAM(k) FROM S WHERE t LIKE 'text {0}%'",
    "SELECT ISTREAM(k) FROM S WHERE w > '1970-01-01 00:00:0{0}'",
    "SELECT ISTREAM(k, {0}) FROM S WHERE v = {1}",
    "SELECT k FROM S [RANGE {0}] WHERE v = {1}",
    "SELECT COUNT(*), AVG(x) FROM S [RANGE 9] WHERE v = {0} AND k > {1}",
    "SELECT t, MAX(v) FROM S [RANGE 5] WHERE x >= {0} OR x < -{1} GROUP BY t",
    "SELECT COUNT(*) FROM S [RANGE 9] WHERE v = {0} HAVING COUNT(*) > {1}",
    "SELECT ISTREAM(k) FROM S -- remark {0}\nWHERE v = {1}",
    "SELECT ISTREAM(k) FROM S WHERE v = 9223372036854775807 AND k <> {0}",
    "SELECT ISTREAM(k) FROM S WHERE k = {0} AND v = {0} AND v = {1}",
)
ROWS = [(i, i % 7 - 2, (i % 9) / 2 - 1, f"text {i % 5}", 1000 * i) for i in range(60)]


def is_by_template(query: Query) -> bool:
    return query._plan is None


@pytest.mark.parametrize("text", TEXTS)
def test_a_query_of_a_known_kind_is_what_its_text_says(text: str) -> None:
    one, other = minidsms.connect(), minidsms.connect(sharing="off")
    queries: list[tuple[Query, Query]] = []
    for db in (one, other):
        db.execute(DECLARED)
    for a in range(5):
        for b in range(3):
            written = text.format(a, b)
            queries.append((one.query(written), other.query(written)))
    for db in (one, other):
        db.push("S", ROWS, ts=list(range(60)))
        db.advance(100)
    for made, planned in queries:
        assert made.fetch() == planned.fetch()
        assert made.expanded == planned.expanded and made.schema == planned.schema and made.text == planned.text
        assert made.explain().partition("Physical")[0] == planned.explain().partition("Physical")[0]


def test_a_query_of_a_family_is_not_planned_once_there_is_a_template() -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    text = "SELECT k, COUNT(*) FROM S [RANGE 60] WHERE v = {} GROUP BY k"
    queries = [db.query(text.format(i)) for i in range(30)]
    assert [is_by_template(query) for query in queries].count(True) > 10
    db.push("S", [(1, 29, 0.0, "a", 0), (2, 29, 0.0, "a", 0)], ts=1)
    late = db.query(text.format(29))
    assert is_by_template(late) and "Began after instant 0, from empty" in late.explain()
    db.push("S", [(1, 29, 0.0, "a", 0)], ts=2)
    db.advance(2)
    assert sorted(queries[29].snapshot()) == [(1, 2), (2, 1)] and late.snapshot() == [(1, 1)]
    assert "here it is v = 29" in late.explain() and "Constants of" in late.explain()
    late.pause()
    db.push("S", [(3, 29, 0.0, "a", 0)], ts=3)
    late.resume()
    db.advance(3)
    assert sorted(late.snapshot()) == [(1, 1), (3, 1)]


def test_the_ninth_rule_of_a_kind_is_not_planned_any_more() -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    made = [
        db.execute(f"CREATE QUERY rule{i} AS SELECT ISTREAM(k) FROM S WHERE v > {i} AND t = 'a'") for i in range(12)
    ]
    assert [is_by_template(query) for query in made] == [False] * 8 + [True] * 4
    assert made[11].name == "rule11"
    db.push("S", [(1, 100, 0.0, "a", 0)], ts=1)
    assert [len(query.fetch()) for query in made] == [1] * 12
    db.execute("DROP QUERY rule10")
    assert "rule10" not in db.queries
    with pytest.raises(minidsms.Error, match="rule11"):
        db.execute("CREATE QUERY rule11 AS SELECT ISTREAM(k) FROM S WHERE v > 1 AND t = 'a'")


def test_templates_are_forgotten_when_names_change_their_meaning() -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    db.execute("CREATE VIEW old AS SELECT k, v FROM S")
    queries = [db.query(f"SELECT ISTREAM(k) FROM S WHERE v = {i}") for i in range(12)]
    views = [db.query(f"SELECT ISTREAM(k) FROM old WHERE v = {i}") for i in range(12)]
    assert is_by_template(queries[-1]) and not any(map(is_by_template, views))
    for query in (*queries, *views):
        query.close()
    db.execute("DROP VIEW old; DROP STREAM S; CREATE STREAM S (v INTEGER, k TEXT)")
    again = [db.query(f"SELECT ISTREAM(k) FROM S WHERE v = {i}") for i in range(12)]
    db.push("S", [(11, "eleven")], ts=1)
    assert [c.row for c in again[11].fetch()] == [("eleven",)]


def test_a_rule_sees_what_is_pushed_after_it() -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    queries = [db.query(f"SELECT ISTREAM(k) FROM S WHERE v < {i}") for i in range(10)]
    db.push("S", [(1, 0, 0.0, "a", 0)], ts=1, block=False)
    late = db.query("SELECT ISTREAM(k) FROM S WHERE v < 50")
    db.push("S", [(2, 0, 0.0, "a", 0)], ts=2)
    assert [c.row for c in late.fetch()] == [(2,)] and len(queries[5].fetch()) == 2


def test_literals_are_told_from_names_and_units() -> None:
    assert kind_of("SELECT a1 FROM S2 WHERE a1>5 AND b='x''y'").values == (5, "x'y")  # type: ignore[union-attr]
    assert kind_of("SELECT a FROM S WHERE v = 1e400") is None
    assert kind_of('SELECT "a" FROM S WHERE v = 1') is None
    assert kind_of("SELECT a FROM S") is None
