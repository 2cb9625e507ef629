"""Generated n-way joins: whatever tree joins them, and however it changes, the answer is that by definition (T5)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import CqlError
from minidsms.streamon.join_trees import adaptive_trees, reoptimizer
from minidsms.testing.compare import Answer, check, netted, run_definition
from minidsms.testing.feeds import Advance
from minidsms.testing.forced_switching import forced_switching
from minidsms.testing.generators import Case
from minidsms.testing.join_cases import random_join_case

WAYS: tuple[dict[str, Any], ...] = (
    {"join_plan": "auto", "forced_every": 1},
    {"join_plan": "auto", "forced_every": 2},
    {"join_plan": "auto", "forced_every": 7, "adaptive": "off"},
    {"join_plan": "auto", "cost_model": "fixed"},
    {"join_plan": "xjoin"},
    {"join_plan": "xjoin", "forced_every": 1},
    {"join_plan": "xjoin", "cost_model": "fixed"},
)
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees are looked at after every few elements."""
    for name, value in {"WORTH_ELEMENTS": 3, "INTERVAL": 3, "PAUSE": 1, "ENOUGH": 2}.items():
        monkeypatch.setattr(adaptive_trees, name, value)
    monkeypatch.setattr(reoptimizer, "ENOUGH", 2)
    monkeypatch.setattr(reoptimizer, "LEAST_BAN", 10)


def agrees(seed: int, **options: Any) -> None:
    case = random_join_case(seed)
    try:
        assert check(case, None, run_definition(case), **options) == "agreed"
    except CqlError as error:  # where nothing links some inputs
        assert "needs equalities that link all inputs" in error.reason


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_trees_do_not_show_in_any_answer(start: int) -> None:
    for seed in range(start, start + 20):
        for i, way in enumerate(WAYS):
            if (seed + i) % 3:
                options = {"batch_size": (1, 2, 7, 65_536)[(seed + i) % 4], "scheduler": SCHEDULERS[(seed + i) % 4]}
                agrees(700_000 + seed, **options, **way)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_trees_do_not_show_in_a_thousand_answers(start: int) -> None:
    for seed in range(start, start + 50):
        for batch_size, way in product((1, 2, 7, 65_536), WAYS):
            agrees(800_000 + seed, batch_size=batch_size, scheduler=SCHEDULERS[seed % 4], **way)


@pytest.mark.long
def test_fifty_thousand_switches_do_not_show_in_any_answer() -> None:
    """Trees and orders are switched at every element, every second and every seventh, and every switch is counted."""
    switches, seed = 0, 900_000
    while switches < 50_000:
        case = random_join_case(seed, size=30)
        expected = run_definition(case)
        for plan, every in product(("auto", "mjoin"), (1, 2, 7)):
            with minidsms.connect(join_plan=plan, batch_size=(1, 2, 7, 65_536)[seed % 4]) as db:
                switches += switched_answer(db, case, expected, every)
        seed += 1


def switched_answer(db: minidsms.Connection, case: Case, expected: Answer, every: int) -> int:
    """Feed the case while plans are switched, compare the answers, and give how many switches were taken."""
    with forced_switching(db, every):
        for declaration in case.declarations:
            db.execute(declaration)
        query = db.query(case.query)
        for step in case.feed:
            if isinstance(step, Advance):
                db.advance(step.ts, step.stream)
            else:
                db.push(step.name, [row for _, _, row in step.rows], ts=[ts for ts, _, _ in step.rows])
    changes = tuple((c.ts, c.sign, tuple(c.row)) for c in query.fetch())
    assert netted(changes) == netted(expected.changes), str(case)
    assert all(decision.reason == "forced" for decision in query.decisions())
    return len(query.decisions())


@pytest.mark.parametrize("every", [1, 3])
def test_switches_at_every_kth_element_are_taken_and_do_not_show(every: int) -> None:
    switches = 0
    for seed in range(910_000, 910_010):
        case = random_join_case(seed)
        with minidsms.connect(join_plan="auto") as db:
            switches += switched_answer(db, case, run_definition(case), every)
    assert switches > 150 / every


@pytest.mark.parametrize("output", ["", "ISTREAM"])
@pytest.mark.parametrize("plan", ["mjoin", "((R, S), T)", "(R, (S, T))", "xjoin", "auto"])
def test_a_long_join_gives_what_no_plan_changes(plan: str, output: str) -> None:
    def answer(**options: Any) -> dict[tuple[int, int, tuple[Any, ...]], int]:
        with minidsms.connect(**options) as db:
            for name in "RST":
                db.execute(f"CREATE STREAM {name} (a INTEGER, b INTEGER)")
            text = "SELECT R.a, S.b FROM R [RANGE 200], S [RANGE 150], T [RANGE 200] WHERE R.a = S.a AND S.b = T.b"
            query = db.query(f"{output} ({text})" if output else text)
            rng = np.random.default_rng(5)
            seen: dict[tuple[int, int, tuple[Any, ...]], int] = {}
            for first in range(0, 40_000, 10_000):
                # Input T is fast at first, R later.
                shares = [0.1, 0.1, 0.8] if first < 20_000 else [0.8, 0.1, 0.1]
                who = rng.choice(3, 10_000, p=shares)
                ts = np.arange(first, first + 10_000)
                for j, name in enumerate("RST"):
                    rows = {c: rng.integers(0, 25, int((who == j).sum())) for c in "ab"}
                    db.push(name, rows, ts=ts[who == j])
                for change in query.fetch():
                    key = change.ts, change.sign, tuple(change.row)
                    seen[key] = seen.get(key, 0) + 1
            return seen

    assert answer(join_plan=plan, cost_model="fixed") == answer(adaptive="off")
