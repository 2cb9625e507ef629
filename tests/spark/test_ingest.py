"""Raw files into archives on Spark: types, rejects, duplicates, order, and what a crash leaves."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

import minidsms
from minidsms.archive.format import find
from minidsms.archive.verifying import verify
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.shell.main import main
from minidsms.spark.ingest import ingest
from minidsms.spark.raw_files import identity
from tests.archive.reading import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POS = "CREATE STREAM Pos (at TIMESTAMP, car INTEGER, speed FLOAT, ok BOOLEAN, road TEXT) TIMESTAMP BY at"
DAY = 86_400_000


def _values(folder: Path, name: str = "Pos") -> list[tuple[Any, ...]]:
    return [tuple(row.values())[3:] for row in rows(folder, name)]


def test_dirty_files_out_of_order_become_elements_in_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "b.csv").write_text(
        "at,car,speed,ok,road\n"
        "1970-01-02 00:00:01.5,1,50.5,true,A1\n"
        '1970-01-01T00:00:00Z,2,-0.0,0,"say ""hi"", you"\n'
        '1969-12-31T23:00:00-02:00,3,NaN,,""\n'
        "never,4,1,t,x\n"
        "1970-01-01,five,1,t,x\n"
        "1970-01-01,6,fast,t,x\n"
    )
    (tmp_path / "raw" / "a.csv").write_text(
        "at,car,speed,ok,road\n86400000, 7 ,1e3,FALSE,\n,8,1,t,x\n1970-01-01,9,1,perhaps,x\n1970-01-01,10\n"
        "-1,9223372036854775807,inf,T,z\n1970-01-01,9223372036854775808,1,t,x\n"
    )
    done = ingest(str(tmp_path / "raw"), str(tmp_path / "data"), POS, "csv", spark=spark)
    assert (done.rows, done.rejected, done.duplicates) == (5, 7, 0)
    assert _values(tmp_path / "data") == [
        (-1, 2**63 - 1, float("inf"), True, "z"),
        (0, 2, 0.0, False, 'say "hi", you'),
        (3_600_000, 3, None, None, ""),
        (DAY, 7, 1000.0, False, None),
        (DAY + 1500, 1, 50.5, True, "A1"),
    ]
    assert list(verify(done.archive)) == []
    assert done.rejects is not None
    rejects = dataset.dataset(done.rejects, partitioning="hive").to_table().to_pylist()
    assert sorted(r["_reason"] for r in rejects) == [
        "at: never cannot be read as TIMESTAMP",
        "car: 9223372036854775808 cannot be read as INTEGER",
        "car: five cannot be read as INTEGER",
        "ok: perhaps cannot be read as BOOLEAN",
        "speed: fast cannot be read as FLOAT",
        "the row is no csv of these columns",
        "the timestamp is NULL",
    ]
    assert {os.path.basename(r["_file"]) for r in rejects} == {"a.csv", "b.csv"}
    assert any("never" in r["_raw"] for r in rejects)


def test_what_is_read_is_what_the_engine_reads_of_the_same_file(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["", "1", "-7", "+3", "1.5", ".5", "5.", "1e5", "x", "true", "F", "0", "inf", "nan", " 4 ", "1_0"]
    texts += [
        "1970-01-01",
        "2013-02-28T12:34:56.789012345Z",
        "2013-02-30",
        "1970-1-1",
        "2013-01-01 10:00+02",
        "1d",
        "2f",
    ]
    for type_ in ("INTEGER", "FLOAT", "BOOLEAN"):
        file = tmp_path / f"{type_}.csv"
        file.write_text("t,v\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
        declaration = f"CREATE STREAM {type_}_ (t INTEGER, v {type_}) TIMESTAMP BY t"
        ingest(str(file), str(tmp_path / "data"), declaration, "csv", spark=spark)
        with minidsms.connect() as db:
            db.execute(f"{declaration} FROM '{file}'")
            q = db.query(f"SELECT ISTREAM(t, v) FROM {type_}_ [NOW]")
            db.run()
            assert _values(tmp_path / "data", f"{type_}_") == [c.row for c in q.fetch()], type_


def test_times_are_those_the_engine_reads_in_every_unit(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        "1970-01-01",
        "2013-02-28T12:34:56.789012345Z",
        "2013-02-30",
        "1969-12-31 23:59:59.9",
        "2013-01-01 10:00:00+02:00",
        "2013-01-01 10",
        "2013-01-01T1Z",
        "2013-01-01 10-0530",
        "2013-1-1 10:30Z",
        "2013-01-01T10:30-05:30",
        "2013-01-01 25",
    ]
    file = tmp_path / "times.csv"
    file.write_text("n,at\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    for unit in ("ns", "ms", "d"):
        declaration = "CREATE STREAM T (n INTEGER, at TIMESTAMP) TIMESTAMP BY at"
        ingest(str(file), str(tmp_path / unit), declaration, "csv", time_unit=unit, spark=spark)
        with minidsms.connect(time_unit=unit) as db:
            db.execute(f"{declaration} SLACK 20000 DAYS FROM '{file}'")
            q = db.query("SELECT ISTREAM(n, at) FROM T [NOW]")
            db.run()
            assert sorted(_values(tmp_path / unit, "T")) == sorted(c.row for c in q.fetch()), unit


def test_json_and_parquet_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    objects = [
        {"AT": i * 1000, "Car": i, "speed": i / 2, "ok": i % 2 == 0, "road": None if i == 1 else "é"} for i in range(4)
    ]
    lines = [json.dumps(o) for o in objects]
    (tmp_path / "x.json").write_text("\n".join([*lines, '{"AT": ', '{"AT": 5, "Car": "x"}']) + "\n")
    done = ingest(str(tmp_path / "x.json"), str(tmp_path / "j"), POS.replace("at", "AT"), "json", spark=spark)
    assert (done.rows, done.rejected) == (4, 2)
    table = pa.Table.from_pylist(objects)
    at = table.column("AT").cast(pa.timestamp("ms", "UTC"))
    parquet.write_table(table.set_column(0, "at", at), tmp_path / "x.parquet")
    done = ingest(str(tmp_path / "x.parquet"), str(tmp_path / "p"), POS, "parquet", spark=spark)
    assert (done.rows, done.rejected) == (4, 0)
    assert not (tmp_path / "p" / "Pos.rejects").exists()
    expected = [tuple(o.values()) for o in objects]
    assert _values(tmp_path / "p") == expected
    assert _values(tmp_path / "j") == expected


def test_what_is_nested_in_json_is_what_a_source_reads(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        '{"u" : 1.10, "t":[1e5,"}\\"]"], "u":2}',
        '[ {"a":null},12345678901234567890.123]',
        '"{}"',
        '"a"',
        "null",
        "[NaN]",
        "[" * 201 + "]" * 201,
    ]
    lists = '[[1.10, 12345678.90123456789012345], {"a": 2e0}]', "[[], {}]"
    lines = [f'{{"AT": {i}, "t": 1, "t": {text}, "L": {lists[i % 2]}}}' for i, text in enumerate(texts)]
    (tmp_path / "x.json").write_text("\n".join([*lines, '{"AT": 9, "t": [1}']))
    declaration = "CREATE STREAM S (at INTEGER, t JSON, l TEXT) TIMESTAMP BY at"
    done = ingest(str(tmp_path / "x.json"), str(tmp_path / "j"), declaration, "json", spark=spark)
    assert (done.rows, done.rejected) == (5, 3)
    with minidsms.connect() as db:
        db.execute(f"{declaration} FROM '{tmp_path / 'x.json'}'")
        q = db.query("SELECT ISTREAM(*) FROM S [NOW]")
        db.run()
        assert _values(tmp_path / "j", "S") == [c.row for c in q.fetch()]


def test_numbers_of_json_keep_their_digits(spark: SparkSession, tmp_path: Path) -> None:
    numbers = ["1.10", "12345678901234567.89", "-1e2", "0e9999", "0.001", "7", '"1.50"', "1e9999", "true"]
    lines = [f'{{"at": {i}, "d": {number}}}' for i, number in enumerate(numbers)]
    (tmp_path / "x.json").write_text("\n".join(lines))
    declaration = "CREATE STREAM S (at INTEGER, d DECIMAL(19, 2)) TIMESTAMP BY at"
    ingest(str(tmp_path / "x.json"), str(tmp_path / "j"), declaration, "json", spark=spark)
    with minidsms.connect() as db:
        db.execute(f"{declaration} FROM '{tmp_path / 'x.json'}'")
        q = db.query("SELECT ISTREAM(*) FROM S [NOW]")
        db.run()
        assert _values(tmp_path / "j", "S") == [c.row for c in q.fetch()]


def test_duplicates_are_left_out_and_the_earliest_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f"{i % 5},{i % 3},x" for i in range(30)]
    random.Random(0).shuffle(lines)
    (tmp_path / "a.csv").write_text("\n".join(["t,k,s", *lines]) + "\n")
    declaration = "CREATE STREAM S (t INTEGER, k INTEGER, s TEXT) TIMESTAMP BY t"
    for distinct, expected in (
        (True, [(t, k, "x") for t in range(5) for k in range(3)]),
        (["K"], [(0, k, "x") for k in range(3)]),
    ):
        place = tmp_path / str(len(expected))
        done = ingest(str(tmp_path / "a.csv"), str(place), declaration, "csv", distinct=distinct, spark=spark)
        assert done.duplicates == 30 - len(expected)
        assert sorted(_values(place, "S")) == sorted(expected)


def test_equal_instants_keep_the_order_of_the_file_and_runs_follow_one_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    declaration = "CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t"
    for run in range(2):
        file = tmp_path / f"{run}.csv"
        file.write_text("t,v\n" + "".join(f"{i % 2},{100 * run + i}\n" for i in range(10)))
        ingest(str(file), str(tmp_path / "data"), declaration, "csv", partition=1, spark=spark)
    values = [v for _, v in _values(tmp_path / "data", "S")]
    assert values == [v for odd in (0, 1) for run in (0, 100) for v in range(run + odd, run + 10, 2)]
    arrivals = [row["_arrival"] for row in rows(tmp_path / "data", "S")]
    assert len(set(arrivals)) == 20


def test_an_ingest_is_whole_or_not_and_a_repeat_adds_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declaration = "CREATE STREAM S (t INTEGER) TIMESTAMP BY t"
    place = str(tmp_path / "data")
    (tmp_path / "a.csv").write_text("t\n0\n1\n2\nnever\n")

    def run(files: str, **options: Any) -> tuple[int, int, int, int]:
        done = ingest(str(tmp_path / files), place, declaration, "csv", partition=2, spark=spark, **options)
        return done.rows, done.rejected, done.duplicates, done.seen

    def values() -> list[int]:
        return [v for (v,) in _values(tmp_path / "data", "S")]

    def rejects() -> list[str]:
        folder = tmp_path / "data" / "S.rejects"
        if not list(folder.glob("ingest=*")):
            return []
        return list(dataset.dataset(folder).to_table().column("_raw").to_pylist())

    with monkeypatch.context() as patch:
        real = Writer.commit

        def dying(self: Writer, what: str, *arguments: Any, **options: Any) -> None:
            if what == "ingest":
                raise ZeroDivisionError
            real(self, what, *arguments, **options)

        patch.setattr(Writer, "commit", dying)
        with pytest.raises(ZeroDivisionError):
            run("a.csv")
    assert values() == rejects() == []
    assert run("a.csv", batch="monday") == (3, 1, 0, 0)
    assert values() == [0, 1, 2]
    assert len(rejects()) == 1
    assert run("a.csv") == (0, 0, 0, 1)
    (tmp_path / "b.csv").write_text("t\n2\n3\n3\n")
    assert run("b.csv", batch="monday") == (0, 0, 0, 0)
    assert run("*.csv", distinct=True) == (1, 0, 2, 1)
    assert values() == [0, 1, 2, 3]
    assert len(rejects()) == 1


def test_the_log_holds_no_password_of_an_address() -> None:
    assert identity("ftp://ann:secret@host/a.csv?key=1") == "ftp://ann:***@host/a.csv?key=1"


def test_spark_is_not_begun_where_nothing_is_new(spark: SparkSession, tmp_path: Path) -> None:
    raw, place = tmp_path / "raw", str(tmp_path / "data")
    raw.mkdir()
    begun: list[int] = []

    def begin() -> SparkSession:
        begun.append(1)
        return spark

    def run(*places: str, **options: Any) -> tuple[int, int, int]:
        begun.clear()
        done = ingest(places, place, "CREATE STREAM S (t INTEGER) TIMESTAMP BY t", "csv", spark=begin, **options)
        return done.rows, done.seen, len(begun)

    for name in ("a.csv", "b c[1]%.csv"):
        (raw / name).write_text("t\n1\n")
    assert run(f"{raw}/a.csv", batch="monday") == (1, 0, 1)
    assert run(f"{raw}/a.csv") == run(f"file://{raw}/?.csv") == (0, 1, 0)
    assert run(f"{raw}/*.csv") == (1, 1, 1)
    assert run(f"{raw}/*.csv") == (0, 2, 1), "Spark writes the blank in another way"
    (raw / "b c[1]%.csv").unlink()
    assert run(str(raw)) == run(f"{raw}/*", f"{raw}/a.csv") == (0, 1, 0)
    assert run(str(raw), options={"pathGlobFilter": "*.csv"}) == (0, 1, 1)
    (raw / ".hidden").write_text("")
    assert run(f"{raw}/a.csv") == (0, 1, 0) and run(str(raw)) == (0, 1, 1)
    (raw / "a.csv").write_text("t\n1\n2\n")
    assert run(f"{raw}/a.csv") == (2, 0, 1)
    frame = spark.createDataFrame([(1,)], "t bigint")
    frame.createOrReplaceTempView("raw_rows")
    for n in (1, 0):
        begun.clear()
        declaration = "CREATE STREAM S (t INTEGER) TIMESTAMP BY t"
        done = ingest("raw_rows", place, declaration, "table", spark=begin, batch="tuesday")
        assert (done.rows, len(begun)) == (n, n)


def test_files_of_several_forms_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("t,v\n1,10\n")
    (tmp_path / "2.csv").write_text("v,t\n20,2\n")
    (tmp_path / "3.csv").write_text("t,more,v,w\n3,x,30,0.5\n4,x,40\n")
    (tmp_path / "4.csv").write_text("")
    declaration = "CREATE STREAM S (t INTEGER, v INTEGER, w FLOAT) TIMESTAMP BY t"
    done = ingest(str(tmp_path / "*.csv"), f"file://{tmp_path}/data", declaration, "csv", spark=spark)
    assert (done.rows, done.rejected) == (3, 1)
    assert _values(tmp_path / "data", "S") == [(1, 10, None), (2, 20, None), (3, 30, 0.5)]
    for name, columns in (("a", {"t": [1], "v": [1], "w": [0.5]}), ("b", {"t": [2.0], "x": [0], "v": [2]})):
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    with pytest.raises(Error, match="column t is double"):
        ingest(str(tmp_path / "*.parquet"), str(tmp_path / "data"), declaration, "parquet", spark=spark)


def test_an_ingested_archive_is_replayed_on_either_engine_and_backfilled(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k\n" + "".join(f"{(i * 7) % 50 * DAY // 10},{i % 3}\n" for i in range(50)))
    declaration = "CREATE STREAM S (t TIMESTAMP, k INTEGER) TIMESTAMP BY t"
    ingest(str(tmp_path / "a.csv"), str(tmp_path / "data"), declaration, "csv", spark=spark)
    answers = []
    for engine in ("local", "spark"):
        with minidsms.connect() as db:
            db.execute(declaration)
            q = db.query("SELECT k, COUNT(*) FROM S [RANGE 1 DAY] WHERE k > 0 AND k IS NOT NULL GROUP BY k")
            pushed = db.replay(str(tmp_path / "data"), engine=engine, from_=DAY // 10, to=4 * DAY)
            answers.append((pushed, sorted(q.fetch()), q.closed_until))
    assert answers[0] == answers[1]
    assert answers[0][0] == 27


def test_tables_and_frames_are_taken_as_a_whole_and_the_log_says_what_came_from_where(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declaration = "CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t"
    place = str(tmp_path / "data")
    frame = spark.createDataFrame([(1, 2**53 + 1), (2, None), (None, 5)], "t long, v long")
    for expected in (2, 0):  # a batch of a stream comes again after a crash
        assert ingest(frame, place, declaration, batch="0").rows == expected
    frame.createOrReplaceTempView("raw_table")
    with pytest.raises(Error, match="a DataFrame has no format"):
        ingest(frame, place, declaration, "csv")
    (tmp_path / "a.csv").write_text("t,v\n3,1\nx,1\n")
    (tmp_path / "stream.cql").write_text(declaration)
    arguments = ["ingest", str(tmp_path / "*.csv"), place, "--stream", str(tmp_path / "stream.cql"), "--quiet"]
    assert main(arguments) == 0
    assert "S: 1 row, 1 rejected (in " in capsys.readouterr().out
    assert main([*arguments, "--format", "nothing"]) == 1
    assert "cannot read the raw data" in capsys.readouterr().err
    assert _values(tmp_path / "data", "S") == [(1, 2**53 + 1), (2, None), (3, 1)]
    assert main(["archive", "inspect", place, "--log"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"1\W+DataFrame\W+3\W+1\n", told)
    assert re.search(r"2\W+file:\S+a\.csv\|\S+\W+2\W+1\n", told)


def test_an_ingest_is_carried_out_as_the_program_has_set_its_session(spark: SparkSession, tmp_path: Path) -> None:
    own = spark.newSession()
    own.createDataFrame([(1, 5)], "t long, v long").createOrReplaceTempView("seen_here")
    own.conf.set("spark.sql.parquet.compression.codec", "gzip")
    declaration = "CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t"
    ingest("seen_here", str(tmp_path / "data"), declaration, "table", spark=own)
    (file,) = find(str(tmp_path / "data"), "S").files()
    assert parquet.ParquetFile(file.path).metadata.row_group(0).column(0).compression == "GZIP"
    assert own.conf.get("spark.sql.mapKeyDedupPolicy") != "LAST_WIN"
    assert _values(tmp_path / "data", "S") == [(1, 5)]


def _rounded(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*), AVG(v) FROM S [RANGE 7] WHERE k <> 2 GROUP BY k",
        "SELECT ISTREAM(a.k, b.v) FROM S [RANGE 3] a, S [RANGE 2 SLIDE 2] b WHERE a.k = b.k",
        "SELECT SUM(v) FROM S [RANGE 3]",
        "SELECT S.k, n FROM S [RANGE 2], R WHERE S.k = R.k",
        "DSTREAM (SELECT t FROM S [RANGE 3] EXCEPT SELECT n FROM R)",
    ],
)
def test_a_backfill_on_spark_answers_as_one_here(spark: SparkSession, tmp_path: Path, query: str) -> None:
    rng = random.Random(1)
    declare = "CREATE STREAM S (k INTEGER, v FLOAT, t TEXT); CREATE RELATION R (k INTEGER, n TEXT)"
    with minidsms.connect() as db:
        db.execute(declare)
        for name in "SR":
            db.archive(name, str(tmp_path), partition=10)
        db.push("R", [(1, "a"), (2, "b"), (1, "a")], ts=[0, 5, 20], sign=[1, 1, -1])
        at = sorted(rng.randrange(40) for _ in range(60))
        db.push("S", [(rng.randrange(4), rng.random(), rng.choice(["a", "b", None])) for _ in at], ts=at)
    answers = []
    for engine in ("local", "spark"):
        with minidsms.connect(backfill=engine) as db:
            db.execute(declare)
            db.replay(str(tmp_path), names=["R"])
            q = db.execute(f"CREATE QUERY q AS {query} BACKFILL FROM '{tmp_path}'")
            for ts in range(40, 50):
                db.push("S", (ts % 4, ts / 2, "b"), ts=ts)
            db.advance(60)
            changes = [
                (c.ts, c.sign, tuple(round(v, 9) if isinstance(v, float) else v for v in c.row)) for c in q.fetch()
            ]
            answers.append(sorted(changes, key=repr))
            if q.kind == "relation":
                answers[-1] += sorted(repr(tuple(map(_rounded, row))) for row in q.snapshot())
    assert answers[0] == answers[1]
    assert len(answers[0]) > 5


def test_a_backfill_on_spark_gives_nothing_of_the_instant_at_which_too_many_answers_wait(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minidsms.archive.backfill._BATCH_ROWS", 4)
    declare = "CREATE STREAM S (k INTEGER)"
    with minidsms.connect() as db:
        db.execute(f"{declare} ARCHIVE '{tmp_path}'")
        db.push("S", [(i,) for i in range(18)], ts=[1 + i // 6 for i in range(18)])
    failures = []
    for engine in ("local", "spark"):
        with minidsms.connect(backfill=engine, answer_limit=9) as db:
            db.execute(declare)
            q = db.execute(f"CREATE QUERY q AS SELECT ISTREAM(k) FROM S [NOW] BACKFILL FROM '{tmp_path}'")
            failures.append((q.results, q.failure and q.failure[0]))
    assert failures == [(6, 2), (6, 2)]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"format": None}, "which format"),
        ({"declaration": "CREATE STREAM S (t INTEGER)"}, "nothing says when"),
        ({"declaration": "SELECT 1 FROM S"}, "one CREATE STREAM is wanted"),
        ({"declaration": "CREATE STREAM S (z INTEGER) TIMESTAMP BY z"}, 'no column "z"'),
        ({"distinct": ["z"]}, 'distinct: S has no column "z"'),
        ({"source": "/nowhere/at/all.csv"}, "cannot read the raw data"),
        ({"time_unit": "weeks"}, "no time unit"),
        ({"options": {"encoding": "klingon"}}, "unknown encoding"),
        ({"options": {"MODE": "FAILFAST"}}, "MODE cannot be given"),
        ({"format": "parquet"}, "is no Parquet file"),
        ({"folder": "a\0b"}, "no file can be called"),
    ],
)
def test_what_cannot_be_ingested_is_refused(
    spark: SparkSession, tmp_path: Path, arguments: dict[str, Any], reason: str
) -> None:
    (tmp_path / "a.csv").write_text("t\n1\n")
    given = {
        "source": str(tmp_path / "a.csv"),
        "folder": str(tmp_path / "data"),
        "declaration": "CREATE STREAM S (t INTEGER) TIMESTAMP BY t",
        "format": "csv",
        "spark": spark,
    }
    with pytest.raises(Error, match=reason):
        ingest(**(given | arguments))
