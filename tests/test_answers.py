"""The engine gives the answer that docs/semantics defines, at every closed instant, whatever its settings."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("minidsms.connection")

from minidsms.cql.errors import CqlError
from minidsms.testing.compare import check, check_together, run_definition
from minidsms.testing.generators import random_case, random_company
from minidsms.testing.grammar import Options
from tests.long.failing_cases import random_failing
from tests.long.soak import CHOICES, FIRST_NUMBERS, numbered_from, random_drops, random_settings

CASES = 24
BLOCK = 12
MOST_REFUSED = 0.02

SHAPES = [
    pytest.param(Options(views=False, derived=False, subqueries=False), id="plain blocks"),
    pytest.param(Options(relations=False, outputs=False), id="relations as answers"),
    pytest.param(Options(now=False, times=False, functions=False), id="without times and functions"),
    pytest.param(Options(constants=0.3), id="rows written out"),
]


@pytest.mark.parametrize("rows_per_push", [None, 1])
@pytest.mark.parametrize("start", range(0, CASES, BLOCK))
def test_the_answer_is_the_defined_one(start: int, rows_per_push: int | None) -> None:
    for seed in range(start + (1000 if rows_per_push else 0), start + BLOCK + (1000 if rows_per_push else 0)):
        case = random_case(seed)
        expected = run_definition(case)
        for batch_size in CHOICES["batch_size"][seed % 2 :: 2]:
            check(case, rows_per_push, expected, batch_size=batch_size)


@pytest.mark.parametrize("options", SHAPES)
@pytest.mark.parametrize("seed", range(5000, 5004))
def test_the_answer_does_not_depend_on_the_scheduler_or_the_queues(options: Options, seed: int) -> None:
    case = random_case(seed, options)
    expected = run_definition(case)
    ways = [*product(CHOICES["scheduler"], CHOICES["queue_size"])]
    for scheduler, queue_size in ways[seed % 2 :: 2]:
        check(case, None, expected, batch_size=3, queue_size=queue_size, scheduler=scheduler)


@pytest.mark.parametrize("seed", [288, 1345, *range(8)])
def test_a_query_fails_where_and_only_where_its_definition_does(seed: int) -> None:
    case = random_failing(seed)
    expected = run_definition(case)
    for batch_size, rows_per_push in ((1, None), (7, 1), (1024, None)):
        check(case, rows_per_push, expected, batch_size=batch_size)


@pytest.mark.parametrize("first", FIRST_NUMBERS[-2:])
def test_the_answer_is_the_defined_one_where_32_bits_number_no_more_elements(first: int) -> None:
    with numbered_from(first):
        for seed in range(30_000, 30_008):
            check(random_case(seed), **{**random_settings(seed), "compilation": "off"})


def test_queries_side_by_side_do_not_disturb_each_other_even_where_some_are_dropped() -> None:
    for seed in range(20_000, 20_008):
        cases = random_company(seed)
        check_together(cases, random_drops(cases, seed), **random_settings(seed))


def test_hardly_any_generated_query_is_refused() -> None:
    refused = []
    for seed in range(CASES):
        case = random_case(seed)
        try:
            run_definition(case)
        except CqlError as error:
            refused.append(f"{seed}: {error}\n{case.query}")
    assert len(refused) <= MOST_REFUSED * CASES, "\n\n".join(refused)


@pytest.mark.long
@pytest.mark.parametrize("start", range(100_000, 120_000, 1000))
def test_the_answer_is_the_defined_one_in_twenty_thousand_cases(start: int) -> None:
    for seed in range(start, start + 1000):
        check(random_case(seed), **random_settings(seed))
