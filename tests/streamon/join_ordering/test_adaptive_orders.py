"""Orders of joins follow the data, trees the rates; two inputs have nothing to choose; pinned plans stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.streamon import loop
from minidsms.streamon.join_ordering import adaptive_orders
from minidsms.streamon.join_ordering.executor import OrderExecutor
from minidsms.streamon.join_ordering.profiler import JoinOrderProfiler
from minidsms.streamon.loop import adaptations_of

STAR = "SELECT ISTREAM(R.a) FROM R [RANGE 100], S [RANGE 100], T [RANGE 100] WHERE R.a = S.a AND R.b = T.b"
CHAIN = "SELECT T.b FROM R [RANGE 900], S [RANGE 900], T [RANGE 900] WHERE R.a = S.a AND S.b = T.b"


def connected(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**{"cost_model": "fixed", "join_plan": "mjoin", **options})
    for name in "RST":
        db.execute(f"CREATE STREAM {name} (a INTEGER, b INTEGER)")
    return db


def push(db: minidsms.Connection, first: int, n: int, keys: dict[str, tuple[int, int]], every: dict[str, int]) -> None:
    """n instants; of each input a row at every k-th, its columns drawn from so many keys."""
    rng = np.random.default_rng(first)
    for name, (a, b) in keys.items():
        ts = np.arange(first, first + n, every[name])
        db.push(name, {"a": rng.integers(0, a, len(ts)), "b": rng.integers(0, b, len(ts))}, ts=ts)


@pytest.mark.parametrize("algorithm", ["a_greedy", "sweep", "independent", "local_swaps", "optimal"])
def test_the_window_that_drops_most_comes_first(algorithm: str) -> None:
    every = {"S": 5, "T": 5, "R": 1}
    with connected(filter_ordering=algorithm, profile_rate=0.2, profile_window=200) as db:
        q = db.query(STAR)
        push(db, 0, 12_000, {"S": (10, 10), "T": (10, 10), "R": (10, 200)}, every)
        assert q.decisions() and q.decisions()[-1].new_plan.startswith("R: T, S |")
        push(db, 12_000, 24_000, {"S": (10, 10), "T": (10, 10), "R": (200, 10)}, every)
        assert q.decisions()[-1].new_plan.startswith("R: S, T |")
        assert "- R: S [drops " in q.explain(analyze=True)
        told = [d for d in q.decisions() if d.old_plan in d.statistics.get("considered", {})]
        assert told
        for decision in told:
            costs = decision.statistics["considered"]
            assert decision.expected_gain == pytest.approx(1 - costs[decision.new_plan] / costs[decision.old_plan])


@pytest.mark.parametrize("detection, watching", [("auto", "counts and cusum"), ("counts", "counts"), ("off", None)])
def test_orders_follow_a_change_of_the_streams_at_once_where_it_is_noticed(
    detection: str, watching: str | None
) -> None:
    with connected(change_detection=detection) as db:
        q = db.query(STAR)
        for k in range(6):
            r = (10, 200) if k < 3 else (200, 10)
            push(db, 20_000 * k, 20_000, {"S": (10, 10), "T": (10, 10), "R": r}, {"S": 5, "T": 5, "R": 1})
        assert q.decisions()[0].new_plan.startswith("R: T, S |")
        watched = [line.strip() for line in q.explain(analyze=True).splitlines() if "watched" in line]
        if watching is None:
            assert watched == [] and len(q.decisions()) == 1
            return
        last = q.decisions()[-1]
        assert last.new_plan.startswith("R: S, T |") and last.reason.endswith("other orders cost less, after a change")
        assert 60_000 <= last.instant < 110_000
        assert len(watched) == 1 and watched[0].startswith(f"- watched by {watching}: ")


def test_pinned_orders_stay_and_static_ones_are_not_profiled() -> None:
    for options in ({"pin": True}, {"filter_ordering": "static"}, {"adaptive": "off"}):
        pins = options.pop("pin", False)
        with connected(profile_rate=0.2, profile_window=200, **options) as db:
            q = db.query(STAR)
            if pins:
                q.pin_plan()
            push(db, 0, 8_000, {"S": (10, 10), "T": (10, 10), "R": (10, 200)}, {"S": 5, "T": 5, "R": 1})
            assert q.decisions() == []


def test_a_profile_that_took_long_is_waited_out_even_where_a_window_of_profiles_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = count(0, 1_000_000)
    # Each profile seems to take a millisecond, and joining five.
    monkeypatch.setattr(adaptive_orders, "BUDGET", replace(adaptive_orders.BUDGET, promised=1.0))
    monkeypatch.setattr(loop, "thread_ns", lambda: next(looks))
    monkeypatch.setattr(OrderExecutor, "spent", lambda self: (5e6, self._meter.elements))
    with minidsms.connect() as db:
        for name in "RST":
            db.execute(f"CREATE STREAM {name} (a INTEGER, b INTEGER)")
        q = db.query(STAR)
        (orders,) = (a for a in adaptations_of(q.network.operators) if a.technique == "join ordering")
        assert isinstance(orders.profiler, JoinOrderProfiler)
        profiled = []
        for first in range(0, 60_000, 1_000):
            push(db, first, 1_000, {"S": (10, 10), "T": (10, 10), "R": (10, 20)}, {"S": 5, "T": 5, "R": 1})
            profiled.append(orders.profiler.profiled)
        assert profiled[0] == 0 < profiled[-1] and len(set(profiled)) == 2


def test_a_join_of_two_has_no_order_and_the_ends_of_a_chain_are_not_profiled() -> None:
    with connected(profile_rate=1.0) as db:
        pair = db.query("SELECT ISTREAM(R.a) FROM R [RANGE 9], S [RANGE 9] WHERE R.a = S.a")
        chain = db.query(CHAIN)
        push(db, 0, 500, {"S": (10, 10), "T": (10, 10), "R": (10, 10)}, {"S": 5, "T": 5, "R": 1})
        assert not any("drops" in line for line in pair.explain(analyze=True).splitlines())
        lines = [line.strip() for line in chain.explain(analyze=True).splitlines() if line.strip().startswith("- ")]
        assert lines[0] == "- R: S, T" and lines[2] == "- T: S, R" and lines[1].startswith("- S: ")


def run_where_a_fast_input_computes_a_join_again_and_again(db: minidsms.Connection) -> minidsms.Query:
    """Figure 5.6: a row of T meets many of S, none of which meets one of R."""
    q = db.query(CHAIN)
    push(db, 0, 60_000, {"R": (100_000, 5), "S": (100_000, 5), "T": (5, 5)}, {"R": 10, "S": 10, "T": 1})
    return q


def test_auto_caches_the_join_that_a_fast_input_would_compute_again_and_again() -> None:
    with connected(join_plan="auto") as db:
        q = run_where_a_fast_input_computes_a_join_again_and_again(db)
        taken = q.decisions()[-1]
        assert (taken.technique, taken.new_plan) == ("caching", "R: S, T | S: R, T | T: [S, R]")
        assert "- cache [S, R] for T   [used" in q.explain(analyze=True)
        for back in q.decisions()[:-1]:
            if back.new_plan == "(R, S, T)":
                assert back.instant == taken.instant, "pipelines that take over from a tree have their caches at once"


def test_auto_keeps_that_join_whole_where_caches_have_no_memory() -> None:
    with connected(join_plan="auto", cache_memory=1) as db:
        q = run_where_a_fast_input_computes_a_join_again_and_again(db)
        (taken,) = [d for d in q.decisions() if d.technique == "join plan"]
        assert taken.new_plan == "((R, S), T)"
        assert taken.expected_gain is not None and taken.expected_gain > 0.5
        assert "XJoin ((R, S), T) on" in q.explain()
        assert "rate of T" in taken.statistics and "S x T" in taken.statistics
        told = q.explain(analyze=True)
        assert "- expected, units an element: MJoin " in told and ", ((R, S), T) 2." in told


def test_auto_keeps_nothing_where_joins_are_small() -> None:
    with connected(join_plan="auto") as db:
        q = db.query(CHAIN)
        push(db, 0, 60_000, {"R": (1000, 900), "S": (1000, 900), "T": (900, 900)}, {"R": 2, "S": 2, "T": 2})
        assert [d for d in q.decisions() if d.technique == "join plan"] == []


TRIANGLE = (
    "SELECT ISTREAM(R.a) FROM R [ROWS 100], S [ROWS 100], T [ROWS 100] WHERE R.a = S.a AND S.b = T.b AND R.b = T.a"
)


@pytest.mark.parametrize("join_index", ["auto", "patterns", "hash", "bit_address"])
def test_where_steps_compare_several_inputs_orders_are_those_of_least_cost_over_the_index(join_index: str) -> None:
    """Every row finds partners in both other windows, so that no logical filter tells which comes first."""
    with connected(join_index=join_index) as db:
        q = db.query(TRIANGLE)
        rng = np.random.default_rng(1)
        for turn, (shared_a, shared_b, first) in enumerate([(4, 20, "R: T, S |"), (20, 4, "R: S, T |")]):
            for ts in range(8_000 * turn, 8_000 * (turn + 1), 200):
                # R meets fewer rows of T by b than of S by a, and then more.
                for name, values in {"R": (shared_a, shared_b), "S": (shared_a, 10), "T": (shared_b, 10)}.items():
                    rows = {column: rng.integers(0, n, 200) for column, n in zip("ab", values)}
                    db.push(name, rows, ts=np.arange(ts, ts + 200))
            told = [d for d in q.decisions() if "other orders cost less" in d.reason]
            assert told[-1].reason.startswith("c_d: ") and told[-1].new_plan.startswith(first)
            costs = told[-1].statistics["considered"]
            assert costs[told[-1].new_plan] < 0.9 * costs[told[-1].old_plan]
        shown = q.explain(analyze=True)
        assert "- R: S [1.0 probes; cost " in shown and "drops" not in shown
        assert "- by c_d these orders take cost " in shown
