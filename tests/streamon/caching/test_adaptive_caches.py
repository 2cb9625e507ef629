"""Caches of a running join: chosen, shown, bounded in memory, kept when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import minidsms
from minidsms.query import Query

QUERY = "SELECT R.a, T.b FROM R [ROWS 100], S [ROWS 1000], T [ROWS 500] WHERE R.a = S.a AND S.b = T.b"
CACHED = "R: S, T | S: R, T | T: [S, R]"


class Running:
    """A join whose rows of T meet ten rows of S, of which one joins a row of R; every b comes ten times."""

    def __init__(self, **options: Any) -> None:
        self.db = minidsms.connect(
            **{"cost_model": "fixed", "filter_ordering": "static", "join_plan": "mjoin", **options}
        )
        self.db.execute("CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER)")
        self.db.execute("CREATE STREAM T (b INTEGER)")
        self.query: Query = self.db.query(QUERY)
        self._round = 0

    def run(self, rounds: int = 1000) -> None:
        for n in range(self._round, self._round + rounds, 200):
            once, tenfold = list(range(n, n + 200)), [k for k in range(n, n + 200) for _ in range(10)]
            self.db.push("R", {"a": [10 * k for k in once]}, ts=once)
            self.db.push("S", {"a": [10 * k + j for k in once for j in range(10)], "b": tenfold}, ts=tenfold)
            self.db.push("T", {"b": tenfold}, ts=tenfold)
            self.db.advance(n + 199)
        self._round += rounds

    @property
    def join(self) -> Any:
        return next(op for op in self.query.network.operators if op.name == "MJoin")

    @property
    def plan(self) -> str:
        (executor,) = (a.executor for a in self.join.adaptations() if a.technique == "caching")
        return str(executor.plan_text(executor.plan))

    @property
    def nbytes(self) -> int:
        return sum(figures.bytes for figures in self.join.cache_figures().values())


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running(caching="prefix")
    yield running
    running.db.close()


def test_a_cache_that_pays_comes_into_use_and_is_shown(running: Running) -> None:
    running.run()
    assert running.plan == CACHED
    (decision,) = running.query.decisions()
    assert decision.technique == "caching" and "[S, R] for T" not in decision.old_plan
    (line,) = [line for line in running.query.explain(analyze=True).splitlines() if "cache [S, R] for T" in line]
    assert "used; hits 9" in line and "saves" in line and "costs" in line
    (place,) = [place for place in running.join.adaptations() if place.technique == "caching"]
    assert 0.85 < place.profiler.statistics()["cache [S, R] for T"]["hit_rate"] < 1


def test_without_the_setting_there_are_no_caches() -> None:
    running = Running()
    running.run()
    assert running.query.decisions() == []
    assert not any(a.technique == "caching" for a in running.join.adaptations())


def test_the_memory_of_caches_may_change_while_they_are_used(running: Running) -> None:
    running.run()
    assert running.nbytes > 8192
    running.db.execute("SET cache_memory = 8192")
    running.run()
    assert running.plan == CACHED
    assert running.nbytes <= 8192
    running.db.execute("SET cache_memory = none")
    running.run()
    assert running.nbytes > 8192


def test_caches_that_would_have_no_memory_are_not_tried() -> None:
    running = Running(caching="prefix", cache_memory=1)
    running.run()
    assert running.query.decisions() == []
    running.db.execute("SET cache_memory = none")
    running.run(4000)
    assert running.plan == CACHED


def test_a_plan_that_is_pinned_and_a_connection_that_does_not_adapt_get_no_caches(running: Running) -> None:
    running.query.pin_plan()
    running.run()
    assert running.plan == "R: S, T | S: R, T | T: S, R"
    running.query.unpin_plan()
    running.db.execute("SET adaptive = off")
    running.run()
    assert running.plan == "R: S, T | S: R, T | T: S, R"
    running.db.execute("SET adaptive = on")
    running.run()
    assert running.plan == CACHED


def test_answers_with_and_without_caches_are_equal(running: Running) -> None:
    plain = Running()
    for each in (running, plain):
        each.run()
    assert running.query.fetch() == plain.query.fetch()


def test_candidates_of_orders_that_are_gone_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.QUERY", QUERY.replace("S.b", "S.a"))
    running = Running(caching="prefix")
    running.run()
    assert "[unused" in running.query.explain(analyze=True)
    (executor,) = (a.executor for a in running.join.adaptations() if a.technique == "caching")
    executor.switch(replace(running.join.plan, orders=((1, 2), (0, 2), (1, 0)), caches=()))
    assert "[unused" not in running.query.explain(analyze=True)
    running.db.close()
