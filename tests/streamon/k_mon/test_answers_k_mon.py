"""Joins along trees of keys give the answer by definition, whatever they keep and whatever constraints say.

docs/semantics T5; docs/design, decision 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import Case
from tests.long.k_mon_cases import random_tree_case
from tests.seeds import seeds

WAYS: tuple[dict[str, Any], ...] = (
    {"state_reduction": "off"},
    {"state_reduction": "swj"},
    {"state_reduction": "k-mon"},
    {"state_reduction": "k-mon", "adaptive": "off"},
    {"state_reduction": "k-mon", "forced_every": 1},
    {"state_reduction": "swj", "forced_every": 1},
    {"state_reduction": "k-mon", "forced_every": 1, "switch_seed": 1},
)
TRUSTING = {"state_reduction": "k-mon", "k_mon": "trusting", "forced_every": 1}
"""Where declared keys hold."""
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


def check_in_turn(case: Case, seed: int, ways: Sequence[dict[str, Any]]) -> None:
    """Half of the ways, each with a size of batches and a scheduler."""
    expected = run_definition(case)
    for i, way in enumerate(ways):
        if (seed + i) % 2:
            continue  # the next seed has its turn
        batch_size = (1, 2, 7, 65_536)[(seed // 2 + i) % 4]
        options = {"batch_size": batch_size, "scheduler": SCHEDULERS[(seed + i) // 4 % 4], **way}
        assert check(case, None, expected, **options) == "agreed", (seed, options)


def check_seed(seed: int, repeats: float = 0.0) -> None:
    check_in_turn(random_tree_case(seed, repeats=repeats), seed, WAYS if repeats else (*WAYS, TRUSTING))


@pytest.mark.parametrize("start", seeds(0, 20, 10))
def test_what_a_join_keeps_does_not_show_in_any_answer(start: int) -> None:
    for seed in range(start, start + 10):
        check_seed(seed)


@pytest.mark.parametrize("repeats", [0.1, 1.0], ids=["violated", "undeclared"])
def test_answers_do_not_depend_on_what_is_said_of_keys(repeats: float) -> None:
    for seed in seeds(50, 62):
        check_seed(seed, repeats)


@pytest.mark.long
@pytest.mark.parametrize("repeats", [0.1, 1.0], ids=["violated", "undeclared"])
@pytest.mark.parametrize("start", range(4000, 5000, 100))
def test_thousands_of_answers_do_not_depend_on_what_is_said_of_keys(start: int, repeats: float) -> None:
    for seed in range(start, start + 100):
        check_seed(seed, repeats)


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_what_a_join_keeps_does_not_show_in_three_thousand_answers(start: int) -> None:
    for seed in range(start, start + 100):
        check_seed(seed)
