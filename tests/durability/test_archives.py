"""Archives of a connection with a folder have every element once, however often the process ends."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.archive.writer import Writer
from minidsms.durability.connection import DurableConnection
from tests.long.crash_files import archived
from tests.long.crashes import end_process

QUERY = "SELECT k, COUNT(*) AS n FROM S [RANGE 3] GROUP BY k"


@pytest.fixture
def archives(tmp_path: Path) -> str:
    return str(tmp_path / "archives")


def opened(tmp_path: Path) -> DurableConnection:
    db = minidsms.connect(tmp_path / "db", archive_rows=5)
    assert isinstance(db, DurableConnection)
    return db


def declare(db: minidsms.Connection, archives: str) -> None:
    db.execute(f"CREATE STREAM S (k INTEGER, t TEXT) ARCHIVE '{archives}'; CREATE RELATION R (k INTEGER)")
    db.execute(f"CREATE QUERY q AS {QUERY} ARCHIVE '{archives}'")
    db.push("R", (7,), ts=0)
    db.archive("R", archives)


def push(db: minidsms.Connection, i: int) -> None:
    db.push("S", [(i % 2, f"t{i}"), (i % 3, None)], ts=[i, i])
    db.push("R", (i,), ts=i)


def test_every_element_is_archived_once_through_kills_and_checkpoints(tmp_path: Path, archives: str) -> None:
    db = opened(tmp_path)
    declare(db, archives)
    for i in range(20):
        push(db, i)
        if i in (4, 9):
            db.flush()
        if i in (7, 13):
            db.checkpoint()
        if i in (5, 9, 11, 13, 16):
            end_process(db)
            db = opened(tmp_path)
            assert not db.warnings and db.position("S") == 2 * i + 2
    db.close()
    with minidsms.connect() as other:
        declare(other, str(tmp_path / "wanted"))
        for i in range(20):
            push(other, i)
    for name in ("S", "R"):
        assert archived(archives, name) == archived(str(tmp_path / "wanted"), name)
    answers = [archived(folder, "q") for folder in (archives, str(tmp_path / "wanted"))]
    assert Counter(answers[0]) == Counter(answers[1])
    assert [row[0] for row in answers[0]] == [row[0] for row in answers[1]]


def test_what_makes_the_state_of_a_checkpoint_again_is_not_archived(tmp_path: Path, archives: str) -> None:
    """Its windows are filled before the subquery has its past: answers come of it that nobody ever got."""
    query = "SELECT t FROM S [RANGE 3] AS a WHERE a.t <= ALL (SELECT 'c' FROM S AS b)"
    db = opened(tmp_path)
    db.execute(f"CREATE STREAM S (k INTEGER, t TEXT); CREATE QUERY q AS {query} ARCHIVE '{archives}'")
    db.push("S", [(1, "x"), (2, "d"), (3, "d"), (4, "a"), (5, "d")], ts=[3, 4, 5, 5, 6])
    db.checkpoint()
    end_process(db)
    with opened(tmp_path) as db:
        db.push("S", (6, "d"), ts=12)
        db.advance(20)
    assert [row[:2] for row in archived(archives, "q")] == [("5", "1"), ("8", "-1")]


def test_an_archive_that_has_ended_is_not_written_again_and_may_begin_anew(tmp_path: Path, archives: str) -> None:
    with opened(tmp_path) as db:
        declare(db, archives)
        push(db, 1)
        db.archive("S", None)
        push(db, 2)
        db.checkpoint()
    with opened(tmp_path) as db:
        push(db, 3)
        db.archive("S", archives)
        push(db, 4)
    with opened(tmp_path) as db:
        assert not db.warnings
        db.execute("DROP QUERY q; DROP STREAM S; CHECKPOINT")
    with opened(tmp_path) as db:
        assert not db.warnings
    assert [row[3] for row in archived(archives, "S")] == ["'t1'", "None", "'t4'", "None"]


def test_an_archive_that_is_gone_is_told_and_what_it_lacks_stays_in_the_log(tmp_path: Path, archives: str) -> None:
    db = opened(tmp_path)
    declare(db, archives)
    push(db, 1)
    db.flush()
    push(db, 2)
    end_process(db)
    shutil.move(archives, archives + " aside")
    with opened(tmp_path) as db:
        assert any("the archive of S cannot be gone on with" in warning for warning in db.warnings)
        push(db, 3)
        with pytest.raises(minidsms.Error, match="no checkpoint was made: the archive of"):
            db.checkpoint()
        with pytest.raises(minidsms.Error, match=r"cannot be gone on with.*\nhelp: .*'S', None\) gives it up"):
            db.archive("S", archives)
    shutil.rmtree(archives)
    shutil.move(archives + " aside", archives)
    with opened(tmp_path) as db:
        assert not db.warnings
    assert [row[3] for row in archived(archives, "S")] == ["'t1'", "None", "'t2'", "None", "'t3'", "None"]


def test_nothing_is_archived_before_it_is_on_disk(
    tmp_path: Path, archives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    commit = Writer.commit

    def looked_at(writer: Writer, *given: Any, **more: Any) -> None:
        if given[0] == "archive":
            assert db.log is not None
            found.append(db.log.is_synced)
        commit(writer, *given, **more)

    monkeypatch.setattr(Writer, "commit", looked_at)
    with minidsms.connect(tmp_path / "db", durability="os") as db:
        assert isinstance(db, DurableConnection)
        declare(db, archives)
        push(db, 1)
        assert not db.log.is_synced  # type: ignore[union-attr]
        db.flush()
    assert found and all(found)


def test_a_folder_that_cannot_be_opened_lets_others_have_its_archives(
    tmp_path: Path, archives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as db:
        declare(db, archives)
        push(db, 1)
    with monkeypatch.context() as patch:
        patch.setattr(DurableConnection, "_go_on_with_sources", _fail)
        with pytest.raises(minidsms.Error, match="it fails"):
            opened(tmp_path)
    with opened(tmp_path) as db:
        assert not db.warnings


def _fail(db: DurableConnection) -> None:
    raise minidsms.Error("it fails")


def test_a_query_that_is_replaced_by_itself_goes_on_with_its_archive(tmp_path: Path, archives: str) -> None:
    asked = f"CREATE OR REPLACE QUERY q AS SELECT k FROM S [ROWS 1] ARCHIVE '{archives}'"
    for run in (1, 2):
        with opened(tmp_path) as db:
            db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER)")
            db.execute(asked)
            db.push("S", (run,), ts=run)
            db.advance(run)
            assert db.execute(asked).snapshot() == [(run,)] and not db.warnings
    assert sorted(row[1:] for row in archived(archives, "q")) == [("-1", "1"), ("1", "1"), ("1", "2")]


def test_a_query_whose_archive_another_one_takes_meanwhile_is_there_without_it_when_the_folder_is_opened_again(
    tmp_path: Path, archives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DurableConnection, "check_archive_instead_of", lambda *_: None)  # as it was when it was asked
    with opened(tmp_path) as db:
        db.execute(
            f"CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT ISTREAM(k) FROM S [NOW] ARCHIVE '{archives}'"
        )
        with pytest.raises(minidsms.Error, match="its kind is stream, not relation"):
            db.execute(f"CREATE OR REPLACE QUERY q AS SELECT k FROM S [RANGE 5] ARCHIVE '{archives}'")
        with pytest.raises(minidsms.Error, match="open the folder again"):
            db.push("S", (1,), ts=1)
    with opened(tmp_path) as db:
        [warning] = db.warnings
        assert warning.startswith("the archive of q cannot be gone on with: ")
        db.push("S", (1,), ts=1)
        db.advance(1)
        assert db.queries["q"].kind == "relation" and db.queries["q"].snapshot() == [(1,)]
        db.archive("q", None)
    with opened(tmp_path) as db:
        assert not db.warnings and db.queries["q"].snapshot() == [(1,)]
