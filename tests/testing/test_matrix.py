"""Several queries at once, many of them alike, in cells of the equivalence matrix."""

from __future__ import annotations

from random import Random

import pytest

from minidsms.testing.generators import random_company
from tests.long.matrix import check_company, main, settings


@pytest.mark.parametrize("first", range(0, 10, 5))
def test_companies_answer_as_defined_whatever_is_shared(first: int) -> None:
    compared = 0
    for seed in range(first, first + 5):
        switched = [cell for cell in settings(seed) if "switch_seed" in cell]
        compared += check_company(seed, 8, Random(seed).sample(switched, 1))
        compared += check_company(seed, 8, Random(seed).sample([c for c in settings(seed) if c["sharing"] == "on"], 1))
    assert compared > 8


@pytest.mark.long
def test_the_whole_matrix_agrees() -> None:
    assert main(["--companies", "60"]) == 0


def test_every_cell_of_the_matrix_is_another() -> None:
    cells = [tuple(sorted(cell.items())) for cell in settings(3)]
    assert len(cells) == len(set(cells)) == 4 * 4 * 3 * 3


def test_many_queries_of_companies_are_alike() -> None:
    companies = [[case.query for case in random_company(seed)] for seed in range(40)]
    assert sum(len(set(texts)) < len(texts) for texts in companies) > 10
