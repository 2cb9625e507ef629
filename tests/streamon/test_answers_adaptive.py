"""Generated queries with several filters: adapting off, on and forced give the answer by definition.

docs/semantics T5 and R4; docs/design, decision 7.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from minidsms.cql.errors import CqlError
from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import random_case
from minidsms.testing.grammar import Options
from tests.seeds import seeds

FILTERED = Options(filters=3, relations=False)
ALGORITHMS = ("a_greedy", "sweep", "independent", "local_swaps", "optimal", "static", "sbr", "ticket")
EAGER: dict[str, Any] = {"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 5}
"""Every tuple is profiled, and few of them decide."""
WAYS: tuple[dict[str, Any], ...] = (
    {"adaptive": "off"},
    {"forced_every": 1},
    {"forced_every": 3, "adaptive": "off"},
    *({**EAGER, "filter_ordering": name} for name in ALGORITHMS),
    {**EAGER, "plan_logging": "on"},
    # A detector that tells changes all the time, and one of blocks of a single tuple.
    *(
        {**EAGER, "change_detection": name, "detector_block": 1, "detector_training": 2, "detector_threshold": 0.9}
        for name in ("cusum", "adwin")
    ),
    {**EAGER, "routing": "content", "routing_rate": 1.0, "routing_sample": 10},
)


@pytest.mark.parametrize("start", seeds(0, 20, 10))
def test_adapting_does_not_show_in_any_answer(start: int) -> None:
    for seed in range(start, start + 10):
        case = random_case(300_000 + seed, FILTERED)
        try:
            expected = run_definition(case)
        except CqlError:
            continue
        for i, way in enumerate(WAYS):
            if (seed + i) % 3 == 1:  # each case in one of three ways
                batch_size = (1, 2, 7, 65_536)[(seed + i) % 4]
                assert check(case, None, expected, batch_size=batch_size, **way) == "agreed"


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 3000, 100))
def test_adapting_does_not_show_in_three_thousand_answers(start: int) -> None:
    for seed in range(start, start + 100):
        case = random_case(400_000 + seed, FILTERED)
        try:
            expected = run_definition(case)
        except CqlError:
            continue
        for batch_size, way in product((1, 2, 7, 65_536), WAYS):
            assert check(case, None, expected, batch_size=batch_size, **way) == "agreed"
