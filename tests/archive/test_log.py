"""The commit log: readers see whole commits, a crash anywhere loses and doubles nothing, old archives are read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import minidsms
from minidsms.archive import files, log
from minidsms.archive.compacting import compact
from minidsms.archive.format import Archive, Metadata, create, find
from minidsms.archive.log import read_snapshot
from minidsms.archive.verifying import verify
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.elements import Schema, Type
from minidsms.spark import ingest
from tests.archive.reading import rows
from tests.long.faults import Faults, injected

DAY = 86_400_000


def _archive(folder: Path, partition: int = 10) -> Archive:
    return create(str(folder), Metadata("S", "stream", "ms", Schema.of(("v", Type.INTEGER)), partition))


def _table(archive: Archive, ts: list[int], first: int) -> pa.Table:
    n = len(ts)
    columns = [ts, list(range(first, first + n)), [1] * n, ts]
    schema = archive.metadata.arrow_schema
    return pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, schema.types)], schema=schema)


def _values(archive: Archive) -> list[int]:
    return [row["v"] for row in rows(archive.folder, "S")]


def _data_files(archive: Archive) -> set[str]:
    return {str(path) for path in Path(archive.folder).rglob("*.parquet")}


def _staged(archive: Archive, ts: list[int], first: int) -> str:
    """A folder as Spark leaves it."""
    staging = Path(archive.folder, "_ingest-1")
    for i, value in enumerate(ts):
        place = staging / f"_part={value // archive.metadata.partition_ticks}"
        place.mkdir(parents=True, exist_ok=True)
        parquet.write_table(_table(archive, [value], first + i), place / f"part-{i}.parquet")
    return str(staging)


def test_only_what_has_been_committed_is_of_the_archive(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    with Writer(archive) as writer:
        paths = [files.write_piece(archive, piece) for piece in files.pieces(archive, _table(archive, [1, 25], 0))]
        assert _values(archive) == []
        writer.commit("archive", paths)
        assert _values(archive) == [1, 25]
        lost = files.write_piece(archive, _table(archive, [2], 2))
    with Writer(archive):
        assert not os.path.exists(lost)
    assert _values(archive) == [1, 25]
    snapshot = read_snapshot(archive.folder)
    assert snapshot is not None and snapshot.arrivals == 2


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_crash_at_any_operation_leaves_whole_commits(tmp_path: Path, step: int) -> None:
    """Two appends, an ingest and a compaction; from the n-th operation on everything fails, as for a dead process."""
    whole = [[], [1, 2, 25], [1, 2, 3, 11, 25], [1, 2, 3, 4, 11, 25, 26]]
    for at in range(1, 1000, step):
        folder = tmp_path / str(at)
        archive = _archive(folder)
        done = 0
        with injected(Faults(at, lasting=True)) as faults:
            try:
                files.write(archive, _table(archive, [1, 2, 25], 0))
                done = 1
                files.write(archive, _table(archive, [3, 11], 3))
                done = 2
                faults.is_on = False
                staging = _staged(archive, [4, 26], 5)
                faults.is_on = True
                with Writer(archive) as writer:
                    assert ingest.commit(writer, staging, "monday", [log.Origin("a.csv")]) == 2
                done = 3
                compact(archive)
                done = 4
            except (Error, OSError):
                pass
        found = _values(archive)
        assert found in whole[min(done, 3) :][:2], (at, done)
        assert list(verify(archive)) == []
        snapshot = read_snapshot(archive.folder)
        assert snapshot is None or ("monday" in snapshot.batches) == (len(found) == 7)
        compact(archive)
        assert _values(archive) == found
        assert _data_files(archive) == {f.path for f in archive.files()} | {
            path for path in _data_files(archive) if "_ingest-" in path
        }
        if not faults.failed:
            break
    assert done == 4
    assert at > 60


def test_the_log_stays_short_and_remembers_ingests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "WHOLE", 4)
    archive = _archive(tmp_path)
    with Writer(archive) as writer:
        for i in range(30):
            path = files.write_piece(archive, _table(archive, [i], i))
            batch, origins = ("b", [log.Origin("x.csv", 2, 1)]) if i == 5 else (None, [])
            writer.commit("archive", [path], batch=batch, origins=origins)
        written = writer.snapshot
    assert _values(archive) == list(range(30))
    assert len(os.listdir(Path(archive.folder, "_log"))) < 9
    snapshot = read_snapshot(archive.folder)
    assert snapshot == written
    assert snapshot is not None
    assert snapshot.batches == {"b"} and snapshot.inputs == {"x.csv"}
    assert [m.number for m in snapshot.marks] == [0, 4, 6, 8, 12, 16, 20, *range(24, 31)]


def test_a_damaged_manifest_is_told(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    files.write(archive, _table(archive, [1], 0))
    last = max(Path(archive.folder, "_log").iterdir())
    for text in (last.read_text().replace('"arrivals": 1', '"arrivals": 2'), "{", "[]"):
        last.write_text(text)
        with pytest.raises(Error, match="cannot be read"):
            archive.files()


def _archive_of_version_1(folder: Path) -> Archive:
    """As earlier versions wrote it, with a compaction that was cut short before its rename."""
    metadata = Metadata("S", "stream", "ms", Schema.of(("v", Type.INTEGER)), DAY, version=1)
    place = folder / "S"
    (place / "_part=0").mkdir(parents=True)
    (place / "archive.json").write_text(metadata.to_json())
    archive = find(str(folder), "S")
    for i in range(2):
        parquet.write_table(_table(archive, [i], i), place / "_part=0" / f"{i}_{i}_{i}_{i}_0a.parquet")
    new = "0_1_0_1_0b.parquet"
    parquet.write_table(_table(archive, [0, 1], 0), place / "_part=0" / f".{new}.part")
    old = ["0_0_0_0_0a.parquet", "1_1_1_1_0a.parquet"]
    (place / "_part=0" / ".replace-0c.json").write_text(
        json.dumps({"temporary": f".{new}.part", "new": new, "old": old})
    )
    return archive


def test_an_archive_of_an_earlier_version_is_read_and_gets_a_log_when_it_is_written(tmp_path: Path) -> None:
    archive = _archive_of_version_1(tmp_path)
    assert _values(archive) == [0, 1]
    assert archive.partitions() == [0]
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (2,), ts=DAY)
    assert _values(archive) == [0, 1, 2]
    assert sorted(os.listdir(archive.folder)) == [
        ".lock",
        "_log",
        "_part=0",
        "_part=1",
        "_progress.json",
        "archive.json",
    ]
    assert os.listdir(archive.partition_folder(0)) == ["0_1_0_1_0b.parquet"]
    assert list(verify(archive)) == []


def test_other_readers_of_parquet_read_the_folder_and_see_days(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER, part TEXT) ARCHIVE '{tmp_path}'")
        db.push("S", [(1, "a"), (2, "b")], ts=[0, DAY])
        db.push("S", (3, "c"), ts=DAY)
    frame = pd.read_parquet(tmp_path / "S").sort_values("v")
    assert frame["part_2"].tolist() == ["a", "b", "c"]
    assert frame["part"].astype(str).tolist() == ["1970-01-01", "1970-01-02", "1970-01-02"]


def test_file_urls_are_paths(tmp_path: Path) -> None:
    place = tmp_path / "with blank"
    archive = create(f"file://{str(place).replace(' ', '%20')}", _archive(tmp_path).metadata)
    assert archive.folder == str(place / "S")
    assert find(f"file:{place}", "S") == archive
    with minidsms.connect(safe=True, allowed_paths=["."]) as db, pytest.raises(Error, match="safe mode"):
        db.replay(f"file:{tmp_path}")
