"""Queries that only show columns of filtered rows: a screen runs them, and nobody can tell but by the time."""

from __future__ import annotations

import json
from random import Random

import pytest

import minidsms
from minidsms.query import Query
from minidsms.screens import level
from minidsms.streamon.forcing import ForcedSwitching
from tests.long.allocations import Allocations, failing
from tests.seeds import seeds


def rules(db: minidsms.Connection, n: int, columns: str = "k, v") -> list[Query]:
    return [db.query(f"SELECT ISTREAM({columns}) FROM S WHERE v = {i}") for i in range(n)]


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    connection.execute("CREATE STREAM S (k INTEGER, v INTEGER, t TEXT, x FLOAT)")
    return connection


def is_folded(query: Query) -> bool:
    return query.network.output is None


def test_seven_filters_look_for_themselves_and_eight_are_folded(db: minidsms.Connection) -> None:
    queries = rules(db, 7)
    db.push("S", [(1, 2, "a", 0.5)], ts=1)
    assert not any(map(is_folded, queries))
    queries.append(db.query("SELECT ISTREAM(k, v) FROM S WHERE v = 7"))
    db.push("S", [(2, 2, "a", 0.5)], ts=2)
    assert all(map(is_folded, queries))
    queries[0].close()
    db.push("S", [(3, 2, "a", 0.5)], ts=3)
    assert not any(map(is_folded, queries[1:]))
    assert [c.row for c in queries[2].fetch()] == [(1, 2), (2, 2), (3, 2)] and queries[2].results == 3


def test_answers_that_wait_are_kept_in_order_when_a_query_goes_its_own_way(db: minidsms.Connection) -> None:
    queries = rules(db, 9)
    for ts in range(3):
        db.push("S", [(ts, 4, "a", 0.5)], ts=ts)
    queries[4].pause()
    db.push("S", [(3, 4, "a", 0.5)], ts=3)
    assert len(queries[4].newest(9)) == 3
    queries[4].resume()
    db.push("S", [(4, 4, "a", 0.5), (5, 5, "b", 1.0)], ts=4)
    assert [c.row[0] for c in queries[4].fetch()] == [0, 1, 2, 3, 4]
    assert [c.row for c in queries[5].fetch()] == [(5, 5)]


def test_answers_that_wait_are_kept_where_there_is_no_memory_to_copy_them(db: minidsms.Connection) -> None:
    queries = rules(db, 9, "k, t")
    for ts in range(3):
        db.push("S", [(ts, 4, f"text {ts}", 0.5), (7, 5, "other", 0.5)], ts=ts)
    folding = queries[4].network.folding
    assert folding is not None and folding.is_folded
    with failing(Allocations(1, lasting=True)) as allocations:
        folding.unfold()  # as where the query fails for want of memory
    assert allocations.failed and folding.waiting()[0] == 3
    assert [c.row for c in queries[4].fetch()] == [(ts, f"text {ts}") for ts in range(3)]
    assert [c.row for c in queries[5].fetch()] == [(7, "other")] * 3


def test_answers_that_wait_stay_as_they_were_when_their_stream_has_gone_on(db: minidsms.Connection) -> None:
    queries = rules(db, 9, "k, t")
    db.push("S", [(-1, 50, "no", 0.5), (-2, 3, "yes", 0.5), (-3, 3, "yes", 0.5), (-4, 50, "no", 0.5)], ts=0)
    for ts in range(1, 8):
        db.push("S", [(i, 60, f"text {ts} {i}", 0.5) for i in range(1000)], ts=ts)
    assert [c.row for c in queries[3].fetch()] == [(-2, "yes"), (-3, "yes")]


def test_each_query_shows_its_own_columns_of_rows_that_are_held_once(db: minidsms.Connection) -> None:
    asked = ["k", "t, v", "x, x, k", "t", "v", "k, v, t, x", "x", "k, t"]
    queries = [db.query(f"SELECT ISTREAM({c}) FROM S WHERE v > {i % 2}") for i, c in enumerate(asked)]
    db.push("S", [(1, 1, "a", 0.5), (2, 2, None, None), (3, 0, "c", 0.0)], ts=[1, 1, 2])
    assert [c.row for c in queries[2].fetch()] == [(0.5, 0.5, 1), (None, None, 2)]
    assert [c.row for c in queries[3].fetch()] == [(None,)]
    assert queries[5].fetch_arrow().to_pydict() == {
        "_ts": [1], "_sign": [1], "k": [2], "v": [2], "t": [None], "x": [None]
    }  # fmt: skip


def test_equal_queries_take_their_answers_each_for_itself(db: minidsms.Connection) -> None:
    queries = rules(db, 8) + rules(db, 8)
    db.push("S", [(1, 3, "a", 0.5)], ts=1)
    late = db.query("SELECT ISTREAM(k, v) FROM S WHERE v = 3")
    db.push("S", [(2, 3, "a", 0.5)], ts=2)
    assert [c.row for c in late.fetch()] == [(2, 3)]
    assert [len(queries[i].fetch()) for i in (3, 11)] == [2, 2] and not queries[3].fetch()


def test_rows_are_given_up_when_all_have_taken_them_and_copied_out_when_most_have(db: minidsms.Connection) -> None:
    queries = rules(db, 10)
    db.push("S", [(i, i % 10, "a", 0.5) for i in range(20_000)], ts=1)
    held = db.nbytes
    for query in queries[1:]:
        query.fetch()
    for ts in range(2, 12):
        db.push("S", [(i, 1, "a", 0.5) for i in range(1000)], ts=ts)
        queries[1].fetch()
    assert db.nbytes < held / 2
    assert len(queries[0].fetch()) == 2000


def test_texts_of_answers_that_wait_survive_a_sweep(db: minidsms.Connection) -> None:
    queries = [db.query(f"SELECT ISTREAM(t) FROM S WHERE v = {i}") for i in range(9)]
    db.push("S", [(1, 3, "kept", 0.5), (1, 4, "lost", 0.5)], ts=1)
    queries[4].fetch()
    db.push("S", [(1, 3, f"text {i}", 0.5) for i in range(150_000)], ts=2)
    queries[3].fetch_arrow()
    db.push("S", [(1, 3, "kept again", 0.5)], ts=3)
    db.push("S", [(1, 100, f"other {i}", 0.5) for i in range(250_000)], ts=4)
    assert [c.row for c in queries[3].fetch()] == [("kept again",)]


def test_callbacks_and_sinks_are_told_what_a_screen_finds(db: minidsms.Connection, tmp_path: object) -> None:
    queries = rules(db, 9)
    seen: list[object] = []
    queries[2].on_change(lambda change: seen.append(change.row))
    tables: list[int] = []
    queries[3].into(lambda table: tables.append(len(table)))
    db.push("S", [(1, 2, "a", 0.5), (2, 3, "a", 0.5)], ts=1)
    assert seen == [(1, 2)] and tables == [1]


def test_explain_shows_the_operators_that_the_screen_stands_for(db: minidsms.Connection) -> None:
    queries = rules(db, 9)
    db.push("S", [(1, 2, "a", 0.5)], ts=1)
    shown = queries[2].explain()
    assert "Select v = 2" in shown and "Screen 9 filters over 1 column, order v" in shown
    analyzed = queries[2].explain(analyze=True)
    assert "screened by v" in analyzed and "out 1;" in analyzed
    drawn = json.loads(queries[2].explain(analyze=True, format="json"))
    by_name = {operator["name"]: operator for operator in drawn["operators"]}
    assert by_name["Select"]["inputs"] == [by_name["Screen"]["id"]]
    assert by_name["Screen"]["inputs"] == [by_name["Stream"]["id"]] and len(by_name["Screen"]["queries"]) == 9
    assert ">Screen</text>" in queries[2].explain(format="svg")
    assert is_folded(queries[2])


def test_folding_follows_the_settings(db: minidsms.Connection) -> None:
    queries = rules(db, 9)
    folded = []
    changes = ["screening = auto", "screening = off", "screening = auto", "sharing = off", "sharing = on"]
    for ts, change in enumerate([*changes, "screening = column", "screening = macro"]):
        db.execute(f"SET {change}")
        db.push("S", [(ts, 2, "a", 0.5)], ts=ts)
        folded.append(is_folded(queries[2]))
    assert folded == [True, False, True, False, True, False, True]
    assert [c.row[0] for c in queries[2].fetch()] == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("seed", seeds(6))
def test_queries_that_come_and_go_answer_as_with_screens_off(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    if seed % 2:
        monkeypatch.setattr(level, "MANY", 3)
    mode = ("auto", "macro", "hybrid", "ticket", "written", "column")[seed]
    both = [minidsms.connect(screening=mode, rearrange_period=2), minidsms.connect(screening="off")]
    if seed in (0, 2, 5):
        both[0].streamon.forcing = ForcedSwitching(1, seed)
    for each in both:
        each.execute("CREATE STREAM S (k INTEGER, v INTEGER, t TEXT, x FLOAT)")
    running: dict[int, list[Query]] = {}
    for step in range(60):
        match rng.randrange(8):
            case 0 if running:
                number = rng.choice(sorted(running))
                for query in running.pop(number):
                    query.close()
            case 1 if running:
                for query in running[rng.choice(sorted(running))]:
                    query.pause()
            case 2:
                for queries in running.values():
                    for query in queries:
                        query.resume()
            case 3 if running:
                for query in running[rng.choice(sorted(running))]:
                    query.set("batch_size", 3)
            case 4 | 5:
                low = rng.randrange(6)
                text = f"v >= {low} AND v < {low + 3} AND x {rng.choice('<>')} {rng.random()}"
                shown = rng.choice(["k", "v, t", "x", "COALESCE(k, 0)"])
                for _ in range(rng.choice([1, 4])):
                    made = [each.query(f"SELECT ISTREAM({shown}) FROM S WHERE {text}") for each in both]
                    running[step * 10 + len(running)] = made
            case _:
                rows = [(i, rng.randrange(8), rng.choice("abc"), rng.random()) for i in range(rng.choice([1, 3, 50]))]
                for each in both:
                    each.push("S", rows, ts=step)
        if rng.random() < 0.3:
            for queries in running.values():
                one, other = (query.fetch() for query in queries)
                assert one == other
    for queries in running.values():
        for query in queries:
            query.resume()
        assert queries[0].fetch() == queries[1].fetch()
