"""Routes in queries: tuples take different orders, answers do not show it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import QueryError
from minidsms.expressions.classifiers import Classifier, Reading
from minidsms.expressions.routes import Routes
from minidsms.testing.switching import forced_switching

DECLARATION = "CREATE STREAM S (a INTEGER, b INTEGER, c FLOAT, t TEXT, w TIMESTAMP, f BOOLEAN)"
CONDITION = "a % 10 < 9 AND b > 100 AND c <= 0.5 AND t LIKE 'x%' AND (f OR a IN (1, 2, 3, 5, 8, 13, 21))"


def data(n: int, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    null = rng.random((6, n)) < 0.05
    columns: list[list[Any]] = [
        rng.integers(0, 30, n).tolist(),
        rng.integers(0, 300, n).tolist(),
        rng.random(n).tolist(),
        rng.choice(["x", "xy", "y", ""], n).tolist(),
        [datetime(2013, 1, 1) + timedelta(hours=int(h)) for h in rng.integers(0, 500, n)],
        (rng.random(n) < 0.5).tolist(),
    ]
    return {k: [None if gone else v for v, gone in zip(c, g)] for k, c, g in zip("abctwf", columns, null)}


def fed(db: minidsms.Connection, columns: dict[str, list[Any]], chunk: int) -> None:
    n = len(columns["a"])
    for start in range(0, n, chunk):
        part = {name: values[start : start + chunk] for name, values in columns.items()}
        db.push("S", part, ts=list(range(start, min(start + chunk, n))))


@contextmanager
def connected(**options: Any) -> Iterator[minidsms.Connection]:
    chosen = {"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 100, "routing": "auto", **options}
    with minidsms.connect(**chosen) as db:
        db.execute(DECLARATION)
        yield db


def adaptation_of(query: minidsms.Query) -> Any:
    (adaptation,) = [a for op in query.network.operators if hasattr(op, "adaptations") for a in op.adaptations()]
    return adaptation


@pytest.mark.parametrize(("every", "chunk"), [(1, 50), (3, 1), (100, 7), (250, 600)])
def test_random_routes_forced_all_the_time_change_no_answer(every: int, chunk: int) -> None:
    columns = data(600)
    with connected(adaptive="off", routing="off") as db:
        query = db.query(f"SELECT a, b, t FROM S WHERE {CONDITION}")
        fed(db, columns, chunk)
        expected = query.fetch()
    with connected() as db, forced_switching(db, every, seed=3):
        query = db.query(f"SELECT a, b, t FROM S WHERE {CONDITION}")
        fed(db, columns, chunk)
        assert query.fetch() == expected
        plans = [d.new_plan for d in query.decisions()]
        assert any(plan.startswith("by ") for plan in plans) and not all(plan.startswith("by ") for plan in plans)
    assert len(expected) > 5


@pytest.mark.parametrize("failing_row_passes", [False, True])
def test_an_error_counts_under_routes_as_under_any_order(failing_row_passes: bool) -> None:
    """docs/semantics R4."""
    reasons = set()
    for seed in range(4):
        with connected() as db, forced_switching(db, 1 + seed, seed):
            query = db.query("SELECT a FROM S WHERE a * a > 0 AND b < 50 AND c < 1.0")
            columns: dict[str, list[Any]] = {k: [v] * 40 for k, v in zip("abctwf", (1, 10, 0.5, "x", None, True))}
            columns["a"][30] = 2**40
            columns["b"][30] = 10 if failing_row_passes else 99
            fed(db, columns, 8)
            db.advance(100)
            taken = query.fetch()
            if failing_row_passes:
                with pytest.raises(QueryError, match="overflow") as error:
                    query.fetch()
                reasons.add((len(taken), str(error.value)))
            else:
                assert len(taken) == 39
    assert len(reasons) == (1 if failing_row_passes else 0)


def test_a_fixed_function_stays_behind_what_was_written_before_it() -> None:
    columns = data(300)
    asked: list[list[int | None]] = []
    for every in (1000, 1, 5):
        with connected() as db, forced_switching(db, every, 1):
            calls: list[int | None] = []

            def even(value: int | None, calls: list[int | None] = calls) -> bool:
                calls.append(value)
                return value is not None and value % 2 == 0

            db.create_function("EVEN", even, ["INTEGER"], "BOOLEAN", fixed=True)
            query = db.query("SELECT a FROM S WHERE b > 100 AND c < 0.5 AND EVEN(a)")
            fed(db, columns, 20)
            assert query.fetch()
            asked.append(calls)
    rows = zip(columns["a"], columns["b"], columns["c"])
    let_in = [a for a, b, c in rows if b is not None and b > 100 and c is not None and c < 0.5]
    assert asked == [let_in] * 3


REGIONS = ("north", "south", "west", "east", "centre", "coast")


def by_region(n: int, seed: int = 1) -> dict[str, list[Any]]:
    """Six filters look at a bit each of a and b; each drops nearly all of one region and few elsewhere."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 6, n)
    drops = [rng.random(n) < np.where(region == j, 0.95, 0.1) for j in range(6)]
    bits = [sum(2**j * drops[first + j] for j in range(3)) for first in (0, 3)]
    return {
        "a": (rng.integers(0, 1000, n) * 8 + bits[0]).tolist(),
        "b": (rng.integers(0, 1000, n) * 8 + bits[1]).tolist(),
        "c": rng.random(n).tolist(),
        "t": [REGIONS[r] for r in region.tolist()],
        "w": [None] * n,
        "f": [True] * n,
    }


SIX = "SELECT t FROM S WHERE " + " AND ".join(f"{x} % {2 * b} < {b}" for x in "ab" for b in (1, 2, 4))


def test_tuples_take_the_order_that_suits_their_class() -> None:
    columns = by_region(6000)
    with connected() as db, connected(routing="off") as other:
        query, usual = db.query(SIX), other.query(SIX)
        fed(db, columns, 500)
        fed(other, columns, 500)
        assert query.fetch() == usual.fetch()
        plan = adaptation_of(query).executor.plan
        assert isinstance(plan, Routes) and [str(c) for c in plan.classifiers] == ["t"] and len(plan.orders) == 5
        text = query.explain(analyze=True)
        assert "routed by t, 5 orders: F" in text, "two regions share a bucket"
        decision = next(d for d in query.decisions() if "by t" in d.new_plan)
        assert decision.new_plan == "by t: 5 orders" and decision.expected_gain is not None
        assert decision.expected_gain > 0.2
        evaluated, tuples = adaptation_of(query).executor.spent()
        evaluated_usual, _ = adaptation_of(usual).executor.spent()
        assert tuples == 6000 and evaluated < 0.6 * evaluated_usual


@pytest.mark.parametrize(
    ("type_", "classes", "told"),
    [
        ("DECIMAL(6, 2)", [Decimal("1.25"), Decimal("7"), Decimal("7.5"), None], "x"),
        ("DATE", [date(2013, 1, day) for day in (7, 8, 9, 10)], "weekday(x)"),
        ("TIME", [time(hour) for hour in (1, 2, 3, 4)], "hour(x)"),
        ("INTEGER[]", [[1], [2, 3], [], None], "x"),
    ],
)
def test_classes_are_told_by_attributes_of_other_types(type_: str, classes: list[Any], told: str) -> None:
    rng = np.random.default_rng(2)
    number = rng.integers(0, 4, 1500)
    drops = [rng.random(1500) < np.where(number == j, 0.95, 0.05) for j in range(4)]
    columns = {name: (2 * rng.integers(0, 500, 1500) + dropped).tolist() for name, dropped in zip("abcd", drops)}
    columns["x"] = [classes[k] for k in number.tolist()]
    answers = []
    for routing in ("auto", "off"):
        with minidsms.connect(cost_model="fixed", profile_rate=1.0, profile_window=100, routing=routing) as db:
            db.execute(f"CREATE STREAM S (x {type_}, a INTEGER, b INTEGER, c INTEGER, d INTEGER)")
            query = db.query("SELECT a FROM S WHERE " + " AND ".join(f"{name} % 2 = 0" for name in "abcd"))
            fed(db, columns, 250)
            answers.append(query.fetch())
            plan = adaptation_of(query).executor.plan
            assert isinstance(plan, Routes) == (routing == "auto")
            if isinstance(plan, Routes):
                assert [str(each) for each in plan.classifiers] == [told]
    assert answers[0] == answers[1] and len(answers[0]) > 10


def test_without_classes_tuples_are_not_told_apart() -> None:
    columns = by_region(6000)
    np.random.default_rng(5).shuffle(columns["t"])
    with connected() as db, connected(routing="off") as other:
        query, usual = db.query(SIX), other.query(SIX)
        fed(db, columns, 500)
        fed(other, columns, 500)
        assert adaptation_of(query).executor.plan == adaptation_of(usual).executor.plan
        assert [str(d) for d in query.decisions()] == [str(d) for d in usual.decisions()]


def test_routes_are_given_up_when_the_classes_are_no_more() -> None:
    columns = by_region(12_000)
    middle = 6000
    rest = columns["t"][middle:]
    np.random.default_rng(5).shuffle(rest)
    columns["t"][middle:] = rest
    with connected() as db:
        query = db.query(SIX)
        fed(db, columns, 500)
        assert not isinstance(adaptation_of(query).executor.plan, Routes)
        assert any("no longer pay" in d.reason for d in query.decisions())


def test_routes_can_be_pinned() -> None:
    by_t = Classifier(3, "t", Reading.VALUE, 3)
    with connected() as db:
        query = db.query(SIX)
        adaptation = adaptation_of(query)
        adaptation.pin(Routes(tuple(range(6)), (by_t,), (tuple(range(6)), (2, 1, 0, 5, 4, 3)), bytes((0, 1, 1))))
        fed(db, by_region(2000), 100)
        assert isinstance(adaptation.executor.plan, Routes)
        assert [part.reached[0] > 0 for part in adaptation.executor.parts] == [False, True, False]
        adaptation.unpin()
        fed_again = by_region(4000)
        db.push("S", fed_again, ts=list(range(2000, 6000)))
        assert len(adaptation.executor.plan.orders) >= 5


BY_T = Classifier(3, "t", Reading.VALUE, 3)
WHOLE = Routes((0, 1, 2, 3, 4, 5), (BY_T,), ((5, 4, 3, 2, 1, 0),), bytes(3))


@pytest.mark.parametrize(
    "change",
    [
        {"order": (0, 1)},
        {"orders": ((0, 1, 2, 3, 4, 4),)},
        {"table": bytes(2)},
        {"table": bytes((0, 1, 0))},
        {"classifiers": (Classifier(3, "t", Reading.HOUR, 3),)},
        {"classifiers": (Classifier(9, "t", Reading.VALUE, 3),)},
        {"classifiers": (), "table": bytes(1)},
    ],
)
def test_routes_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with connected() as db:
        adaptation = adaptation_of(db.query(SIX))
        adaptation.pin(WHOLE)
        with pytest.raises(ValueError, match="is no plan"):
            adaptation.pin(dataclasses.replace(WHOLE, **change))


def test_the_same_tuples_take_the_same_decisions() -> None:
    seen = []
    for _ in range(2):
        with connected() as db:
            query = db.query(SIX)
            fed(db, by_region(3000), 300)
            seen.append([str(d) for d in query.decisions()])
    assert seen[0] == seen[1]


def test_content_learns_finds_the_classifier_and_keeps_the_answer() -> None:
    columns = by_region(40_000)
    with connected(routing="content") as db, connected(routing="off") as other:
        query, usual = db.query(SIX), other.query(SIX)
        fed(db, columns, 2000)
        fed(other, columns, 2000)
        assert query.fetch() == usual.fetch()
        plans = [d.new_plan for d in query.decisions()]
        assert any(plan.startswith("by t") for plan in plans)
        assert any("F1 by t" in d.reason for d in query.decisions())


def test_semi_joins_are_routed_as_other_filters_are() -> None:
    answers = []
    for options in ({"routing": "off", "adaptive": "off"}, {}, {"routing": "content"}):
        with minidsms.connect(**options) as db:
            db.execute(
                "CREATE STREAM S0 (a INTEGER, t TEXT); CREATE STREAM S1 (a INTEGER); CREATE STREAM S2 (a INTEGER)"
            )
            query = db.query(
                "SELECT RSTREAM(*) FROM S0 [NOW] WHERE S0.a IN (SELECT a FROM S1 [ROWS 5]) "
                "AND S0.a IN (SELECT a FROM S2 [ROWS 8]) AND t <> 'x' AND S0.a > 1"
            )
            with forced_switching(db, 2, 5) if not options else nullcontext():
                rng = np.random.default_rng(7)
                for ts in range(150):
                    for stream in ("S1", "S2"):
                        db.push(stream, (int(rng.integers(0, 12)),), ts=ts)
                    rows = [(int(rng.integers(0, 12)), "xyz"[int(rng.integers(0, 3))]) for _ in range(4)]
                    db.push("S0", rows, ts=[ts] * 4)
                db.advance(200)
            answers.append(query.fetch())
            if not options:
                assert any(d.new_plan.startswith("by ") for d in query.decisions())
    assert answers[0] == answers[1] == answers[2] and len(answers[0]) > 10
