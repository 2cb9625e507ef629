"""Generated n-way joins under `join_plan = auto`: trees, caches and orders change, the answer does not (T5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, product
from typing import Any

import pytest

import minidsms
from minidsms.streamon.loop import adaptations_of
from minidsms.testing.compare import Answer, check, netted, run_definition
from minidsms.testing.feeds import Advance
from minidsms.testing.generators import Case
from minidsms.testing.switching import forced_switching
from tests.long.join_cases import random_join_case
from tests.seeds import seeds

EAGER: dict[str, Any] = {"cost_model": "fixed", "cache_interval": 100}
WAYS: tuple[dict[str, Any], ...] = (
    {"forced_every": 1},
    {"forced_every": 2, "cache_memory": 4096},
    {"forced_every": 7, "cache_memory": "none", "adaptive": "off"},
    EAGER,
)
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


pytestmark = pytest.mark.usefixtures("eager")


@pytest.mark.parametrize("start", seeds(0, 24, 12))
def test_the_choice_of_a_join_s_plan_does_not_show_in_any_answer(start: int) -> None:
    """Of cases whose answers are not empty, each by one way in which plans are forced, and as costs would have it."""
    for number, (case, expected) in enumerate(islice(answered(600_000), start, start + 12)):
        for way in (WAYS[number % (len(WAYS) - 1)], EAGER):
            turn = number // 3 + (way is EAGER)
            options = {"batch_size": (1, 2, 7, 65_536)[turn % 4], "scheduler": SCHEDULERS[(turn + number) % 4]}
            assert check(case, None, expected, join_plan="auto", **options, **way) == "agreed"


def answered(seed: int) -> Iterator[tuple[Case, Answer]]:
    """The cases from a seed on that have an answer, and that."""
    for each in count(seed):
        case = random_join_case(each)
        expected = run_definition(case)
        if expected.changes:
            yield case, expected


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_the_choice_of_a_join_s_plan_does_not_show_in_a_thousand_answers(start: int) -> None:
    for seed in range(start, start + 50):
        case = random_join_case(610_000 + seed)
        expected = run_definition(case)
        for batch_size, way in product((1, 2, 7, 65_536), WAYS):
            options = {"batch_size": batch_size, "scheduler": SCHEDULERS[seed % 4]}
            assert check(case, None, expected, join_plan="auto", **options, **way) == "agreed"


def switches_of(seed: int, every: int) -> dict[str, int]:
    """Run a case under forced switches, compare its answer, and count the switches of each technique."""
    case = random_join_case(seed, size=14)
    expected = run_definition(case)
    with minidsms.connect(join_plan="auto", batch_size=(1, 2, 7, 65_536)[seed % 4]) as db, forced_switching(db, every):
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
        counts = {a.technique: len(a.decisions) for a in adaptations_of(query.network.operators)}
    return counts


def test_trees_caches_and_orders_of_one_join_are_switched_at_every_element_and_do_not_show() -> None:
    total: dict[str, int] = {}
    for seed in (*range(620_000, 620_004), 620_006):
        for technique, switches in switches_of(seed, 1).items():
            total[technique] = total.get(technique, 0) + switches
    assert min(total[t] for t in ("join plan", "caching", "join ordering")) > 50
    assert total["join index"] > 10


@pytest.mark.long
def test_fifty_thousand_switches_of_trees_caches_and_orders_do_not_show() -> None:
    switches, seed = 0, 630_000
    while switches < 50_000:
        for every in (1, 2, 7):
            switches += sum(switches_of(seed, every).values())
        seed += 1
