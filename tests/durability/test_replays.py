"""An archive replayed into a connection with a folder: every element once, through crashes amid it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import minidsms
from minidsms.durability.connection import DurableConnection
from tests.long.crashes import Crash, Disk, crashing, end_process

QUERIES = {
    "counts": "SELECT k, COUNT(*) FROM S [RANGE 20] GROUP BY k",
    "pairs": "SELECT S.k, name FROM S [RANGE 3], R WHERE S.k = R.k",
    "both": "SELECT ISTREAM(S.k, T.v) FROM S [RANGE 5], T [RANGE 7] WHERE S.k = T.v % 5",
}


def declare(db: minidsms.Connection, where_missing: bool = False) -> None:
    there = "IF NOT EXISTS " if where_missing else ""
    db.execute(f"CREATE STREAM {there}S (k INTEGER, t TEXT) SLACK 2; CREATE STREAM {there}T (v INTEGER)")
    db.execute(f"CREATE RELATION {there}R (k INTEGER, name TEXT)")
    for name, text in QUERIES.items():
        if name not in db.queries:
            db.query(text, name)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("archives"))
    with minidsms.connect(archive_rows=40) as db:
        db.execute(f"CREATE STREAM S (k INTEGER, t TEXT) SLACK 2 ARCHIVE '{folder}'")
        db.execute(f"CREATE STREAM T (v INTEGER) ARCHIVE '{folder}'; CREATE RELATION R (k INTEGER, name TEXT)")
        db.archive("R", folder)
        for i in range(150):
            if i % 20 == 0:
                db.push("R", (i // 20, f"n{i}"), ts=i)
            db.push("S", [(i % 5, f"t{i}"), (i % 3, None)], ts=[i + i % 2, i])
            if 50 < i < 120:
                db.push("T", (i,), ts=i)
    return folder


def answers(db: minidsms.Connection) -> dict[str, Counter[str]]:
    return {name: Counter(map(repr, db.queries[name].fetch(ack=0))) for name in QUERIES}


@pytest.fixture(scope="module")
def wanted(archives: str) -> dict[str, Counter[str]]:
    with minidsms.connect(batch_size=16) as db:
        declare(db)
        assert db.replay(archives) == 150 * 2 + 69 + 8
        db.push("S", (1, "last"), ts=200)
        db.advance(200)
        return answers(db)


@pytest.mark.parametrize("seed", range(6))
def test_every_element_comes_once_through_crashes(
    tmp_path: Path, archives: str, wanted: dict[str, Counter[str]], seed: int
) -> None:
    rng = Random(seed)
    crashes, loses = 0, rng.random() < 0.5
    for attempt in range(60):
        disk = Disk(str(tmp_path), 0 if attempt == 59 else rng.randint(5, 200), rng)
        done = False
        with crashing(disk):
            db = minidsms.connect(tmp_path / "db", batch_size=16)
            assert isinstance(db, DurableConnection)
            try:
                declare(db, True)
                if rng.random() < 0.3:
                    db.checkpoint()
                db.replay(archives)
                done = True
            except Crash:
                end_process(db)
                raise
        if done:
            break
        crashes += 1
        if loses:
            disk.lose()
    if rng.random() < 0.5:
        db.checkpoint()
    assert (db.position("S"), db.position("T"), db.position("R")) == (300, 69, 8)
    end_process(db)
    with minidsms.connect(tmp_path / "db") as db:
        db.push("S", (1, "last"), ts=200)
        db.advance(200)
        assert answers(db) == wanted, f"{crashes} crashes"


def through_crashes(
    place: Path, rng: Random, work: Callable[[minidsms.Connection], None], most: int = 150, times: int = 40
) -> minidsms.Connection:
    """A connection that has done what is asked, after some that were ended amid it."""
    loses = rng.random() < 0.5
    for attempt in range(times):
        disk = Disk(str(place), 0 if attempt == times - 1 else rng.randint(5, most), rng)
        done = False
        with crashing(disk):
            db = minidsms.connect(place / "db", batch_size=16)
            try:
                if rng.random() < 0.3:
                    db.checkpoint()
                work(db)
                done = True
            except Crash:
                end_process(db)
                raise
        if done:
            return db
        if loses:
            disk.lose()
    raise AssertionError


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_goes_on_from_the_archive_that_it_writes(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    with minidsms.connect(archive_rows=7) as before:
        before.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        before.push("S", [(i,) for i in range(200)], ts=range(200))

    def work(db: minidsms.Connection) -> None:
        db.execute(f"CREATE STREAM IF NOT EXISTS S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT COUNT(*) FROM S [RANGE 30]")
        if db.position("S") <= 200:
            db.replay(f"{tmp_path}/a")
        for i in range(db.position("S"), 230):
            db.push("S", (i,), ts=i)
        db.flush()

    db = through_crashes(tmp_path, rng, work)
    if rng.random() < 0.5:
        db.checkpoint()
    end_process(db)
    with minidsms.connect(tmp_path / "db") as db:
        assert db.position("S") == 230
        db.push("S", (230,), ts=230)
        assert db.queries["q"].snapshot() == [(30,)]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(k) FROM S [RANGE UNBOUNDED]")
        db.replay(f"{tmp_path}/a")
        assert [row for (row,) in (change.row for change in q.fetch())] == list(range(231))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 30))])
def test_a_replay_that_follows_goes_on_where_it_was(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    writer = minidsms.connect(archive_rows=11)
    writer.execute(f"CREATE STREAM S (k INTEGER, t TEXT) SLACK 2 ARCHIVE '{tmp_path}/a'")
    writer.execute(f"CREATE STREAM T (v INTEGER) ARCHIVE '{tmp_path}/a'; CREATE RELATION R (k INTEGER, name TEXT)")
    writer.archive("R", f"{tmp_path}/a")
    oracle = minidsms.connect()
    declare(oracle)
    came = 0

    def write(n: int) -> None:
        nonlocal came
        for i in range(came, came + n):
            for db in (writer, oracle):
                if i % 20 == 0:
                    db.push("R", (i // 20, f"n{i}"), ts=i)
                db.push("S", [(i % 5, f"t{i}"), (i % 3, None)], ts=[i + i % 2, i])
                db.push("T", (i,), ts=i)
        came += n
        writer.flush()

    write(40)

    def work(db: minidsms.Connection) -> None:
        declare(db, True)
        write(rng.randint(0, 30))
        asked, most = 0, rng.randint(1, 6)

        def stop() -> bool:
            nonlocal asked
            asked += 1
            if asked == 4:
                write(rng.randint(1, 20))
            return asked > 3 * most

        db.replay(f"{tmp_path}/a", follow=True, stop=stop)

    db = through_crashes(tmp_path, rng, work, times=12)
    writer.close()
    for _ in range(2):  # what had begun, then what has come since
        db.replay(f"{tmp_path}/a")
    assert [db.position(name) for name in "ST"] == [2 * came, came]
    end_process(db)
    with minidsms.connect(tmp_path / "db") as db:
        for each in (db, oracle):
            each.advance(came + 5)
        assert answers(db) == answers(oracle)
    oracle.close()


def test_what_a_replay_follows_is_one_source_of_the_stream(tmp_path: Path) -> None:
    with minidsms.connect() as writer, minidsms.connect(tmp_path / "db") as db:
        writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        db.execute("CREATE STREAM S (k INTEGER)")
        for i in range(6):
            writer.push("S", (i,), ts=i)
            writer.flush()
            assert db.replay(f"{tmp_path}/a") == 1
            if i in (1, 5):
                db.checkpoint()
        entries = [told[3] for told in db.execute("SHOW CHECKPOINTS")]
        assert entries[0] == entries[1] < 10
    with minidsms.connect(tmp_path / "db") as db:
        assert db.position("S") == 6 and db.replay(f"{tmp_path}/a") == 0


def test_an_archive_made_anew_in_the_same_place_is_another(tmp_path: Path) -> None:
    def write(first: int) -> None:
        with minidsms.connect() as writer:
            writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
            writer.push("S", [(i,) for i in range(first, first + 9)], ts=range(first, first + 9))

    write(0)
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        assert db.replay(f"{tmp_path}/a") == 9 and db.replay(f"{tmp_path}/a") == 0
    shutil.rmtree(tmp_path / "a")
    write(100)
    with minidsms.connect(tmp_path / "db") as db:
        assert db.replay(f"{tmp_path}/a") == 9 and db.replay(f"{tmp_path}/a") == 0
        assert db.warnings == []


def test_a_replay_is_not_gone_on_with_in_another_archive(tmp_path: Path) -> None:
    def write(first: int) -> None:
        with minidsms.connect(archive_rows=3) as writer:
            writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
            for i in range(first, first + 9):
                writer.push("S", (i,), ts=i)
            writer.flush()

    write(0)
    asked = []
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.replay(f"{tmp_path}/a", stop=lambda: bool(asked) or asked.append(1))  # type: ignore[func-returns-value]
        assert db.position("S") > 0
        begun = db.position("S")
    os.rename(tmp_path / "a", tmp_path / "b")
    write(100)
    with minidsms.connect(tmp_path / "db") as db:
        assert db.replay(f"{tmp_path}/a") == 9
        assert ["another archive" in warning for warning in db.warnings] == [True]
        assert db.position("S") == begun + 9


def test_elements_that_an_archive_has_lost_meanwhile_are_told(tmp_path: Path) -> None:
    with minidsms.connect(archive_rows=3) as writer:
        writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        writer.archive("S", None)
        writer.archive("S", f"{tmp_path}/b", partition=10)
        writer.push("S", [(i,) for i in range(100)], ts=range(100))
    asked = []
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.replay(f"{tmp_path}/b", stop=lambda: len(asked) > 3 or asked.append(1))  # type: ignore[func-returns-value]
        begun = db.position("S")
        assert begun > 0
    with minidsms.connect(archive_retention="5 MILLISECONDS") as writer:
        writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/b'")
        writer.push("S", (0,), ts=10_000)
    with minidsms.connect(tmp_path / "db") as db:
        if begun < 100:
            with pytest.raises(minidsms.Error, match="lacks elements"):
                db.replay(f"{tmp_path}/b")
        assert db.position("S") == begun


def test_a_replay_that_has_ended_is_not_made_again(tmp_path: Path, archives: str) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        declare(db)
        assert db.replay(archives) == 377 and db.replay(archives) == 0
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        assert db.replay(archives) == 0
        assert (db.position("S"), db.position("T"), db.position("R")) == (300, 69, 8)


def test_who_follows_an_archive_has_what_its_next_writer_adds(tmp_path: Path) -> None:
    """A writer's arrivals count for all of its archives; the next one's go on behind those that it has told of."""
    with minidsms.connect() as writer:
        writer.execute(
            f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'; CREATE STREAM T (k INTEGER) ARCHIVE '{tmp_path}/b'"
        )
        writer.push("S", (0,), ts=0)
        writer.push("T", [(i,) for i in range(9)], ts=range(9))
        writer.flush()
    asked = []

    def stop() -> bool:
        asked.append(0)
        if len(asked) == 3:
            with minidsms.connect() as writer:
                writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
                writer.push("S", (1,), ts=10)
        return len(asked) > 9

    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        assert db.replay(f"{tmp_path}/a", follow=True, stop=stop) == 2


def test_an_archive_whose_stream_has_ended_is_followed(tmp_path: Path) -> None:
    with minidsms.connect() as writer:
        writer.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        writer.push("S", (0,), ts=0)
        writer.finish_unfed()
    asked = iter(range(9))
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT k FROM S [RANGE 5]")
        db.replay(f"{tmp_path}/a", follow=True, stop=lambda: next(asked) > 5)
        assert [change.sign for change in q.fetch()] == [1]
