"""Rules as data: a query per row of a table, and callbacks of many queries."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.query import Change

TEMPLATE = "SELECT ISTREAM(k, v) FROM S WHERE v >= $low AND v < $high AND t = $t"


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    connection.execute(
        "CREATE STREAM S (k INTEGER, v INTEGER, t TEXT);"
        "CREATE RELATION Rules (id INTEGER, low INTEGER, high INTEGER, t TEXT) KEY (id)"
    )
    return connection


def test_every_row_has_a_query_and_answers_carry_its_key(db: minidsms.Connection) -> None:
    db.push("Rules", [(i, i, i + 2, "it's") for i in range(20)])
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("S", [(1, 5, "it's"), (2, 5, "its")], ts=1)
    assert rules.fetch() == [(4, Change(1, 1, (1, 5))), (5, Change(1, 1, (1, 5)))] and rules.fetch() == []
    assert len(rules) == 20 and list(rules)[:2] == [0, 1]
    assert rules[5].name == "Rules_5" and "v >= 5 AND v < 7 AND t = 'it''s'" in rules[5].expanded


def test_rules_follow_the_table(db: minidsms.Connection) -> None:
    rules = db.query_each(TEMPLATE, "Rules", name="watch")
    db.push("Rules", (1, 0, 10, "a"), ts=1)
    db.push("S", (1, 5, "a"), ts=1)
    db.push("Rules", [(1, 0, 10, "a"), (1, 0, 3, "a"), (2, -9, -2, "a")], ts=2, sign=[-1, 1, 1])
    db.push("S", [(2, 5, "a"), (3, -5, "a"), (4, 1, "a")], ts=2)
    assert [(key, change.row) for key, change in rules.fetch()] == [(1, (1, 5)), (1, (4, 1)), (2, (3, -5))]
    db.push("Rules", (2, -9, -2, "a"), ts=3, sign=-1)
    assert list(rules) == [1] and "watch_2" not in db.queries
    rules.close()
    rules.close()
    assert not db.queries and len(rules) == 0
    db.push("Rules", (7, 0, 1, "a"), ts=9)
    assert not db.queries


def test_each_rule_is_a_query_in_its_own_right(db: minidsms.Connection) -> None:
    db.push("Rules", [(i, 0, 10, "a") for i in range(12)])
    rules = db.query_each(TEMPLATE, "Rules")
    db.execute("ALTER QUERY Rules_3 PAUSE")
    db.push("S", (1, 5, "a"), ts=1)
    assert rules[3].fetch() == [] and rules[3].state == "paused"
    db.execute("ALTER QUERY Rules_3 RESUME; DROP QUERY Rules_4")
    assert sorted(key for key, _ in rules.fetch()) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert "Select v >= 0 AND v < 10 AND t = 'a'" in "\n".join(row[0] for row in db.execute("EXPLAIN Rules_5"))


def test_a_call_tells_of_all_rules_at_once(db: minidsms.Connection) -> None:
    db.push("Rules", [(i, i, 50, "a") for i in range(20)])
    rules = db.query_each(TEMPLATE, "Rules")
    calls: list[list[tuple[int, Change]]] = []
    rules.on_change(calls.append)
    other = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(1, 1, "a"), (2, 0, "a")], ts=1)
    db.push("S", [(3, 0, "b")], ts=2)
    assert [[(key, change.row) for key, change in call] for call in calls] == [[(0, (1, 1)), (0, (2, 0)), (1, (1, 1))]]
    assert rules.fetch() == [] and len(other.fetch()) == 3


def test_a_connection_tells_of_all_queries_but_those_that_tell_for_themselves(db: minidsms.Connection) -> None:
    own: list[Change] = []
    queries = [db.query(f"SELECT ISTREAM(k) FROM S WHERE v = {i}") for i in range(10)]
    queries.append(db.query("SELECT ISTREAM(k + 1) FROM S"))
    queries[1].on_change(own.append)
    told: list[tuple[str, int]] = []
    db.on_change(lambda news: told.extend((query.name, len(changes)) for query, changes in news))
    db.push("S", [(1, 1, "a"), (2, 2, "a"), (3, 2, "a")], ts=1)
    db.advance(1)
    assert sorted(told) == [("q11", 3), ("q3", 2)]
    assert [change.row for change in own] == [(1,)]
    with pytest.raises(ValueError, match="mine"):
        db.on_change(lambda news: (_ for _ in ()).throw(ValueError("mine")))
        db.push("S", (9, 2, "a"), ts=2)


def test_a_table_as_arrow_has_the_key_in_front(db: minidsms.Connection) -> None:
    db.push("Rules", [(i, i, 50, "a") for i in range(9)])
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("S", [(1, 0, "a"), (2, 1, "a")], ts=1)
    table = rules.fetch_arrow()
    assert table.column_names == ["id", "_ts", "_sign", "k", "v"]
    assert sorted(zip(table["id"].to_pylist(), table["k"].to_pylist())) == [(0, 1), (0, 2), (1, 2)]


def test_what_cannot_be_registered_is_refused_whole_or_told(db: minidsms.Connection) -> None:
    db.execute("CREATE RELATION Keyless (low INTEGER)")
    for template, table, reason in (
        ("SELECT k FROM S WHERE v > $low", "Nobody", "no relation"),
        ("SELECT k FROM S WHERE v > $low", "Keyless", "KEY"),
        ("SELECT k FROM S WHERE v > $lowest", "Rules", r"\$lowest; the table has: id, low, high, t"),
    ):
        with pytest.raises(minidsms.Error, match=reason):
            db.query_each(template, table)
    db.push("Rules", [(1, 0, 1, "a"), (2, 0, 1, "a")])
    db.query("SELECT k FROM S", name="Rules_2")
    with pytest.raises(minidsms.Error, match="Rules_2"):
        db.query_each(TEMPLATE, "Rules")
    assert list(db.queries) == ["rules_2"]
    rules = db.query_each(TEMPLATE, "Rules", name="r")
    db.query("SELECT k FROM S", name="r_3")
    db.push("Rules", (3, 0, 1, "a"))
    assert "r_3" in rules.failures[3] and any("r_3" in warning for warning in db.warnings)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("SELECT v FROM S WHERE", "ends too early"),
        ("SELECT v FROM S WHERE v = {low}", 'unexpected character "{"'),
        ("CREATE VIEW V AS SELECT v FROM S WHERE v = $low", "a query was expected"),
        ("", "no query"),
    ],
)
def test_a_template_that_is_no_query_is_refused_before_there_are_rows(
    db: minidsms.Connection, template: str, told: str
) -> None:
    with pytest.raises(minidsms.CqlError, match=told):
        db.query_each(template, "Rules")
    db.push("Rules", (1, 1, 2, "a"))
    assert not db.queries and not db.warnings


def test_a_template_that_is_a_query_of_some_rows_waits_for_them(db: minidsms.Connection) -> None:
    rules = db.query_each(
        "SELECT ISTREAM(v) FROM S [ROWS $low] WHERE ts - $high > CAST(INTERVAL $t AS INTEGER)", "Rules"
    )
    db.push("Rules", (1, 1, 2, "10 SECONDS"))
    assert len(rules) == 1
