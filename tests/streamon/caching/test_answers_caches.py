"""Generated n-way joins: whatever caches the pipelines have, the answer is the one by definition (semantics T5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.long.join_cases import random_join_case
from tests.seeds import seeds
from tests.streamon.join_answers import agree, agree_in_all_batches

EAGER: dict[str, Any] = {"cost_model": "fixed", "cache_interval": 100}
WAYS: tuple[dict[str, Any], ...] = (
    {"caching": "prefix", "forced_every": 1},
    {"caching": "global", "forced_every": 1, "cache_memory": 4096},
    {"caching": "global", "forced_every": 2, "cache_memory": "none"},
    {"caching": "global", "forced_every": 7, "adaptive": "off"},
    {"caching": "prefix", **EAGER},
    {"caching": "global", **EAGER, "profile_rate": 1.0, "profile_window": 5},
)


@pytest.mark.parametrize("start", seeds(0, 20, 10))
def test_caches_do_not_show_in_any_answer(start: int) -> None:
    agree(((seed, random_join_case(700_000 + seed)) for seed in range(start, start + 10)), WAYS)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_caches_do_not_show_in_a_thousand_answers(start: int) -> None:
    agree_in_all_batches(((seed, random_join_case(800_000 + seed)) for seed in range(start, start + 50)), WAYS)
