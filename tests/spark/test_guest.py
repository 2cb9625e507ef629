"""A session whose user has set what queries, ingests and streams might lean on: all is as in any other."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

import minidsms
from minidsms import spark as on_spark
from minidsms.cql.errors import Error
from minidsms.spark.ingest import ingest
from minidsms.spark.session import activate
from tests.archive.reading import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THEIRS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
    "spark.sql.parser.quotedRegexColumnNames": "true",
}
DECLARED = "CREATE STREAM S (at TIMESTAMP, k INTEGER, v FLOAT) TIMESTAMP BY at"
NOON = 1_704_110_400_000  # of 2024-01-01, UTC
QUERY = "SELECT k, COUNT(*) AS n, AVG(V) AS mean FROM S [RANGE 2 SECONDS] GROUP BY K"
ANSWER = [
    (NOON, 1, 1, 1, 0.5),
    (NOON + 1000, -1, 1, 1, 0.5),
    (NOON + 1000, 1, 1, 2, 0.5),
    (NOON + 2000, -1, 1, 2, 0.5),
    (NOON + 2000, 1, 1, 1, None),
]


@pytest.fixture
def theirs(spark: SparkSession) -> Iterator[SparkSession]:
    guest = spark.newSession()
    for name, value in THEIRS.items():
        guest.conf.set(name, value)
    activate(guest)
    yield guest
    activate(spark)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        db.archive("S", str(tmp_path / "data"))
        db.push("S", [(NOON, 1, 0.5), (NOON + 1000, 1, None), (NOON + 2000, 2, 0.0)])
    return str(tmp_path / "data")


@pytest.mark.parametrize("by", ["frames", "engines", "replay"])
def test_queries_are_answered_alike(theirs: SparkSession, folder: str, by: str) -> None:
    frame = on_spark.run(QUERY, folder, spark=theirs, by=by, until=NOON + 2000)
    assert sorted(map(tuple, frame.where("k = 1").collect()), key=str) == sorted(ANSWER, key=str)
    timed = on_spark.run(
        "SELECT ISTREAM(at, v / (k - 1) AS share, k % 2 AS rest) FROM S [NOW]", folder, spark=theirs, by=by, times=True
    )
    assert timed.dtypes[1] == ("_time", "timestamp")
    times = timed.selectExpr("_ts", "unix_millis(_time)", "unix_millis(at)", "share", "rest").collect()
    assert sorted(map(tuple, times)) == [
        (NOON, NOON, NOON, None, 1),
        (NOON + 1000, NOON + 1000, NOON + 1000, None, 1),
        (NOON + 2000, NOON + 2000, NOON + 2000, 0.0, 0),
    ]


def test_raw_data_have_the_times_that_they_say(theirs: SparkSession, tmp_path: Path) -> None:
    raw, data = tmp_path / "raw", str(tmp_path / "data")
    raw.mkdir()
    (raw / "a.csv").write_text("At,k,V\n2024-01-01 12:00:00,1,nan\n2024-01-01T14:00:01+02:00,2,1\n1704110402000,3,x\n")
    assert str(ingest(str(raw / "a.csv"), data, DECLARED, "csv", spark=theirs)).startswith("S: 2 rows, 1 rejected")
    local = [datetime.datetime(2024, 1, 1, 12, 0, second) for second in (3, 4)]
    for name, zone in (("zoned", "UTC"), ("local", None)):
        table = pa.table({"at": pa.array(local, pa.timestamp("us", zone)), "k": [4, 4], "v": [1.0, 2.0]})
        parquet.write_table(table, raw / f"{name}.parquet")
    ingest(str(raw / "*.parquet"), data, DECLARED, "parquet", spark=theirs)
    theirs.sql("SELECT TIMESTAMP_LTZ'2024-01-01 12:00:05Z' AS at, 5 AS k, 1D AS v").createOrReplaceTempView("zoned")
    theirs.sql("SELECT TIMESTAMP'2024-01-01 12:00:06' AS at, 6 AS k, 1D AS v").createOrReplaceTempView("local")
    for name in ("zoned", "local"):
        ingest(name, data, DECLARED, "table", spark=theirs)
    ingest(theirs.table("zoned"), data, DECLARED)
    with pytest.raises(Error, match="column at is timestamp_ntz, which names no time zone"):
        ingest(theirs.table("local"), data, DECLARED)
    found = [(row["_ts"], row["k"]) for row in rows(tmp_path / "data", "S")]
    assert sorted(found) == [(NOON + 1000 * s, k) for s, k in enumerate((1, 2))] + [
        *((NOON + 1000 * s, 4) for s in (3, 3, 4, 4)),
        *((NOON + 5000, 5), (NOON + 5000, 5), (NOON + 6000, 6)),
    ]


def test_streams_and_the_format_are_as_elsewhere(theirs: SparkSession, folder: str, tmp_path: Path) -> None:
    on_spark.register(theirs)
    elements = theirs.read.format("minidsms").option("name", "S").load(folder)
    (tmp_path / "raw").mkdir()
    elements.selectExpr("timestamp_millis(at) AS at", "k", "v").write.parquet(str(tmp_path / "raw" / "a"))
    live = theirs.readStream.schema("at timestamp_ltz, k bigint, v double").parquet(str(tmp_path / "raw" / "*"))
    changes = on_spark.stream(QUERY, {"S": live}, DECLARED + " SLACK 0 SECONDS", parts=1, times=True)
    assert ("_time", "timestamp") in changes.dtypes
    writing = changes.drop("_time").writeStream.format("minidsms").option("name", "answer").option("kind", "relation")
    writing = writing.option("batch", "theirs").option("checkpointLocation", str(tmp_path / "state"))
    writing.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    written = [tuple(row.values()) for row in rows(tmp_path / "out", "answer")]
    assert [(ts, sign, *row) for ts, _, sign, *row in written if row[0] == 1][:3] == ANSWER[:3]
