"""Archives in object stores, on SSH servers and in HDFS, on Spark: ingested, asked, written by frames, replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import dataset

import minidsms
from minidsms.archive.compacting import compact
from minidsms.archive.format import find
from minidsms.archive.log import read_snapshot
from minidsms.archive.storage import storage_of
from minidsms.archive.verifying import verify
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.shell.main import main
from minidsms.spark import register
from minidsms.spark import run as run_on_spark
from minidsms.spark.ingest import ingest, rejects_of, token_of
from tests.archive.places import GIVEN, elsewhere
from tests.archive.reading import elements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POS = "CREATE STREAM Pos (at TIMESTAMP, car INTEGER, speed FLOAT, road TEXT) TIMESTAMP BY at"
QUERY = "SELECT road, COUNT(*), MAX(speed) FROM Pos [RANGE 2 MINUTES] GROUP BY road"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A new place of the kind that a test names: what a request does in each is shown by tests/archive."""
    with elsewhere(request.param, tmp_path_factory.mktemp("served")) as found:
        yield f"{found}/data"


def in_places(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", kinds, indirect=True)


def _raw(folder: Path, seed: int, n: int = 60) -> str:
    draw = Random(seed)
    rows = [(draw.randrange(3_000_000), draw.randrange(9), draw.random(), draw.choice("ab")) for _ in range(n)]
    lines = [",".join(map(str, row)) for row in rows]
    path = folder / f"{seed}.csv"
    path.write_text("\n".join(["at,car,speed,road", *lines, *lines[:3], "never,1,1,a"]) + "\n")
    return str(path)


def _answers(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@in_places("s3")
def test_ingests_into_an_object_store_are_those_into_a_folder(spark: SparkSession, place: str, tmp_path: Path) -> None:
    first, both = _raw(tmp_path, 1), [_raw(tmp_path, 1), _raw(tmp_path, 2)]
    for raw in (first, both):
        done = ingest(raw, place, POS, "csv", distinct=True, partition=1_000_000, spark=spark)
        assert (done.rows, done.rejected, done.duplicates) == (60, 1, 3)
    here = ingest(both, str(tmp_path / "data"), POS, "csv", distinct=True, partition=1_000_000, spark=spark)
    assert (here.rows, here.rejected, here.duplicates) == (120, 2, 6)
    assert elements(place, "Pos") == elements(tmp_path / "data", "Pos")
    assert list(verify(done.archive)) == []
    inside, system = storage_of(place).arrow(rejects_of(done.archive))
    rejects = dataset.dataset(inside, filesystem=system, partitioning="hive").to_table().to_pylist()
    assert [r["_reason"] for r in rejects] == ["at: never cannot be read as TIMESTAMP"] * 2


@in_places("sftp")
def test_what_an_ingest_that_was_cut_short_has_staged_is_removed(
    spark: SparkSession, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("minidsms.spark.ingest._commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        ingest(_raw(tmp_path, 3), place, POS, "csv", spark=spark, batch="one")
    rejects = f"{place}/Pos.rejects"
    assert [e.name for e in storage_of(place).entries(rejects)] == [f"_ingest-{token_of('one')}"]
    assert elements(place, "Pos") == []
    assert ingest(_raw(tmp_path, 3), place, POS, "csv", spark=spark, batch="one").rows == 63
    assert [e.name for e in storage_of(place).entries(rejects)] == [f"ingest={token_of('one')}"]
    archive = find(place, "Pos")
    snapshot = read_snapshot(archive.folder)
    assert snapshot is not None
    partitions = [e.name for e in storage_of(place).entries(archive.folder) if e.is_folder and e.name != "_log"]
    there = [e.name for p in partitions for e in storage_of(place).entries(f"{archive.folder}/{p}")]
    assert len(there) == len(snapshot.files)


@in_places("s3")
def test_queries_on_spark_answer_over_an_object_store_by_every_way(
    spark: SparkSession, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = _raw(tmp_path, 4)
    ddl = tmp_path / "pos.cql"
    ddl.write_text(POS)
    assert main(["ingest", raw, place, "--stream", str(ddl), "--quiet"]) == 0
    ingest(raw, str(tmp_path / "data"), POS, "csv", spark=spark)
    expected = _answers(run_on_spark(QUERY, str(tmp_path / "data")))
    for by in ("frames", "engines", "replay"):
        assert _answers(run_on_spark(QUERY, place, by=by)) == expected != []
    register(spark)
    read = spark.read.format("minidsms").option("path", place)
    assert len(_answers(read.option("query", QUERY).load())) == len(expected)
    assert len(_answers(spark.read.format("minidsms").option("path", place).option("name", "Pos").load())) == 63
    with minidsms.connect() as db:
        db.execute(POS)
        q = db.query("SELECT ISTREAM(car) FROM Pos [NOW]")
        assert db.replay(place, engine="spark") == 63
        db.advance(3_000_000)
        assert len(q.fetch()) == 63
    with minidsms.connect() as db:
        db.execute(f"{POS}; SET backfill = 'spark'")
        q = db.execute(f"CREATE QUERY n AS {QUERY} BACKFILL FROM '{place}'")
        with minidsms.connect() as local:
            local.execute(POS)
            same = local.query(QUERY)
            local.replay(place)
            assert sorted(q.fetch()) == sorted(same.fetch())
    assert main(["offload", QUERY, place, "--explain"]) == 0
    assert "MB" in capsys.readouterr().out


@in_places("s3")
def test_frames_are_written_into_an_object_store(spark: SparkSession, place: str) -> None:
    register(spark)
    for batch, at in (("one", 0), ("two", 10)):
        frame = spark.range(at, at + 10).selectExpr("id AS _ts", "id % 3 AS v")
        frame.write.format("minidsms").option("path", place).option("name", "S").option("batch", batch).mode(
            "append"
        ).save()
    assert elements(place, "S") == [(i, 1, i % 3) for i in range(20)]
    before = _answers(spark.read.format("minidsms").option("path", place).option("name", "S").load())
    assert compact(find(place, "S")).after == 1
    assert _answers(spark.read.format("minidsms").option("path", place).option("name", "S").load()) == before
    first = spark.read.format("minidsms").option("path", place).option("name", "S").option("as_of", 1).load()
    assert first.count() == 10
    left = [e.name for e in storage_of(place).entries(find(place, "S").folder) if e.name.startswith("_write")]
    assert left == []


@in_places("sftp")
def test_batches_of_a_stream_are_ingested_once(spark: SparkSession, place: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    _raw(tmp_path / "in", 5)
    rows = spark.readStream.schema("at STRING, car STRING, speed STRING, road STRING").csv(
        str(tmp_path / "in"), header=True
    )
    for checkpoint in ("a", "b"):  # the second begins anew, and its batches have the names of the first's
        writing = rows.writeStream.foreachBatch(lambda frame, n: ingest(frame, place, POS, batch=f"pos {n}"))
        writing.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()
    assert len(elements(place, "Pos")) == 63


@in_places("sftp")
def test_an_archive_that_is_written_is_not_ingested_into(spark: SparkSession, place: str, tmp_path: Path) -> None:
    done = ingest(_raw(tmp_path, 6), place, POS, "csv", spark=spark)
    with Writer(done.archive), pytest.raises(Error, match="is being written by somebody else"):
        ingest(_raw(tmp_path, 7), place, POS, "csv", spark=spark)


def test_what_a_task_raises_is_told(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(frame: Any, folder: str) -> None:
        def write(batches: Any) -> Any:
            raise ConnectionError("127.0.0.1: nobody knows it")

        frame.mapInArrow(write, "n bigint").collect()

    monkeypatch.setattr("minidsms.spark.ingest._write_rejects", fails)
    with pytest.raises(Error, match=r"^cannot read the raw data: ConnectionError: 127.0.0.1: nobody knows it$"):
        ingest(_raw(tmp_path, 8), str(tmp_path / "data"), POS, "csv", spark=spark)


@in_places("sftp", "webhdfs", *GIVEN)
def test_an_archive_on_a_server_of_folders_is_ingested_and_asked(
    spark: SparkSession, place: str, tmp_path: Path
) -> None:
    raw = _raw(tmp_path, 9)
    ingest(raw, place, POS, "csv", spark=spark)
    ingest(raw, str(tmp_path / "here"), POS, "csv", spark=spark)
    assert elements(place, "Pos") == elements(tmp_path / "here", "Pos")
    answers = _answers(run_on_spark(QUERY, place, by="engines", spark=spark))
    assert answers == _answers(run_on_spark(QUERY, str(tmp_path / "here"), by="engines", spark=spark)) != []


def test_memory_of_this_process_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Error, match=r"Spark's workers do not see it\nhelp"):
        ingest("x.csv", "memory://a", POS, "csv", spark=spark)
    with pytest.raises(Error, match="Spark's workers do not see it"):
        run_on_spark(QUERY, "memory://a")
