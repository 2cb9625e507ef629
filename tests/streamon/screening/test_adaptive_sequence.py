"""A screen's sequence follows the stream, and answers do not depend on it."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest

import minidsms
from minidsms.operators.screen import Screen
from minidsms.screens import level as levels
from minidsms.screens.sequence import Homes, Sequence
from minidsms.streamon.screening.arranging import looked_at, macro_sequence
from minidsms.testing.switching import forced_switching

COLUMNS = ("a", "b", "c", "d")


def watched(n: int = 40, **options: object) -> tuple[minidsms.Connection, list[minidsms.Query], Screen]:
    """Conjunctions of two or three ranges; everybody asks something of column d."""
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (a INTEGER, b INTEGER, c INTEGER, d INTEGER)")
    rng = Random(1)
    queries = []
    for _ in range(n):
        parts = ["d >= 90"]
        for column in rng.sample("abc", 2):
            low = rng.randrange(80)
            parts.append(f"{column} >= {low} AND {column} < {low + 30}")
        queries.append(db.query(f"SELECT ISTREAM(a, d) FROM S WHERE {' AND '.join(sorted(parts))}"))
    push(db, 1, 1)
    (screen,) = queries[0].network.group.screens  # type: ignore[union-attr]
    return db, queries, screen


def push(db: minidsms.Connection, ts: int, n: int, columns: tuple[str, ...] = COLUMNS) -> None:
    rng = np.random.default_rng(ts)
    db.push("S", {column: rng.integers(0, 100, n) for column in columns}, ts=np.full(n, ts))


@pytest.mark.parametrize("mode", ["auto", "macro", "hybrid"])
def test_the_column_that_drops_most_rows_comes_first(mode: str) -> None:
    db, queries, screen = watched(screening=mode, cost_model="fixed", rearrange_period=1000)
    assert screen.levels[0].plan.order[0] == 0
    for ts in range(2, 6):
        push(db, ts, 1000)
    assert screen.levels[0].plan.order[0] == COLUMNS.index("d")
    decision = queries[7].decisions()[0]
    assert decision.technique == "screening" and decision.old_plan == "a, b, c, d" and decision.query == "q1"
    assert decision.reason.startswith(f"{mode}: dropping ratio") and decision.expected_gain is not None
    assert f"order {screen.levels[0].plan_text(COLUMNS)}" in queries[7].explain(analyze=True)


def test_a_sequence_stays_as_written_where_that_is_asked_for() -> None:
    db, queries, screen = watched(screening="written", cost_model="fixed", rearrange_period=100)
    for ts in range(2, 4):
        push(db, ts, 1000)
    assert screen.levels[0].plan == Sequence((0, 1, 2, 3)) and not queries[0].decisions()


def test_written_goes_back_to_the_order_of_the_declaration() -> None:
    db, queries, screen = watched(screening="macro", cost_model="fixed", rearrange_period=1000)
    for ts in range(2, 5):
        push(db, ts, 1000)
    assert screen.levels[0].plan.order[0] == 3
    db.execute("SET screening = 'written'")
    push(db, 5, 10)
    assert screen.levels[0].plan == Sequence((0, 1, 2, 3))
    assert queries[0].decisions()[-1].reason == "written: as declared"


def test_a_pinned_sequence_stays_until_it_is_unpinned() -> None:
    db, queries, screen = watched(screening="macro", cost_model="fixed", rearrange_period=1000)
    db.execute("ALTER QUERY q3 PIN PLAN")
    for ts in range(2, 6):
        push(db, ts, 1000)
    assert not queries[0].decisions()
    db.execute("ALTER QUERY q3 UNPIN PLAN")
    for ts in range(6, 9):
        push(db, ts, 1000)
    assert queries[0].decisions() and screen.levels[0].plan.order[0] == 3


def test_a_threshold_of_all_arranges_once() -> None:
    db, queries, _ = watched(screening="macro", cost_model="fixed", rearrange_period=500, rearrange_threshold=1.0)
    for ts in range(2, 20):
        push(db, ts, 500)
    assert len(queries[0].decisions()) == 1


def test_tickets_draw_orders_again_and_again() -> None:
    db, queries, screen = watched(screening="ticket", cost_model="fixed")
    for ts in range(2, 12):
        push(db, ts, 2000)
    assert len(queries[0].decisions()) > 5
    assert screen.levels[0].looked < 2.2 * screen.levels[0].rows


@pytest.mark.parametrize("many", [2048, 0])
@pytest.mark.parametrize("every", [1, 3])
def test_answers_are_the_same_whatever_plan_is_forced(every: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, expected, _ = watched(screening="written")
    monkeypatch.setattr(levels, "MANY", many)  # 0: every level has home lists
    db, queries, _ = watched()
    with forced_switching(db, every, seed=every):
        for ts in range(2, 5):
            push(db, ts, 300)
    for ts in range(2, 5):
        push(plain, ts, 300)
    assert sum(query.results for query in queries) > 0
    for query, other in zip(queries, expected):
        assert query.fetch() == other.fetch()


def test_filters_move_to_the_column_that_admits_fewest_of_the_rows_that_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "MANY", 0)
    db, queries, screen = watched(cost_model="fixed", rearrange_period=1000)
    level = screen.levels[0]
    assert isinstance(level.plan, Homes) and "at home" in queries[7].explain(analyze=True)
    assert COLUMNS.index("d") not in level.plan.of, "there are three regions of d, of which everybody admits one"
    for ts in range(2, 8):  # one row in ten lies in it
        push(db, ts, 1000)
    assert set(level.plan.of) == {COLUMNS.index("d")}
    assert "a row meets" in queries[7].decisions()[0].reason


def test_the_constants_of_a_family_are_looked_up_in_an_order_that_adapts() -> None:
    def run(**options: object) -> tuple[list[list[tuple]], minidsms.Connection]:
        db = minidsms.connect(cost_model="fixed", rearrange_period=1000, **options)
        db.execute("CREATE STREAM S (a INTEGER, d INTEGER)")
        asked = [f"SELECT ISTREAM(COUNT(*)) FROM S [RANGE 2] WHERE a >= {i} AND d >= {80 + i}" for i in range(18)]
        queries = [db.query(text) for text in asked]
        for ts in range(1, 6):
            push(db, ts, 1000, ("a", "d"))
        db.advance(9)
        return [query.fetch() for query in queries], db

    answers, db = run()
    assert [d.new_plan for d in db.queries["q9"].decisions() if d.technique == "screening"] == ["d, a"]
    assert answers == run(screening="off")[0] == run(adaptive="off")[0]


def test_the_macro_sequence_is_found_by_definition_and_costs_what_the_kernel_looks_at() -> None:
    db, _, screen = watched(screening="macro", cost_model="fixed")  # nothing is arranged before 10,000 rows
    push(db, 2, 5000)
    level = screen.levels[0]
    window = screen.sequence.window
    macro = macro_sequence(level.constructs, [window])
    costs = {order: looked_at(level.constructs, Sequence(order), window) for order in permutations(range(4))}
    assert costs[macro.order] <= sorted(costs.values())[6]
    before = level.looked, level.rows
    level.follow(macro)
    push(db, 3, 4000)
    measured = (level.looked - before[0]) / (level.rows - before[1])
    assert measured == pytest.approx(costs[macro.order], rel=0.1)
