"""Joins with relations, and with windows that slide or are partitioned, give the answer by definition, whatever they
keep. docs/semantics T5.
"""

from __future__ import annotations

from typing import Any

import pytest

from minidsms.testing.compare import check, run_definition
from tests.long.k_mon_cases import random_changing_case
from tests.seeds import seeds

WAYS: tuple[dict[str, Any], ...] = (
    {"state_reduction": "off"},
    {"state_reduction": "swj"},
    {"state_reduction": "k-mon"},
    {"state_reduction": "k-mon", "adaptive": "off"},
    {"state_reduction": "k-mon", "forced_every": 1},
    {"state_reduction": "k-mon", "k_mon": "trusting", "forced_every": 1},
)
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


def check_seed(seed: int, breaks: float = 0.0) -> None:
    case = random_changing_case(seed, breaks=breaks)
    expected = run_definition(case)
    for i, way in enumerate(WAYS):
        if (seed + i) % 2:
            continue  # the next seed has its turn
        batch_size = (1, 2, 7, 65_536)[(seed // 2 + i) % 4]
        options = {"batch_size": batch_size, "scheduler": SCHEDULERS[(seed + i) // 4 % 4], **way}
        assert check(case, None, expected, **options) == "agreed", (seed, options)


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
