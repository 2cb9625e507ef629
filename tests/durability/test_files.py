"""Files that queries write with INTO hold every answer once, however often the process ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import kept_files
from minidsms.durability.connection import DurableConnection
from minidsms.durability.kept_file import hidden


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened() -> DurableConnection:
    db = minidsms.connect("db")
    assert isinstance(db, DurableConnection)
    db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER)")
    db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT k FROM S WHERE k > 1 INTO 'out.csv'")
    return db


def end(db: DurableConnection) -> None:
    """The process is killed."""
    assert db.log is not None
    db.log.stop()
    db.abandon()


def lines(path: str = "out.csv") -> list[str]:
    return Path(path).read_text().splitlines()


ALL = ["_ts,_sign,k", *[f"{k},1,{k}" for k in range(2, 30)]]


@pytest.mark.parametrize("mark_s", [0.0, 1000.0])
def test_a_file_goes_on_at_its_mark(monkeypatch: pytest.MonkeyPatch, mark_s: float) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", mark_s)
    for first in range(0, 30, 6):
        db = opened()
        for k in range(first, first + 6):
            db.push("S", (k,), ts=k)
            if k % 4 == 0:
                db.checkpoint()
        assert not os.path.exists("out.csv")
        if first % 12:
            db.close()
        else:
            end(db)
    with opened() as db:
        assert db.queries["q"].fetch() == []
        db.execute("DROP QUERY q")
    assert lines() == ALL
    with minidsms.connect("db") as db:
        assert not db.queries
    assert lines() == ALL
    assert sorted(os.listdir()) == ["db", "out.csv"]


def test_what_stands_behind_the_mark_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1000.0)
    db = opened()
    db.push("S", [(2,), (3,)], ts=[2, 3])
    end(db)
    with open(hidden("out.csv"), "a") as file:
        file.write("half a li")
    with opened() as db:
        db.push("S", (4,), ts=4)
        db.execute("DROP QUERY q")
    assert lines() == ALL[:4]


@pytest.mark.parametrize("is_published", [False, True])
def test_an_end_that_was_cut_short_has_happened_or_not(is_published: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened()
    db.push("S", [(2,), (3,)], ts=[2, 3])
    replace = os.replace

    class Killed(BaseException):
        pass

    def killed(old: str, new: str) -> None:
        if is_published:
            replace(old, new)
        monkeypatch.setattr(db.log, "retract", lambda number: None)
        raise Killed

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(Killed):
        db.execute("DROP QUERY q")
    monkeypatch.undo()
    os.chdir(os.path.dirname(db.folder))
    end(db)
    with minidsms.connect("db") as again:
        assert list(again.queries) == ([] if is_published else ["q"])
        if not is_published:
            again.push("S", (4,), ts=4)
            again.execute("DROP QUERY q")
    assert lines() == ALL[: 3 if is_published else 4]


def test_a_full_disk_loses_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened()
    db.push("S", (2,), ts=2)
    write = os.write

    def full(number: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{number}").endswith(".kept"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Error, match="No space left"):
        db.push("S", (3,), ts=3)
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(Error, match="open the folder again"):
        db.push("S", (4,), ts=4)
    db.close()
    with opened() as db:
        assert db.position("S") == 2
        db.push("S", (4,), ts=4)
        db.execute("DROP QUERY q")
    assert lines() == ALL[:4]


def test_a_file_that_is_gone_is_told_of() -> None:
    db = opened()
    db.push("S", (2,), ts=2)
    db.close()
    os.unlink(hidden("out.csv"))
    with opened() as db:
        assert "cannot write" in db.warnings[0] and "wait to be fetched" in db.warnings[0]
        db.push("S", (3,), ts=3)
        assert [c.row for c in db.queries["q"].fetch()] == [(3,)]


def test_a_copy_does_not_write_the_files_of_what_it_was_made_of() -> None:
    db = opened()
    db.push("S", (2,), ts=2)
    db.backup("copy")
    with minidsms.connect("copy") as copy:
        assert "another query or connection is writing it" in copy.warnings[0]
        copy.push("S", (9,), ts=9)
    db.push("S", (3,), ts=3)
    db.execute("DROP QUERY q")
    db.close()
    assert lines() == ALL[:3]


@pytest.mark.parametrize("into", ["'x.parquet'", "'x.csv' WITH (append = true)", "'x-{n}.csv' WITH (roll_rows = 3)"])
def test_other_files_are_refused(into: str) -> None:
    with opened() as db:
        with pytest.raises(Error, match="does not keep sinks of this kind yet"):
            db.execute(f"CREATE QUERY r AS SELECT k FROM S INTO {into}")
        assert list(db.queries) == ["q"]
        with pytest.raises(Error, match="does not keep sinks of this kind yet"):
            db.queries["q"].into("y.csv")
