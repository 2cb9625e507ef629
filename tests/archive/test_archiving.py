"""What is pushed and answered is in the archives once `flush` or `close` has returned."""

from __future__ import annotations

import errno
import gc
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import minidsms
from minidsms.archive import archiver as archiver_module
from minidsms.archive.format import Archive, find
from minidsms.archive.progress import Progress
from minidsms.cql.errors import Error
from tests.archive.reading import elements, rows
from tests.refusing import refusing

ALL_TYPES = "(i INTEGER, f FLOAT, b BOOLEAN, t TEXT, at TIMESTAMP, took INTERVAL)"


def test_a_stream_is_archived_as_it_was_pushed(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S {ALL_TYPES} ARCHIVE '{tmp_path}'")
        full = (1, 2.5, True, "a'ä", 5, 7)
        nulls = (None,) * 6
        db.push("S", [full, nulls], ts=[1, 2])
        db.push("S", full, ts=3)
        db.push("S", nulls, ts=3)
        db.push("S", {n: np.arange(2) for n in ("i", "f", "at", "took")} | {"b": [True, False], "t": ["", "b"]}, ts=4)
        db.flush()
        assert elements(tmp_path, "S") == [
            (1, 1, *full),
            (2, 1, *nulls),
            (3, 1, *full),
            (3, 1, *nulls),
            (4, 1, 0, 0.0, True, "", 0, 0),
            (4, 1, 1, 1.0, False, "b", 1, 1),
        ]


def test_arrival_numbers_are_one_sequence_of_the_connection(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(
            f"CREATE STREAM A (v INTEGER) ARCHIVE '{tmp_path}'; CREATE STREAM B (v INTEGER) ARCHIVE '{tmp_path}'"
        )
        for v in range(4):
            db.push("AB"[v % 2], (v,), ts=1)
    arrivals = {row["v"]: row["_arrival"] for name in "AB" for row in rows(tmp_path, name)}
    assert [arrivals[v] for v in range(4)] == [0, 1, 2, 3]


def test_arrival_numbers_go_on_where_an_earlier_run_ended(tmp_path: Path) -> None:
    for v in range(3):
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
            db.push("S", [(v,), (v,)], ts=1)
    assert [(row["v"], row["_arrival"]) for row in rows(tmp_path, "S")] == [(v // 2, v) for v in range(6)]


def test_rows_that_wait_for_slack_are_archived_too_and_late_ones_are_not(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) SLACK 5 LATE DROP ARCHIVE '{tmp_path}'")
        db.push("S", [(1,), (2,), (3,)], ts=[10, 7, 3])
        db.push("S", (4,), ts=8)
        db.flush()
        assert elements(tmp_path, "S") == [(7, 1, 2), (8, 1, 4), (10, 1, 1)]
        assert find(str(tmp_path), "S").progress == Progress(3, 4)


def test_a_refused_push_is_not_archived(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(
            f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'; CREATE RELATION R (v INTEGER) ARCHIVE '{tmp_path}'"
        )
        for name, options in (("S", {"ts": [5, 1]}), ("R", {"ts": 1, "sign": [1, -1]})):
            with pytest.raises(Error):
                db.push(name, [(1,), (2,)], **options)
        db.flush()
        assert elements(tmp_path, "S") == elements(tmp_path, "R") == []


def test_a_relation_is_archived_as_its_changes_beginning_with_its_rows(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER, n TEXT)")
        db.push("R", [(1, "a"), (2, "b"), (2, "b")], ts=[1, 2, 3])
        db.push("R", (1, "a"), ts=4, sign=-1)
        db.archive("R", str(tmp_path))
        db.push("R", [(2, "b"), (3, None)], ts=5, sign=[-1, 1])
    assert elements(tmp_path, "R") == [(2, 1, 2, "b"), (3, 1, 2, "b"), (5, -1, 2, "b"), (5, 1, 3, None)]


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_query_is_archived_as_its_answer(tmp_path: Path, is_declared: bool) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k TEXT, v INTEGER)")
        clause = f"ARCHIVE '{tmp_path}'" if is_declared else ""
        q = db.execute(f"CREATE QUERY q AS SELECT k, SUM(v) FROM S [RANGE 3] GROUP BY k {clause}")
        if not is_declared:
            db.archive("q", str(tmp_path))
        db.push("S", [("a", 1), ("b", 2), ("a", 3)], ts=[1, 2, 2])
        db.advance(9)
        db.flush()
        assert elements(tmp_path, "q") == [(c.ts, c.sign, *c.row) for c in q.fetch()]
        assert len(elements(tmp_path, "q")) == 8


def test_the_archive_of_a_relational_query_that_runs_begins_with_its_rows(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k TEXT, v INTEGER)")
        q = db.query("SELECT k, v FROM S [RANGE 5]", name="q")
        db.push("S", [("a", 1), ("b", 2)], ts=[1, 3])
        db.advance(4)
        q.fetch()
        db.archive("q", str(tmp_path))
        db.advance(7)
        db.flush()
        assert elements(tmp_path, "q") == [(4, 1, "a", 1), (4, 1, "b", 2), (6, -1, "a", 1)]


def test_an_array_may_be_changed_after_it_was_pushed(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        values, ts = np.arange(3), np.arange(3)
        db.push("S", {"v": values}, ts=ts)
        values[:] = 9
        ts[:] = 9
    assert elements(tmp_path, "S") == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]


def test_archiving_can_be_ended_and_begun_again(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (1,), ts=1)
        with pytest.raises(Error, match="archived already"):
            db.archive("S", str(tmp_path))
        db.archive("S", None)
        assert elements(tmp_path, "S") == [(1, 1, 1)]
        db.push("S", (2,), ts=2)
        db.archive("S", str(tmp_path))
        db.push("S", (3,), ts=3)
        db.execute("DROP STREAM S")
        assert elements(tmp_path, "S") == [(1, 1, 1), (3, 1, 3)]


def test_an_archive_has_one_writer(tmp_path: Path) -> None:
    with minidsms.connect() as db, minidsms.connect() as other:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        with pytest.raises(Error, match="being written by somebody else"):
            other.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        assert other.execute("SHOW STREAMS").rows == ()
        db.close()
        other.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")


def test_where_the_file_system_has_no_locks_an_archive_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    with minidsms.connect() as db:
        with monkeypatch.context() as patched:
            patched.setattr(fcntl, "flock", refusing(errno.ENOLCK))
            db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (1,), ts=1)
        db.flush()
        assert elements(tmp_path, "S") == [(1, 1, 1)]


def test_a_writer_whose_lock_has_been_removed_can_no_longer_commit(tmp_path: Path) -> None:
    with minidsms.connect() as other:
        db = minidsms.connect()
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        (tmp_path / "S" / ".lock").unlink()
        other.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (1,), ts=1)
        with pytest.raises(Error, match=r"no longer this connection's: its lock has been removed(?s:.*)begin again"):
            db.flush()
        with pytest.raises(Error, match="no longer this connection's"):
            db.close()
        other.push("S", (2,), ts=2)
    assert elements(tmp_path, "S") == [(2, 1, 2)]


def test_an_archive_that_cannot_be_begun_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER); CREATE RELATION R (v INTEGER)")
        for name, fails in (("S", "reached"), ("R", "partitions")):
            with monkeypatch.context() as patched:
                patched.setattr(Archive, fails, property(_fail) if fails == "reached" else _fail)
                with pytest.raises(Error, match="cannot be read"):
                    db.archive(name, tmp_path)
            db.archive(name, tmp_path)


def _fail(archive: Archive) -> NoReturn:
    raise Error(f"{archive.folder!r} cannot be read")


def test_a_relation_that_does_not_follow_its_archive_is_refused(tmp_path: Path) -> None:
    declare = f"CREATE RELATION R (v INTEGER) ARCHIVE '{tmp_path}'"
    with minidsms.connect() as db:
        db.execute(declare)
        db.push("R", (1,), ts=1)
    with minidsms.connect() as db:
        db.execute(declare)
        with pytest.raises(Error, match="holds the changes of an earlier run"):
            db.push("R", (2,), ts=2)
        assert db.stream_input("R").counters.accepted == 0
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (v INTEGER)")
        db.replay(str(tmp_path))
        with pytest.raises(Error, match=r"help: archive it while it has no rows, then db\.replay"):
            db.archive("R", str(tmp_path))
    assert elements(tmp_path, "R") == [(1, 1, 1)]


def test_what_cannot_be_written_waits_and_nothing_more_is_taken(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        obstacle = tmp_path / "S" / "part=1970-01-01"
        obstacle.write_text("in the way")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        with pytest.raises(Error, match="cannot be written"):
            db.flush()
        with pytest.raises(Error, match="cannot be written"):
            db.push("S", (3,), ts=3)
        obstacle.unlink()
        db.flush()
        db.push("S", (4,), ts=4)
    assert elements(tmp_path, "S") == [(1, 1, 1), (2, 1, 2), (4, 1, 4)]


def test_a_stream_is_not_told_to_be_further_than_what_is_on_disk_of_relations(tmp_path: Path) -> None:
    with minidsms.connect(archive_rows=3, archive_interval="1 DAY") as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'; CREATE RELATION R (v INTEGER)")
        db.archive("R", str(tmp_path))
        obstacle = tmp_path / "R" / "part=1970-01-01"
        obstacle.write_text("in the way")
        db.push("R", (1,), ts=1)
        db.push("S", [(1,), (2,), (3,)], ts=[2, 3, 4])
        with pytest.raises(Error, match="cannot be written"):
            db.flush()
        assert len(elements(tmp_path, "S")) == 3
        assert find(str(tmp_path), "S").progress is None
        obstacle.unlink()
        db.flush()
        assert find(str(tmp_path), "S").progress == Progress(4, 3)


def test_what_has_been_written_is_not_kept_in_memory(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", {"v": [1, 2, 3]}, ts=[1, 2, 3])
        recorder = db.stream_input("S").recorder
        assert recorder is not None
        chunk = weakref.ref(recorder.waiting.chunks[0])
        db.flush()
        gc.collect()
        assert chunk() is None


def test_of_elements_of_several_partitions_only_those_unwritten_are_tried_again(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        db.archive("S", str(tmp_path), partition=10)
        obstacle = tmp_path / "S" / "part=1"
        obstacle.write_text("in the way")
        db.push("S", [(1,), (2,), (3,)], ts=[1, 11, 21])
        with pytest.raises(Error, match="cannot be written"):
            db.flush()
        obstacle.unlink()
    assert elements(tmp_path, "S") == [(1, 1, 1), (11, 1, 2), (21, 1, 3)]


def test_a_push_waits_while_too_much_waits_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiver_module, "LIMIT_BYTES", 20_000)
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        for i in range(20):
            db.push("S", {"v": np.arange(1000)}, ts=i)
            assert db.archiver is not None and db.archiver.nbytes <= 20_000 + 2 * 32_000
    assert len(elements(tmp_path, "S")) == 20_000


def test_enough_rows_make_a_file_without_a_flush(tmp_path: Path) -> None:
    with minidsms.connect(archive_rows=100, archive_interval="1 DAY") as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", {"v": np.arange(100)}, ts=1)
        assert db.archiver is not None
        while db.archiver.nbytes and db.archiver.failure is None:
            time.sleep(0.01)
        assert len(elements(tmp_path, "S")) == 100


def test_a_program_that_does_not_close_its_connection_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import minidsms, sys; db = minidsms.connect();"
        "db.execute(f\"CREATE STREAM S (v INTEGER) ARCHIVE '{sys.argv[1]}'\"); db.push('S', [(1,), (2,)], ts=1)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert elements(tmp_path, "S") == [(1, 1, 1), (1, 1, 2)]


def test_a_connection_that_is_dropped_writes_what_waits_and_lets_its_archives_go(tmp_path: Path) -> None:
    let_go(str(tmp_path))


def let_go(place: str) -> None:
    """Archive without closing the connection: another one gets the archives once that is gone."""
    text = f"CREATE STREAM S (v INTEGER) ARCHIVE '{place}'; CREATE RELATION R (v INTEGER) ARCHIVE '{place}'"

    def dropped() -> weakref.ref[Any]:
        db = minidsms.connect()
        db.execute(text)
        db.execute(f"CREATE QUERY q AS SELECT SUM(v) FROM S [RANGE 5] ARCHIVE '{place}'")
        db.advance(7)
        db.flush()
        db.push("S", [(1,), (2,)], ts=8)
        return weakref.ref(db)

    gone = dropped()
    gc.collect()
    assert gone() is None
    until = time.monotonic() + 30
    while True:
        with minidsms.connect() as db:
            try:
                db.execute(text)
                told = find(place, "S").progress
                break
            except Error:
                assert time.monotonic() < until
                time.sleep(0.02)
    assert elements(place, "S") == [(8, 1, 1), (8, 1, 2)]
    assert told is not None and told.closed is not None and told.closed >= 6


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE STREAM S (v INTEGER) ARCHIVE '/proc/nowhere'", "cannot write the archive"),
        ("CREATE STREAM S (v INTEGER) ARCHIVE ''", "names no folder"),
    ],
)
def test_a_folder_that_cannot_be_written_refuses_the_declaration(statement: str, reason: str) -> None:
    with minidsms.connect() as db:
        with pytest.raises(Error, match=reason):
            db.execute(statement)
        assert db.execute("SHOW STREAMS").rows == ()


def test_arguments_are_checked(tmp_path: Path) -> None:
    def refused(*arguments: Any, **options: Any) -> str:
        with pytest.raises(Error) as caught:
            db.archive(*arguments, **options)
        return str(caught.value)

    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        assert 'no stream or relation "T"' in refused("T", str(tmp_path))
        assert "at least 1" in refused("S", str(tmp_path), partition=0)
        assert "written by the engine" in refused("SysStream", str(tmp_path))
        db.flush()
