"""`spark.read.format("minidsms")`: what it reads is what the archives hold and `run` answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.spark import register
from minidsms.spark.data_source import ArchiveSource
from tests.archive.reading import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_spark_reads_both_by_its_own_means(spark: SparkSession, data: Path) -> None:
    register(spark)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW archive_of_s USING minidsms OPTIONS (path '{data}', name 'S')")
    assert spark.sql("SELECT k, v, t, _ts FROM archive_of_s WHERE _ts = 3").collect() == [(2**53 + 1, 1.5, None, 3)]
    frame = spark.read.format("minidsms").option("query", QUERIES[1]).load(str(data))
    assert frame.columns == ["_ts", "_sign", "MAX(v)", "MAX(v)_2"]
    assert frame.where("_ts = 19 AND _sign = 1").collect() == [(19, 1, 9.5, 9.5)]


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
