"""The adaptive Select in queries: orders follow the data, answers do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import Error, QueryError
from minidsms.kernels import filtering
from minidsms.testing.switching import forced_switching

ALGORITHMS = ("a_greedy", "sweep", "independent", "local_swaps", "optimal", "static")
DECLARATION = "CREATE STREAM S (a INTEGER, b INTEGER, c FLOAT, t TEXT)"
CONDITION = "a % 10 < 9 AND b > 100 AND c <= 0.5 AND t LIKE 'x%' AND a IN (1, 2, 3, 5, 8, 13, 21)"


def connected(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(
        **{"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 100, "routing": "off", **options}
    )
    db.execute(DECLARATION)
    return db


def data(n: int, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    null = rng.random((4, n)) < 0.05
    columns: list[list[Any]] = [
        rng.integers(0, 30, n).tolist(),
        rng.integers(0, 300, n).tolist(),
        rng.random(n).tolist(),
        rng.choice(["x", "xy", "y", ""], n).tolist(),
    ]
    return {k: [None if gone else v for v, gone in zip(c, g)] for k, c, g in zip("abct", columns, null)}


def fed(db: minidsms.Connection, columns: dict[str, list[Any]], chunk: int, first: int = 0) -> None:
    n = len(columns["a"])
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        part = {name: values[start:stop] for name, values in columns.items()}
        db.push("S", part, ts=list(range(first + start, first + stop)))


def order_of(query: minidsms.Query) -> tuple[int, ...]:
    (adaptation,) = [a for op in query.network.operators if hasattr(op, "adaptations") for a in op.adaptations()]
    plan: tuple[int, ...] = adaptation.executor.plan
    return plan


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_every_algorithm_gives_the_answer_of_the_order_written(algorithm: str, chunk: int) -> None:
    columns = data(700)
    answers = []
    for options in ({"adaptive": "off"}, {"filter_ordering": algorithm}):
        with connected(**options) as db:
            query = db.query(f"SELECT a, b, c, t FROM S WHERE {CONDITION}")
            fed(db, columns, chunk)
            answers.append(query.fetch())
            assert bool(query.decisions()) == (
                len(options) == 1 and algorithm not in ("static",) and "adaptive" not in options
            )
    assert answers[0] == answers[1] and len(answers[0]) > 5


@pytest.mark.parametrize("every", [1, 3, 100])
def test_forced_switching_changes_orders_and_no_answer(every: int) -> None:
    columns = data(600)
    with connected(adaptive="off") as db:
        query = db.query(f"SELECT a, b FROM S WHERE {CONDITION}")
        fed(db, columns, 50)
        expected = query.fetch()
    with connected() as db, forced_switching(db, every, seed=3):
        query = db.query(f"SELECT a, b FROM S WHERE {CONDITION}")
        fed(db, columns, 50)
        assert query.fetch() == expected
        switches = [d for d in query.decisions() if d.reason == "forced"]
        assert 0.8 * (600 // every) <= len(switches) <= 600 // every
        assert len({d.new_plan for d in switches}) > min(4, len(switches) - 1)


@pytest.mark.parametrize("algorithm", ["a_greedy", "independent", "optimal", "sweep", "local_swaps"])
def test_the_order_follows_the_data(algorithm: str) -> None:
    with connected(filter_ordering=algorithm) as db:
        query = db.query("SELECT a FROM S WHERE a < 50 AND b < 50")
        for phase in range(4):
            low, high = [10] * 2000, [99] * 1800 + [10] * 200
            columns = {"a": low if phase % 2 == 0 else high, "b": high if phase % 2 == 0 else low}
            columns |= {"c": [0.0] * 2000, "t": ["x"] * 2000}
            fed(db, columns, 100, first=2000 * phase)
            assert order_of(query) == ((1, 0) if phase % 2 == 0 else (0, 1))
        assert len(query.decisions()) == 4


def test_a_change_is_found_within_three_profile_windows() -> None:
    with connected(profile_rate=0.1) as db:
        query = db.query("SELECT a FROM S WHERE a < 50 AND b < 50")
        n = 5000
        columns = {"a": [10] * n + [99] * n, "b": [99] * n + [10] * n, "c": [0.0] * 2 * n, "t": ["x"] * 2 * n}
        fed(db, columns, 100)
        assert order_of(query) == (0, 1)
        change = query.decisions()[-1].instant - n
        assert 0 < change <= 3 * 100 / 0.1


def test_unasked_for_rates_find_a_change_too() -> None:
    n = 200_000
    rng = np.random.default_rng(0)
    with minidsms.connect(cost_model="fixed", routing="off") as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
        query = db.query("SELECT a FROM S WHERE a < 50 AND b < 50")
        for phase in range(4):
            columns = {"a": rng.integers(0, 60, n), "b": rng.integers(0, 500, n)}
            if phase % 2:
                columns = {"a": columns["b"], "b": columns["a"]}
            for part in range(5):
                rows = slice(part * n // 5, (part + 1) * n // 5)
                db.push("S", {k: v[rows] for k, v in columns.items()}, ts=np.arange(n // 5) + phase * n + part * n // 5)
            assert order_of(query) == ((1, 0) if phase % 2 == 0 else (0, 1))


def test_an_error_counts_in_every_order_or_in_none() -> None:
    """docs/semantics R4."""
    for failing_row_passes in (False, True):
        reasons = []
        for every in (None, 1, 2):
            with connected(adaptive="off") as db:
                query = db.query("SELECT a FROM S WHERE a * a > 0 AND b < 50 AND c < 1.0")
                if every is None:
                    columns = data(0)
                with forced_switching(db, every or 10**6, seed=1):
                    columns = {"a": [1] * 40, "b": [10] * 40, "c": [0.5] * 40, "t": ["x"] * 40}
                    columns["a"][30] = 2**40
                    columns["b"][30] = 10 if failing_row_passes else 99
                    fed(db, columns, 8)
                    db.advance(100)
                    taken = query.fetch()
                    if failing_row_passes:
                        with pytest.raises(QueryError, match="overflow") as error:
                            query.fetch()
                        reasons.append((len(taken), str(error.value)))
                    else:
                        assert len(taken) == 39
        assert len(set(reasons)) == (1 if failing_row_passes else 0)


def test_a_fixed_function_is_called_only_for_what_the_filters_before_it_let_pass() -> None:
    with connected() as db:
        seen: list[int] = []
        db.create_function("f", lambda x: seen.append(x) or x % 2 == 0, ["INTEGER"], "BOOLEAN", fixed=True)  # type: ignore[func-returns-value]
        query = db.query("SELECT a FROM S WHERE a < 20 AND b < 250 AND f(a) AND c < 0.9 AND b > 10")
        with forced_switching(db, 1):
            columns = data(300)
            fed(db, columns, 300)
            db.advance(300)
        let_pass = [
            a for a, b in zip(columns["a"], columns["b"]) if a is not None and a < 20 and b is not None and b < 250
        ]
        assert seen == let_pass
        expected = [
            a
            for a, b, c in zip(columns["a"], columns["b"], columns["c"])
            if None not in (a, b, c) and a < 20 and b < 250 and a % 2 == 0 and c < 0.9 and b > 10
        ]
        assert [c.row[0] for c in query.fetch()] == expected
        plans = {d.new_plan for d in query.decisions()}
        assert plans <= {"F1, F2", "F2, F1", "F4, F5", "F5, F4"} and len(plans) == 4


def test_user_functions_change_places_with_other_filters() -> None:
    with connected() as db:
        db.create_function("dear", lambda x: x > 0, ["INTEGER"], "BOOLEAN")
        db.create_function("all_of", lambda x: x >= 0, ["INTEGER"], "BOOLEAN", vectorized=True)
        query = db.query("SELECT a FROM S WHERE dear(a) AND all_of(b) AND c < 0.05")
        fed(db, data(1000), 1000)
        assert order_of(query)[0] == 2


def test_a_pinned_query_keeps_its_order_until_it_is_unpinned() -> None:
    with connected() as db:
        query = db.query("SELECT a FROM S WHERE a >= 0 AND b < 10", name="q")
        db.execute("ALTER QUERY q PIN PLAN")
        fed(db, data(500), 500)
        assert order_of(query) == (0, 1) and not query.decisions()
        db.execute("ALTER QUERY q UNPIN PLAN")
        fed(db, data(500), 500, first=500)
        assert order_of(query) == (1, 0)
        (decision,) = query.decisions()
        assert decision.query == "q" and decision.instant == 500 and "a_greedy" in decision.reason
        assert decision.statistics["order"] == (1, 0) and decision.expected_gain > 0


def test_adaptive_off_holds_for_running_queries() -> None:
    with connected() as db:
        query = db.query("SELECT a FROM S WHERE a >= 0 AND b < 10")
        db.execute("SET adaptive = off")
        fed(db, data(500), 500)
        assert not query.decisions()
        db.execute("SET adaptive = on")
        fed(db, data(500), 500, first=500)
        assert len(query.decisions()) == 1


def test_a_decision_tells_what_each_other_order_costs() -> None:
    with minidsms.connect(cost_model="fixed") as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        query = db.query("SELECT v FROM S WHERE v > 10 AND v % 5 < 4 AND v % 4 = 1")
        db.push("S", {"v": list(range(4000))}, ts=list(range(4000)))
        decision = query.decisions()[0]
        costs = decision.statistics["considered"]
        assert len(costs) == 6 and list(costs.values()) == sorted(costs.values())
        assert next(iter(costs)) == decision.new_plan
        assert decision.expected_gain == pytest.approx(1 - costs[decision.new_plan] / costs[decision.old_plan])


def test_the_same_seed_takes_the_same_decisions() -> None:
    told = []
    for _ in range(2):
        with connected(profile_rate=0.1, seed=5) as db:
            query = db.query(f"SELECT a FROM S WHERE {CONDITION}")
            fed(db, data(3000), 64)
            told.append([str(d) for d in query.decisions()])
    assert told[0] == told[1] and told[0]


def test_explain_analyze_shows_the_filters_in_their_order_with_drop_rates_and_costs() -> None:
    with connected() as db:
        query = db.query("SELECT a FROM S WHERE a >= 0 AND b < 10")
        fed(db, {"a": [1] * 500, "b": [5] * 100 + [50] * 400, "c": [0.0] * 500, "t": ["x"] * 500}, 250)
        lines = [line.strip() for line in query.explain(analyze=True).splitlines()]
        assert "- F2 b < 10   [drops 80.0 % of 500; cost 1]" in lines
        assert "- F1 a >= 0   [drops 0.0 % of 100; cost 1]" in lines
        assert lines.index("- F2 b < 10   [drops 80.0 % of 500; cost 1]") < lines.index(
            "- F1 a >= 0   [drops 0.0 % of 100; cost 1]"
        )
        assert "- F2" not in query.explain()


def test_measured_costs_put_a_slow_filter_behind_a_fast_one() -> None:
    def slow(x: np.ndarray) -> np.ndarray:
        for _ in range(200):
            x = np.sqrt(x * x)
        return x < 25

    assert filtering  # the compiler is loaded: adapting begins early
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a FLOAT, b INTEGER)")
        db.create_function("slow", slow, ["FLOAT"], "BOOLEAN", vectorized=True)
        query = db.query("SELECT a FROM S WHERE slow(a) AND b < 50")
        n = 20_000  # the first are too few to adapt, but tell what the order written costs
        for i in range(6):
            db.push("S", {"a": np.arange(n) % 50.0, "b": np.arange(n) % 100}, ts=np.arange(n) + i * n)
        assert order_of(query) == (1, 0)
        (decision,) = query.decisions()
        assert decision.expected_gain > 0.3 and decision.measured_gain is not None


def test_optimal_refuses_more_filters_than_it_can_search() -> None:
    many = " AND ".join(f"a <> {i}" for i in range(17))
    with connected(filter_ordering="optimal") as db:
        with pytest.raises(Error, match="at most 16 filters, not of 17"):
            db.query(f"SELECT a FROM S WHERE {many}")
        db.execute("SET filter_ordering = a_greedy")
        db.query(f"SELECT a FROM S WHERE {many}")


def test_deletions_pass_the_filters_as_their_insertions_did() -> None:
    with connected() as db, forced_switching(db, 1, seed=2):
        query = db.query("SELECT a, b FROM S [RANGE 20] WHERE a < 20 AND b < 150 AND c < 0.7")
        fed(db, data(300), 10)
        db.advance(1000)
        changes = query.fetch()
        assert query.snapshot() == [] and sum(c.sign for c in changes) == 0 and len(changes) > 50
