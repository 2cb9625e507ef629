"""Archives whose declaration has grown, archives as they were, and archives that forget what is old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.archive import format, log
from minidsms.archive.compacting import compact
from minidsms.archive.format import find
from minidsms.archive.log import read_snapshot
from minidsms.archive.verifying import verify
from minidsms.cql.errors import CqlError, Error
from minidsms.shell.main import main
from tests.archive.reading import elements

BIG = 2**53 + 1
"""No FLOAT: as one it is 2**53."""

NARROW = "CREATE STREAM S (k INTEGER, v INTEGER)"
WIDE = "CREATE STREAM S (name TEXT, v FLOAT, k INTEGER)"


def _push(folder: Path, declaration: str, rows: list[tuple[Any, ...]], ts: list[int]) -> None:
    with minidsms.connect() as db:
        db.execute(f"{declaration} ARCHIVE '{folder}'")
        db.push("S", rows, ts=ts)


def _grown(folder: Path) -> None:
    """Rows of a narrow declaration, then of a wide one; the first file overlaps the last in time."""
    _push(folder, NARROW, [(1, 10), (2, BIG), (3, 30)], [0, 1, 9])
    _push(folder, WIDE, [("a", 1.5, 4), (None, 2.0, 5)], [5, 12])


def test_a_declaration_with_more_columns_and_wider_types_goes_on_with_the_archive(tmp_path: Path) -> None:
    _grown(tmp_path)
    expected = [(0, 1, None, 10.0, 1), (1, 1, None, float(2**53), 2), (5, 1, "a", 1.5, 4), (9, 1, None, 30.0, 3)]
    expected.append((12, 1, None, 2.0, 5))
    assert elements(tmp_path, "S") == expected
    archive = find(str(tmp_path), "S")
    assert list(verify(archive)) == []
    compact(archive)
    assert elements(tmp_path, "S") == expected
    assert list(verify(archive)) == []


@pytest.mark.parametrize("condition", ["v > 1.75", "v = 9007199254740992", "name IS NULL", "name = 'a'", "k > 2"])
def test_filters_mean_the_same_in_files_of_every_schema(tmp_path: Path, condition: str) -> None:
    _grown(tmp_path)
    answers = []
    for push_down in (True, False):
        with minidsms.connect() as db:
            db.execute(WIDE)
            q = db.query(f"SELECT ISTREAM(k, v) FROM S [NOW] WHERE {condition}")
            db.replay(str(tmp_path), push_down=push_down)
            answers.append(q.fetch())
    assert answers[0] == answers[1] != []


def test_a_relation_goes_on_with_more_columns(tmp_path: Path) -> None:
    for column in ("", ", n FLOAT"):
        with minidsms.connect() as db:
            db.execute(f"CREATE RELATION R (k INTEGER{column}) ARCHIVE '{tmp_path}'")
            if column:
                db.replay(str(tmp_path))
                db.push("R", [(1, None), (3, 0.5)], ts=5, sign=[-1, 1])
            else:
                db.push("R", [(1,), (2,)], ts=0)
    assert elements(tmp_path, "R") == [(0, 1, 1, None), (0, 1, 2, None), (5, -1, 1, None), (5, 1, 3, 0.5)]
    assert list(verify(find(str(tmp_path), "R"))) == []


@pytest.mark.parametrize(
    "columns", ["k INTEGER", "k INTEGER, v TEXT", "k FLOAT, v BOOLEAN", "K INTEGER, v INTEGER, x TEXT", "v INTEGER"]
)
def test_a_declaration_that_loses_or_changes_a_column_is_refused(tmp_path: Path, columns: str) -> None:
    _push(tmp_path, NARROW, [(1, 10)], [0])
    with pytest.raises(Error, match=r"with other columns\nhelp: it has .*INTEGER may become FLOAT"):
        _push(tmp_path, f"CREATE STREAM S ({columns})", [], [])
    assert elements(tmp_path, "S") == [(0, 1, 1, 10)]


def test_an_archive_that_somebody_writes_keeps_its_columns(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"{NARROW} ARCHIVE '{tmp_path}'")
        with pytest.raises(Error, match="being written by somebody else"):
            _push(tmp_path, WIDE, [], [])
    assert find(str(tmp_path), "S").metadata.earlier == ()


def test_columns_that_somebody_adds_at_the_same_moment_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _push(tmp_path, NARROW, [(1, 10)], [0])
    look, looks = format.going_on, 0

    def looks_before_another_adds(folder: str, metadata: Any) -> Any:
        nonlocal looks
        looks, found = looks + 1, look(folder, metadata)
        if looks == 1:
            _push(tmp_path, "CREATE STREAM S (k INTEGER, v INTEGER, other TEXT)", [], [])
        return found

    monkeypatch.setattr(format, "going_on", looks_before_another_adds)
    with pytest.raises(Error, match="with other columns"):
        _push(tmp_path, WIDE, [("a", 1.5, 4)], [5])
    assert find(str(tmp_path), "S").metadata.schema.names == ("k", "v", "other")


def _values(folder: Path, **options: Any) -> list[int]:
    with minidsms.connect() as db:
        db.execute(NARROW)
        q = db.query("SELECT ISTREAM(k) FROM S [NOW]")
        db.replay(str(folder), **options)
        db.advance(100)
        return [change.row[0] for change in q.fetch()]


def test_a_replay_as_of_a_commit_sees_what_was_there_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(1_000, 100_000, 1_000))
    monkeypatch.setattr(log, "_now_ms", lambda: next(clock))
    for i in range(4):
        _push(tmp_path, NARROW, [(i, 0), (10 + i, 0)], [i, 20 + i])
    archive = find(str(tmp_path), "S")
    snapshot = read_snapshot(archive.folder)
    assert snapshot is not None
    numbers = [(m.number, m.at_ms) for m in snapshot.marks]
    assert numbers == [(0, 1000), (1, 2000), (2, 3000), (3, 4000), (4, 5000)]
    compact(archive)
    assert len(archive.files()) == 1
    for n in range(5):
        expected = [*range(n), *range(10, 10 + n)]
        assert _values(tmp_path, as_of=n) == expected
        assert _values(tmp_path, as_of=f"1970-01-01 00:00:0{n + 1}.5") == expected
    assert _values(tmp_path, as_of="1970-01-01") == []
    assert _values(tmp_path) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert archive.as_of(2).files()[-1].last_ts == 21
    for wrong, reason in ((7, "knows no commit 7"), ("yesterday", "not an ISO time")):
        with pytest.raises(Error, match=reason):
            _values(tmp_path, as_of=wrong)
    assert main(["archive", "inspect", str(tmp_path), "--log"]) == 0
    assert "1970-01-01 00:00:04" in capsys.readouterr().out.replace("T", " ")
    assert main(["replay", str(tmp_path), "-q", "SELECT ISTREAM(k) FROM S [NOW]", "--as-of", "1", "--quiet"]) == 0
    assert "10" in capsys.readouterr().out


def test_a_declaration_may_read_an_archive_as_it_was(tmp_path: Path) -> None:
    for i in range(2):
        _push(tmp_path, NARROW, [(i, 0)], [i])
    with minidsms.connect() as db:
        db.execute(f"{NARROW} FROM '{tmp_path}' FORMAT archive WITH (as_of = 1)")
        q = db.query("SELECT ISTREAM(k) FROM S [NOW]")
        db.run()
        assert [c.row for c in q.fetch()] == [(0,)]
        with pytest.raises(CqlError, match="is_of"):
            db.execute(f"CREATE STREAM T (k INTEGER) FROM '{tmp_path}' FORMAT archive WITH (is_of = 1)")


def test_retention_removes_the_files_of_streams_that_are_older_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with minidsms.connect() as db:
        db.execute(f"{NARROW} ARCHIVE '{tmp_path}'")
        db.execute(f"CREATE RELATION R (k INTEGER) ARCHIVE '{tmp_path}'")
        db.execute("SET archive_retention = '20 MILLISECONDS'")
        for ts in range(0, 60, 10):
            db.push("S", (ts, 0), ts=ts)
            db.push("R", (ts,), ts=ts)
            db.flush()
        assert [row[2] for row in elements(tmp_path, "S")] == [30, 40, 50]
    assert [row[2] for row in elements(tmp_path, "R")] == list(range(0, 60, 10))
    assert _values(tmp_path, names=["S"]) == [30, 40, 50]
    assert main(["archive", "expire", str(tmp_path), "--keep", "soon"]) == 1
    assert "'soon' is no value for --keep" in capsys.readouterr().err
    assert main(["archive", "expire", str(tmp_path), "--keep", "5 MILLISECONDS"]) == 0
    assert "S: 2 files removed" in capsys.readouterr().out
    assert [row[2] for row in elements(tmp_path, "S")] == [50]
    assert list(verify(find(str(tmp_path), "S"))) == []
