"""Answers that wait to be fetched: small batches become one, and nobody can tell."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import minidsms
from minidsms.answers import runs
from minidsms.elements import Batch
from minidsms.query import Query

DECLARED = "CREATE STREAM S (k INTEGER, t TEXT)"
COUNTS = "SELECT k, COUNT(*), MAX(t) FROM S [RANGE 20] GROUP BY k"
PAIRS = "SELECT A.k, B.t FROM S [RANGE 5] AS A, S [RANGE 3] AS B WHERE A.k = B.k"


@pytest.fixture
def db() -> Iterator[minidsms.Connection]:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        yield db


def pushed(db: minidsms.Connection, first: int, n: int) -> None:
    for ts in range(first, first + n):
        db.push("S", (None if ts % 5 == 0 else ts % 3, None if ts % 7 == 0 else f"t{ts % 11}"), ts=ts)
    db.advance(first + n - 1)


def batches_held() -> int:
    gc.collect()
    return sum(isinstance(each, Batch) for each in gc.get_objects())


def test_who_pushes_row_by_row_and_never_fetches_does_not_gather_objects(db: minidsms.Connection) -> None:
    queries = [db.query(COUNTS), db.query(PAIRS)]
    pushed(db, 0, 200)
    before = batches_held()
    pushed(db, 200, 1000)
    assert batches_held() < before + 300
    assert [len(q.fetch()) > 1000 for q in queries] == [True, True]


@pytest.mark.parametrize(("run", "large"), [(2, 4096), (3, 8), (64, 4096)])
def test_changes_positions_and_rows_are_those_of_batches_that_stay_apart(
    monkeypatch: pytest.MonkeyPatch, run: int, large: int
) -> None:
    monkeypatch.setattr(runs, "_LARGE", large)

    def answer(of: int) -> list[object]:
        monkeypatch.setattr(runs, "_RUN", of)
        found: list[object] = []
        first = 0
        with minidsms.connect() as db:
            db.execute(DECLARED)
            queries: list[Query] = [db.query(COUNTS), db.query(PAIRS)]
            for n in (1, 30, 5, 100, 64):
                pushed(db, first, n)
                first += n
                for q in queries:
                    changes = q.fetch(ack=q.position)
                    found += [q.position, changes]
                    kept = [c.ts for c in changes].index(changes[-1].ts) if changes else 0
                    q.fetch(ack=q.position + kept)
            for q in queries:
                found += [q.fetch(), sorted(map(repr, q.snapshot()))]
        return found

    assert answer(run) == answer(1 << 20)


def test_the_collector_is_on_again_after_a_fetch(db: minidsms.Connection) -> None:
    q = db.query(COUNTS)
    pushed(db, 0, 100)
    assert len(q.fetch()) > 100 and gc.isenabled()
    assert q.snapshot() and gc.isenabled()
    with pytest.raises(minidsms.Error, match="ack is a position"):
        q.fetch(ack=-1)
    assert gc.isenabled()
    gc.disable()
    try:
        pushed(db, 100, 10)
        assert q.fetch() and not gc.isenabled()
    finally:
        gc.enable()
