"""`spark.read.format("minidsms")`: what it reads is what the archives hold and `run` answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

import minidsms
from minidsms.archive.compacting import compact
from minidsms.archive.format import find
from minidsms.archive.verifying import verify
from minidsms.cql.errors import Error
from minidsms.spark import register
from minidsms.spark.data_source import ArchiveSource
from tests.archive.reading import elements, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceReader, InputPartition

QUERIES = [
    "SELECT k, COUNT(*) AS n FROM S [RANGE 3] GROUP BY k",
    "SELECT MAX(v), MAX(v) FROM S",
    "ISTREAM (SELECT S.k, label FROM S [NOW], R WHERE S.k = R.k)",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER, v FLOAT, t TEXT) ARCHIVE '{tmp_path}'")
        db.execute(f"CREATE RELATION R (k INTEGER, label TEXT) ARCHIVE '{tmp_path}'")
        db.push("R", [(1, "one"), (2, None)], ts=[0, 4])
        for part in range(2):
            ts = list(range(part * 10, part * 10 + 10))
            db.push("S", [(2**53 + 1 if i == 3 else i % 3, i / 2, None if i % 4 else "x") for i in ts], ts=ts)
            db.flush()
    return tmp_path


def _read(**options: Any) -> list[tuple[Any, ...]]:
    """As Spark reads, without it."""
    reader = ArchiveSource({name: str(value) for name, value in options.items()}).reader(None)  # type: ignore[arg-type]
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_elements_are_those_of_the_archive(data: Path) -> None:
    expected = [tuple(row.values()) for row in rows(data, "S")]
    assert sorted(_read(path=data, name="s"), key=repr) == sorted(expected, key=repr)
    assert sorted(row[0] for row in _read(path=data, name="S", **{"from": 5, "to": "1970-01-01 00:00:00.012"})) == [
        *range(5, 13)
    ]
    assert len(_read(path=data / "S", name="S", as_of=1)) == 10


@pytest.mark.parametrize("query", QUERIES)
def test_changes_are_those_of_the_live_engine(data: Path, query: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v FLOAT, t TEXT); CREATE RELATION R (k INTEGER, label TEXT)")
        q = db.query(query)
        db.replay(str(data))
        db.advance(19)
        expected = Counter((c.ts, c.sign, *c.row) for c in q.fetch())
    assert Counter(_read(path=data, query=query)) == expected
    assert Counter(_read(path=data, query=query, to=7)) == Counter({c: n for c, n in expected.items() if c[0] <= 7})


def test_what_is_removed_while_spark_reads_is_an_error(data: Path) -> None:
    rows = ArchiveSource({"path": str(data), "name": "S"}).reader(None)  # type: ignore[arg-type]
    changes = ArchiveSource({"path": str(data), "query": QUERIES[1]}).reader(None)  # type: ignore[arg-type]
    (part,), (whole,) = rows.partitions(), changes.partitions()

    def read(reader: DataSourceReader, part: InputPartition) -> list[pa.RecordBatch]:
        return list(reader.read(part))

    before = read(changes, whole)
    compact(find(str(data), "S"))
    assert read(changes, whole) == before
    with pytest.raises(Error, match=r"compaction has merged files that .*/S'\nhelp: run it again"):
        read(rows, part)
    with minidsms.connect(archive_retention="1 SECOND") as db:
        db.execute(f"CREATE STREAM S (k INTEGER, v FLOAT, t TEXT) ARCHIVE '{data}'")
        db.push("S", [(1, 1.0, "x")], ts=10**9)
    for reader, each in ((rows, part), (changes, whole)):
        with pytest.raises(Error, match=r"retention has removed elements .*/S', up to instant 19"):
            read(reader, each)


@pytest.mark.long
def test_spark_reads_both_by_its_own_means(spark: SparkSession, data: Path) -> None:
    register(spark)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW archive_of_s USING minidsms OPTIONS (path '{data}', name 'S')")
    assert spark.sql("SELECT k, v, t, _ts FROM archive_of_s WHERE _ts = 3").collect() == [(2**53 + 1, 1.5, None, 3)]
    frame = spark.read.format("minidsms").option("query", QUERIES[1]).load(str(data))
    assert frame.columns == ["_ts", "_sign", "MAX(v)", "MAX(v)_2"]
    last = frame.where("_ts = 19 AND _sign = 1")
    assert last.collect() == [(19, 1, 9.5, 9.5)]
    last.write.format("minidsms").option("name", "greatest").mode("append").save(str(data))
    assert elements(data, "greatest") == [(19, 1, 9.5, 9.5)]


def _written(folder: Path, rows: list[dict[str, Any]], ddl: str, batch: int | None = None, **options: Any) -> None:
    """As Spark writes, a row in each of two tasks and the others in a third, without it."""
    types = {"long": T.LongType(), "int": T.IntegerType(), "byte": T.ByteType(), "double": T.DoubleType()}
    types["timestamp"] = T.TimestampType()
    fields = [column.split() for column in ddl.split(", ")]
    schema = T.StructType([T.StructField(name, types[type_]) for name, type_ in fields])
    options = {name.rstrip("_"): str(value) for name, value in options.items()}  # `batch` is a number here
    source = ArchiveSource({"path": str(folder), **options})
    writer: Any = source.writer(schema, False) if batch is None else source.streamWriter(schema, False)
    arrow = to_arrow_schema(schema)
    parts = [rows[:1], rows[1:2], rows[2:], []]
    messages = [writer.write(iter(pa.Table.from_pylist(part, arrow).to_batches())) for part in parts]
    writer.commit(messages, *([] if batch is None else [batch]))


ANSWERS = "_ts long, _sign byte, k long, mean double"


def test_what_is_written_is_an_archive_and_a_batch_that_comes_again_adds_nothing(tmp_path: Path) -> None:
    changes = [
        {"_ts": ts, "_sign": sign, "k": 2**53 + 1 if ts else None, "mean": mean}
        for ts, sign, mean in ((0, 1, 0.5), (86_400_000, 1, float("nan")), (5, -1, -0.0), (3, 1, -0.0))
    ]
    of_stream = {"name": "A", "kind": "relation", "batch_": "x"}
    for batch in (0, 0, 1):
        _written(tmp_path, changes if batch == 0 else changes[:1], ANSWERS, batch, **of_stream)
    _written(tmp_path, [{"_ts": 9, "_sign": 1, "k": 1, "mean": None, "n": 7}], f"{ANSWERS}, n int", name="a")
    found = find(str(tmp_path), "A")
    assert elements(tmp_path, "A") == [
        (0, 1, None, 0.5, None),
        (0, 1, None, 0.5, None),
        (3, 1, 2**53 + 1, 0.0, None),
        (5, -1, 2**53 + 1, 0.0, None),
        (9, 1, 1, None, 7),
        (86_400_000, 1, 2**53 + 1, None, None),
    ]
    assert list(verify(found)) == []
    assert not list(Path(found.folder).glob("_write-*"))


@pytest.mark.parametrize(
    ("ddl", "row", "options", "reason"),
    [
        ("k long", {"k": 1}, {}, "takes a column _ts"),
        ("_ts long, k timestamp", {}, {}, "cast it, instants to ticks"),
        ("_ts long, k long", {"_ts": None, "k": 1}, {}, "_ts is NULL"),
        ("_ts long, _sign byte, k long", {"_ts": 1, "_sign": -1, "k": 1}, {}, "_sign of a stream is 1"),
        ("_ts long, k long", {}, {"kind": "table"}, "kind is stream or relation"),
        ("_ts long, k long", {}, {"query": "x"}, "no option query"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, ddl: str, row: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Error, match=reason):
        _written(tmp_path, [row], ddl, name="S", **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "either name or query"),
        ({"name": "S", "query": QUERIES[0]}, "either name or query"),
        ({"name": "T"}, "no archive .T.; there are: R, S"),
        ({"name": "S", "nme": "S"}, "no option nme"),
        ({"query": QUERIES[0], "from": 3}, "from its beginning"),
        ({"query": "SELECT x FROM S"}, "unknown column"),
        ({"name": "S", "to": "soon"}, "not an ISO time"),
    ],
)
def test_what_cannot_be_read_is_refused(data: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(Error, match=reason):
        _read(path=data, **options)
