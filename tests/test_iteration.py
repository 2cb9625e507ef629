"""Answers change by change: `for change in query`, `async for`, and loops that are left."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import minidsms


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    connection.execute("CREATE STREAM S (k INTEGER, t TEXT)")
    return connection


def keys(query: minidsms.Query) -> list[int]:
    return [change.row[0] for change in query.fetch()]


def test_what_a_loop_has_not_come_to_goes_on_waiting(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k, t) FROM S")
    for ts in range(3):
        db.push("S", [(3 * ts + i, f"t{ts} {i}") for i in range(3)], ts=ts)
    for change in q:
        if change.row.k == 3:
            break
    assert q.position == 4 and [change.row for change in q.newest(1)] == [(8, "t2 2")]
    db.push("S", (9, "later"), ts=3)
    assert q.is_waiting and q.fetch_arrow()["k"].to_pylist() == [4, 5, 6, 7, 8, 9]
    assert not q.is_waiting and list(q) == []


def test_a_loop_that_raises_has_seen_what_it_was_given(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(4)], ts=0)
    with pytest.raises(ZeroDivisionError):
        for change in q:
            _ = 1 // (1 - change.row.k)
    assert next(iter(q)).row == (2,)
    assert [change.row for change in q] == [(3,)]


def test_two_iterators_share_the_changes(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(4)], ts=0)
    first, second = iter(q), iter(q)
    assert next(first).row == (0,) and list(second) == []
    del first
    assert [change.row[0] for change in q] == [1, 2, 3]


def test_texts_of_what_is_in_hand_are_kept(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(t) FROM S")
    db.push("S", [(i, f"first {i}") for i in range(3)], ts=0)
    iterator = iter(q)
    next(iterator)
    for ts in range(1, 4):
        db.push("S", [(i, f"text {ts} {i}") for i in range(5000)], ts=ts)
        db.memory.sweep()
    del iterator
    assert [change.row for change in q.fetch()[:2]] == [("first 1",), ("first 2",)]


def test_a_closed_query_has_nothing_left(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(1, None), (2, None)], ts=0)
    with pytest.raises(minidsms.ClosedError):
        for _ in q:
            q.close()


def test_what_loops_have_left_counts_as_answers_that_nobody_has_fetched() -> None:
    with minidsms.connect(answer_limit=10) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(k) FROM S")
        db.push("S", [(i,) for i in range(9)], ts=0)
        assert next(iter(q)).row == (0,)
        db.push("S", [(9,), (10,)], ts=1)
        assert q.failure is None and keys(q) == list(range(1, 11))
        db.push("S", [(i,) for i in range(9)], ts=2)
        next(iter(q))
        db.push("S", [(i,) for i in range(3)], ts=3)
        assert q.failure is not None and keys(q) == list(range(1, 9))


def test_async_loops_leave_what_they_have_not_come_to() -> None:
    async def first(q: minidsms.Query) -> int:
        async for change in q:
            return int(change.row[0])
        return -1

    async def some(db: minidsms.Connection, q: minidsms.Query) -> list[int]:
        given = [await first(q)]
        db.push("S", (4,), ts=1)
        given.append(await first(q))
        assert q.position == 2
        changes = aiter(q)
        given.append((await anext(changes)).row[0])
        await changes.aclose()  # type: ignore[attr-defined]
        return given + keys(q)

    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(k) FROM S")
        db.push("S", [(1,), (2,), (3,)], ts=0)
        assert asyncio.run(some(db, q)) == [1, 2, 3, 4]


LEFT = {"break": [2, 3], "seen": [2, 3], "checkpoint": [2, 3], "within": [2, 3], "held": [2, 3], "end": []}


@pytest.mark.parametrize("ending", LEFT)
def test_a_folder_keeps_what_no_loop_has_come_to(tmp_path: Path, ending: str) -> None:
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        db.push("S", [(i,) for i in range(4)], ts=0)
        changes = iter(db.queries["q"])
        for change in changes:
            if change.row.k == 1 and ending != "end":
                if ending == "within":
                    db.checkpoint()
                break
        if ending != "held":
            del changes
        if ending == "seen":
            db.queries["q"].newest(1)
        if ending == "checkpoint":
            db.checkpoint()
    with minidsms.connect(tmp_path) as db:
        assert keys(db.queries["q"]) == LEFT[ending]


def test_a_checkpoint_amid_a_loop_keeps_what_the_loop_has_in_hand(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        db.push("S", [(i,) for i in range(4)], ts=0)
        for change in db.queries["q"]:
            if change.row.k == 1:
                db.push("S", (4,), ts=1)
                db.checkpoint()
                shutil.copytree(tmp_path / "db", tmp_path / "crashed")
    for folder, left in ("crashed", [0, 1, 2, 3, 4]), ("db", []):
        with minidsms.connect(tmp_path / folder) as db:
            assert keys(db.queries["q"]) == left
