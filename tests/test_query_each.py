"""Rules as data: a query per row of a table, and callbacks of many queries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.query import Change
from minidsms.statements.query_each import QueryEach

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
        ("SELECT v FROM S WHERE v = {low}", 'unexpected "}"'),
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


def test_a_row_may_come_before_the_one_that_it_replaces_goes(db: minidsms.Connection) -> None:
    db.push("Rules", (1, 0, 3, "a"), ts=1)
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("Rules", [(1, 5, 9, "a"), (1, 0, 3, "a")], ts=2, sign=[1, -1])
    db.push("S", [(1, 6, "a"), (2, 1, "a")], ts=3)
    assert [(key, change.row) for key, change in rules.fetch()] == [(1, (1, 6))]
    assert rules.failures == {} and not db.warnings


def test_of_several_rows_of_a_key_the_first_that_is_there_has_the_query(db: minidsms.Connection) -> None:
    first, second = (1, 0, 3, "a"), (1, 5, 9, "a")
    db.push("Rules", first, ts=1)
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("Rules", second, ts=2)
    assert "v >= 0" in rules[1].text and rules.failures == {1: "there are two rows of the key 1"}
    db.push("Rules", second, ts=3, sign=-1)
    assert "v >= 0" in rules[1].text and rules.failures == {}
    db.push("Rules", second, ts=4)
    db.push("Rules", first, ts=5, sign=-1)
    assert "v >= 5" in rules[1].text and rules.failures == {}
    db.push("Rules", second, ts=6, sign=-1)
    assert not list(rules) and not db.queries


def test_a_table_has_the_answers_of_rows_that_are_gone_and_of_none_that_was_dropped(db: minidsms.Connection) -> None:
    db.push("Rules", [(i, 0, 9, "a") for i in range(3)])
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("S", (7, 5, "a"), ts=1)
    db.push("Rules", (1, 0, 9, "a"), sign=-1)
    db.execute("DROP QUERY Rules_2")
    assert rules.fetch_arrow()["id"].to_pylist() == [1, 0]
    nothing = rules.fetch_arrow()
    assert len(nothing) == 0 and str(nothing.schema.field("id").type) == "int64" and rules.fetch() == []


def test_a_query_with_the_name_of_one_that_was_dropped_is_nobodys_rule(db: minidsms.Connection) -> None:
    db.push("Rules", [(1, 0, 9, "a"), (2, 0, 9, "a")])
    rules = db.query_each(TEMPLATE, "Rules")
    told: list[int] = []
    rules.on_change(lambda news: told.extend(key for key, _ in news))
    db.execute("DROP QUERY Rules_1")
    own = db.query("SELECT ISTREAM(k) FROM S", name="Rules_1")
    db.push("S", (7, 5, "a"), ts=1)
    assert told == [2] and len(own.fetch()) == 1


def test_a_callback_may_close_the_rules_of_which_another_is_told(db: minidsms.Connection) -> None:
    db.push("Rules", [(1, 0, 9, "a"), (2, 0, 9, "a")])
    rules = db.query_each(TEMPLATE, "Rules")
    db.query("SELECT ISTREAM(k) FROM S")
    db.on_change(lambda news: rules.close())
    told: list[int] = []
    rules.on_change(lambda news: told.extend(key for key, _ in news))
    db.push("S", (7, 5, "a"), ts=1)
    assert told == [1, 2]


def test_callbacks_are_told_what_came_as_a_row_went(db: minidsms.Connection) -> None:
    rules = db.query_each("SELECT COUNT(*) FROM Rules WHERE low > $low", "Rules")
    told: list[tuple[int, int]] = []
    rules.on_change(lambda news: told.extend((key, change.row[0]) for key, change in news))
    db.push("Rules", (1, 5, 9, "a"), ts=1)
    db.push("Rules", (1, 5, 9, "a"), ts=2, sign=-1)
    assert told == [(1, 0)] and rules.fetch() == [] and rules.left == 0


def test_rules_that_are_closed_leave_nothing_behind(db: minidsms.Connection) -> None:
    db.push("Rules", (1, 0, 9, "a"))
    for _ in range(3):
        rules = db.query_each(TEMPLATE, "Rules")
        rules.on_change(lambda news: None)
        with pytest.raises(minidsms.CqlError, match="query_each follows Rules"):
            db.execute("DROP RELATION Rules")
        rules.close()
    assert not db._each and not db.news.is_wanted
    db.execute("DROP RELATION Rules")


def test_a_rule_that_stops_says_why(db: minidsms.Connection) -> None:
    db.push("Rules", [(1, 1, 9, "a"), (2, 2**62, 9, "a")])
    rules = db.query_each("SELECT RSTREAM(k * $low) FROM S [NOW]", "Rules")
    db.push("S", (3, 0, "a"), ts=1)
    db.advance(1)
    assert [(key, change.row) for key, change in rules.fetch()] == [(1, (3,))]
    assert list(rules.failures) == [2] and "k * 4611686018427387904" in rules.failures[2]


def test_nested_values_are_written_in_and_are_no_key() -> None:
    columns = "l INTEGER[], m MAP(TEXT, DECIMAL(9, 2)), s STRUCT(d DATE, at TIMESTAMP)"
    with minidsms.connect() as db:
        db.execute(
            f"CREATE STREAM N ({columns}); CREATE RELATION Alike (id INTEGER, {columns}) KEY (id);"
            "CREATE RELATION Bad (l INTEGER[]) KEY (l)"
        )
        with pytest.raises(minidsms.Error, match=r"l INTEGER\[\] cannot be part of"):
            db.query_each("SELECT l FROM N WHERE l = $l", "Bad")
        rows = [([], {"it's": "1.50"}, {"d": "2024-02-20", "at": 5}), ([1, None], {}, None), (None, None, None)]
        db.push("Alike", [(i, *row) for i, row in enumerate(rows)])
        for ts, column in enumerate("lms"):
            rules = db.query_each(f"SELECT ISTREAM(l) FROM N WHERE {column} = ${column}", "Alike")
            db.push("N", rows, ts=ts)
            db.advance(ts)
            expected = [i for i, row in enumerate(rows) if row[ts] is not None]
            assert [key for key, _ in rules.fetch()] == expected, column
            rules.close()


def test_an_instant_is_written_in_as_one(db: minidsms.Connection) -> None:
    db.execute("CREATE RELATION Since (id INTEGER, at TIMESTAMP) KEY (id)")
    db.push("Since", [(1, 86_400_000), (2, None)])
    rules = db.query_each("SELECT ISTREAM(k, $at AS at) FROM S", "Since")
    db.push("S", (7, 5, "a"), ts=1)
    assert [change.row for _, change in rules.fetch()] == [(7, 86_400_000), (7, None)]
    rules.close()
    rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE timestamp $at > TIMESTAMP '1970-01-01'", "Since")
    db.push("S", (7, 5, "a"), ts=2)
    assert [key for key, _ in rules.fetch()] == [1]


@pytest.mark.parametrize(
    "ask",
    [
        lambda rules: rules.failures,
        lambda rules: rules.dropped,
        lambda rules: rules[1].stats(),
        lambda rules: rules[1].operator_tree(),
    ],
)
def test_what_is_told_of_queries_belongs_together(db: minidsms.Connection, ask: Callable[[Any], object]) -> None:
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("Rules", (1, 0, 10, "a"), ts=1)
    asking = threading.Thread(target=ask, args=(rules,))
    with db.lock:  # another thread changes them
        asking.start()
        asking.join(0.1)
        assert asking.is_alive()
    asking.join()


@pytest.mark.parametrize("keys", [("a", "A"), ("Straße", "STRASSE"), (("a_b", "c"), ("a", "b_C"))])
def test_of_keys_whose_queries_would_have_one_name_the_first_has_it(keys: tuple[Any, Any]) -> None:
    first, second = keys
    is_pair = isinstance(first, tuple)
    with minidsms.connect() as db:
        columns, key = ("k TEXT, l TEXT", "k, l") if is_pair else ("k TEXT", "k")
        db.execute(f"CREATE STREAM S (k TEXT); CREATE RELATION R ({columns}, n INTEGER) KEY ({key})")
        row = {key: (*(key if is_pair else (key,)), 1) for key in keys}
        rules = db.query_each("SELECT k, $n FROM S WHERE k = $k", "R")
        db.push("R", row[first])
        db.push("R", row[second])
        if len(rules) == 2:
            assert first == "Straße"
            return
        assert list(rules) == [first] and "names have no case" in rules.failures[second]
        with pytest.raises(Error, match="names have no case"):
            db.query_each("SELECT k, $n FROM S WHERE k = $k", "R", "others")
        db.push("R", row[first], sign=-1)
        assert list(rules) == [second] and not rules.failures
        db.push("R", row[first])
        assert list(rules) == [second] and list(rules.failures) == [first]
        db.push("R", row[first], sign=-1)
        assert list(rules) == [second] and not rules.failures


@pytest.mark.parametrize("seed", range(6))
def test_keys_that_differ_in_case_outlast_a_checkpoint(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (v INTEGER, k TEXT); CREATE RELATION R (k TEXT, n INTEGER) KEY (k)")
        rules = db.query_each("SELECT SUM(v), $n FROM S WHERE k = $k", "R")
        rows: dict[str, int] = {}
        for step in range(8):
            key = rng.choice("aA")
            db.push("R", (key, rows.setdefault(key, step)), sign=-1 if key in rows and rows[key] != step else 1)
            if rows[key] != step:
                del rows[key]
            db.push("S", [(1, "a"), (10, "A")], ts=step)
        db.advance(8)
        before = {key: query.snapshot() for key, query in zip(rules, map(rules.__getitem__, rules))}
        rules.fetch()
        db.checkpoint()
    with minidsms.connect(tmp_path) as db:
        (rules,) = db.rules
        assert {key: rules[key].snapshot() for key in rules} == before


def test_a_folder_of_a_version_that_wrote_decimals_as_numbers_has_the_same_answers(tmp_path: Path) -> None:
    template = "SELECT ISTREAM(v / $n, v + $d AS b, -$big AS c) FROM S [RANGE $n SLIDE $n]"
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.execute("CREATE RELATION R (k TEXT, n DECIMAL(3), d DECIMAL(4, 1), big DECIMAL(38)) KEY (k)")
        with db.lock, db.journal.entry("rules", template=template, table="R", name=None):
            db.keep_each(QueryEach(db, template, "R", None, has_decimals=False))
        db.query_each(template, "R", "others")
        db.push("R", ("a", 2, Decimal("-0.5"), 2**63), ts=0)
        db.push("S", (5,), ts=1)
        db.advance(1)
        db.checkpoint()
    big = Decimal(-(2**63))
    for ts in (2, 3):
        with minidsms.connect(tmp_path) as db:
            before, now = db.rules
            assert before["a"].schema.names[0] == "v / 2" and now["a"].schema.names[0] == "v / DECIMAL '2'"
            db.push("S", (5,), ts=10 * ts)
            db.advance(10 * ts)
            assert {change.row for _, change in before.fetch()} == {(2, 4.5, big)}
            assert {change.row for _, change in now.fetch()} == {(2.5, Decimal("4.5"), big)}
            db.checkpoint()


def test_answers_that_come_with_the_end_of_a_row_are_in_its_file(db: minidsms.Connection, tmp_path: Path) -> None:
    rows = [(1, 0, 9, "a"), (2, 0, 9, "a")]
    db.push("Rules", rows)
    rules = db.query_each(TEMPLATE, "Rules")
    for key in rules:
        rules[key].into(str(tmp_path / f"{key}.csv"))
    db.push("S", [(0, 1, "a"), (0, 2, "a")], ts=[1, 2], block=False)
    (tmp_path / "1.csv").mkdir()
    with pytest.raises(Error, match=r"1\.csv"):
        db.push("Rules", rows, ts=3, sign=[-1, -1])
    db.push("Rules", (3, 0, 9, "a"), ts=4)
    assert (tmp_path / "2.csv").read_text() == "_ts,_sign,k,v\n1,1,0,1\n2,1,0,2\n"
    assert list(rules) == [3] and rules.fetch() == []


def test_the_next_row_of_a_key_has_its_query_where_that_of_the_first_could_not_end(
    db: minidsms.Connection, tmp_path: Path
) -> None:
    rows = [(1, 0, 9, "a"), (1, 5, 9, "a")]
    rules = db.query_each(TEMPLATE, "Rules")
    db.push("Rules", rows)
    rules[1].into(str(tmp_path / "1.csv"))
    (tmp_path / "1.csv").mkdir()
    with pytest.raises(Error, match=r"1\.csv"):
        db.push("Rules", rows[0], ts=3, sign=-1)
    db.push("S", [(0, 4, "a"), (0, 5, "a")], ts=[4, 5])
    assert [change.row for _, change in rules.fetch()] == [(0, 5)]


def test_lengths_and_counts_come_from_the_table(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.execute("CREATE RELATION R (k INTEGER, n INTEGER, d DECIMAL(4, 1), i INTERVAL) KEY (k)")
        counts = db.query_each("SELECT COUNT(*) FROM S [ROWS $n]", "R", "rows")
        lengths = db.query_each("SELECT COUNT(*) FROM S [RANGE $i SLIDE $i]", "R", "lengths")
        seconds = db.query_each("SELECT COUNT(*) FROM S [RANGE $d SECONDS]", "R", "seconds")
        first = db.query_each("SELECT v FROM S [NOW] ORDER BY v + $i LIMIT $n", "R", "first")
        db.push("R", [(1, 2, Decimal("1.5"), 1000), (2, 3, Decimal("0.5"), 2000)])
        assert [len(each) for each in (counts, lengths, seconds, first)] == [2, 2, 2, 2]
        assert "[RANGE 1.5 SECONDS]" in seconds[1].text and "[RANGE 2000 SLIDE 2000]" in lengths[2].text
