"""Links between slots take 32 bits: answers depend neither on the numbers of slots nor on when buckets are emptied."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from minidsms.joins.spec import JoinSpec
from minidsms.kernels import links
from minidsms.synopses import window_index
from minidsms.synopses.window_index import WindowIndex
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case

STREAMS = tuple(f"CREATE STREAM {name} (a INTEGER, b INTEGER)" for name in "RST")
QUERIES = (
    "SELECT ISTREAM(R.b, S.b, S.a) FROM R [RANGE 6], S [RANGE 4] WHERE R.a = S.a",
    "SELECT R.b, S.b AS c FROM R [RANGE 6], S [RANGE 4] WHERE R.a = S.a",
    "SELECT ISTREAM(R.a, T.b) FROM R [RANGE 6], S [RANGE 4], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b",
    "SELECT R.b, T.a FROM R [RANGE 6], S [PARTITION BY a ROWS 2], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b",
    "SELECT R.b, T.a FROM R [ROWS 5], S [RANGE 4], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b AND R.a = T.a",
)


def case_of(query: str, seed: int) -> Case:
    """Streams that have NULLs from the first row on: of all that may be NULL there is but one form."""
    rng = Random(seed)
    feed: list[Step] = []
    for ts in range(0, 40, 4):
        for name in "RST":
            instants = sorted(ts + rng.randrange(4) for _ in range(rng.randrange(8)))
            rows = [tuple(None if rng.random() < 0.1 else rng.randrange(4) for _ in "ab") for _ in instants]
            first = ((ts, 1, (None, None)),) if ts == 0 else ()
            feed.append(Push(name, (*first, *((at, 1, row) for at, row in zip(instants, rows)))))
        feed.append(Advance(ts + 3))
    feed.append(Advance(60))
    return Case(STREAMS, query, tuple(feed))


def agree(seed: int) -> None:
    for query in QUERIES:
        case = case_of(query, seed)
        expected = run_definition(case)
        assert check(case, None, expected) == "agreed"
        (forced,) = run_together([case], {}, forced_every=3)
        assert not difference_of(expected, forced), case
    case = case_of(QUERIES[0], seed)
    assert check(case, None, run_definition(case), compilation="at once") == "agreed"


@pytest.mark.parametrize("first", [2**31 - 20, 2**32 - 20, 2**40 + 3])
def test_slots_may_have_any_numbers(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, moved = JoinSpec.windows, []

    def windows(self: JoinSpec, *arguments: Any) -> WindowIndex:
        index = made(self, *arguments)
        of_streams = index.inputs["is_bag"] == 0
        for figure in ("lo", "hi", "stop", "linked"):
            index.inputs[figure][of_streams] = first
        for i in np.flatnonzero(of_streams).tolist():
            index._empty_buckets(i)
        moved.append(index.inputs)
        return index

    monkeypatch.setattr(JoinSpec, "windows", windows)
    agree(first % 7)
    assert any((inputs["hi"] > first + 20).all() for inputs in moved)


def test_buckets_are_emptied_before_their_heads_are_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_index, "_MOST_ARRIVALS", 6)
    agree(3)


def test_a_link_leaves_what_else_its_word_says() -> None:
    nodes = np.zeros(4, np.int64)
    links.set_upper_half(nodes, 2, -7)
    links.set_link(nodes, 2, -5)
    assert links.upper_half(nodes, 2) == -7 and links.older_slot(nodes, 2, 100) == 105 and links.has_link(nodes, 2)
    links.set_link(nodes, 2, links.UNLINKED)
    assert links.upper_half(nodes, 2) == -7 and not links.has_link(nodes, 2)
    links.set_upper_half(nodes, 2, 2**31 - 1)
    assert links.upper_half(nodes, 2) == 2**31 - 1 and not links.has_link(nodes, 2)
    assert nodes[:3].tolist() == [0, 0, 0]
