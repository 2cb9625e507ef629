"""The folder, the metadata, the names and the order of what is read back."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from minidsms.archive import files, format
from minidsms.archive.format import Archive, Metadata, archives_in, create, find
from minidsms.cql.errors import Error
from minidsms.elements import Schema, Type

SCHEMA = Schema.of(
    ("car", Type.INTEGER),
    ("speed", Type.FLOAT),
    ("ok", Type.BOOLEAN),
    ("road", Type.TEXT),
    ("at", Type.TIMESTAMP),
    ("took", Type.INTERVAL),
)


def _metadata(name: str = "Pos", schema: Schema = SCHEMA, partition: int = 10) -> Metadata:
    return Metadata(name, "stream", "ms", schema, partition, 4, (0,))


def _table(archive: Archive, ts: list[int], arrival: list[int]) -> pa.Table:
    n = len(ts)
    values = [list(range(n)), [0.5 * i for i in range(n)], [i % 2 == 0 for i in range(n)], [f"A{i}" for i in range(n)]]
    values += [[10 * i for i in range(n)], [None] * n]
    arrays = [ts, arrival, [1] * n, *values]
    schema = archive.metadata.arrow_schema
    return pa.Table.from_arrays([pa.array(a, t) for a, t in zip(arrays, schema.types)], schema=schema)


def _keys(archive: Archive, **options: object) -> list[tuple[int, int]]:
    tables = list(files.read(archive, **options))  # type: ignore[arg-type]
    return [k for t in tables for k in zip(t.column("_ts").to_pylist(), t.column("_arrival").to_pylist())]


def test_metadata_survive_their_text() -> None:
    assert Metadata.from_json(_metadata().to_json(), "here") == _metadata()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "x"}', _metadata().to_json().replace('"stream"', '"heap"')]
)
def test_what_is_no_metadata_is_refused(text: str) -> None:
    with pytest.raises(Error, match="here: no metadata"):
        Metadata.from_json(text, "here")


def test_a_later_version_is_refused_by_its_number() -> None:
    text = json.dumps(json.loads(_metadata().to_json()) | {"version": 3})
    with pytest.raises(Error, match="version 3"):
        Metadata.from_json(text, "here")


def test_fields_are_unique_whatever_their_case() -> None:
    schema = Schema.of(("a", Type.INTEGER), ("A", Type.TEXT), ("_TS", Type.FLOAT), ("a_2", Type.BOOLEAN))
    assert _metadata(schema=schema).fields == ("a", "A_2", "_TS_2", "a_2_2")


def test_elements_come_back_in_order_and_typed(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    written = _table(archive, [25, 3, 3, -7, 12], [4, 2, 1, 0, 3])
    files.write(archive, written)
    assert archive.partitions() == [-1, 0, 1, 2]
    read = pa.concat_tables(files.read(archive)).cast(archive.metadata.arrow_schema)
    assert read.column("took").null_count == 5
    assert read.schema.equals(archive.metadata.arrow_schema)
    assert read.equals(written.take([3, 2, 1, 4, 0]))


def test_files_that_overlap_are_merged(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [1, 5, 9], [0, 1, 2]))
    files.write(archive, _table(archive, [2, 5, 15], [3, 4, 5]))
    assert _keys(archive) == [(1, 0), (2, 3), (5, 1), (5, 4), (9, 2), (15, 5)]
    assert _keys(archive, from_=5, to=9) == [(5, 1), (5, 4), (9, 2)]


def test_texts_of_merged_files_stay_with_their_elements(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [1, 5, 9], [0, 1, 2]))
    files.write(archive, _table(archive, [2, 5], [3, 4]))
    (read,) = files.read(archive, fields=["road"])
    assert read.column("road").to_pylist() == ["A0", "A0", "A1", "A1", "A2"]


def test_conditions_on_every_type_are_judged_while_reading(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [0, 1, 2, 3], [0, 1, 2, 3]))
    field = pc.field
    for where in (field("road") == "A2", field("car") == 2, field("speed") == 1.0, field("at") == 20):
        assert _keys(archive, where=where) == [(2, 2)]
    assert _keys(archive, where=field("ok") & (field("road") > "A0")) == [(2, 2)]


def test_files_that_only_touch_are_read_one_after_the_other(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [1, 5], [0, 1]))
    files.write(archive, _table(archive, [5, 6], [2, 3]))
    assert [len(group) for group in files.overlapping(archive.files())] == [1, 1]
    assert _keys(archive) == [(1, 0), (5, 1), (5, 2), (6, 3)]


def test_only_files_of_the_range_are_listed(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [0, 11, 22, 33], [0, 1, 2, 3]))
    assert [f.first_ts for f in archive.files(from_=12, to=30)] == [22]
    assert [f.first_ts for f in archive.files(to=11)] == [0, 11]


def test_columns_may_be_chosen(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [0], [0]))
    read = pa.concat_tables(files.read(archive, fields=["road", "car"]))
    assert read.column_names == ["_ts", "_arrival", "_sign", "road", "car"]


def test_files_of_another_writer_tell_their_ranges_by_their_footers(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    os.makedirs(archive.partition_folder(0))
    path = os.path.join(archive.partition_folder(0), "part-00000.snappy.parquet")
    parquet.write_table(_table(archive, [1, 2], [7, 8]), path)
    assert archive.files() == [format.ArchiveFile(path, 1, 2, 7, 8)]
    assert _keys(archive) == [(1, 7), (2, 8)]


def test_large_tables_become_several_files(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata(partition=1000))
    files.write(archive, _table(archive, list(range(25)), list(range(25))), file_rows=10)
    assert [f.first_ts for f in archive.files()] == [0, 10, 20]


def test_temporary_files_are_not_seen(tmp_path: Path) -> None:
    archive = create(str(tmp_path), _metadata())
    files.write(archive, _table(archive, [1], [0]))
    name = f".{format.file_name(2, 2, 1, 1)}.part"
    Path(archive.partition_folder(0), name).write_bytes(b"PAR1 and then the machine stopped")
    assert _keys(archive) == [(1, 0)]


def test_an_archive_is_found_by_its_name_whatever_its_case(tmp_path: Path) -> None:
    for name in ("Pos", "a/../b", ".hidden", "Ort ä"):
        create(str(tmp_path), _metadata(name))
        assert find(str(tmp_path), name.upper()).metadata.name == name
        assert Path(find(str(tmp_path), name).folder).parent == tmp_path
    (there,) = archives_in(str(tmp_path / "Pos"))
    assert replace(there.metadata, id="") == _metadata()
    with pytest.raises(Error, match='no archive "Neg"; there are:'):
        find(str(tmp_path), "Neg")


def test_an_archive_is_opened_again_only_with_the_same_columns(tmp_path: Path) -> None:
    made = create(str(tmp_path), _metadata())
    assert replace(made.metadata, id="") == _metadata()
    assert create(str(tmp_path), _metadata()).metadata == made.metadata
    with pytest.raises(Error, match="other columns"):
        create(str(tmp_path), _metadata(schema=Schema.of(("car", Type.INTEGER))))


def test_numpy_order_is_judged_by_both_columns() -> None:
    table = pa.table({"_ts": np.array([1, 1]), "_arrival": np.array([1, 0])})
    assert not files.in_order(table)
    assert files.in_order(table.slice(1))
