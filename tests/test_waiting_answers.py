"""Answers that wait to be fetched: the rows of small batches share rooms, and nobody can tell."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

import numpy as np
import pytest

import minidsms
from minidsms.answers import waiting
from minidsms.elements import Batch, Column
from minidsms.query import Query
from tests.long.allocations import Allocations, failing

DECLARED = "CREATE STREAM S (k INTEGER, t TEXT)"
COUNTS = "SELECT k, COUNT(*), MAX(t) FROM S [RANGE 20] GROUP BY k"
CHOSEN = "SELECT k, t FROM S WHERE k >= 0"
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
    queries = [db.query(COUNTS), db.query(PAIRS), db.query(CHOSEN)]
    pushed(db, 0, 200)
    before = batches_held()
    pushed(db, 200, 1000)
    assert batches_held() < before + 300
    assert [len(q.fetch()) > 900 for q in queries] == [True, True, True]


@pytest.mark.parametrize(("small", "least", "most"), [(2, 1, 1), (3, 2, 8), (8, 3, 3), (512, 32, 4096)])
def test_changes_positions_and_rows_are_those_of_batches_that_stay_apart(
    monkeypatch: pytest.MonkeyPatch, small: int, least: int, most: int
) -> None:
    monkeypatch.setattr(waiting, "_LEAST_ROOM", least)
    monkeypatch.setattr(waiting, "_MOST_ROOM", most)

    def answer(of: int) -> list[object]:
        monkeypatch.setattr(waiting, "_SMALL", of)
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

    assert answer(small) == answer(0)


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


def test_rows_that_were_taken_stay_as_they_are_when_others_wait_in_the_same_room(db: minidsms.Connection) -> None:
    q, kept = db.query(COUNTS), db.query(COUNTS)
    tables = []
    for first in range(0, 60, 3):
        pushed(db, first, 3)
        tables.append(q.fetch_arrow())
    assert [row for table in tables for row in table.to_pylist()] == kept.fetch_arrow().to_pylist()


def test_answers_wait_apart_where_memory_lacks_for_a_room(
    db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> None:
        raise MemoryError

    q, kept = db.query(COUNTS), db.query(COUNTS)
    pushed(db, 0, 20)
    before = q.fetch()
    monkeypatch.setattr(waiting, "_Room", lacks)
    pushed(db, 20, 20)
    monkeypatch.undo()
    pushed(db, 40, 20)
    assert before + q.fetch() == kept.fetch()


def test_who_is_looked_on_gives_no_row_of_the_instant_at_which_memory_lacks() -> None:
    lacking = 0
    for at in range(1, 100):
        with minidsms.connect() as db:
            db.execute(DECLARED)
            q = db.query("SELECT t, k FROM S [RANGE 4] WHERE k >= 1")
            q.look_on(5)
            pushed(db, 0, 12)
            with failing(Allocations(at)) as allocations, contextlib.suppress(MemoryError):
                pushed(db, 12, 1)
            if not allocations.failed:
                break
            lacking += q.failure is not None and q.failure[1].startswith("Output")
            assert q.failure is None or all(change.ts < q.failure[0] for change in q.fetch())
    assert lacking


@pytest.mark.parametrize("there_is", [0, 1])
def test_a_room_without_memory_for_signs_or_nulls_takes_none_of_the_rows(
    monkeypatch: pytest.MonkeyPatch, there_is: int
) -> None:
    def batch(ts: int, is_null: bool) -> Batch:
        column = Column(np.array([ts]), np.array([False]) if is_null else None)
        return Batch(np.array([ts]), np.array([-1], np.int8) if is_null else None, [column])

    left, ones = [there_is], np.ones

    def lacks(n: int, dtype: type) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        return ones(n, dtype)

    waits = waiting.WaitingBatches()
    for ts in range(5):
        waits.append(batch(ts, False))
    monkeypatch.setattr(waiting.np, "ones", lacks)
    waits.append(batch(5, True))
    monkeypatch.undo()
    waits.append(batch(6, False))
    waits.append(batch(7, True))
    whole = Batch.concat(waits.take())
    assert whole.ts.tolist() == whole.column(0).values.tolist() == list(range(8))
    assert whole.signs.tolist() == [1, 1, 1, 1, 1, -1, 1, -1]
    valid = whole.column(0).valid
    assert valid is not None and valid.tolist() == [True, True, True, True, True, False, True, False]
    assert waits.changes == waits.nbytes == 0
