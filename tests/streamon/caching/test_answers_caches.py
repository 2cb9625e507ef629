"""Generated n-way joins: whatever caches the pipelines have, the answer is the one by definition (semantics T5)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from minidsms.testing.compare import check, run_definition
from minidsms.testing.join_cases import random_join_case

EAGER: dict[str, Any] = {"cost_model": "fixed", "cache_interval": 100}
WAYS: tuple[dict[str, Any], ...] = (
    {"caching": "prefix", "forced_every": 1},
    {"caching": "global", "forced_every": 1, "cache_memory": 4096},
    {"caching": "global", "forced_every": 2, "cache_memory": "none"},
    {"caching": "global", "forced_every": 7, "adaptive": "off"},
    {"caching": "prefix", **EAGER},
    {"caching": "global", **EAGER, "profile_rate": 1.0, "profile_window": 5},
)
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


@pytest.mark.parametrize("start", range(0, 45, 15))
def test_caches_do_not_show_in_any_answer(start: int) -> None:
    for seed in range(start, start + 15):
        case = random_join_case(700_000 + seed)
        expected = run_definition(case)
        for i, way in enumerate(WAYS):
            if (seed + i) % 3 == 0:
                continue
            options = {"batch_size": (1, 2, 7, 65_536)[(seed + i) % 4], "scheduler": SCHEDULERS[(seed + i) % 4]}
            assert check(case, None, expected, **options, **way) == "agreed"


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_caches_do_not_show_in_a_thousand_answers(start: int) -> None:
    for seed in range(start, start + 50):
        case = random_join_case(800_000 + seed)
        expected = run_definition(case)
        for batch_size, way in product((1, 2, 7, 65_536), WAYS):
            scheduler = SCHEDULERS[seed % 4]
            assert check(case, None, expected, batch_size=batch_size, scheduler=scheduler, **way) == "agreed"
