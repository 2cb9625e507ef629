"""Generated n-way joins: whatever tree joins them, and however it changes, the answer is that by definition (T5)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.testing.compare import check, run_engine
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case
from tests.long.join_cases import random_join_case
from tests.long.mixed_joins import random_join
from tests.seeds import seeds
from tests.streamon.join_answers import agree, agree_in_all_batches

WAYS: tuple[dict[str, Any], ...] = (
    {"join_plan": "auto", "forced_every": 1},
    {"join_plan": "auto", "forced_every": 2},
    {"join_plan": "auto", "forced_every": 7, "adaptive": "off"},
    {"join_plan": "auto", "cost_model": "fixed"},
    {"join_plan": "xjoin"},
    {"join_plan": "xjoin", "forced_every": 1},
    {"join_plan": "xjoin", "cost_model": "fixed"},
)


pytestmark = pytest.mark.usefixtures("eager")


@pytest.mark.parametrize("start", seeds(0, 24, 12))
def test_trees_do_not_show_in_any_answer(start: int) -> None:
    agree(((seed, random_join_case(700_000 + seed)) for seed in range(start, start + 12)), WAYS)


@pytest.mark.parametrize("start", range(0, 20, 10))
def test_trees_over_relations_and_derived_relations_do_not_show_in_any_answer(start: int) -> None:
    agree(((seed, random_join(720_000 + seed)) for seed in range(start, start + 10)), WAYS)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_trees_do_not_show_in_a_thousand_answers(start: int) -> None:
    agree_in_all_batches(((seed, random_join_case(800_000 + seed)) for seed in range(start, start + 50)), WAYS)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_trees_over_relations_do_not_show_in_a_thousand_answers(start: int) -> None:
    agree_in_all_batches(((seed, random_join(820_000 + seed)) for seed in range(start, start + 50)), WAYS)


@pytest.mark.parametrize(
    "plan, every",
    [("xjoin", 60), ("auto", 60), ("((((S1, S2), (S3, S4)), ((S5, S6), S7)), (S8, S9, S10, S11, S12))", None)],
)
def test_twelve_inputs_are_joined_by_trees_that_no_search_has_found(plan: str, every: int | None) -> None:
    names = [f"S{i}" for i in range(1, 13)]
    windows = ", ".join(f"{name} [RANGE {4 + i % 3}]" for i, name in enumerate(names))
    linked = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    query = f"SELECT S1.k, S12.v FROM {windows} WHERE {linked} AND S3.v <= S7.v"
    declarations = tuple(f"CREATE STREAM {name} (k INTEGER, v INTEGER)" for name in names)
    # Three streams have two rows of each key, the others one.
    arriving = [(ts, i) for ts in range(1, 24) for i in range(12) if i < 3 or ts % 2]
    rows = [(ts, names[i], (ts // 2 % 5, (5 * ts + i) % 3)) for ts, i in arriving]
    feed = (*(Push(name, ((ts, 1, row),)) for ts, name, row in rows), Advance(40))
    case = Case(declarations, query, feed)
    expected = run_engine(case, adaptive="off")
    assert 50 < len(expected.changes) < 1000
    assert check(case, None, expected, join_plan=plan, forced_every=every) == "agreed"


@pytest.mark.parametrize("output", ["", "ISTREAM"])
def test_a_long_join_gives_what_no_plan_changes(output: str) -> None:
    def answer(**options: Any) -> dict[tuple[int, int, tuple[Any, ...]], int]:
        with minidsms.connect(**options) as db:
            for name in "RST":
                db.execute(f"CREATE STREAM {name} (a INTEGER, b INTEGER)")
            text = "SELECT R.a, S.b FROM R [RANGE 200], S [RANGE 150], T [RANGE 200] WHERE R.a = S.a AND S.b = T.b"
            query = db.query(f"{output} ({text})" if output else text)
            rng = np.random.default_rng(5)
            seen: dict[tuple[int, int, tuple[Any, ...]], int] = {}
            for first in range(0, 20_000, 5_000):
                # Input T is fast at first, R later.
                shares = [0.1, 0.1, 0.8] if first < 10_000 else [0.8, 0.1, 0.1]
                who = rng.choice(3, 5_000, p=shares)
                ts = np.arange(first, first + 5_000)
                for j, name in enumerate("RST"):
                    rows = {c: rng.integers(0, 25, int((who == j).sum())) for c in "ab"}
                    db.push(name, rows, ts=ts[who == j])
                for change in query.fetch():
                    key = change.ts, change.sign, tuple(change.row)
                    seen[key] = seen.get(key, 0) + 1
            return seen

    expected = answer(adaptive="off")
    for plan in ("mjoin", "((R, S), T)", "(R, (S, T))", "xjoin", "auto"):
        assert answer(join_plan=plan, cost_model="fixed") == expected, plan
