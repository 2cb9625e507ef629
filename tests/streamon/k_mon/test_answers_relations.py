"""Joins with relations, and with windows that slide or are partitioned, give the answer by definition, whatever they
keep. docs/semantics T5.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.long.k_mon_cases import random_changing_case
from tests.seeds import seeds
from tests.streamon.k_mon.test_answers_k_mon import TRUSTING, check_in_turn

WAYS: tuple[dict[str, Any], ...] = (
    {"state_reduction": "off"},
    {"state_reduction": "swj"},
    {"state_reduction": "k-mon"},
    {"state_reduction": "k-mon", "adaptive": "off"},
    {"state_reduction": "k-mon", "forced_every": 1},
    TRUSTING,
)


def check_seed(seed: int, breaks: float = 0.0) -> None:
    check_in_turn(random_changing_case(seed, breaks=breaks), seed, WAYS)


@pytest.mark.parametrize("start", seeds(0, 40, 10))
def test_what_a_join_keeps_does_not_show_where_rows_are_deleted(start: int) -> None:
    for seed in range(start, start + 10):
        check_seed(seed)


def test_answers_do_not_depend_on_keys_of_relations_that_are_none() -> None:
    for seed in range(100, 115):
        check_seed(seed, breaks=0.3)


@pytest.mark.long
@pytest.mark.parametrize("breaks", [0.0, 0.3], ids=["keys", "broken keys"])
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_thousands_of_answers_where_rows_are_deleted(start: int, breaks: float) -> None:
    for seed in range(start, start + 100):
        check_seed(seed, breaks)
