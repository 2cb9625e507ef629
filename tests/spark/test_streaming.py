"""CQL over streaming DataFrames: the definition's answer, however the stream is cut, also when it is started again."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from minidsms import connect
from minidsms.cql.errors import CqlError, Error
from minidsms.spark import explain_stream, register, stateful, stream
from minidsms.spark.ingest import ingest
from minidsms.spark.packing import packed, unpacked
from minidsms.spark.partitioning import ByKey
from minidsms.spark.session import activate
from minidsms.spark.stateful import RELATIONS_SINCE, Engines, closed_by, forget_engines
from minidsms.spark.streaming import Streamable, prepare
from minidsms.testing.definition import answer
from minidsms.testing.history import History, value_order
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS, create_all
from tests.archive import reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DECLARED = """
CREATE STREAM S (at TIMESTAMP, k INTEGER, v INTEGER) TIMESTAMP BY at SLACK 20;
CREATE STREAM T (at TIMESTAMP, k INTEGER, name TEXT) TIMESTAMP BY at SLACK 20;
CREATE RELATION R (k INTEGER, label TEXT)
"""
LABELS = [(1, "one"), (2, "two"), (2, "zwei"), (7, None)]

BY_KEY = [
    "SELECT k, COUNT(*), SUM(v) FROM S [RANGE 30] GROUP BY k",
    "ISTREAM (SELECT S.k, v, name FROM S [RANGE 15], T [RANGE 25 SLIDE 5] WHERE S.k = T.k)",
    "SELECT k, MAX(v) FROM S [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT k, AVG(v) FROM S GROUP BY k",
    "SELECT DISTINCT k, name FROM T",
    "SELECT name, COUNT(*), MAX(at) FROM T GROUP BY name",
    "SELECT A.k, n, v FROM (SELECT k, COUNT(*) AS n FROM T GROUP BY k) A, S [RANGE 20] WHERE A.k = S.k",
    "SELECT DISTINCT k FROM S [RANGE 10] WHERE v > 3",
    "SELECT S.k, label, v FROM S [RANGE 10], R WHERE S.k = R.k",
    "(SELECT k FROM S [RANGE 20]) EXCEPT (SELECT k FROM T [RANGE 40])",
    "SELECT S.k, v, name, label FROM S [PARTITION BY k ROWS 2], T [RANGE 9], R WHERE S.k = T.k AND T.k = R.k",
    "SELECT k, n FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM S [RANGE 12] GROUP BY k)) [RANGE 20]",
]
BY_KEY += [
    "SELECT k, uf_tag(name, k), COUNT(*) FROM T [RANGE 20] GROUP BY k, name",
    "SELECT S.k, uf_odd(v, T.k) FROM S [RANGE 9], T [RANGE 9] WHERE S.k = T.k AND uf_tag(name, 1) <> 'x1'",
]
WHOLE = [
    "SELECT SUM(v), COUNT(*) FROM S [RANGE 25 SLIDE 10]",
    "SELECT k, v FROM S [ROWS 4] WHERE v <> 2",
    "RSTREAM (SELECT COUNT(*) FROM S [RANGE 30])",
    "SELECT COUNT(*), MIN(v), MAX(name) FROM (SELECT S.k, v, name FROM S [NOW], T [NOW] WHERE S.k = T.k)",
    "(SELECT k FROM R) UNION (SELECT k FROM T [RANGE 30])",
    "SELECT SUM(v) FROM S [ROWS 5 SLIDE 3]",
    "SELECT k, COUNT(*), MIN(v) FROM S [SESSION 6 PARTITION BY k] GROUP BY k",
    "ISTREAM (SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY at, v) FROM S)",
    "RSTREAM (SELECT k, name FROM T [PARTITION BY k ROWS 1])",
    "SELECT v, n FROM S [ROWS 2] A, (SELECT COUNT(*) AS n FROM T) B",
    "SELECT COUNT(*) FROM (SELECT k FROM S WHERE v > 1) [ROWS 4], T [PARTITION BY name ROWS 1]",
    "SELECT ua_span(v), COUNT(*) FROM S [ROWS 4]",
]


class _Store:
    """Spark's state store and its timers, for one operator."""

    def __init__(self) -> None:
        self.lists: dict[int, list[tuple[Any, ...]]] = {}
        self.others: dict[int, list[tuple[Any, ...]]] = {}
        self.values: dict[int, tuple[Any, ...]] = {}
        self.timers: dict[int, set[int]] = {}
        self.part = 0

    def getListState(self, name: str, schema: str) -> Any:
        lists = self.lists if name == "elements" else self.others
        return SimpleNamespace(
            get=lambda: iter(list(lists.get(self.part, []))),
            put=lambda rows: lists.__setitem__(self.part, list(rows)),
            appendValue=lambda row: lists.setdefault(self.part, []).append(row),
            clear=lambda: lists.pop(self.part, None),
        )

    def getValueState(self, name: str, schema: str) -> Any:
        return SimpleNamespace(
            exists=lambda: self.part in self.values,
            get=lambda: self.values[self.part],
            update=lambda row: self.values.__setitem__(self.part, row),
        )

    def registerTimer(self, at_ms: int) -> None:
        self.timers.setdefault(self.part, set()).add(at_ms)

    def deleteTimer(self, at_ms: int) -> None:
        self.timers[self.part].remove(at_ms)


class _Run:
    """Micro-batches as Spark makes them: rows of a batch first, then the timers that the watermark has passed."""

    def __init__(self, ready: Streamable, parts: int) -> None:
        self.ready, self.parts = ready, parts
        self.store = _Store()
        self.answers: list[tuple[int, int, tuple[Any, ...]]] = []
        self.inputs = {name: i for i, (name, _, _) in enumerate(ready.setting.inputs)}
        relations: dict[int, dict[int, bytes]] = {}
        if "R" in self.inputs:
            for part in range(parts):
                rows = [row for row in LABELS if self._part("R", row) == part]
                relations.setdefault(part, {})[self.inputs["R"]] = packed(self._table("R", [(0, row) for row in rows]))
        self.engines = Engines(ready.setting, relations, ready.catalog.tick_ns)

    def _part(self, name: str, row: tuple[Any, ...]) -> int:
        cut = self.ready.cut
        key = row[cut.columns[name.lower()]] if isinstance(cut, ByKey) else 0
        return (key if isinstance(key, int) else ord(key or "a")) % self.parts

    def _table(self, name: str, rows: list[tuple[int, tuple[Any, ...]]]) -> pa.Table:
        schema = self.ready.setting.inputs[self.inputs[name]][2]
        columns = {"_ts": pa.array([ts for ts, _ in rows], pa.int64())}
        for i, type_ in enumerate(schema.types):
            columns[f"c{i}"] = pa.array([r[i] for _, r in rows], pa.string() if str(type_) == "TEXT" else pa.int64())
        return pa.table(columns)

    def batch(self, rows: dict[str, list[tuple[int, tuple[Any, ...]]]], watermark_ms: int) -> None:
        times = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark_ms)
        by_part: dict[int, list[tuple[int, bytes]]] = {}
        for name, elements in rows.items():
            for part in range(self.parts):
                mine = [(ts, row) for ts, row in elements if self._part(name, row) == part]
                if mine:
                    by_part.setdefault(part, []).append((self.inputs[name], packed(self._table(name, mine))))
        for part, payloads in by_part.items():
            frame = pd.DataFrame(payloads, columns=["input", "payload"])
            self._call(part, lambda part=part, frame=frame: self.engines.handleInputRows((part,), iter([frame]), times))
        for part in range(self.parts):
            for timer in sorted(t for t in self.store.timers.get(part, ()) if t <= watermark_ms):
                info = SimpleNamespace(getExpiryTimeInMs=lambda timer=timer: timer)
                self._call(part, lambda part=part, info=info: self.engines.handleExpiredTimer((part,), times, info))
                self.store.timers[part].discard(timer)

    def _call(self, part: int, call: Any) -> None:
        self.store.part = part
        self.engines.init(self.store)  # type: ignore[arg-type]
        for frame in call():
            for table in map(unpacked, frame["payload"]):
                for row in table.to_pylist():
                    values = tuple(v for name, v in row.items() if name.startswith("c"))
                    self.answers.append((row["_ts"], row["_sign"], values))


def _generated(rng: Random, names: set[str], end: int) -> dict[str, list[tuple[int, tuple[Any, ...]]]]:
    """Elements in the order they come, at most 20 ticks late."""
    found = {}
    for name in names & {"S", "T"}:
        elements = []
        for _ in range(60):
            ts = rng.randrange(-30, end)
            value = rng.randrange(6) if name == "S" else rng.choice(["x", "y", None])
            elements.append((ts, (ts, rng.randrange(5), value)))
        found[name] = sorted(elements, key=lambda e: e[0] + rng.randrange(20))
    return found


@pytest.mark.parametrize("query", BY_KEY + WHOLE)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_answer_is_the_definition_s_however_batches_and_restarts_fall(
    query: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stateful, "_LEAST_ROWS", 5)
    monkeypatch.setattr(stateful, "_ROW_NBYTES", 1 << 20)
    with connect() as db:
        create_all(db)
        ready = prepare(query, DECLARED, db=db)
    assert isinstance(ready.cut, ByKey) == (query in BY_KEY)
    rng = Random(f"{query} {seed}")
    fed = _generated(rng, {name for name, _, _ in ready.setting.inputs}, 260)
    run = _Run(ready, 3 if query in BY_KEY else 1)
    watermark, greatest, at = 0, dict.fromkeys(fed, 0), dict.fromkeys(fed, 0)
    while any(at[name] < len(rows) for name, rows in fed.items()):
        rows = {}
        for name, elements in fed.items():
            n = rng.choice([0, 1, 2, 7, 30])
            rows[name] = elements[at[name] : at[name] + n]
            at[name] += n
            greatest[name] = max([greatest[name], *(ts for ts, _ in rows[name])])
        before, said = copy.deepcopy(run.store), len(run.answers)
        run.batch(rows, watermark)
        match rng.randrange(4):
            case 0:  # the process ends between two batches
                forget_engines()
            case 1:  # the batch was not committed, and is repeated where an engine has gone on
                run.store, run.answers = before, run.answers[:said]
                run.batch(rows, watermark)
        watermark = max(watermark, min(greatest.values()) - 20)
    run.batch({}, 400)
    until = closed_by(400, ready.catalog.tick_ns)
    history = History(
        {n.lower(): sorted(rows, key=lambda e: (e[0], value_order(e[1]))) for n, rows in fed.items()},
        {"r": [(RELATIONS_SINCE, 1, row) for row in LABELS]},
        functions=USER_FUNCTIONS,
        aggregates=USER_AGGREGATES,
    )
    assert Counter(run.answers) == Counter(answer(ready.query.node, history, until))
    held = sum(len(unpacked(payload)) for rows in run.store.lists.values() for _, payload in rows)
    assert held <= 120
    if "RANGE" in query and not any(
        told in query for told in ("RSTREAM", "SUM(v), ", "GROUP BY k) A", "PARTITION", "[RANGE 12]")
    ):
        assert held == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, AVG(v) FROM S GROUP BY k",
        "SELECT DISTINCT k, at - at FROM S",
        "SELECT SUM(v) FROM S",
        "SELECT k, MAX(v) FROM S [PARTITION BY k ROWS 2] GROUP BY k",
        "SELECT k, COUNT(*) FROM S [SESSION 3 PARTITION BY k] GROUP BY k",
        "SELECT SUM(v) FROM S [ROWS 5 SLIDE 3]",
        "ISTREAM (SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts) FROM S)",
        "SELECT COUNT(*) FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM S [RANGE 12] GROUP BY k)) [RANGE 20]",
        "RSTREAM (SELECT k, v FROM S [PARTITION BY k ROWS 1])",
    ],
)
def test_what_is_kept_of_all_that_came_is_as_large_as_the_answer(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stateful, "_LEAST_ROWS", 100)
    run = _Run(prepare(query, DECLARED), 1)
    sizes = []
    for n in range(40):
        run.batch({"S": [(100 * n + i, (100 * n + i, i % 5, i)) for i in range(1, 100)]}, 100 * n)
        stored = [payload for rows in (run.store.lists | run.store.others).values() for *_, payload in rows]
        sizes.append(sum(map(len, stored)))
    assert max(sizes[20:]) <= 1.2 * max(sizes[:10])


def _written(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(autouse=True)
def _no_engines_left() -> Iterator[None]:
    yield
    forget_engines()


@pytest.fixture
def streaming(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own: the state store is one of its settings."""
    yield spark.newSession()


@pytest.mark.long
@pytest.mark.parametrize("starts", [1, 3])
def test_a_stream_of_spark_is_answered_over_restarts_as_by_the_definition(
    streaming: SparkSession, tmp_path: Path, starts: int
) -> None:
    query = "SELECT S.k, label, COUNT(*), SUM(v) FROM S [RANGE 3 SECONDS], R WHERE S.k = R.k GROUP BY S.k, label"
    declared = """CREATE STREAM S (at TIMESTAMP, k INTEGER, v INTEGER) TIMESTAMP BY at SLACK 1 SECOND;
        CREATE RELATION R (k INTEGER, label TEXT)"""
    raw = tmp_path / "raw"
    raw.mkdir()
    rng = Random(3)
    fed = [(1000 + i * 200 + rng.randrange(900), rng.randrange(4), 2**53 + i) for i in range(30)]
    relation = streaming.createDataFrame([row for row in LABELS if row[1]], "k int, label string")
    observed = 0
    for part in range(starts):
        _written(
            raw,
            f"{part}.json",
            [{"at": ts / 1000, "k": k, "v": v} for ts, k, v in fed[part * 30 // starts : (part + 1) * 30 // starts]],
        )
        rows = streaming.readStream.schema("at double, k long, v long").json(str(raw))
        rows = rows.selectExpr("timestamp_millis(cast(round(at * 1000) as long)) AS at", "k", "v")
        answers = stream(query, {"S": rows, "R": relation}, declared, parts=starts)
        writing = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        running = writing.start()
        running.awaitTermination()
        told = [figures for p in running.recentProgress for figures in p.observedMetrics.values()]
        observed += sum(figures.changes for figures in told)
        forget_engines()
    found = [(r[0], r[1], tuple(r[2:])) for r in streaming.read.parquet(str(tmp_path / "out")).collect()]
    until = closed_by(max(ts for ts, _, _ in fed) - 1000, 1_000_000)
    history = History(
        {"s": sorted((ts, (ts, k, v)) for ts, k, v in fed)}, {"r": [(0, 1, row) for row in LABELS if row[1]]}
    )
    assert Counter(found) == Counter(answer(prepare(query, declared).query.node, history, until))
    assert len(found) == observed > 10


@pytest.mark.long
def test_spark_sends_functions_of_the_program_to_its_tasks(streaming: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    _written(tmp_path / "raw", "0.json", [{"at": 1000 * i, "v": i} for i in range(1, 9)])
    rows = streaming.readStream.schema("at long, v long").json(str(tmp_path / "raw"))
    declared = "CREATE STREAM S (at INTEGER, v INTEGER) TIMESTAMP BY at"
    most = 4
    with connect() as db:
        db.create_function("twice", lambda v: 2 * v, ["INTEGER"], "INTEGER")
        db.create_function("is_small", lambda v: v < most, ["INTEGER"], "BOOLEAN")
        changes = stream("ISTREAM (SELECT twice(v) FROM S [NOW] WHERE is_small(v))", {"S": rows}, declared, db=db)
    writing = changes.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writing.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()
    found = streaming.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row[2] for row in found) == [2, 4, 6]


@pytest.mark.long
def test_elements_up_to_1970_count_in_whichever_batch_they_come(streaming: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for part, ts in enumerate((0, -5, 3, 9)):
        _written(tmp_path / "raw", f"{part}.json", [{"at": ts, "v": part}])
        os.utime(tmp_path / "raw" / f"{part}.json", (part, part))
    rows = streaming.readStream.schema("at long, v long").option("maxFilesPerTrigger", 1).json(str(tmp_path / "raw"))
    declared = "CREATE STREAM S (at INTEGER, v INTEGER) TIMESTAMP BY at"
    writing = stream("ISTREAM (SELECT v FROM S [NOW])", {"S": rows}, declared).writeStream.format("parquet")
    writing = writing.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "state"))
    writing.trigger(availableNow=True).start().awaitTermination()
    found = streaming.read.parquet(str(tmp_path / "out")).select("_ts", "v").collect()
    assert sorted(map(tuple, found)) == [(-5, 1), (0, 0), (3, 2)]


@pytest.mark.long
def test_answers_of_a_stream_go_into_an_archive_by_its_format_and_by_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    register(spark)  # does no harm
    (tmp_path / "raw").mkdir()
    declared = "CREATE STREAM S (at INTEGER, v INTEGER) TIMESTAMP BY at"
    archived = "CREATE STREAM Large (at INTEGER, v INTEGER) TIMESTAMP BY at"

    def ingested(frame: DataFrame, number: int) -> None:
        ingest(frame.selectExpr("_ts AS at", "v"), str(tmp_path / "data"), archived, batch=f"large {number}")

    for part in range(2):
        fed = [{"at": 1000 + 100 * i, "v": i} for i in range(part * 10, part * 10 + 10)]
        _written(tmp_path / "raw", f"{part}.json", fed)
        rows = spark.readStream.schema("at long, v long").json(str(tmp_path / "raw"))
        for checkpoint in ("format", "batches"):
            answers = stream("ISTREAM (SELECT v FROM S [NOW] WHERE v > 4)", {"S": rows}, declared)
            writing = answers.writeStream.option("checkpointLocation", str(tmp_path / checkpoint))
            if checkpoint == "format":
                writing = writing.format("minidsms").option("name", "Answers").option("batch", "answers")
                writing = writing.option("path", str(tmp_path / "data"))
            else:
                writing = writing.foreachBatch(ingested)
            writing.trigger(availableNow=True).start().awaitTermination()
    expected = [(1000 + 100 * i, i) for i in range(5, 19)]  # the last instant is not closed
    assert [(row[0], row[2]) for row in reading.elements(tmp_path / "data", "Answers")] == expected
    assert [(row[2], row[3]) for row in reading.elements(tmp_path / "data", "Large")] == expected


def test_a_format_is_known_whichever_session_is_active(spark: SparkSession, tmp_path: Path) -> None:
    own, other, last = (spark.newSession() for _ in range(3))
    activate(other)
    register(own)
    row = own.createDataFrame([(1, 2)], "_ts long, v long")
    activate(other)
    row.write.format("minidsms").option("name", "A").mode("append").save(str(tmp_path))
    live = own.readStream.format("rate").load().selectExpr("timestamp AS at", "value AS v")
    activate(last)  # knows no such format
    answers = stream(
        "ISTREAM (SELECT v FROM S)", {"S": live}, "CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at"
    )
    writing = answers.writeStream.format("minidsms").option("name", "A").option("batch", "live")
    writing.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path)).stop()
    assert [row[2] for row in reading.elements(tmp_path, "A")] == [2]
    activate(spark)


def test_late_elements_are_left_out() -> None:
    run = _Run(prepare("ISTREAM (SELECT v FROM S [NOW])", DECLARED), 1)
    for ts, watermark in ((100, 0), (50, 80), (80, 80), (79, 80), (200, 80)):
        run.batch({"S": [(ts, (ts, 1, ts))]}, watermark)
    run.batch({}, 300)
    assert sorted(row[0] for _, _, row in run.answers) == [80, 100, 200]


def test_explain_says_how_a_stream_is_cut_and_what_is_remembered() -> None:
    assert "by S.k, T.k\nState of an engine: the elements of 31 ticks" in explain_stream(BY_KEY[1], DECLARED)
    assert "State of an engine: that of Aggregate by k: AVG(v); the elements" in explain_stream(BY_KEY[3], DECLARED)
    assert "that of Aggregate by k: MEDIAN(v); the" in explain_stream("SELECT k, MEDIAN(v) FROM S GROUP BY k", DECLARED)
    assert "that of Aggregate by k: MODE(v); the" in explain_stream("SELECT k, MODE(v) FROM S GROUP BY k", DECLARED)
    assert "all elements so far" in explain_stream("SELECT k, ARRAY_AGG(v) FROM S GROUP BY k", DECLARED)
    partition = explain_stream(BY_KEY[2], DECLARED)
    assert "State of an engine: that of PartitionWindow PARTITION BY k ROWS 2; the elements" in partition
    text = explain_stream(WHOLE[1], DECLARED)
    assert "one engine in one task, for a ROWS window counts the rows of all keys" in text
    assert "the last 4 of s" in text


def test_streams_of_queries_of_one_shape_can_be_put_together(streaming: SparkSession) -> None:
    live = streaming.readStream.format("rate").load().selectExpr("timestamp AS at", "value AS k", "value AS v")
    ones, twos = (stream(f"SELECT k, v FROM S [RANGE 30] WHERE v = {v}", {"S": live}, DECLARED) for v in (1, 2))
    assert ones.unionAll(twos).columns == ["_ts", "_sign", "k", "v"]


def test_what_cannot_be_streamed_is_refused(spark: SparkSession) -> None:
    static = spark.createDataFrame([], "at timestamp, k long, v string")
    live = spark.readStream.format("rate").load()
    for cql, inputs, declared, reason in (
        ("SELECT k FROM S", {}, DECLARED, "no DataFrame is given for S"),
        ("SELECT k FROM S", {"S": live, "T": live}, DECLARED, "does not read T"),
        ("SELECT k FROM S", {"S": static}, DECLARED, "takes a streaming DataFrame"),
        ("SELECT k FROM S", {"S": live}, DECLARED, 'has no column "at"'),
        ("SELECT k FROM R", {}, DECLARED, "reads no stream"),
        ("SELECT k FROM S", {}, "CREATE STREAM S (k INTEGER)", "nothing says when"),
        (
            "SELECT value FROM S",
            {"S": live.withWatermark("timestamp", "1 second")},
            "CREATE STREAM S (timestamp TIMESTAMP, value INTEGER) TIMESTAMP BY timestamp",
            "has a watermark already",
        ),
        (
            "SELECT v FROM S",
            {"S": live.selectExpr("timestamp AS at", "value AS k", "'1' AS v")},
            DECLARED,
            "column v of S is string",
        ),
    ):
        with pytest.raises(Error, match=reason):
            stream(cql, inputs, declared)
    with pytest.raises(CqlError, match="without FROM"):
        explain_stream("SELECT k FROM S", "CREATE STREAM S (k INTEGER) FROM 'a.csv'")
