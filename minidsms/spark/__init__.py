"""The same queries in batch: archives are read, and queries answered, by Apache Spark.

Invariant: importing this package loads neither pyspark, which has to be installed, nor a Java machine; the first call
that needs them does.
docs/spark.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from minidsms.extras import check_installed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minidsms.archive.format import AsOf
    from minidsms.connection import Connection

__all__ = ["explain", "explain_stream", "register", "run", "stream"]

check_installed("pyspark", "Spark", "spark")


def run(
    cql: str,
    folder: str,
    at: Sequence[int] | None = None,
    until: int | None = None,
    spark: SparkSession | None = None,
    by: str | None = None,
    as_of: AsOf | None = None,
    times: bool = False,
) -> DataFrame:
    """The answer of a query over archives: the changes that the live engine would give.

    cql: one query, after the views it needs.  folder: a folder of archives, one per stream or relation, each named
    after it.  at: instants; then the answer is what the query's relation holds at each.  until: the last closed
    instant (default: the greatest in the archives that are read and of `at`).  spark: a session, where it is not to
    be the process's own.  by: "frames", DataFrame operations, "engines" in Spark's tasks, or "replay", one engine
    in one task; None: what costs least, as far as is known.
    as_of: the archives as they were behind a commit: its number, or a time (of the wall; ISO text or datetime).
    times: see below.

    Returns the columns `_ts` (long, ticks), `_sign` (1 or -1; not with `at`), then the query's: INTEGER, TIMESTAMP and
    INTERVAL long (ticks), FLOAT double, TEXT string, BOOLEAN boolean. A name that repeats gets a number. With `times`
    there is `_time` beside `_ts`, and columns that are TIMESTAMP are Spark's, to the microsecond. The frame is
    evaluated when it is asked for; where the query fails (docs/semantics R4), that raises with the instant and reason.
    Raises CqlError for what is no query, Error for what cannot be read or run on Spark.
    """
    from minidsms.spark.running import prepare

    return prepare(cql, folder, spark=spark, by=by, as_of=as_of).frame(at, until, times=times)


def register(spark: SparkSession | None = None) -> None:
    """Let a session (default: the process's own) know `spark.read.format("minidsms")` and `"minidsms_kafka"`.

    So does the active session: Spark looks for formats there, whichever session's frame is written.
    Options of minidsms: path, a folder of archives; name of an archive, whose elements are read, or query, CQL, whose
    changes are; as_of, a commit or a time; from and to, instants. To write: path, name, kind, time_unit, batch. Those
    of minidsms_kafka are called as those of Spark's own connector (docs/spark.md).
    """
    from minidsms.spark.data_source import ArchiveSource
    from minidsms.spark.kafka import KafkaSource
    from minidsms.spark.session import active, current, session

    spark = spark or session()
    for knowing in {spark, current(spark)}:
        with active(knowing):
            for source in (ArchiveSource, KafkaSource):
                knowing.dataSource.register(source)


def stream(
    cql: str,
    inputs: Mapping[str, DataFrame],
    declarations: str,
    time_unit: str = "ms",
    parts: int | None = None,
    times: bool = False,
    db: Connection | None = None,
) -> DataFrame:
    """The answer of a query over streaming DataFrames, as a streaming DataFrame of its changes, to append.

    inputs: by name, streaming DataFrames of streams, and others of relations, whose rows are read now.  declarations:
    `CREATE STREAM .. TIMESTAMP BY .. SLACK ..`, `CREATE RELATION`, `CREATE VIEW`; columns are found by name, and SLACK
    is Spark's watermark.  parts: into how many engines the keys are divided (default: spark.sql.shuffle.partitions);
    a checkpoint keeps it.  times: as in `run`.  db: a connection, whose functions and aggregates the query may name;
    Spark sends them to its tasks.

    Returns the columns of `run`. Raises CqlError for what is no query, Error for what cannot be run or does not fit.
    """
    from minidsms.spark.streaming import stream as start

    return start(cql, inputs, declarations, time_unit, parts, times, db)


def explain_stream(cql: str, declarations: str, time_unit: str = "ms", db: Connection | None = None) -> str:
    """How `stream` carries a query out: its plan, by which keys engines divide it, and what they remember."""
    from minidsms.spark.streaming import prepare

    return prepare(cql, declarations, time_unit, db).text()


def explain(
    cql: str, folder: str, spark: SparkSession | None = None, by: str | None = None, analyze: bool = False
) -> str:
    """How `run` carries a query out: its plan, by which way, what each way is estimated to cost, and which files it
    reads. analyze: carry it out by every way before, so that the archives remember what a row costs by each.
    """
    from minidsms.spark.running import measured, prepare

    if analyze:
        measured(cql, folder, spark)
    return prepare(cql, folder, spark=spark, by=by).text()
