"""Counts of access patterns: what they forget, and what they still tell."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from minidsms.settings import INDEX_ASSESSMENTS
from minidsms.streamon.join_index.assessment import Cdia, Counts, Csria, assessment

A1, A2, A3 = 1, 2, 4
TABLE_2 = {A1: 4, A2: 10, A3: 10, A1 | A2: 4, A1 | A3: 16, A2 | A3: 10, A1 | A2 | A3: 46}
"""Per cent, by pattern (the paper's table 2)."""


def requests(seed: int, columns: int, many: int) -> list[int]:
    """A few patterns often, the others seldom, and which they are changes half way."""
    rng = Random(seed)
    drawn = []
    for half in range(2):
        weights = [rng.random() ** 6 for _ in range(2**columns - 1)]
        drawn += rng.choices(range(1, 2**columns), weights, k=many // 2 + half)
    return drawn


@pytest.mark.parametrize("method", INDEX_ASSESSMENTS)
def test_requests_noted_together_count_as_one_after_the_other(method: str) -> None:
    one, many = (assessment(method, 0.03, 0.1, Random(5)) for _ in range(2))
    rng = Random(1)
    for pattern in requests(1, 4, 90):
        times = rng.randrange(60)
        many.note(pattern, times)
        for _ in range(times):
            one.note(pattern)
    assert one.seen == many.seen and one.frequencies() == many.frequencies() and len(one) == len(many)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("error", "threshold"), [(0.05, 0.1), (0.01, 0.05), (0.1, 0.15)])
def test_lossy_counting_errs_by_no_more_than_one_request_per_segment(seed: int, error: float, threshold: float) -> None:
    drawn = requests(seed, 5, 1_500)
    counted, exact = Csria(error, threshold), Counter[int]()
    for pattern in drawn:
        counted.note(pattern)
        exact[pattern] += 1
    for pattern, times in exact.items():
        kept, before = counted.table.get(pattern, (0, 0))
        assert kept <= times <= kept + error * counted.seen and before <= error * counted.seen
    told = counted.frequencies()
    assert told.keys() >= {p for p, times in exact.items() if times >= threshold * counted.seen}
    assert not told.keys() & {p for p, times in exact.items() if times < (threshold - 2 * error) * counted.seen}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_random", [False, True])
def test_the_lattice_loses_no_request_and_gives_it_to_what_serves_it(seed: int, is_random: bool) -> None:
    error, threshold = 0.04, 0.12
    counted, exact = Cdia(error, threshold, Random(seed) if is_random else None), Counter[int]()
    for pattern in requests(seed, 4, 1_200):
        counted.note(pattern)
        exact[pattern] += 1
    assert sum(count for count, _ in counted.table.values()) == counted.seen == exact.total()
    served = {p: sum(times for each, times in exact.items() if each & p == p) for p in range(16)}
    for pattern, (count, before) in counted.table.items():
        assert count <= served[pattern] and exact[pattern] <= count + before
    assert all(times <= error * counted.seen for p, times in exact.items() if p not in counted.table)
    told = counted.frequencies()
    assert told.keys() >= {p for p, times in exact.items() if times >= threshold * counted.seen}
    assert all(share * counted.seen <= served[pattern] for pattern, share in told.items())


def test_the_example_of_the_paper_is_told_as_it_says() -> None:
    drawn = [pattern for pattern, share in TABLE_2.items() for _ in range(100 * share)]
    Random(2).shuffle(drawn)
    draws = [Cdia(0.001, 0.05, Random(seed)) for seed in range(6)]
    counted = [Counts(), Csria(0.001, 0.05), Cdia(0.001, 0.05), *draws]
    for pattern in drawn:
        for each in counted:
            each.note(pattern)
    every, forgotten, highest, *drawn_parents = (
        {p: round(100 * share) for p, share in each.frequencies().items()} for each in counted
    )
    frequent = {p: share for p, share in TABLE_2.items() if share >= 5}
    assert every == TABLE_2 and forgotten == frequent
    # <A1, A2> goes to <A2>, counted most, and <A1> alone is below the threshold then: to no column.
    assert highest == frequent | {A2: 14}
    assert {tuple(sorted(each.items())) for each in drawn_parents} == {
        tuple(sorted((frequent | {A1: 8}).items())), tuple(sorted((frequent | {A2: 14}).items()))
    }  # fmt: skip
