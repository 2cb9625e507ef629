"""Inspecting, compacting and verifying archives, from Python and from the command line."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import minidsms
from minidsms.archive import compacting
from minidsms.archive.compacting import compact
from minidsms.archive.format import Archive, find
from minidsms.archive.inspecting import inspect
from minidsms.archive.verifying import verify
from minidsms.cql.errors import Error
from minidsms.shell.main import main
from tests.archive.reading import rows


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An archive of many small files that overlap, in three partitions."""
    rng = random.Random(0)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, t TEXT) SLACK 30; CREATE RELATION R (k INTEGER, n TEXT)")
        db.archive("S", str(tmp_path), partition=50)
        db.archive("R", str(tmp_path))
        for v in range(0, 120, 6):
            db.push("S", [(v + i, f"t{v % 7}") for i in range(6)], ts=[v + rng.randrange(25) for _ in range(6)])
            db.push("R", [(v, "x"), (v, "x"), (v, "x")], ts=v, sign=[1, 1, -1])
            db.flush()
    return find(str(tmp_path), "S")


def test_inspecting_gives_the_figures(archive: Archive) -> None:
    figures = inspect(archive)
    assert figures.rows == 120
    assert len(figures.files) > 20
    assert figures.nbytes == sum(os.path.getsize(f.path) for f in archive.files())
    all_ts = [row["_ts"] for row in rows(archive.folder, "S")]
    assert (figures.first_ts, figures.last_ts) == (min(all_ts), max(all_ts))


def test_compaction_leaves_the_elements_in_few_files(archive: Archive) -> None:
    before = rows(archive.folder, "S")
    done = compact(archive)
    assert done.before > 20
    assert done.after == len(archive.files()) == len(archive.partitions()) == 3
    assert rows(archive.folder, "S") == before
    assert list(verify(archive)) == []
    assert compact(archive) == compacting.Compacted(3, 3)


def test_compaction_makes_files_of_the_size_asked_for(archive: Archive) -> None:
    before = rows(archive.folder, "S")
    relation = find(os.path.dirname(archive.folder), "R")
    changes = rows(relation.folder, "R")
    compact(relation, file_rows=20)
    assert [parquet.read_metadata(f.path).num_rows for f in relation.files()] == [18, 18, 18, 6]
    assert rows(relation.folder, "R") == changes
    assert rows(archive.folder, "S") == before


def test_a_compaction_that_was_cut_short_anywhere_loses_and_doubles_nothing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(archive.folder, "S")
    steps = 0

    def stopping(real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **options: object) -> object:
            nonlocal steps
            steps -= 1
            if steps < 0:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return step

    for name in ("rename", "unlink", "replace"):
        monkeypatch.setattr(os, name, stopping(getattr(os, name)))
    for stop in range(1000):
        steps = stop // 3  # the same step again, after it has been prevented
        try:
            compact(archive)
        except KeyboardInterrupt:
            assert rows(archive.folder, "S") == before
        else:
            break
    assert stop > 10
    assert rows(archive.folder, "S") == before
    assert len(archive.files()) == 3


def test_what_is_being_written_is_not_compacted(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        with pytest.raises(Error, match="being written"):
            compact(find(str(tmp_path), "S"))


def _rewrite(archive: Archive, change: Callable[[pa.Table], pa.Table]) -> None:
    path = archive.files()[0].path
    parquet.write_table(change(parquet.read_table(path)), path)


def _with(name: str, values: list[object]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(name)
        return table.set_column(at, name, pa.array(values, table.schema.field(name).type))

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.take([1, 0]), "not in the order"),
        (_with("_ts", [1, 3]), "outside the range in the file's name"),
        (_with("_arrival", [0, 9]), "outside the range in the file's name"),
        (_with("_arrival", [0, 0]), "an arrival stands twice"),
        (_with("_sign", [1, -1]), "a sign is not"),
        (_with("f", [0.0, -0.0]), "NaN or -0.0"),
        (lambda t: t.drop_columns("f"), "the columns are"),
    ],
)
def test_verifying_finds_what_is_wrong(tmp_path: Path, change: Callable[[pa.Table], pa.Table], reason: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (f FLOAT) ARCHIVE '{tmp_path}'")
        db.push("S", [(0.0,), (1.0,)], ts=[1, 2])
    archive = find(str(tmp_path), "S")
    assert list(verify(archive)) == []
    _rewrite(archive, change)
    (problem,) = verify(archive)
    assert reason in problem


def test_verifying_finds_a_deletion_that_cancels_nothing(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (k INTEGER, n TEXT) ARCHIVE '{tmp_path}'")
        db.push("R", [(1, "a"), (2, None), (2, None), (1, "a")], ts=[1, 2, 3, 4], sign=[1, 1, -1, -1])
    archive = find(str(tmp_path), "R")
    assert list(verify(archive)) == []
    _rewrite(archive, _with("n", ["a", None, "a", "a"]))
    assert list(verify(archive)) == ["the deletion with arrival 2 cancels no row"]


@pytest.mark.parametrize(
    ("type_", "value", "equal", "other"),
    [
        ("INTEGER[]", [1, None], [1, None], [1]),
        ("STRUCT(a INTEGER, b TEXT)", {"a": 1, "b": None}, {"b": None, "a": 1}, {"a": 1, "b": ""}),
        ("MAP(TEXT, INTEGER)", {"a": 1, "b": 2}, {"b": 2, "a": 1}, {}),
    ],
)
def test_verifying_tells_nested_values_apart(tmp_path: Path, type_: str, value: Any, equal: Any, other: Any) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (v {type_}) ARCHIVE '{tmp_path}'")
        db.push("R", [(value,), (None,), (other,), (equal,)], ts=[1, 2, 3, 4], sign=[1, 1, 1, -1])
    archive = find(str(tmp_path), "R")
    assert list(verify(archive)) == []
    _rewrite(archive, _with("_sign", [1, 1, -1, -1]))
    assert list(verify(archive)) == ["the deletion with arrival 2 cancels no row"]


def test_verifying_finds_files_that_are_cut_off_or_in_the_wrong_place(archive: Archive) -> None:
    first, second, *_ = archive.files()
    shutil.rmtree(os.path.join(archive.folder, "_log"))  # which names the second where it has been
    with open(first.path, "r+b") as file:
        file.truncate(200)
    os.makedirs(archive.partition_folder(7))
    os.rename(second.path, os.path.join(archive.partition_folder(7), os.path.basename(second.path)))
    problems = "\n".join(verify(archive))
    assert "it cannot be read" in problems
    assert "does not belong to the partition" in problems


def test_the_command_line_looks_after_archives(archive: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    folder = os.path.dirname(archive.folder)
    assert main(["archive", "inspect", folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["archive", "kind", "rows", "files", "bytes", "first", "last", "columns"]
    assert [line.split()[:3] for line in lines[2:4]] == [["R", "relation", "60"], ["S", "stream", "120"]]
    assert "1970-01-01 00:00:00" in lines[3]
    assert main(["archive", "compact", archive.folder]) == 0
    assert capsys.readouterr().out.endswith("files before, 3 after\n")
    assert main(["archive", "verify", folder]) == 0
    assert capsys.readouterr().out == "R: sound\nS: sound\n"
    assert main(["archive", "inspect", archive.folder, "--files"]) == 0
    assert capsys.readouterr().out.count(".parquet") == 3


def test_the_command_line_names_what_is_wrong(
    archive: Archive, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Path(archive.files()[0].path).write_bytes(b"PAR1")
    assert main(["archive", "verify", archive.folder]) == 1
    out, err = capsys.readouterr()
    assert out == "S: 1 problem\n"
    assert "it cannot be read" in err
    (tmp_path / "empty").mkdir()
    for action in ("inspect", "verify", "compact"):
        assert main(["archive", action, str(tmp_path / "empty")]) == 1
        assert "has no archive" in capsys.readouterr().err
    assert main(["archive", "inspect", str(tmp_path / "nowhere")]) == 1
    metadata = Path(archive.folder, "_archive.json")
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"name": "S\x1b[31m"}))
    assert main(["archive", "inspect", archive.folder]) == 1 or "\x1b" not in capsys.readouterr().out


def _without_a_name(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"_arrival", b"\xff" * 8))


def _with_a_null(file: Path) -> None:
    table = parquet.read_table(file)
    ts = table.column("_ts").to_pylist()
    field = table.schema.get_field_index("_ts")
    parquet.write_table(table.set_column(field, "_ts", pa.array([None, *ts[1:]], table.schema.types[field])), file)


@pytest.mark.parametrize("damage", [_without_a_name, _with_a_null])
def test_a_damaged_file_is_told_by_verifying_and_an_error_to_compaction(
    archive: Archive, damage: Callable[[Path], None]
) -> None:
    for file in archive.files():
        damage(Path(file.path))
    assert all("it cannot be read" in reason for reason in verify(archive))
    assert list(verify(archive))
    with pytest.raises(Error):
        compact(archive)


def _foreign(file: Path) -> None:
    """Let the file be another one."""
    parquet.write_table(pa.table({"x": [1]}), file)


def _folder(file: Path) -> None:
    """Let a folder have the file's name."""
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (Path.unlink, "lacks a file that its log names: .*parquet(?s:.*)read the archive again"),
        (_folder, "lacks a file that its log names: .*parquet"),
        (_foreign, "lacks _ts in some rows(?s:.*)minidsms archive verify"),
        (_with_a_null, "lacks _ts in some rows"),
        (lambda file: file.write_bytes(b""), r"cannot read .*parquet"),
        (lambda file: file.write_bytes(file.read_bytes()[:500]), r"cannot read .*parquet"),
    ],
)
def test_a_replay_says_what_is_wrong_with_a_file(archive: Archive, damage: Callable[[Path], None], reason: str) -> None:
    damage(Path(archive.files()[5].path))
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER, t TEXT)")
        db.query("SELECT v FROM S WHERE v >= 0")
        for options in ({}, {"from_": 0}, {"push_down": False}):
            with pytest.raises(Error, match=reason):
                db.replay(archive.folder, **options)
        db.execute("CREATE STREAM T (v INTEGER)")
        assert db.push("T", (1,), ts=1) == 1


@pytest.mark.parametrize("ticks", ["1e999", "9" * 25, "0", "null"])
def test_a_partition_out_of_range_is_no_metadata(archive: Archive, ticks: str) -> None:
    path = Path(archive.folder) / "_archive.json"
    path.write_text(path.read_text().replace('"partition_ticks": 50', f'"partition_ticks": {ticks}'))
    with pytest.raises(Error, match="no metadata of an archive"):
        find(os.path.dirname(archive.folder), "S")


def test_a_type_that_is_none_is_no_metadata(archive: Archive) -> None:
    path = Path(archive.folder) / "_archive.json"
    path.write_text(path.read_text().replace('"type": "INTEGER"', '"type": "INTEGEZ"', 1))
    with pytest.raises(Error, match=r"_archive.json: no metadata of an archive \('INTEGEZ' is no type"):
        find(os.path.dirname(archive.folder), "S")
