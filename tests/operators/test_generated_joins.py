"""Generated n-way joins give the answer that docs/semantics defines, under every setting."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("minidsms.connection")

import minidsms
from minidsms.testing.compare import check, run_definition
from tests.long.mixed_joins import random_join
from tests.long.soak import random_settings
from tests.seeds import seeds

BLOCK = 10


def compare(seed: int, most: int, rounds: int) -> bool:
    """Whether the answer, which is the defined one, has any rows."""
    case = random_join(seed, most)
    expected = run_definition(case)
    for n in range(rounds):
        settings = random_settings(seed * 10 + n)
        check(case, settings.pop("rows_per_push"), expected, **settings)
    return bool(expected.changes)


@pytest.mark.parametrize("start", seeds(0, 2 * BLOCK, BLOCK))
def test_an_n_way_join_is_the_defined_one_whatever_its_inputs_and_its_graph(start: int) -> None:
    assert sum(compare(seed, 5, 3) for seed in range(start, start + BLOCK)) > 1


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 1400, 100))
def test_many_n_way_joins_are_the_defined_ones(start: int) -> None:
    assert sum(compare(seed, 6, 5) for seed in range(start, start + 100)) > 20


def test_the_generator_makes_joins_of_every_width_and_kind() -> None:
    plans: Counter[str] = Counter()
    for seed in range(60):
        case = random_join(seed)
        with minidsms.connect() as db:
            for declaration in case.declarations:
                db.execute(declaration)
            plan = db.query(case.query).explain()
        found = ["2-way", "3-way", "4-way", "5-way", "Cartesian", "Relation", "Aggregate", "PARTITION", "t = t"]
        plans.update(word for word in found if word in plan)
    assert set(plans) == {
        "2-way",
        "3-way",
        "4-way",
        "5-way",
        "Cartesian",
        "Relation",
        "Aggregate",
        "PARTITION",
        "t = t",
    }
