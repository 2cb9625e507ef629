"""Answers change by change: `for change in query`, `async for`, and loops that are left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Coroutine, Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

import minidsms
from minidsms.elements import Batch


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
    assert next(first).row == (0,) and next(second).row == (1,)
    db.push("S", [(i, None) for i in range(4, 6)], ts=1)
    assert next(first).row == (2,) and q.position == 3
    assert [change.row[0] for change in second] == [3, 4, 5] and list(first) == []


def test_fetch_within_a_loop_takes_what_the_loop_has_not_come_to(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(4)], ts=0)
    come_to = []
    for change in q:
        come_to.append(change.row[0])
        if come_to == [0, 1]:
            assert [change.row[0] for change in q.newest(9)] == [2, 3]
            db.push("S", (4, None), ts=1)
            assert keys(q) == [2, 3, 4] and q.position == q.results == 5
            db.push("S", (5, None), ts=2)
    assert come_to == [0, 1, 5]


def test_changes_are_decoded_as_a_loop_comes_to_them(db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    decoded = 0
    changes_of = q.codec.changes

    def counted(batch: Batch) -> Iterable[minidsms.Change]:
        nonlocal decoded
        decoded += len(batch)
        return changes_of(batch)

    monkeypatch.setattr(q.codec, "changes", counted)
    for ts in range(300):
        db.push("S", [(i, None) for i in range(100 * ts, 100 * ts + 100)], ts=ts)
    for i in range(5000):
        for change in q:
            assert change.row == (i,)
            break
    assert decoded < 15_000
    assert [change.row[0] for change in q] == list(range(5000, 30_000))
    assert decoded == 30_000


def test_changes_that_cannot_be_decoded_go_on_waiting(db: minidsms.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    for ts in range(5):
        db.push("S", [(i, None) for i in range(1000 * ts, 1000 * ts + 1000)], ts=ts)
    changes_of = q.codec.changes

    def short_of_memory(batch: Batch) -> Iterable[minidsms.Change]:
        if batch.column(0).values[0] >= 3000:
            raise MemoryError
        return changes_of(batch)

    monkeypatch.setattr(q.codec, "changes", short_of_memory)
    come_to = 0
    with pytest.raises(MemoryError):
        for change in q:
            assert change.row == (come_to,)
            come_to += 1
    monkeypatch.undo()
    assert come_to == q.position == 3000 and keys(q) == list(range(3000, 5000))


def test_a_loop_to_the_end_leaves_nothing_held(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(5000)], ts=0)
    assert len(list(q)) == 5000 and not any(map(len, q.live_batches()))


def test_a_loop_is_given_what_it_brings_about_after_the_sources_have_ended(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,k\n0,0\n")
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM T (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{tmp_path / 't.csv'}'")
        db.execute("CREATE STREAM S (k INTEGER)")
        db.run()
        q = db.query("SELECT ISTREAM(k) FROM S")
        db.push("S", (0,), ts=1, block=False)
        come_to = []
        for change in q:
            come_to.append(change.row[0])
            if len(come_to) < 4:
                db.push("S", (len(come_to),), ts=1 + len(come_to), block=False)
        assert come_to == [0, 1, 2, 3]


def test_what_waits_counts_until_a_loop_has_come_to_it(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(100)], ts=0)
    none, held = q.nbytes - 100 * 16, []
    for _ in q:
        held.append((q.nbytes - none, q.answer_nbytes, q.stats()["waiting"]))
    assert held == [(left * 17, left * 17, left) for left in range(99, -1, -1)]


def test_threads_share_the_changes_of_a_query(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    db.push("S", [(i, None) for i in range(20_000)], ts=0)
    seen: list[list[int]] = [[] for _ in range(4)]
    given: list[int] = []

    def follow(mine: list[int]) -> None:
        for change in q:
            mine.append(change.row[0])

    threads = [threading.Thread(target=follow, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        given += keys(q)
    assert all(mine == sorted(mine) for mine in seen)
    assert sorted(chain(given, *seen)) == list(range(20_000))


def test_texts_of_what_is_in_hand_are_kept(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(t) FROM S")
    db.push("S", [(i, f"first {i}") for i in range(3)], ts=0)
    iterator = iter(q)
    next(iterator)
    for ts in range(1, 4):
        db.push("S", [(i, f"text {ts} {i}") for i in range(5000)], ts=ts)
        db.memory.reclaim()
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


def crashed(folder: Path, copies: Path) -> list[int]:
    """The answers of q that are there when a folder is opened as it stands now."""
    copy = shutil.copytree(folder, copies / f"at{len(list(copies.iterdir()))}")
    with minidsms.connect(copy) as db:
        return keys(db.queries["q"])


def test_fetch_within_a_loop_leaves_nothing_that_a_folder_does_not_keep(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        q = db.queries["q"]
        db.push("S", [(i,) for i in range(4)], ts=0)
        for change in q:
            if change.row.k == 1:
                assert keys(q) == [2, 3]
                db.push("S", [(4,), (5,)], ts=1)
                break
        assert q.position == 4
        assert crashed(tmp_path / "db", tmp_path) == [4, 5]
    with minidsms.connect(tmp_path / "db") as db:
        assert keys(db.queries["q"]) == [4, 5]


def test_what_a_loop_is_at_stays_in_a_folder_whatever_others_take(tmp_path: Path) -> None:
    (copies := tmp_path / "copies").mkdir()
    with minidsms.connect(folder := tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        q = db.queries["q"]
        db.push("S", [(i,) for i in range(4)], ts=0)
        first = iter(q)
        assert next(first).row.k == 0
        for more in 4, 5:
            assert [change.row.k for change in q] == ([1, 2, 3] if more == 4 else [4])
            db.push("S", (more,), ts=more)
        assert crashed(folder, copies) == [0, 1, 2, 3, 4, 5]
        db.checkpoint()
        assert crashed(folder, copies) == [0, 1, 2, 3, 4, 5]
        assert next(first).row.k == 5
        assert crashed(folder, copies) == [5]
        db.checkpoint()
        assert crashed(folder, copies) == [5]
        assert next(first, None) is None
        assert crashed(folder, copies) == []
        db.push("S", (6,), ts=6)
        held = iter(q)
        assert next(held).row.k == 6 and keys(q) == []
        db.push("S", [(7,), (8,)], ts=7)
        assert keys(q) == [7, 8]  # with what the loop is at
        db.push("S", (9,), ts=9)
        assert [change.row.k for change in q] == [9]
        assert crashed(folder, copies) == []


def test_what_a_loop_is_at_in_a_folder_counts_as_held(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query("SELECT v FROM S")
        empty = q.nbytes, db.nbytes
        db.push("S", {"v": range(1000)}, ts=1)
        kept = iter(q)
        next(kept)
        for ts in (2, 3, 4):
            db.push("S", {"v": range(1000)}, ts=ts)
            assert sum(1 for _ in q) == (1999 if ts == 2 else 1000)
            # Of the first thousand the loop may still be at the first, so that all stay.
            assert q.nbytes - empty[0] >= 8 * 1000 * ts and db.nbytes - empty[1] >= 8 * 1000 * ts
        del kept
        db.push("S", {"v": range(5)}, ts=5)
        assert len(q.fetch()) == 5
        assert q.nbytes - empty[0] < 8 * 1000


def test_a_left_loop_has_taken_what_it_came_to_when_the_query_is_used_again(tmp_path: Path) -> None:
    (copies := tmp_path / "copies").mkdir()

    def one(q: minidsms.Query) -> int:
        return next(iter(q)).row.k

    async def another(q: minidsms.Query) -> int:
        async for change in q:
            return int(change.row[0])
        return -1

    with minidsms.connect(folder := tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        q = db.queries["q"]
        db.push("S", [(i,) for i in range(6)], ts=0)
        for i, loop in enumerate((one, another, another, one)):
            given = loop(q)
            assert i == (asyncio.run(given) if isinstance(given, Coroutine) else given)
            assert crashed(folder, copies) == list(range(i, 6))
        assert keys(q) == [4, 5]
        db.push("S", (6,), ts=1)
        assert one(q) == 6
        assert crashed(folder, copies) == [6] and keys(q) == [] and crashed(folder, copies) == []


@contextlib.contextmanager
def failing(q: minidsms.Query, at: int, error: BaseException) -> Iterator[None]:
    """Changes from this one on cannot be decoded; a loop or `fetch` within says so."""
    changes_of = q.codec.changes

    def changes(batch: Batch) -> Iterable[minidsms.Change]:
        if batch.column(0).values[-1] >= at:
            raise error
        return changes_of(batch)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(q.codec, "changes", changes)
        yield


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_what_loops_came_to_before_an_error_has_been_taken_when_a_folder_is_closed(
    tmp_path: Path, error: BaseException
) -> None:
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        q = db.queries["q"]
        for ts in range(5):
            db.push("S", [(i,) for i in range(1000 * ts, 1000 * ts + 1000)], ts=ts)
        with failing(q, 3000, error):
            list(q)
        assert q.position == 3000
    with minidsms.connect(tmp_path) as db:
        q = db.queries["q"]
        assert next(iter(q)).row[0] == 3000
        with failing(q, 3001, error):
            q.fetch()
        assert q.position == 3001
    with minidsms.connect(tmp_path) as db:
        assert keys(db.queries["q"]) == list(range(3001, 5000))


def test_what_a_loop_is_at_stays_in_a_folder_when_another_fails(tmp_path: Path) -> None:
    (copies := tmp_path / "copies").mkdir()
    with minidsms.connect(folder := tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        q = db.queries["q"]
        for ts in range(5):
            db.push("S", [(i,) for i in range(1000 * ts, 1000 * ts + 1000)], ts=ts)
        held = iter(q)
        assert next(held).row[0] == 0
        with failing(q, 4000, MemoryError()):
            list(q)
        db.checkpoint()
        assert crashed(folder, copies) == list(range(5000))


def test_what_loops_take_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = 0
    fsync = os.fsync

    def counted(file: int) -> None:
        nonlocal syncs
        syncs += 1
        fsync(file)

    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(k) FROM S", "q")
        db.push("S", [(i,) for i in range(10)], ts=0)
        monkeypatch.setattr(os, "fsync", counted)
        for i in range(9):
            for change in q:
                assert change.row.k == i
                break
        assert len(list(q)) == 1 and syncs == 0
        db.push("S", (10,), ts=1)
        assert syncs == 1
        monkeypatch.undo()


def test_answers_that_came_out_of_a_checkpoint_count_for_the_limit(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path, answer_limit=10) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S")
        for ts in range(4):
            db.push("S", [(i,) for i in range(8)], ts=ts)
            assert len(db.queries["q"].fetch()) == 8
        db.push("S", (8,), ts=5)
        db.checkpoint()
    with minidsms.connect(tmp_path) as db:
        db.push("S", [(i,) for i in range(9, 18)], ts=6)
        assert db.queries["q"].failure is None and keys(db.queries["q"]) == list(range(8, 18))


def test_who_goes_when_he_is_woken_leaves_the_others_to_be_woken(db: minidsms.Connection) -> None:
    q = db.query("SELECT ISTREAM(k) FROM S")
    woken: list[str] = []

    def first() -> None:
        q.wakers.remove(first)
        woken.append("first")

    q.wakers += [first, lambda: woken.append("second")]
    db.push("S", (1, None), ts=0)
    db.advance(1)
    assert woken == ["first", "second"]
