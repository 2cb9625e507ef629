"""An archive replayed into a connection with a folder: every element once, through crashes amid it."""

from __future__ import annotations

from collections import Counter
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


def declare(db: minidsms.Connection) -> None:
    db.execute("CREATE STREAM S (k INTEGER, t TEXT) SLACK 2; CREATE STREAM T (v INTEGER)")
    db.execute("CREATE RELATION R (k INTEGER, name TEXT)")
    for name, text in QUERIES.items():
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
                if len(db.queries) < len(QUERIES):
                    if "s" not in db.catalog.streams:
                        db.execute("CREATE STREAM S (k INTEGER, t TEXT) SLACK 2")
                    if "t" not in db.catalog.streams:
                        db.execute("CREATE STREAM T (v INTEGER)")
                    if "r" not in db.catalog.relations:
                        db.execute("CREATE RELATION R (k INTEGER, name TEXT)")
                    for name in QUERIES.keys() - db.queries.keys():
                        db.query(QUERIES[name], name)
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


def test_a_stream_is_not_replayed_from_the_archive_it_writes(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}/a'")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.flush()
        with pytest.raises(minidsms.Error, match="writes the archive that is to be replayed"):
            db.replay(f"{tmp_path}/a")
        db.push("S", (3,), ts=3)
    with minidsms.connect(tmp_path / "db") as db:
        assert db.position("S") == 3


def test_a_replay_that_has_ended_is_not_made_again(tmp_path: Path, archives: str) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        declare(db)
        assert db.replay(archives) == 377 and db.replay(archives) == 0
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        assert db.replay(archives) == 0
        assert (db.position("S"), db.position("T"), db.position("R")) == (300, 69, 8)
