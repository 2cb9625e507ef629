"""Files that queries write with INTO hold every answer once, however often the process ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import kept_files, kept_parts
from minidsms.durability.connection import DurableConnection
from minidsms.durability.kept_file import hidden
from minidsms.durability.log import Log
from minidsms.inputs.relation_input import RelationInput
from minidsms.sinks import locking, opening
from minidsms.sinks.lines import LineSink
from tests.refusing import refusing


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
        patched.setattr(db.log, "retract", lambda number: None)
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(os, "replace", killed)
        db.execute("DROP QUERY q")
    end(db)
    with minidsms.connect("db") as again:
        assert list(again.queries) == ([] if is_published else ["q"])
        if not is_published:
            again.push("S", (4,), ts=4)
            again.execute("DROP QUERY q")
    assert lines() == ALL[: 3 if is_published else 4]


def test_answers_of_elements_left_that_come_with_a_checkpoint_are_in_a_file_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 0.0)
    db = opened()
    db.push("S", (2,), ts=2, block=False)
    with db.settled():
        pass  # it ends before the checkpoint is made
    end(db)
    with opened() as db:
        db.execute("DROP QUERY q")
    assert lines() == ALL[:2]


@pytest.mark.parametrize("is_killed_before", [False, True])
def test_answers_of_elements_left_that_come_before_a_change_are_in_a_file_once(
    is_killed_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 0.0)
    db = opened()
    db.execute("CREATE RELATION R (k INTEGER)")
    db.push("S", (2,), ts=2, block=False)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        if is_killed_before:
            patched.setattr(RelationInput, "push", killed)
        db.push("R", (1,), ts=3)
    end(db)
    with opened() as db:
        db.execute("DROP QUERY q")
    assert lines() == ALL[:2]


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


def test_where_no_mark_can_be_written_the_error_does_not_say_that_nothing_has_been_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 0.0)
    db = opened()
    write = os.write

    def full(number: int, data: bytes) -> int:
        if b'"written"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(number, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(Error, match=r"cannot be written: No space left(.|\n)*open the folder again"):
            db.push("S", (2,), ts=2)
    db.close()
    with opened() as db:
        assert db.position("S") == 1
        db.execute("DROP QUERY q")
    assert lines() == ALL[:2]


def test_a_query_whose_statement_cannot_be_synced_leaves_its_file_to_who_opens_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = opened()

    def failing(_: object) -> None:
        raise Error("the log could not be synced")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "commit", failing)
        with pytest.raises(Error, match="could not be synced"):
            db.execute("CREATE QUERY late AS SELECT k FROM S INTO 'late.csv'")
    db.close()
    with opened() as db:
        db.push("S", (2,), ts=2)
        db.execute("DROP QUERY late")
    assert lines("late.csv") == ALL[:2]


def test_a_mark_stays_where_parts_cannot_appear_amid_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened()
    db.execute(
        "CREATE QUERY parts AS SELECT k FROM S INTO 'part-{n}.csv' WITH (roll_rows = 2); ALTER QUERY parts PAUSE"
    )
    for k in range(8):
        db.push("S", (k,), ts=k)
    replace = os.replace

    def refused(old: str, new: str) -> None:
        if new.endswith("part-2.csv"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refused)
        with pytest.raises(Error, match=r"part-2\.csv"):
            db.execute("ALTER QUERY parts RESUME")
    db.close()
    with opened() as db:
        assert not db.warnings
        db.execute("DROP QUERY parts")
    written = [lines(f"part-{n}.csv")[1:] for n in (1, 2, 3, 4)]
    assert written == [[f"{k},1,{k}", f"{k + 1},1,{k + 1}"] for k in (0, 2, 4, 6)]


@pytest.mark.parametrize("how", ["drop", "method", "replace", "elsewhere"])
def test_a_query_that_cannot_end_is_there_when_the_folder_is_opened_again(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = opened()
    db.push("S", (2,), ts=2)
    ends: dict[str, Callable[[], object]] = {
        "drop": lambda: db.execute("DROP QUERY q"),
        "method": lambda: db.queries["q"].close(),
        "replace": lambda: db.execute("CREATE OR REPLACE QUERY q AS SELECT k + 1 FROM S INTO 'new.csv'"),
        "elsewhere": lambda: db.execute("CREATE OR REPLACE QUERY q AS SELECT k FROM S WHERE k > 1 INTO 'new.csv'"),
    }

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refusing(errno.EIO))
        with pytest.raises(Error, match=r"cannot write .*out\.csv"):
            ends[how]()
    for statement in ("CREATE QUERY q AS SELECT k FROM S INTO 'new.csv'", "DROP QUERY q"):
        with pytest.raises(Error, match="open the folder again"):
            db.execute(statement)
    db.close()
    with opened() as db:
        assert not db.warnings
        db.push("S", (3,), ts=3)
        db.execute("DROP QUERY q")
    assert lines() == ALL[:3]


def test_a_query_whose_answers_cannot_be_delivered_is_not_resumed() -> None:
    """It ran on, and what it had answered then came again when the folder was opened."""
    db = opened()
    q = db.query("SELECT k FROM S", "r")
    q.into(lambda table: 1 // 0)
    q.pause()
    db.push("S", (2,), ts=2)
    with pytest.raises(ZeroDivisionError):
        db.execute("ALTER QUERY r RESUME")
    with pytest.raises(Error, match="open the folder again"):
        db.push("S", (3,), ts=3)
    db.close()
    with opened() as db:
        assert db.queries["r"].state == "paused" and db.position("S") == 1
        db.execute("DROP QUERY q")
    assert lines() == ALL[:2]


def test_a_connection_is_closed_also_where_its_log_could_not_be_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1e18)
    db = opened()

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refusing(errno.EIO))
        with pytest.raises(Error, match="could not be synced"):
            db.push("S", (2,), ts=2)
        with pytest.raises(Error, match="could not be synced"):
            db.close()
    with opened() as db:
        db.execute("DROP QUERY q")


def test_a_part_that_could_not_be_begun_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened()
    statement = "CREATE QUERY parts AS SELECT k FROM S INTO 'part-{n}.csv' WITH (roll_rows = 2)"

    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", refusing(errno.EIO))
        with pytest.raises(Error, match="cannot write"):
            db.execute(statement)
    db.execute(statement)
    for k in range(4):
        db.push("S", (k,), ts=k)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refusing(errno.EIO))
        with pytest.raises(Error, match=r"cannot write .*part-3\.csv"):
            db.execute("DROP QUERY parts")  # without rows it has no file
    db.close()
    with opened() as db:
        db.execute("DROP QUERY parts")
    assert sorted(path.name for path in Path().glob("part*")) == ["part-1.csv", "part-2.csv"]
    assert [lines(f"part-{n}.csv")[1:] for n in (1, 2)] == [["0,1,0", "1,1,1"], ["2,1,2", "3,1,3"]]


def test_a_part_that_was_made_and_still_stands_beside_its_place_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = opened()
    db.execute("CREATE QUERY parts AS SELECT k FROM S INTO 'part-{n}.parquet' WITH (roll_rows = 2)")
    db.push("S", (2,), ts=2)

    class Killed(BaseException):
        pass

    def killed(path: str) -> None:
        patched.setattr(db.log, "retract", lambda number: None)
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(os, "unlink", killed)
        db.execute("DROP QUERY parts")
    assert os.path.exists("part-1.parquet") and os.path.exists(hidden("part-1.parquet"))
    end(db)
    with opened() as db:
        assert not db.warnings
        db.push("S", (3,), ts=3)
        db.execute("DROP QUERY parts")
    assert content("part-1.parquet") == [2, 3] and not os.path.exists(hidden("part-1.parquet"))


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


def test_a_checkpoint_keeps_the_mark_of_a_file_that_could_not_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as db:
        db.push("S", (2,), ts=2)

    def full(*_: object) -> None:
        raise Error("cannot write 'out.csv': No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(LineSink, "open", full)
        with opened() as db:
            assert "its answers wait to be fetched" in db.warnings[0]
            db.push("S", (3,), ts=3)
            db.checkpoint()
    with opened() as db:
        db.push("S", (4,), ts=4)
        db.execute("DROP QUERY q")
    assert lines() == ALL[:4]


def test_a_copy_removes_no_parts_of_what_it_was_made_of() -> None:
    db = opened()
    db.execute("CREATE QUERY parts AS SELECT k FROM S INTO 'part-{n}.csv' WITH (roll_rows = 2)")
    for k in range(7):
        if k in (3, 4):
            db.backup(f"copy-{k}")  # amid a part, and before the first row of one
        db.push("S", (k,), ts=k)
    for k in (3, 4):
        with minidsms.connect(f"copy-{k}") as copy:
            assert "part-" in copy.warnings[-1] and "its answers wait to be fetched" in copy.warnings[-1]
            copy.push("S", (9,), ts=9)
    db.push("S", (7,), ts=7)
    db.execute("DROP QUERY parts")
    db.close()
    written = [lines(f"part-{n}.csv")[1:] for n in (1, 2, 3, 4)]
    assert written == [[f"{k},1,{k}", f"{k + 1},1,{k + 1}"] for k in (0, 2, 4, 6)]


FORMS = {
    "'x.parquet'": ["x.parquet"],
    "'x.arrow'": ["x.arrow"],
    "'x.csv.gz'": ["x.csv.gz"],
    "'x.csv' WITH (append = true)": ["x.csv"],
    "'x-{n}.json.zst' WITH (roll_rows = 6)": ["x-1.json.zst", "x-2.json.zst"],
    "'x-{n}.jsonl' WITH (roll_rows = 3)": ["x-1.jsonl", "x-2.jsonl", "x-3.jsonl", "x-4.jsonl"],
    "'x-{n}.parquet' WITH (roll_rows = 4)": ["x-1.parquet", "x-2.parquet", "x-3.parquet"],
}


def content(path: str) -> list[int]:
    """The column k of a file."""
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM T (_ts INTEGER, _sign INTEGER, k INTEGER) TIMESTAMP BY _ts FROM '{path}'")
        found = db.query("SELECT ISTREAM(k) FROM T")
        db.run()
        return [change.row[0] for change in found.fetch()]


@pytest.mark.parametrize("into", FORMS)
def test_files_of_every_form_go_on_at_their_marks(into: str) -> None:
    db = opened()
    if "x-{n}" in into:  # by the method, which is kept as the statement is
        path, _, options = into.partition(" WITH ")
        name, _, value = options.strip("()").partition(" = ")
        given = {name: value == "true" or int(value)} if name else {}
        assert db.query("SELECT k FROM S", "r").into(path.strip("'"), **given).path.endswith(path.strip("'"))
    else:
        db.execute(f"CREATE QUERY r AS SELECT k FROM S INTO {into}")
    for k in range(10):
        db.push("S", (k,), ts=k)
        if k in (4, 7):
            end(db)
            db = opened()
            assert not db.warnings
        if k == 6:
            db.checkpoint()
    if "{n}" in into:
        assert os.path.exists(FORMS[into][0])
    db.execute("DROP QUERY r")
    assert [k for path in FORMS[into] for k in content(path)] == list(range(10))
    db.close()
    assert sorted(os.listdir()) == sorted([".out.csv.kept", "db", *FORMS[into]])


OF_BEFORE = {
    "'x.csv.gz' FORMAT csv": ["x.csv.gz"],
    "'x.gz' FORMAT csv WITH (append = true)": ["x.gz"],
    "'x-{n}.csv.gz' FORMAT csv WITH (roll_rows = 4)": ["x-1.csv.gz", "x-2.csv.gz"],
    "'x.parquet.gz' FORMAT parquet": ["x.parquet.gz"],
}


@pytest.mark.parametrize("into", OF_BEFORE)
def test_what_a_folder_began_before_files_were_compressed_stays_as_it_was(
    into: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(opening, "is_packed", lambda path: False)
        before.setattr(kept_parts, "is_packed", lambda path: False)
        db = opened()
        db.execute(f"CREATE QUERY r AS SELECT k FROM S INTO {into}")
        for k in range(6):
            db.push("S", (k,), ts=k)
        end(db)
    for k in (6, 7):
        db = opened()
        assert not db.warnings
        db.push("S", (k,), ts=k)
        db.checkpoint()
        end(db)
    with opened() as db:
        db.execute("DROP QUERY r")
    for n, name in enumerate(OF_BEFORE[into]):
        if "parquet" in into:
            assert parquet.read_table(name)["k"].to_pylist() == list(range(8))
        else:
            first, stop = (4 * n, 4 * n + 4) if "{n}" in into else (0, 8)
            assert lines(name) == ["_ts,_sign,k", *(f"{k},1,{k}" for k in range(first, stop))]


def test_a_file_is_added_to_behind_its_last_whole_line_and_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "MOST_S", 0.05)
    Path("log.jsonl").write_text('{"k": -1}\n{"k": -')
    db = opened()
    db.execute("CREATE QUERY r AS SELECT k FROM S INTO 'log.jsonl' WITH (append = true)")
    db.push("S", (1,), ts=1)
    with minidsms.connect() as other, pytest.raises(Error, match="a connection with a folder writes it alone"):
        other.execute("CREATE STREAM S (k INTEGER)")
        other.query("SELECT k FROM S").into("log.jsonl", append=True)
    end(db)
    with open("log.jsonl", "a") as file:
        file.write("behind the mark\n")
    with opened() as db:
        assert lines("log.jsonl") == ['{"k": -1}', '{"_ts":1,"_sign":1,"k":1}']
        db.execute("DROP QUERY r")


def test_a_file_that_cannot_be_begun_leaves_no_query() -> None:
    with opened() as db:
        with pytest.raises(Error, match="cannot write"):
            db.execute("CREATE QUERY r AS SELECT k FROM S INTO 'nowhere/x.parquet'")
        with pytest.raises(Error, match="unknown column"):
            db.execute("CREATE QUERY r AS SELECT z FROM S INTO 'x.csv' WITH (append = true)")
        assert list(db.queries) == ["q"]
    with opened() as db:
        assert not db.warnings
        assert list(db.queries) == ["q"]
    assert sorted(os.listdir()) == [".out.csv.kept", "db"]
