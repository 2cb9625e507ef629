"""The engine gives the answer that docs/semantics defines, at every closed instant, whatever its batch size."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("minidsms.connection")

from minidsms.cql.errors import CqlError
from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import random_case
from minidsms.testing.grammar import Options

CASES = 240
BLOCK = 20
MOST_REFUSED = 0.02


@pytest.mark.parametrize("rows_per_push", [None, 1])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("start", range(0, CASES, BLOCK))
def test_the_answer_is_the_defined_one(start: int, batch_size: int, rows_per_push: int | None) -> None:
    for seed in range(start + (1000 if rows_per_push else 0), start + BLOCK + (1000 if rows_per_push else 0)):
        check(random_case(seed), rows_per_push, batch_size=batch_size)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(views=False, derived=False, subqueries=False), id="plain blocks"),
        pytest.param(Options(relations=False, outputs=False), id="relations as answers"),
    ],
)
@pytest.mark.parametrize("settings", [{"scheduler": "fifo"}, {"batch_size": 3, "queue_size": 4}], ids=str)
def test_the_answer_does_not_depend_on_the_scheduler_or_the_queues(options: Options, settings: dict[str, Any]) -> None:
    for seed in range(5000, 5020):
        check(random_case(seed, options), **settings)


def test_hardly_any_generated_query_is_refused() -> None:
    refused = []
    for seed in range(CASES):
        case = random_case(seed)
        try:
            run_definition(case)
        except CqlError as error:
            refused.append(f"{seed}: {error}\n{case.query}")
    assert len(refused) <= MOST_REFUSED * CASES, "\n\n".join(refused)
