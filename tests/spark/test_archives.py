"""Offload over archives: what the live engine answered while it wrote them, and what Spark answers afterwards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import minidsms
from minidsms import Connection, CqlError, Error
from minidsms.shell.main import main
from minidsms.spark import explain, run
from minidsms.spark.running import Offloaded, prepare
from minidsms.testing.compare import netted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = {
    "groups": "SELECT road, AVG(speed), COUNT(*) FROM Pos [RANGE 10 SECONDS] GROUP BY road",
    "join": "ISTREAM (SELECT P.car, P.speed FROM Pos [NOW] P, Lim WHERE P.road = Lim.road AND P.speed > Lim.most)",
    "by_key": "SELECT road, spread(speed), CAST(MAX(speed) AS TEXT) FROM Pos GROUP BY road",
    "ordered": "SELECT road, MEDIAN(speed), ARG_MAX(car, speed), STRING_AGG(road, '-' ORDER BY car)"
    " FROM Pos [RANGE 2 SECONDS] GROUP BY road",
    "first": "SELECT road, FIRST(speed) IGNORE NULLS AS f, BOOL_OR(speed > 50) AS fast"
    " FROM Pos [RANGE 2 SECONDS] GROUP BY road",
    "by_time": "SELECT spread(speed) AS s, COUNT(*) AS n FROM Pos [RANGE 2 SECONDS SLIDE 1 SECOND]",
}


class Spread:
    """The greatest less the least."""

    def __init__(self) -> None:
        self.values: Counter[float] = Counter()

    def add(self, value: float) -> None:
        self.values[value] += 1

    def remove(self, value: float) -> None:
        self.values[value] -= 1
        self.values += Counter()

    def result(self) -> float:
        return max(self.values) - min(self.values)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, str]]:
    """A connection that has archived a stream and a relation, the queries above still running; and the folder."""
    folder = str(tmp_path_factory.mktemp("archives"))
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM Pos (car INTEGER, speed FLOAT, road TEXT) ARCHIVE '{folder}'")
        db.execute(f"CREATE RELATION Lim (road TEXT, most FLOAT) ARCHIVE '{folder}'")
        db.create_aggregate("spread", Spread, ["FLOAT"], "FLOAT")
        for name, text in QUERIES.items():
            db.query(text, name)
        rng = Random(1)
        db.push("Lim", [("a", 10.0), ("b", None)], ts=0)
        rows = [(rng.randint(0, 5), rng.choice([None, 1.0, 12.5, 0.1]), rng.choice("abc")) for _ in range(60)]
        db.push("Pos", rows, ts=sorted(rng.choice([*range(0, 20_000, 500), 90_000_000]) for _ in rows))
        db.advance(90_000_001)
        db.flush()
        yield db, folder


def answer(frame: DataFrame) -> dict[int, Counter[tuple[object, ...]]]:
    """Spark's changes, netted per instant."""
    return netted((r[0], r[1], tuple(r[2:])) for r in frame.collect())  # type: ignore[return-value]


@pytest.mark.parametrize("name", QUERIES)
def test_spark_answers_as_the_engine_did(archived: tuple[Connection, str], spark: SparkSession, name: str) -> None:
    db, _ = archived
    live = netted((c.ts, c.sign, c.row) for c in db.queries[name].fetch())
    ways = {"groups": ("frames", "engines", "replay"), "by_key": ("engines", None)}.get(name, ("engines",))
    for by in ways:
        assert answer(db.offload(name, until=90_000_001, by=by)) == live
    assert live


def test_the_first_program_of_the_page_runs(
    archived: tuple[Connection, str], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "spark.md").read_text(encoding="utf-8")
    program = re.search(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert program is not None
    (tmp_path / "data").symlink_to(archived[1])
    monkeypatch.chdir(tmp_path)
    names: dict[str, DataFrame] = {}
    exec(program[1], names)
    assert names["frame"].columns == ["_ts", "_sign", "road", "AVG(speed)"] and names["frame"].take(1)


def test_a_relation_is_told_at_chosen_instants(archived: tuple[Connection, str], spark: SparkSession) -> None:
    _, folder = archived
    frame = run("SELECT road FROM Lim", folder, at=[-1, 0, 5])
    assert sorted(map(tuple, frame.collect())) == [(0, "a"), (0, "b"), (5, "a"), (5, "b")]


@pytest.mark.parametrize("by", ["frames", "engines"])
def test_instants_behind_the_archives_end_are_closed_when_they_are_asked_for(
    archived: tuple[Connection, str], spark: SparkSession, by: str
) -> None:
    _, folder = archived
    if by == "frames":
        frame = run("SELECT road FROM Lim", folder, at=[0, 1, 7])
        assert sorted(map(tuple, frame.collect())) == [(ts, road) for ts in (0, 1, 7) for road in "ab"]
    last = 90_000_000
    query = "SELECT COUNT(*) AS n FROM Pos [RANGE 10 SECONDS] GROUP BY 1 + 1"
    frame = run(query, folder, at=[last, last + 9_999, last + 10_000], by=by)
    counts = {row[0]: row[1] for row in frame.collect()}
    assert sorted(counts) == [last, last + 9_999]
    assert len(set(counts.values())) == 1
    with pytest.raises(Error, match="behind the last closed instant"):
        run(query, folder, at=[5], until=4, by=by)


def test_explain_says_how_a_query_is_carried_out(archived: tuple[Connection, str], spark: SparkSession) -> None:
    _, folder = archived
    assert "DataFrame operations over intervals" in explain(QUERIES["groups"], folder, by="frames")
    assert "the engine in tasks, by slices of time" in explain(QUERIES["groups"], folder, by="engines")
    told = explain("ISTREAM (SELECT road FROM Pos [NOW] WHERE speed > 50)", folder)
    assert "Pos: 0 of 2 files, 0.0 MB" in told and "Lim" not in told
    written = "SELECT CAST(speed AS TEXT) FROM Pos [ROWS 3]"
    assert "over batches in Arrow, by the engine: CAST of FLOAT to TEXT" in explain(written, folder, by="frames")
    told = explain(written, folder)
    assert "On Spark: the engine, one in one task that replays the archives" in told
    assert re.search(r"replay +[\d.]+ to [\d.]+ s, [\d.]+ to [\d.]+ s of processors \(none such has been run\)", told)
    assert "engines  cannot be run on Spark" in told


def test_explain_says_how_engines_share_a_query(archived: tuple[Connection, str], spark: SparkSession) -> None:
    db, folder = archived
    told = str(prepare(QUERIES["by_key"], folder, db.catalog, spark, "engines").choice)
    assert told == "On Spark: the engine in tasks, by key, for the query has the user aggregate spread"
    told = str(prepare(QUERIES["by_time"], folder, db.catalog, spark, "engines").choice)
    assert "with the 3001 ticks before, for the query has the user aggregate spread" in told
    assert "by key" in str(prepare("SELECT road, COUNT(*) FROM Pos GROUP BY road", folder, by="engines").choice)


def test_the_statement_explain_tells_what_spark_would_do(archived: tuple[Connection, str], spark: SparkSession) -> None:
    db, _ = archived

    def told(query: str) -> str:
        return "\n".join(line for (line,) in db.execute(f"EXPLAIN (FORMAT spark) {query}"))

    assert "Window [RANGE 2000]" in told("SELECT COUNT(*) FROM Pos [RANGE 2 SECONDS]")
    assert "one in one task that replays the archives, for the query has the user aggregate spread" in told("by_key")
    refused = told("SELECT road, spread(speed) FROM Pos [ROWS 3] GROUP BY road")
    assert "frames   cannot be run by DataFrame operations: it has the user aggregate spread" in refused
    assert "by key: a ROWS window counts the rows of all keys" in refused
    with pytest.raises(Error, match="leave them out"):
        db.execute("EXPLAIN (ANALYZE, FORMAT spark) groups")


def test_views_over_what_a_query_does_not_read_hinder_no_engine(
    archived: tuple[Connection, str], spark: SparkSession
) -> None:
    _, folder = archived
    views = "CREATE VIEW V AS SELECT road FROM Lim; CREATE VIEW W AS SELECT road, speed FROM Pos;"
    frame = run(f"{views} SELECT road FROM W [RANGE 1 SECOND]", folder, by="engines")
    assert answer(frame) == answer(run("SELECT road FROM Pos [RANGE 1 SECOND]", folder, by="frames"))


def test_what_a_way_cannot_answer_is_refused_with_the_reasons_and_one_engine_can(
    archived: tuple[Connection, str], spark: SparkSession
) -> None:
    db, folder = archived
    rows = "SELECT road, spread(speed) FROM Pos [ROWS 3] GROUP BY road"
    with pytest.raises(Error, match=r"by key: a ROWS window(.|\n)*by replay"):
        db.offload(rows, folder, by="engines")
    query = db.execute(f"CREATE QUERY spreads AS {rows} BACKFILL FROM '{folder}'")
    assert answer(db.offload(rows, folder, until=90_000_001)) == netted((c.ts, c.sign, c.row) for c in query.fetch())
    db.execute("DROP QUERY spreads")
    with pytest.raises(Error, match=r"run by engines, and it cannot be cut(.|\n)*by time: a window is UNBOUNDED"):
        run("SELECT COUNT(*) FROM Pos", folder, by="engines")
    with pytest.raises(Error, match="by DataFrame operations: it has the user aggregate spread"):
        db.offload("by_key", folder, by="frames")
    with pytest.raises(Error, match="it has the aggregate median"):
        run("SELECT road, MEDIAN(speed) FROM Pos [RANGE 2 SECONDS] GROUP BY road", folder, by="frames")
    values = ", ".join(f"(SELECT MAX(most) FROM Lim WHERE most > {i}) AS m{i}" for i in range(15))
    many = f"SELECT road, {values} FROM Lim"
    with pytest.raises(Error, match="parts that stand in others again and again"):
        run(many, folder, by="frames")
    assert sorted(map(tuple, run(many, folder, at=[5]).collect()), key=str) == [
        (5, road, *[10.0] * 10, *[None] * 5) for road in "ab"
    ]
    with pytest.raises(Error, match="there are: frames, engines, replay"):
        run("SELECT COUNT(*) FROM Pos", folder, by="magic")


def test_what_is_not_there_is_an_error_that_names_it(archived: tuple[Connection, str], spark: SparkSession) -> None:
    _, folder = archived
    with pytest.raises(CqlError, match="its archive would be Nowhere/ in the folder"):
        run("SELECT * FROM Nowhere", folder)
    with pytest.raises(CqlError, match="one query"):
        run("CREATE VIEW V AS SELECT * FROM Pos", folder)
    for text in ("VALUES (2), (1)", "SELECT i FROM RANGE(3) AS r (i) ORDER BY i DESC"):
        with pytest.raises(CqlError, match="never changes"):
            run(text, folder)
    with pytest.raises(Error, match="only a relation has contents"):
        run("ISTREAM (SELECT car FROM Pos [NOW])", folder, at=[1])


def test_the_command_shows_writes_and_tells_failures(
    archived: tuple[Connection, str], spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, folder = archived
    assert main(["offload", "SELECT road, most FROM Lim", folder]) == 0
    assert "NULL" in capsys.readouterr().out
    written = tmp_path / "out"
    assert main(["offload", "SELECT car FROM Pos [NOW]", folder, "-o", str(written), "--until", "0"]) == 0
    assert list(written.glob("*.parquet"))
    assert main(["offload", "SELECT (car + 9223372036854775800) * 2 FROM Pos [NOW]", folder]) == 1
    assert "overflow" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["frames", "engines"])
def test_archives_that_have_grown_are_read_and_as_they_were(spark: SparkSession, tmp_path: Path, by: str) -> None:
    for columns, rows in (
        ("v INTEGER, k INTEGER", [(2**53 + 1, 1), (7, 2)]),
        ("k INTEGER, t TEXT, v FLOAT", [(3, "x", 0.5)]),
    ):
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S ({columns}) ARCHIVE '{tmp_path}'")
            db.push("S", rows, ts=list(range(10 - len(rows), 10)))
    query = "SELECT ISTREAM(k, v, t) FROM S [RANGE 1] WHERE v > 1 OR t = 'x'"
    now = run(query, str(tmp_path), by=by).collect()
    assert sorted(tuple(row)[2:] for row in now) == [(1, float(2**53), None), (2, 7.0, None), (3, 0.5, "x")]
    if by == "engines":
        before = run(query, str(tmp_path), by=by, as_of=1).collect()
        assert sorted(tuple(row) for row in before) == [(8, 1, 1, float(2**53), None), (9, 1, 2, 7.0, None)]


@pytest.mark.parametrize("by", ["frames", "replay"])
def test_what_retention_takes_between_planning_and_tasks_is_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        for day in range(4):
            db.push("S", [(day,)], ts=day * 86_400_000)
    planned = Offloaded.frame

    def then_expired(ready: Offloaded, *args: Any, **options: Any) -> DataFrame:
        found = planned(ready, *args, **options)
        assert main(["archive", "expire", str(tmp_path), "--keep", "1 DAY"]) == 0
        return found

    monkeypatch.setattr(Offloaded, "frame", then_expired)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        assert main(["offload", "SELECT COUNT(*) AS n FROM S [RANGE 1 DAY]", str(tmp_path), "--by", by]) == 1
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    told = capsys.readouterr().err
    reason = (
        f"retention has removed elements that are to be read from the archive '{tmp_path}/S', up to instant 86400000"
    )
    assert reason in told and "help: run it again" in told
