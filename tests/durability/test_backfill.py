"""A query WITH BACKFILL begins with the same past however often its folder is opened again, and whatever becomes of
the archives meanwhile.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import minidsms
from minidsms import Change
from minidsms.durability.connection import DurableConnection
from minidsms.testing.feeds import Push
from tests.long.crash_cases import Call, check_calls
from tests.long.crashes import end_process

LATE = {
    "sums": "SELECT SUM(v), COUNT(*) FROM S [RANGE 4]",
    "per_key": "SELECT k, COUNT(*) FROM S GROUP BY k",
    "newest": "SELECT k, v FROM S [ROWS 3]",
    "of_key": "SELECT k, v FROM S [PARTITION BY k ROWS 2]",
    "pairs": "SELECT ISTREAM(A.v, B.v AS w) FROM S [RANGE 6] AS A, S [ROWS 2] AS B WHERE A.k = B.k",
    "known": "SELECT name, v FROM S [RANGE 9], R WHERE S.k = R.k",
    "known_of_key": "SELECT name, v FROM S [PARTITION BY k ROWS 2], R WHERE S.k = R.k",
    "names": "SELECT k, name FROM R",
    "filtered": "SELECT v FROM S WHERE k = 'k1'",
    "whole": "SELECT A.v, R.name FROM S AS A, R WHERE A.k = R.k",
}
DECLARE = "CREATE STREAM S (k TEXT, v INTEGER){}{}; CREATE RELATION R (k TEXT, name TEXT){}"


def rows(i: int) -> tuple[tuple[int, int, tuple[str | None, int]], ...]:
    return tuple((i + j // 2, 1, (f"k{(i + j) % 3}" if (i + j) % 5 else None, i * 10 + j)) for j in range(3))


def feed(i: int) -> list[Call]:
    made = [Call(step=Push("S", rows(i)))]
    if i % 4 == 1:
        made.insert(0, Call(step=Push("R", ((i, 1, (f"k{i % 3}", f"n{i}")),))))
    if i % 8 == 5:
        made.insert(0, Call(step=Push("R", ((i, -1, (f"k{(i - 4) % 3}", f"n{i - 4}")),))))
    return made


def calls(folder: Path, n: int, slack: str = "") -> list[Call]:
    """A stream and a relation that are archived, and queries that begin amid it."""
    archive = f" ARCHIVE '{folder}'"
    made = [Call(text) for text in DECLARE.format(slack, archive, archive).split("; ")]
    for i in range(n):
        if i == n // 3:
            made += [Call(text, name, f"BACKFILL FROM '{folder}'") for name, text in LATE.items()]
        made += feed(i)
    return made


@pytest.mark.parametrize("slack", ["", " SLACK 3"])
def test_answers_through_crashes_are_those_of_a_run_without(tmp_path: Path, slack: str) -> None:
    crashes = 0
    for seed in range(2):
        made = {which: calls(tmp_path / f"{seed}{which}", 18, slack) for which in ("found", "wanted")}
        crashes += check_calls(made["found"], [*LATE], str(tmp_path / f"{seed}" / "db"), seed, made["wanted"])
    assert crashes


def past(folder: Path) -> None:
    with minidsms.connect() as db:
        for call in calls(folder, 6):
            if not call.query:
                call.make(db)


@pytest.mark.parametrize("late", LATE)
def test_the_past_stays_when_the_archives_are_gone(tmp_path: Path, late: str) -> None:
    """And a checkpoint leaves out of it what matters no more."""
    past(tmp_path / "data")
    create = f"CREATE QUERY {late} AS {LATE[late]} BACKFILL FROM '{tmp_path / 'data'}'"
    with minidsms.connect() as other:
        other.execute(DECLARE.format("", "", ""))
        other.replay(str(tmp_path / "data"), names=["R"])
        other.execute(create)
        db = minidsms.connect(tmp_path / "db")
        db.execute(DECLARE.format("", "", ""))
        db.replay(str(tmp_path / "data"), names=["R"])
        db.execute(create)
        shutil.rmtree(tmp_path / "data")
        taken: list[Change] = []
        for i in range(6, 20):
            assert isinstance(db, DurableConnection)
            if i % 3 == 0:
                db.checkpoint()
            end_process(db)
            db = minidsms.connect(tmp_path / "db")
            assert not db.warnings
            taken += db.queries[late].fetch(ack=len(taken))
            altering = [Call("ALTER STREAM S ADD COLUMN more INTEGER")] if i == 12 else []
            for call in [*altering, *feed(i)]:
                call.make(db)
                call.make(other)
        db.checkpoint()
        end_process(db)
        db = minidsms.connect(tmp_path / "db")
        taken += db.queries[late].fetch(ack=len(taken))
        wanted = other.queries[late].fetch()
        assert [c.ts for c in taken] == [c.ts for c in wanted]
        assert sorted(map(repr, taken)) == sorted(map(repr, wanted))
        whole = db.execute("SHOW CHECKPOINTS").rows[-1][-1]
        assert bool(whole) == (late in ("whole", "known_of_key"))
        db.close()
