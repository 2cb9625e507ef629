"""Slices of few elements pass through the plan in one turn, and all along a path; larger ones are scheduled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from minidsms import connect
from minidsms.engine.group import Group
from minidsms.scheduler import Chain
from minidsms.scheduler.by_priority import LITTLE
from minidsms.scheduler.scheduler import Schedulable


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many operators Chain was given, each time."""
    given: list[int] = []
    run = Chain.run

    def noting(self: Chain, operators: Sequence[Schedulable]) -> None:
        given.append(len(operators))
        run(self, operators)

    monkeypatch.setattr(Chain, "run", noting)
    return given


PATH = "SELECT a, COUNT(*) FROM S [RANGE 5] WHERE a > 1 GROUP BY a"
PARTED = f"{PATH} UNION ALL SELECT a, 0 FROM S [RANGE 5]"


def answers(elements: int, query: str = PARTED, **options: Any) -> list[tuple[Any, ...]]:
    """To one push of so many elements."""
    with connect(**options) as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        q = db.query(query)
        db.push("S", {"a": [i % 7 for i in range(elements)]}, ts=list(range(elements)))
        db.advance(elements + 10)
        return sorted((c.ts, c.sign, *c.row) for c in q.fetch())


def test_few_elements_are_not_scheduled_and_many_are(scheduled: list[int]) -> None:
    few = answers(100)
    assert not scheduled
    assert few == answers(100, scheduler="round_robin")
    answers(LITTLE + 10)
    assert scheduled


def test_a_small_quantum_or_a_bound_on_the_wait_has_few_elements_scheduled(scheduled: list[int]) -> None:
    expected = answers(100)
    assert answers(100, quantum=10) == expected and scheduled
    scheduled.clear()
    assert answers(100, chain_latency_bound=3) == expected and scheduled


def test_along_a_path_there_is_nothing_to_schedule(scheduled: list[int]) -> None:
    expected = answers(LITTLE + 10, PATH, queue_size=100)
    assert scheduled
    scheduled.clear()
    assert answers(LITTLE + 10, PATH) == answers(LITTLE + 10, PATH, chain_latency_bound=3) == expected
    assert not scheduled


def test_what_waited_at_an_open_instant_needs_no_slice_beside_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, release = [], Group.release

    def noted(group: Group, heartbeat: int, batch_size: int) -> bool:
        is_due = release(group, heartbeat, batch_size)
        if is_due:
            ends.append(group._until)
        return is_due

    with connect(batch_size=160) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        query = db.query("SELECT ISTREAM(v) FROM S [RANGE 5]")
        monkeypatch.setattr(Group, "release", noted)
        for first in (0, 160):
            db.push("S", {"v": np.arange(first, first + 160)}, ts=np.arange(first, first + 160))
        assert ends == [158, 318], "the element at 159 comes with the 160 behind it"
        db.push("S", {"v": np.arange(180)}, ts=np.arange(320, 500))
        db.advance(500)
        assert len(query.fetch()) == 500
