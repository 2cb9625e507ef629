"""The benchmarks compare like with like: contestants give equal answers, and a wrong answer is seen."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("duckdb")

from benchmarks import contestants, nexmark, observing
from benchmarks.answers import as_answer, fingerprint
from benchmarks.cases import CASES, Case
from benchmarks.counting import COUNTED
from benchmarks.feeds import last_instant, parts

_CASES = {case.name: case for case in CASES}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_engine_kernel_and_duckdb_give_equal_answers(case: Case) -> None:
    feeds = case.feeds(120_000)  # 13 seconds of bids: what enters the windows of 10 seconds leaves them again
    expected = fingerprint(contestants.duckdb_batch(case, feeds).answer)
    assert expected.changes
    assert fingerprint(contestants.engine(case, feeds).answer) == expected
    if case.kernel is not None:
        assert fingerprint(contestants.kernel(case, feeds).answer) == expected
    if case.hashing is not None:
        assert fingerprint(contestants.hashing_kernel(case, feeds).answer) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTED)
def test_those_who_count_find_the_same_sums(name: str) -> None:
    feeds = _CASES[name].feeds(120_000)
    kernel = contestants.sums(contestants.counting_kernel(COUNTED[name], feeds))
    assert kernel[0]
    assert contestants.sums(contestants.counting_duckdb(COUNTED[name], feeds)) == kernel


@pytest.mark.parametrize("name", [name for name, counting in COUNTED.items() if counting.of_answer is not None])
def test_what_is_counted_follows_from_the_answer(name: str) -> None:
    feeds, counting = _CASES[name].feeds(110_000), COUNTED[name]
    answer = contestants.engine(_CASES[name], feeds).answer
    assert counting.of_answer is not None
    implied = counting.of_answer(answer, feeds, last_instant(feeds))
    assert implied == contestants.sums(contestants.counting_duckdb(counting, feeds))


def test_a_fingerprint_does_not_depend_on_order_but_sees_a_pair_that_should_have_been_netted() -> None:
    ts, key = np.array([1, 1, 2]), np.array([5, 6, 5])
    answer = fingerprint(as_answer(ts, None, key))
    assert fingerprint(as_answer(ts[::-1].copy(), None, key[::-1].copy())) == answer
    padded = as_answer(np.array([1, 1, 2, 3, 3]), np.array([1, 1, 1, -1, 1], np.int8), np.array([5, 6, 5, 9, 9]))
    assert fingerprint(padded) != answer
    assert fingerprint(as_answer(ts, None, np.array([5, 6, 6]))) != answer


def test_a_row_said_twice_weighs_as_one_said_to_be_two() -> None:
    twice = as_answer(np.array([1, 1]), None, np.array([5, 5]))
    once = as_answer(np.array([1]), np.array([2], np.int8), np.array([5]))
    assert fingerprint(twice) == fingerprint(once)


def test_texts_and_nulls_are_told_apart() -> None:
    tables = [
        pa.table({"_ts": [1], "_sign": [1], "c": pa.array([value], type_)})
        for value, type_ in (("channel-1234", pa.string()), ("channel-1235", pa.string()), (0, pa.int64()))
    ]
    tables.append(pa.table({"_ts": [1], "_sign": [1], "c": pa.array([None], pa.int64())}))
    assert len({fingerprint(table).checksum for table in tables}) == 4


def test_parts_of_feeds_lose_nothing_and_split_no_instant() -> None:
    feeds = nexmark.nexmark(2_000)
    pieces = list(parts(feeds, 100))
    for name, feed in feeds.items():
        mine = [part for stream, part in pieces if stream == name]
        assert np.concatenate([part.ts for part in mine]).tolist() == feed.ts.tolist()
        assert all(a.ts[-1] < b.ts[0] for a, b in itertools.pairwise(mine))


def test_the_same_seed_gives_the_same_market() -> None:
    one, two, other = nexmark.nexmark(500), nexmark.nexmark(500), nexmark.nexmark(500, seed=2)
    assert one["bid"].table().equals(two["bid"].table())
    assert not one["bid"].table().equals(other["bid"].table())


@pytest.mark.parametrize(("size", "pushes"), [(50, 20), (65_536, 3)])
def test_the_engine_that_counts_nothing_answers_as_the_one_that_counts(size: int, pushes: int) -> None:
    parts = observing.turn(0, size, pushes)
    answers, counted = [], []
    for name in ("plain", "uncounted"):
        contestant = observing.Contestant(name)
        contestant.push(parts, fetches=False)
        answers.append([query.fetch() for query in contestant._queries])
        operators = [operator for query in contestant._queries for operator in query.network.operators]
        counted.append(sum(operator.counters.elements_in for operator in operators))
    assert counted[0] > counted[1] or size < 65_536  # few elements pass by hand, and are counted
    assert answers[0] == answers[1]
    assert all(answers[0])
