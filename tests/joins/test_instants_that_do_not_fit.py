"""Joins of whole instants whose tuples do not fit the room for them: the answer and the work are as with more room."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import minidsms
from minidsms.joins import answer
from minidsms.query import Change

QUERIES = (
    "SELECT ISTREAM(R.v, S.v) FROM R [RANGE 3], S [RANGE 2] WHERE R.k = S.k",
    "SELECT ISTREAM(R.k, S.k) FROM R [RANGE 2], S [RANGE 2] WHERE R.k = S.k",
    "SELECT ISTREAM(R.k, S.v, T.k) FROM R [RANGE 2], S [RANGE 3], T [RANGE 1] WHERE R.k = S.k AND S.k = T.k",
    "SELECT ISTREAM(R.v, T.v) FROM R [NOW], S [RANGE 3], T [RANGE 2] WHERE R.k = S.k AND S.v = T.v",
    "SELECT ISTREAM(R.v, S.v) FROM R, S WHERE R.k = S.k AND R.v = S.v",
)


def answers(query: str, seed: int) -> list[Change]:
    """To streams with many elements at an instant, equal rows, and rows that leave as others come."""
    rng = Random(seed)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER, v INTEGER); CREATE STREAM S (k INTEGER, v INTEGER)")
        db.execute("CREATE STREAM T (k INTEGER, v INTEGER)")
        asked = db.query(query)
        ts = 0
        for _ in range(8):
            for name in "RST":
                instants = sorted(ts + rng.randrange(5) for _ in range(rng.randrange(12)))
                db.push(name, [(rng.randrange(2), rng.randrange(2)) for _ in instants], ts=instants)
            ts += 5
            db.advance(ts - 1)
        assert asked.state == "running"
        return sorted(asked.fetch())


@pytest.mark.parametrize("query", QUERIES)
def test_tuples_are_found_once_however_little_room_there_is(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [answers(query, seed) for seed in range(6)]
    assert sum(map(len, expected)) > 100
    for least, first in ((2, 1), (7, 3), (40, 33)):
        monkeypatch.setattr(answer, "_TUPLES", least)
        monkeypatch.setattr(answer, "_FIRST_TUPLES", first)
        assert [answers(query, seed) for seed in range(6)] == expected


def inspected(rows: int, monkeypatch: pytest.MonkeyPatch, room: int) -> int:
    """Rows that a join of equal rows at one instant looks at."""
    monkeypatch.setattr(answer, "_TUPLES", room)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER, v INTEGER); CREATE STREAM S (k INTEGER, v INTEGER)")
        asked = db.query("SELECT ISTREAM(R.v, S.v) FROM R, S WHERE R.k = S.k")
        for name in "RS":
            db.push(name, {"k": np.zeros(rows, np.int64), "v": np.arange(rows)}, ts=1)
        db.advance(2)
        assert asked.results == rows * rows
        (join,) = [op for op in asked.network.operators if hasattr(op, "answer")]
        return int(join.answer.state.inspected)


def test_an_instant_that_does_not_fit_is_not_probed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    plenty = inspected(300, monkeypatch, 1 << 17)
    assert inspected(300, monkeypatch, 64) <= 3 * plenty
