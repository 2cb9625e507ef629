"""CREATE OR REPLACE QUERY over a folder: one query or the other is there, whenever the process ends."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import minidsms
from minidsms.archive.format import find
from minidsms.durability.connection import DurableConnection
from tests.long.crash_cases import marking
from tests.long.crash_files import archived
from tests.long.crashes import Crash, Disk, crashing, end_process

NEW = "SELECT ISTREAM(k + 100 AS n) FROM S [NOW]"


def rows(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:]


def carried_out(statement: str, folder: Path, disk: Disk) -> bool:
    """Whether a statement was carried out before the process ended, which is when the disk says."""
    is_done = False
    with crashing(disk), marking(1e9):
        db = minidsms.connect(folder)
        assert isinstance(db, DurableConnection)
        try:
            db.execute(statement)
            is_done = True
        except Crash:
            end_process(db)
            raise
    if is_done:
        db.close()
    return is_done


@pytest.mark.parametrize("place", ["old.csv", "new.csv", None])
def test_a_crash_within_leaves_the_old_query_or_the_new_one(place: str | None, tmp_path: Path) -> None:
    """What was answered before stands in the file of the old one either way."""
    outcomes = set()
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        into = "" if place is None else f" INTO '{folder / place}'"
        with minidsms.connect(folder / "db") as db:
            db.execute(f"CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT k FROM S INTO '{folder / 'old.csv'}'")
            db.push("S", [(1,), (2,)], ts=[1, 2])
            db.advance(2)
        disk = Disk(str(folder), at, Random(at))
        is_done = carried_out(f"CREATE OR REPLACE QUERY q AS {NEW}{into}", folder / "db", disk)
        if not is_done and at % 2:
            disk.lose()
        with minidsms.connect(folder / "db") as db:
            assert not any("file" in warning or "query" in warning for warning in db.warnings)
            is_new = "n" in db.queries["q"].schema.names
            outcomes.add(is_new)
            assert is_new or not is_done
            db.push("S", (3,), ts=3)
            db.advance(3)
            answers = [change.row[0] for change in db.queries["q"].fetch()]
            if is_new:
                assert rows(folder / "old.csv") == ["1,1,1", "2,1,2"]
            assert answers == ([103] if is_new and place is None else [])
            db.execute("DROP QUERY q")
        if not is_new:
            assert rows(folder / "old.csv") == ["1,1,1", "2,1,2", "3,1,3"]
        elif place is not None:
            assert rows(folder / place) == ["3,1,103"]
        if is_done:
            break
    assert outcomes == {False, True} and is_done


@contextlib.contextmanager
def failing(folder: Path, at: int) -> Iterator[list[int]]:
    """The at-th operation of the disk below a folder fails; yields the numbers of those that there were."""
    met: list[int] = []

    def counted(name: str) -> Any:
        real = getattr(os, name)

        def operation(where: Any, *more: Any, **options: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else os.fspath(where)
            if path.startswith(str(folder)):
                met.append(len(met) + 1)
                if len(met) == at:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(where, *more, **options)

        return operation

    with pytest.MonkeyPatch.context() as patched:
        for name in ("open", "write", "fsync", "ftruncate", "replace", "unlink"):
            patched.setattr(os, name, counted(name))
        yield met


@pytest.mark.parametrize("place", ["old.csv", "new.csv", "new-{n}.csv"])
def test_a_disk_that_fails_within_leaves_the_old_query_or_the_new_one(place: str, tmp_path: Path) -> None:
    """There was neither where the new one's file could not be begun. Where the old one's had taken its place, but that
    could not be synced, the old one was there and could not go on with it.
    """
    outcomes = set()
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        options = " WITH (roll_rows = 2)" if "{n}" in place else ""
        db = minidsms.connect(folder / "db")
        db.execute(f"CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT k FROM S INTO '{folder / 'old.csv'}'")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        is_done = False
        with failing(folder, at) as met, contextlib.suppress(minidsms.Error):
            db.execute(f"CREATE OR REPLACE QUERY q AS {NEW} INTO '{folder / place}'{options}")
            is_done = True
        try:
            db.push("S", (3,), ts=3)
        except minidsms.Error as error:
            assert not is_done and "open the folder again" in str(error)
        with contextlib.suppress(minidsms.Error):
            db.close()  # the log that has failed says so again
        with minidsms.connect(folder / "db") as db:
            assert not db.warnings
            if db.position("S") == 2:
                db.push("S", (3,), ts=3)
            db.advance(3)
            is_new = "n" in db.queries["q"].schema.names
            outcomes.add((is_new, is_done))
            assert is_new or not is_done
            if is_new:
                assert rows(folder / "old.csv") == ["1,1,1", "2,1,2"]
            db.execute("DROP QUERY q")
        if is_new:
            assert rows(folder / place.replace("{n}", "1")) == ["3,1,103"]
        else:
            assert rows(folder / "old.csv") == ["1,1,1", "2,1,2", "3,1,3"]
        assert not list(folder.glob(".*.kept"))
        if len(met) < at:
            break
    assert outcomes == {(False, False), (True, False), (True, True)} and is_done


@pytest.mark.parametrize("how", ["DROP QUERY q", "close", "end_sink"])
@pytest.mark.parametrize("place", ["a.csv", "a.parquet", "a-{n}.csv", "+a.csv"])
def test_a_disk_that_fails_as_a_query_ends_leaves_the_query_or_its_file(place: str, how: str, tmp_path: Path) -> None:
    """Where the file had taken its place, but that could not be synced, the query was there and could not go on with
    it: its later answers waited.
    """
    outcomes = set()
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        options = " WITH (roll_rows = 2)" if "{n}" in place else " WITH (append = true)" if "+" in place else ""
        db = minidsms.connect(folder / "db")
        db.execute(f"CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT k FROM S INTO '{folder / place}'{options}")
        db.push("S", [(1,), (2,), (3,)], ts=[1, 2, 3])
        db.advance(3)
        is_done = False
        with failing(folder, at) as met, contextlib.suppress(minidsms.Error):
            ending = db.queries["q"]
            db.execute(how) if " " in how else ending.close() if how == "close" else db.end_sink(ending)
            is_done = True
        with contextlib.suppress(minidsms.Error):
            db.close()
        with minidsms.connect(folder / "db") as db:
            assert not db.warnings
            query = db.queries.get("q")
            is_writing = query is not None and query.sink is not None
            outcomes.add((is_writing, is_done))
            assert not (is_writing and is_done)
            db.push("S", (4,), ts=4)
            db.advance(4)
            if query is not None:
                assert len(query.fetch()) == (not is_writing)
                db.execute("DROP QUERY q")
        found: list[int] = []
        for path in sorted(folder.glob("*a*")):
            found += pq.read_table(path)["k"].to_pylist() if "parquet" in place else [int(r[-1]) for r in rows(path)]
        assert found == ([1, 2, 3, 4] if is_writing else [1, 2, 3])
        assert not list(folder.glob(".*.kept"))
        if len(met) < at:
            break
    assert {(True, False), (False, True)} <= outcomes and is_done


def test_a_disk_that_fails_as_the_queries_of_a_table_end_leaves_all_whose_files_have_not_taken_their_places(
    tmp_path: Path,
) -> None:
    """The second had ended where the first's file had taken its place, and its answers were in no file."""
    is_done, n_open = False, set()
    for at in range(1, 60):
        folder = tmp_path / str(at)
        folder.mkdir()
        db = minidsms.connect(folder / "db")
        db.execute("CREATE STREAM S (k INTEGER); CREATE RELATION L (who TEXT, least INTEGER) KEY (who)")
        each = db.query_each("SELECT k FROM S WHERE k > $least", "L")
        db.upsert("L", [("a", 0), ("b", 1)], ts=0)
        for key in each:
            each[key].into(str(folder / f"{key}.csv"))
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.advance(2)
        with failing(folder, at) as met, contextlib.suppress(minidsms.Error):
            each.close()
            is_done = True
        with contextlib.suppress(minidsms.Error):
            db.close()
        with minidsms.connect(folder / "db") as db:
            n_open.add(len(db.queries))
            assert len(db.queries) in (0, 2)
            for query in list(db.queries.values()):
                query.close()
        assert [int(row[-1]) for row in rows(folder / "a.csv")] == [1, 2]
        assert [int(row[-1]) for row in rows(folder / "b.csv")] == [2]
        if len(met) < at:
            break
    assert n_open == {0, 2} and is_done


def test_a_query_that_goes_on_does_not_write_its_file_in_another_way(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        begin, place = "CREATE OR REPLACE QUERY q AS SELECT k FROM S", f"INTO '{tmp_path / 'a.csv'}'"
        q = db.execute(f"{begin} {place}")
        assert db.execute(f"{begin} {place} FORMAT csv") is q
        for other in ("FORMAT json", "WITH (append = true)"):
            with pytest.raises(minidsms.Error, match="already, in another FORMAT or WITH other options"):
                db.execute(f"{begin} {place} {other}")
        assert db.queries["q"] is q
        db.push("S", (1,), ts=1)
    with minidsms.connect(tmp_path / "db") as db:
        db.advance(1)
        assert db.execute(f"{begin} {place}") is db.queries["q"]
        db.execute("DROP QUERY q")
    assert rows(tmp_path / "a.csv") == ["1,1,1"]


@pytest.mark.parametrize("has_folder", [False, True])
def test_where_the_archive_does_not_take_the_answers_the_query_stays(has_folder: bool, tmp_path: Path) -> None:
    place, folder = tmp_path / "archives", tmp_path / "db"
    with minidsms.connect(folder) if has_folder else minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        q = db.execute(f"CREATE QUERY q AS SELECT ISTREAM(k) FROM S [NOW] ARCHIVE '{place}'")
        begin = "CREATE OR REPLACE QUERY q AS SELECT"
        for instead, reason in [
            (f"k FROM S [RANGE 2] ARCHIVE '{place}'", "its kind is stream, not relation"),
            (f"ISTREAM(t) FROM S [NOW] ARCHIVE '{place}'", "with other columns"),
            ("ISTREAM(t) FROM S [NOW] ARCHIVE ' '", "names no folder"),
            (f"ISTREAM(t) FROM S [NOW] ARCHIVE '{__file__}'", "cannot write the archive"),
        ]:
            with pytest.raises(minidsms.Error, match=reason):
                db.execute(f"{begin} {instead}")
        assert db.queries["q"] is q
        db.push("S", (1, "a"), ts=1)
        db.advance(1)
        assert [change.row for change in q.fetch()] == [(1,)]
        db.execute(f"{begin} ISTREAM(k + 1 AS k, t) FROM S [NOW] ARCHIVE '{place}'")
        db.push("S", (2, "b"), ts=2)
        db.advance(2)
        db.flush()
        assert find(str(place), "q").metadata.schema.names == ("k", "t")
        db.execute(f"{begin} k FROM S [RANGE 2] ARCHIVE '{tmp_path / 'other'}'")
        db.push("S", (3, "c"), ts=3)
        db.advance(3)
        q = db.queries["q"]
        with pytest.raises(minidsms.Error, match="holds the changes of an earlier run"):
            db.execute(f"{begin} k + 1 AS k FROM S [RANGE 2] ARCHIVE '{tmp_path / 'other'}'")
        assert db.queries["q"] is q and q.snapshot() == [(3,)]
    if has_folder:
        with minidsms.connect(folder) as db:
            assert not db.warnings and db.queries["q"].snapshot() == [(3,)]


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_crash_within_lets_the_archive_of_the_new_query_begin(is_archived: bool, tmp_path: Path) -> None:
    """It begins when the log says that the old query has ended."""
    outcomes = set()
    for at in range(1, 200):
        folder = tmp_path / str(at)
        into = f"ARCHIVE '{folder / 'archives'}'"
        with minidsms.connect(folder / "db") as db:
            db.execute("CREATE STREAM S (k INTEGER)")
            db.execute(f"CREATE QUERY q AS SELECT ISTREAM(k AS n) FROM S [NOW] {into if is_archived else ''}")
            db.push("S", [(1,), (2,)], ts=[1, 2])
            db.advance(2)
        disk = Disk(str(folder), at, Random(at))
        is_done = carried_out(f"CREATE OR REPLACE QUERY q AS {NEW} {into}", folder / "db", disk)
        with minidsms.connect(folder / "db") as db:
            assert not any("archive" in warning for warning in db.warnings)
            is_new = "+ 100" in db.queries["q"].text
            outcomes.add(is_new)
            db.push("S", (3,), ts=3)
            db.advance(3)
        if is_archived or is_new:
            answers = [int(row[-1]) for row in archived(str(folder / "archives"), "q")]
            assert answers == [*([1, 2] if is_archived else []), 103 if is_new else 3]
        if is_done:
            break
    assert outcomes == {False, True} and is_done


def test_what_is_appended_to_is_on_disk_before_the_log_says_how_long_it_is(tmp_path: Path) -> None:
    """Where the machine crashed, it could be shorter than its mark: the answers waited to be fetched."""
    path, synced = tmp_path / "a.csv", []
    path.write_text("ts,sign,k\n")
    with minidsms.connect(tmp_path / "db") as db, pytest.MonkeyPatch.context() as patched:
        db.execute("CREATE STREAM S (k INTEGER)")
        real = os.fsync

        def fsync(handle: int) -> None:
            synced.append(os.readlink(f"/proc/self/fd/{handle}"))
            real(handle)

        patched.setattr(os, "fsync", fsync)
        db.execute(f"CREATE QUERY q AS SELECT k FROM S INTO '{path}' WITH (append = true)")
    assert synced[:2] == [str(path), str(tmp_path)]
