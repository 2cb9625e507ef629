"""DECIMAL, DATE, TIME, lists, structs and maps on Spark: every way gives what the running query gave."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import minidsms
from minidsms import spark as on_spark
from minidsms.archive import files
from minidsms.archive.format import find
from minidsms.cql.words import TICK_NS
from minidsms.spark.ingest import ingest
from minidsms.testing.compare import netted
from minidsms.values.arrow_types import stored_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "k INTEGER, d DECIMAL(12, 2), l TEXT[], s STRUCT(a INTEGER, t TIMESTAMP, x TIME, n FLOAT[]), "
    "m MAP(TEXT, DECIMAL(5, 1)), day DATE, at TIME"
)
NEAR = {"a": 1, "t": 1000, "x": "10:00", "n": [1.5]}
ROWS: list[tuple[Any, ...]] = [
    (1, "1.50", ["a", None], NEAR, {"k": "1.5", "j": None}, "2024-02-29", "10:11"),
    (2, None, None, None, None, None, None),
    (1, "-99.99", [], {"a": None, "t": None, "x": None, "n": None}, {}, "0001-01-01", "00:00"),
    (2, "9999999999.99", ["a", None], None, {"k": "1.5"}, "9999-12-01", "23:59:59.999999"),
    (1, "1.50", ["b"], NEAR, None, "2024-02-29", "10:11"),
]
PLAIN = "SELECT ISTREAM(*) FROM S [RANGE 3] WHERE d > 1.4 OR day < DATE '1970-01-01' OR l IS NULL"
GROUPED = "SELECT l, s, m, COUNT(*), COUNT(DISTINCT d), MIN(d), MAX(day) FROM S [RANGE 3] GROUP BY l, s, m"
JOINED = "SELECT a.k, a.l, b.d FROM S [RANGE 4] AS a, S [RANGE 3] AS b WHERE a.l = b.l AND a.day = b.day"
DIFFERENT = "SELECT DISTINCT s, m FROM S [RANGE 4]"
COMPUTED = (
    "SELECT k, d * 2 AS d2, TRUNC(d, 1) AS d1, TRUNC(d, -2) AS d0, "
    "s.n[1] AS n, m['k'] AS mk, day + 14 AS due, CAST(at AS TEXT) AS clock, "
    "COALESCE(d, 0.00) AS c FROM S [RANGE 3]"
)
SUMS = "SELECT k, SUM(d), AVG(d), FIRST(l) FROM S [ROWS UNBOUNDED] GROUP BY k"
ELEMENTS = "SELECT ISTREAM(k, e) FROM S [RANGE 3], UNNEST(l) AS e"
"""What only engines do."""


def _told(table: pa.Table, types: tuple[Any, ...]) -> dict[int, Any]:
    """The net changes at each instant, as archives have values."""
    columns = [table["_ts"].cast(pa.int64()).to_pylist(), table["_sign"].to_pylist()]
    columns += [table.column(2 + i).cast(stored_type(t)).to_pylist() for i, t in enumerate(types)]
    return netted((ts, sign, tuple(map(repr, row))) for ts, sign, *row in zip(*columns))


def _check(spark: SparkSession, folder: str, ways: Sequence[tuple[str, str]]) -> None:
    """Each query is answered alike live and in its way on Spark."""
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S ({COLUMNS})")
        db.archive("S", folder, partition=4)
        queries = {text: db.query(text) for text in dict.fromkeys(text for text, _ in ways)}
        for ts, row in enumerate(ROWS, 1):
            db.push("S", row, ts=ts)
        db.push("S", ROWS, ts=[6, 6, 7, 8, 9])
        db.advance(9)
        types = {text: query.schema.types for text, query in queries.items()}
        live = {text: _told(query.fetch_arrow(), types[text]) for text, query in queries.items()}
    assert all(live.values())
    for text, by in ways:
        answer = on_spark.run(text, folder, spark=spark, by=by).toArrow()
        assert _told(answer, types[text]) == live[text], (text, by)


def test_values_of_all_types_are_answered_alike_live_by_frames_and_by_engines_in_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    _check(spark, str(tmp_path), [(PLAIN, "frames"), (COMPUTED, "engines"), (SUMS, "engines")])
    with pytest.raises(minidsms.Error, match="by DataFrame operations"):
        on_spark.run(ELEMENTS, str(tmp_path), spark=spark, by="frames")


@pytest.mark.long
def test_more_queries_are_answered_alike_live_by_frames_and_by_engines_in_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = (PLAIN, GROUPED, JOINED, DIFFERENT, COMPUTED)
    ways = [(text, by) for text in texts for by in ("frames", "engines")]
    _check(spark, str(tmp_path), [*ways, (ELEMENTS, "engines")])


@pytest.mark.long
def test_raw_files_and_frames_of_spark_bring_them_into_archives(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        {"ts": 1, "d": "1.50", "l": ["a", None], "s": {"a": 1}, "m": {"k": 2}, "day": "2024-02-29", "at": "10:11"},
        {"ts": 2, "l": "no list"},
        {"ts": 3},
    ]
    raw = tmp_path / "raw.json"
    raw.write_text("".join(json.dumps(line) + "\n" for line in lines))
    declaration = (
        "CREATE STREAM S (ts TIMESTAMP, d DECIMAL(12, 2), l TEXT[], s STRUCT(a INTEGER), m MAP(TEXT, INTEGER), "
        "day DATE, at TIME) TIMESTAMP BY ts"
    )
    done = ingest(str(raw), str(tmp_path / "a"), declaration, format="json", spark=spark)
    assert (done.rows, done.rejected) == (2, 1)
    on_spark.register(spark)
    read = spark.read.format("minidsms").option("name", "S").load(str(tmp_path / "a"))
    written = read.where("d IS NOT NULL").select("_ts", "d", "l", "s", "m", "day", "at")
    written.write.format("minidsms").option("name", "T").mode("append").save(str(tmp_path / "b"))
    for folder, name in (("a", "S"), ("b", "T")):
        table = pa.concat_tables(files.read(find(str(tmp_path / folder), name))).slice(0, 1)
        assert table.select(["d", "l", "s", "m", "day", "at"]).to_pylist() == [
            {
                "d": Decimal("1.50"), "l": ["a", None], "s": {"a": 1}, "m": [("k", 2)],
                "day": datetime.date(2024, 2, 29), "at": 36_660_000_000,
            }
        ]  # fmt: skip


@pytest.mark.parametrize("unit", ["ns", "ms", "h"])
def test_times_are_those_of_spark_where_they_are_asked_for(spark: SparkSession, tmp_path: Path, unit: str) -> None:
    ns = TICK_NS[unit]
    instants = [-1, 0, 1_700_000_000_000_000_789 // ns, *([2**61] if unit != "ns" else [])]
    rows = [(instants[0], 7, "a"), *[(ts, None, "b") for ts in instants[1:]]]
    with minidsms.connect(time_unit=unit) as db:
        db.execute(f"CREATE STREAM S (at TIMESTAMP, n INTEGER, _time TEXT) TIMESTAMP BY at ARCHIVE '{tmp_path}'")
        db.push("S", rows)
        db.flush()
    query = "ISTREAM (SELECT at, n, _time FROM S [NOW])"
    plain = on_spark.run(query, str(tmp_path)).orderBy("_ts").collect()
    timed = on_spark.run(query, str(tmp_path), times=True)
    assert timed.columns == ["_ts", "_time", "_sign", "at", "n", "_time_2"]
    told = timed.selectExpr("_ts", "unix_micros(_time) m", "unix_micros(at) n", "_sign", "n", "_time_2").orderBy("_ts")
    micros = [ts * ns // 1000 for ts in instants]
    expected = [m if m < 2**63 else None for m in micros]
    assert [(r[1], r[2]) for r in told.collect()] == [(m, m) for m in expected]
    assert [(r[0], r[3], r[4], r[5]) for r in told.collect()] == [(r[0], r[1], r[3], r[4]) for r in plain]
