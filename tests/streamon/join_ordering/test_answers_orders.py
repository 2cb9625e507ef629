"""Generated n-way joins: whatever orders the pipelines take, the answer is the one by definition (semantics T5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.long.join_cases import random_join_case
from tests.seeds import seeds
from tests.streamon.join_answers import agree, agree_in_all_batches

EAGER: dict[str, Any] = {"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 5}
"""Every element is profiled, and few of them decide."""
WAYS: tuple[dict[str, Any], ...] = (
    {"forced_every": 1},
    {"forced_every": 2},
    {"forced_every": 7, "adaptive": "off"},
    *({**EAGER, "filter_ordering": name} for name in ("a_greedy", "sweep", "independent", "local_swaps", "optimal")),
    {**EAGER, "plan_logging": "on"},
    {"adaptive": "off"},
)


@pytest.mark.parametrize("start", seeds(0, 16, 8))
def test_orders_do_not_show_in_any_answer(start: int) -> None:
    agree(((seed, random_join_case(500_000 + seed)) for seed in range(start, start + 8)), WAYS)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_orders_do_not_show_in_a_thousand_answers(start: int) -> None:
    agree_in_all_batches(((seed, random_join_case(600_000 + seed)) for seed in range(start, start + 50)), WAYS)
