"""CREATE OR REPLACE QUERY over a folder: one query or the other is there, whenever the process ends."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import minidsms
from minidsms.archive.format import open_archive
from minidsms.durability.connection import DurableConnection
from tests.long.crash_cases import marking
from tests.long.crashes import Crash, Disk, crashing, end_process

NEW = "SELECT ISTREAM(k + 100 AS n) FROM S [NOW]"


def rows(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:]


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
        disk, is_done = Disk(str(folder), at, Random(at)), False
        with crashing(disk), marking(1e9):
            db = minidsms.connect(folder / "db")
            assert isinstance(db, DurableConnection)
            try:
                db.execute(f"CREATE OR REPLACE QUERY q AS {NEW}{into}")
                is_done = True
            except Crash:
                end_process(db)
                raise
        if is_done:
            db.close()
        elif at % 2:
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
        assert open_archive(str(place / "q")).metadata.schema.names == ("k", "t")
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
