"""Many filters over one stream: what a screen hands them is what each would have found."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.testing.compare import check_together
from minidsms.testing.generators import Case, declaration, random_feed

CONDITIONS = (
    *(f"v = {c}" for c in range(5)),
    *(f"v {op} {c}" for op in ("<", "<=", ">", ">=") for c in (1, 2)),
    "2 > v",
    "v > 0 AND v < 3",
    "v = 1 AND v = 2",
    "v = 1 AND k > 1",
    "v > 0 AND k / v > 0",
    "v + 9223372036854775806 > 0 AND v >= 2",
    *(f"x {op} {c}" for op in ("=", "<", "<=", ">", ">=") for c in ("0.0", "1.5")),
    *(f"t = '{c}'" for c in "abcdefghz"),
    "x = 1.5 AND t = 'a' AND v = 1",
    "v > -9223372036854775807",
    "v IN (1, 3) AND x < 2.0",
    "v NOT IN (1, 2, NULL)",
    "v <> 2 AND t LIKE 'a%'",
    "t IS NULL",
    "t IS NOT NULL AND NOT (v = 1 OR v > 2)",
    "t < 'c' AND t >= 'a'",
    "v > 1.5",
    "x = 1.5 OR x IS NULL",
    "k > 1 AND v > 1 AND x > 0.0 AND t > 'a'",
)


def company(seed: int, wrap: str, queries: int = 24) -> list[Case]:
    rng = Random(seed)
    feed = random_feed(rng, ["Sa"], 20, may_be_extreme=False)
    chosen = rng.sample(CONDITIONS, queries)
    moments = [0, 0, 0, rng.randrange(len(feed))]
    return [Case((declaration("Sa"),), wrap.format(c), feed, rng.choice(moments)) for c in chosen]


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize("wrap", ["SELECT ISTREAM(k, v, t) FROM Sa WHERE {}", "SELECT k, x FROM Sa [RANGE 3] WHERE {}"])
def test_screened_filters_answer_as_defined(wrap: str, batch_size: int) -> None:
    seed = batch_size + len(wrap)
    cases = company(seed, wrap)
    modes = [{"screening": mode, "rearrange_period": 5} for mode in ("macro", "hybrid", "ticket", "written")]
    others = ({"queue_size": 1, "scheduler": "chain"}, {"switch_seed": seed}, {"screening": "off"})
    modes += [{"forced_every": 1}, {"screening": "column"}]
    for options in ({}, others[seed % 3], modes[seed % 6]):
        assert check_together(cases, {3: 2, 5: 4}, batch_size=batch_size, **options) == "agreed"


def watched(queries: int) -> tuple[minidsms.Connection, list[Any]]:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    # A projection that computes keeps a query from being folded into the screen.
    return db, [db.query(f"SELECT ISTREAM(COALESCE(k, 0), v) FROM S WHERE v = {i}") for i in range(queries)]


def selects(queries: list[Any]) -> list[Any]:
    return [op for q in queries for op in q.network.operators if op.name == "Select"]


def test_a_filter_whose_interval_gets_no_row_does_nothing() -> None:
    db, queries = watched(50)
    db.push("S", [(1, 7), (2, 7), (3, 9), (4, None)], ts=[1, 2, 3, 4])
    assert [len(q.fetch()) for q in queries] == [2 * (i == 7) + (i == 9) for i in range(50)]
    assert sum(op.counters.runs for op in selects(queries)) == 2


def test_few_filters_look_for_themselves() -> None:
    db, queries = watched(3)
    db.push("S", [(1, 2)], ts=1)
    assert not any(op.is_screened for op in selects(queries))
    assert [len(q.fetch()) for q in queries] == [0, 0, 1]


def test_screens_follow_queries_that_come_and_go() -> None:
    db, queries = watched(8)
    db.push("S", [(1, 2)], ts=1)
    assert all(op.is_screened for op in selects(queries))
    queries[2].close()
    db.push("S", [(1, 3), (1, 2)], ts=2)
    assert not any(op.is_screened for op in selects(queries[3:]))
    assert [c.row for c in queries[3].fetch()] == [(1, 3)]
    late = db.query("SELECT ISTREAM(COALESCE(k, 0), v) FROM S WHERE v > 2")
    db.push("S", [(1, 3)], ts=3)
    assert all(op.is_screened for op in selects([*queries[3:], late]))
    assert [c.row for c in late.fetch()] == [(1, 3)] == [c.row for c in queries[3].fetch()]


def test_a_user_function_in_the_condition_sees_every_row() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    seen: list[int] = []
    db.create_function("SEE", lambda v: seen.append(v) is None, ["INTEGER"], "BOOLEAN", fixed=True)
    for i in range(10):
        db.query(f"SELECT ISTREAM(k) FROM S WHERE SEE(v) AND v = {i}")
    db.push("S", [(1, 2), (1, 99)], ts=1)
    db.advance(1)
    assert sorted(seen) == [2] * 10 + [99] * 10


def test_a_query_that_is_paused_takes_an_unscreened_filter_with_it() -> None:
    db, queries = watched(10)
    db.push("S", [(1, 4)], ts=1)
    queries[4].pause()
    db.push("S", [(2, 4), (3, 5)], ts=2)
    queries[4].resume()
    assert [c.row for c in queries[4].fetch()] == [(1, 4), (2, 4)]
    assert [c.row for c in queries[5].fetch()] == [(3, 5)]


def test_operators_behind_a_screen_have_a_turn_only_when_they_are_given_something() -> None:
    db, queries = watched(20)
    db.push("S", [(1, 3)], ts=1)
    group = queries[0].network.group
    assert group is not None and [op.name for op in group.in_turn()] == ["Stream", "Screen"]
    db.push("S", [(1, 3), (2, 4), (3, 3)], ts=2)
    assert [len(q.fetch()) for q in queries[3:5]] == [3, 1]


@pytest.mark.parametrize("scheduler", ["round_robin", "fifo", "greedy", "chain"])
def test_screens_keep_to_the_bounds_of_queues_under_every_scheduler(scheduler: str) -> None:
    db = minidsms.connect(scheduler=scheduler, queue_size=2)
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    queries = [db.query(f"SELECT ISTREAM(k, v) FROM S WHERE v > {i}") for i in range(10)]
    for ts in range(5):
        db.push("S", [(j, j) for j in range(10)], ts=[10 * ts + j for j in range(10)])
    db.execute("SET queue_size = 5")
    db.push("S", [(j, j) for j in range(10)], ts=list(range(60, 70)))
    assert [len(q.fetch()) for q in queries] == [6 * (9 - i) for i in range(10)]
    assert all(queue.peak <= 5 for q in queries for op in q.network.operators for queue in op.inputs)


def test_a_screen_by_column_leaves_the_other_columns_to_the_filters() -> None:
    db = minidsms.connect(screening="column")
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    queries = [db.query(f"SELECT ISTREAM(k, v) FROM S WHERE k > 1 AND v = {i}") for i in range(10)]
    for mode, found in (("column", 2), ("written", 1), ("column", 2)):
        db.execute(f"SET screening = {mode}")
        db.push("S", [(1, 3), (2, 3), (2, 99)], ts=1)
        (screen,) = db.screens
        out = screen.counters.elements_out
        db.push("S", [(1, 3), (2, 3), (2, 99)], ts=1)
        assert screen.counters.elements_out - out == found
    assert [c.row for c in queries[3].fetch()] == [(2, 3)] * 6
    assert "screened by v" in queries[3].explain(analyze=True)
