"""What tests of adaptive joins share: generated cases under several settings, each against the definition (T5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from minidsms.cql.errors import CqlError
from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import Case

BATCHES = (1, 2, 7, 65_536)
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")

Way = dict[str, Any]
"""Settings under which the answer must be the same."""


def agree(cases: Iterable[tuple[int, Case]], ways: Sequence[Way]) -> None:
    """Each case, by its seed, in one of three ways, with batch sizes and schedulers by turns."""
    for seed, case in cases:
        expected = run_definition(case)
        for i, way in enumerate(ways):
            if (seed + i) % 3 == 0:
                options = {"batch_size": BATCHES[(seed + i) % 4], "scheduler": SCHEDULERS[(seed + i) % 4]}
                _agrees(case, expected, **options, **way)


def agree_in_all_batches(cases: Iterable[tuple[int, Case]], ways: Sequence[Way]) -> None:
    """Each case, by its seed, in every way and with every batch size."""
    for seed, case in cases:
        expected = run_definition(case)
        for batch_size, way in product(BATCHES, ways):
            _agrees(case, expected, batch_size=batch_size, scheduler=SCHEDULERS[seed % 4], **way)


def _agrees(case: Case, expected: Any, **options: Any) -> None:
    try:
        outcome = check(case, None, expected, **options)
    except CqlError as error:
        outcome = str(error)
    is_unlinked = options.get("join_plan") == "xjoin" and "equalities that link all inputs" in outcome
    assert outcome == "agreed" or is_unlinked, outcome
