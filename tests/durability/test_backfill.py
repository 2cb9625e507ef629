"""A query WITH BACKFILL begins with the same past however often its folder is opened again, and whatever becomes of
the archives meanwhile.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms import Change
from minidsms.archive.backfill import Backfill
from minidsms.durability.connection import DurableConnection
from minidsms.testing.feeds import Push
from tests.archive.reading import elements
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


@pytest.mark.parametrize("seed, slack", [(0, ""), (1, " SLACK 3")])
def test_answers_through_crashes_are_those_of_a_run_without(tmp_path: Path, seed: int, slack: str) -> None:
    made = {which: calls(tmp_path / which, 18, slack) for which in ("found", "wanted")}
    assert check_calls(made["found"], [*LATE], str(tmp_path / "db"), seed, made["wanted"])


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
            if i % 3 < 2:  # behind a checkpoint, and behind calls that follow one
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


def test_inputs_go_on_where_the_archives_end_when_the_query_is_gone(tmp_path: Path) -> None:
    past(tmp_path / "data")
    db = minidsms.connect(tmp_path / "db")
    db.execute(DECLARE.format("", "", "") + "; CREATE RELATION Other (k TEXT)")
    db.replay(str(tmp_path / "data"), names=["R"])
    db.push("Other", ("k1",), ts=-5)
    db.execute(
        "CREATE QUERY q AS SELECT v FROM S [RANGE 9], R, Other WHERE S.k = R.k AND S.k = Other.k "
        f"BACKFILL FROM '{tmp_path / 'data'}'; DROP QUERY q"
    )
    for _ in range(3):
        with pytest.raises(minidsms.Error, match="has passed 5"):
            db.push("S", ("k1", 1), ts=5)
        for name, ts in (("R", 4), ("Other", -1)):
            with pytest.raises(minidsms.Error, match=f"late: timestamp {ts} is below {ts + 1}"):
                db.push(name, ("k1", "one")[: len(db.stream_input(name).schema)], ts=ts)
        db.checkpoint()
        db.close()
        db = minidsms.connect(tmp_path / "db")
    db.execute("DROP STREAM S; CREATE STREAM S (k TEXT, v INTEGER)")
    db.checkpoint()
    assert db.push("S", ("k1", 1), ts=0) == 1
    db.close()


def test_the_past_takes_another_querys_place_with_its_file_and_archive(tmp_path: Path) -> None:
    past(tmp_path / "data")
    create = (
        f"CREATE OR REPLACE QUERY q AS SELECT k, COUNT(*) AS n FROM S [RANGE 4] GROUP BY k INTO '{tmp_path}/{{}}.csv'"
    )
    create += f" ARCHIVE '{tmp_path}/{{}}' BACKFILL FROM '{tmp_path / 'data'}'"
    with minidsms.connect() as other:
        other.execute("CREATE STREAM S (k TEXT, v INTEGER); " + create.format("wanted", "wanted"))
        for i in range(6, 10):
            other.push("S", [row for _, _, row in rows(i)], ts=[ts for ts, _, _ in rows(i)])
        other.execute("DROP QUERY q")
    db = minidsms.connect(tmp_path / "db")
    db.execute("CREATE STREAM S (k TEXT, v INTEGER); CREATE QUERY q AS SELECT k FROM S")
    db.execute(create.format("found", "found"))
    for i in range(6, 10):
        db.push("S", [row for _, _, row in rows(i)], ts=[ts for ts, _, _ in rows(i)])
        if i == 8:
            db.checkpoint()
        assert isinstance(db, DurableConnection)
        end_process(db)
        db = minidsms.connect(tmp_path / "db")
        assert not db.warnings
    db.execute("DROP QUERY q")
    db.close()
    found, wanted = ((tmp_path / f"{name}.csv").read_text().splitlines() for name in ("found", "wanted"))
    assert sorted(found) == sorted(wanted)
    archived = [sorted(map(repr, elements(tmp_path / name, "q"))) for name in ("found", "wanted")]
    assert archived[0] == archived[1] and len(found) == len(archived[0]) + 1 > 6


def test_a_backfill_that_is_refused_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past(tmp_path / "data")
    create = f"CREATE QUERY q AS SELECT S.k FROM S, R WHERE S.k = R.k BACKFILL FROM '{tmp_path / 'data'}'"
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(DECLARE.format("", "", ""))
        with pytest.raises(minidsms.Error, match="other rows"):
            db.execute(create)
        db.replay(str(tmp_path / "data"), names=["R"])
        assert db.push("S", ("k", 1), ts=0) == 1
        with pytest.raises(minidsms.Error, match="the past would have a gap"):
            db.execute(create)
        db.execute("DROP STREAM S; CREATE STREAM S (k TEXT, v INTEGER)")
        join = Backfill._join

        def fails(*arguments: Any) -> None:
            join(*arguments)
            raise minidsms.Error("no room")

        monkeypatch.setattr(Backfill, "_join", fails)
        with pytest.raises(minidsms.Error, match="no room"):
            db.execute(create)
        with pytest.raises(minidsms.Error, match="open the folder again"):
            db.push("S", ("k", 1), ts=9)
    with minidsms.connect(tmp_path / "db") as db:
        assert not db.queries and not db.warnings
        assert db.push("S", ("k", 1), ts=0) == 1
        db.checkpoint()
