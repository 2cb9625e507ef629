"""Spark against the definition: one case, the same history, every closed instant (docs/spark.md).

`python -m tests.long.spark_answers --cases N --seed S` runs generated cases, until one differs: over archives of
their own, by DataFrame operations and by engines in tasks, with time cut into slices of a few rows; and as streams,
several in one streaming query, which come in two halves.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from minidsms.archive import files
from minidsms.archive.format import Metadata, create
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.words import TICK_NS
from minidsms.elements import Schema, Type
from minidsms.spark import slicing
from minidsms.spark.session import session
from minidsms.testing.compare import Answer, bind_case, catalog_of, difference_of, run_definition
from minidsms.testing.definition import answer
from minidsms.testing.generators import Case, random_case
from minidsms.testing.grammar import Options
from minidsms.testing.history import Change, Failure, value_order
from minidsms.testing.history import History as Fed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn200m -XX:MetaspaceSize=300m "
        "-XX:ReservedCodeCacheSize=240m -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    ),
}
"""Settings for tiny data: one task a stage, no code generated, Java compiles its own quickly, does not verify twenty
thousand classes, and has room for them, for their code and for what is young from the start.
"""

ON_SPARK = Options(types=False)
"""What is written here for Spark to read has no DATE, TIME or list."""
WAYS = ("frames", "engines", "replay")
PARTITION = 10
"""Ticks of a partition of the archives: a history has several files."""


def write_archives(folder: str, catalog: Catalog, fed: Fed, partition: int = PARTITION) -> None:
    """What has been fed, as archives of a folder."""
    unit = next(unit for unit, ns in TICK_NS.items() if ns == catalog.tick_ns)
    every: list[tuple[str, str, Schema, Sequence[Change]]] = [
        (s.name, "stream", s.schema, [(ts, 1, row) for ts, row in fed.streams.get(key, [])])
        for key, s in catalog.streams.items()
        if not s.is_system
    ]
    every += [(r.name, "relation", r.schema, fed.relations.get(key, [])) for key, r in catalog.relations.items()]
    for name, kind, schema, rows in every:
        archive = create(folder, Metadata(name, kind, unit, schema, partition))
        if rows:
            columns = [*zip(*((ts, i, sign, *row) for i, (ts, sign, row) in enumerate(rows)))]
            types = archive.metadata.arrow_schema
            files.write(archive, pa.table([pa.array(c, f.type) for c, f in zip(columns, types)], schema=types))


def changes_of(frame: DataFrame) -> tuple[Change, ...]:
    """The rows of an answer in the order of time."""
    return tuple(sorted(((r[0], r[1], tuple(r[2:])) for r in frame.collect()), key=lambda c: c[0]))


def answer_of(
    spark: SparkSession, text: str, catalog: Catalog, fed: Fed, until: int, by: str | None = None, slices: int = 3
) -> Answer:
    """Spark's answer to a query over what has been fed; where the query fails, with the answers before.

    by: a way; None: the first of `WAYS` that can.  Raises CqlError and Error where it is refused.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_archives(folder, catalog, fed)
        return answer_over(spark, text, folder, catalog, until, by, slices)


def answer_over(
    spark: SparkSession, text: str, folder: str, catalog: Catalog, until: int, by: str | None = None, slices: int = 3
) -> Answer:
    """The same over archives that are there."""
    from pyspark.errors import PySparkException

    from minidsms.spark.running import prepare

    for way in WAYS if by is None else (by,):
        try:
            ready = prepare(text, folder, catalog, spark, way)
            break
        except CqlError:
            raise
        except Error:
            if way == (by or WAYS[-1]):
                raise
    try:
        return Answer(changes_of(ready.frame(until=until, slices=slices)))
    except PySparkException as error:
        failed_at, reason = _failure_of(error)
        return Answer(changes_of(ready.frame(until=failed_at - 1, slices=slices)), failed_at, reason)


def _failure_of(error: Exception) -> tuple[int, str]:
    from minidsms.spark.offload import FAILED_AT

    told = re.search(rf"{FAILED_AT}(-?\d+): (.*)", str(error))
    if told is None:
        raise error
    return int(told[1]), told[2]


def check_spark(spark: SparkSession, case: Case, by: str | None = None) -> str:
    """Compare Spark and definition: "agreed", or why the query was refused. Raises AssertionError with the story."""
    (outcome,) = (outcome for _, outcome in check_archived(spark, case, [by]))
    if outcome.startswith("differs"):
        raise AssertionError(outcome)
    return outcome


def check_archived(spark: SparkSession, case: Case, ways: Sequence[str | None]) -> Iterator[tuple[str, str]]:
    """The same by several ways: each and "agreed", "refused: .." or "differs", the story behind."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            query, catalog = bind_case(case), catalog_of(case)
            expected = run_definition(case)
        except CqlError as error:
            yield "archives", f"refused: {error.reason}"
            return
        write_archives(folder, catalog, case.history(query.streams))
        for way in ways:
            try:
                actual = answer_over(spark, case.query, folder, catalog, case.closed(), way)
                yield str(way), _compared(expected, actual, case)
            except CqlError as error:
                yield str(way), f"refused: {error.reason}"
            except Error as error:
                yield str(way), f"refused: {str(error).splitlines()[0]}"


def _compared(expected: Answer, actual: Answer, case: object) -> str:
    # What a relation holds at the end follows from its changes.
    difference = difference_of(replace(expected, snapshot=None), actual)
    return f"differs\n{difference.replace('the engine   ', 'Spark        ')}\n\n{case}" if difference else "agreed"


# ----------------------------------------------------------------------------------------------------------- streams

_AT = "fed_at"
"""The column of a stream that says when its rows come."""


@dataclass(frozen=True)
class Streamed:
    """A case whose elements come as streams of Spark. fed: relations are there from the first instant on."""

    case: Case
    declarations: str
    query: str
    fed: Fed

    def expected(self, until: int) -> Answer:
        """By definition."""
        from minidsms.spark.streaming import prepare

        try:
            return Answer(tuple(answer(prepare(self.query, self.declarations).query.node, self.fed, until)))
        except Failure as failure:
            return Answer(tuple(failure.changes), failure.ts, failure.reason)

    @property
    def last(self) -> int:
        """The greatest instant of an element."""
        return max((ts for rows in self.fed.streams.values() for ts, _ in rows), default=0)


def streamed(case: Case) -> Streamed:
    """A case for streams: each has a column that says when. Raises CqlError and Error where it is refused."""
    from minidsms.spark.stateful import RELATIONS_SINCE
    from minidsms.spark.streaming import prepare

    catalog, history = catalog_of(case), case.history()
    fed = Fed()
    declared = [text for text in case.declarations if text.startswith("CREATE VIEW")]
    tables = [(s.name, s.schema) for s in catalog.streams.values()]
    tables += [(r.name, r.schema) for r in catalog.relations.values()]
    for name, schema in tables:
        columns = [f"{field.name} {field.type}" for field in schema]
        if name.lower() in catalog.streams:
            elements = [(ts, (*row, ts)) for ts, row in history.streams.get(name.lower(), [])]
            fed.streams[name.lower()] = sorted(elements, key=lambda e: (e[0], value_order(e[1])))
            declared.append(f"CREATE STREAM {name} ({', '.join([*columns, f'{_AT} INTEGER'])}) TIMESTAMP BY {_AT}")
        else:
            inserted = [row for _, sign, row in history.relations.get(name.lower(), []) if sign > 0]
            fed.relations[name.lower()] = [(RELATIONS_SINCE, 1, row) for row in inserted]
            declared.append(f"CREATE RELATION {name} ({', '.join(columns)})")
    text = f"SET rstream = 'ticks'; {case.query}" if catalog.rstream_ticks else case.query
    result = Streamed(case, ";\n".join(sorted(declared, key=lambda d: d.startswith("CREATE VIEW"))), text, fed)
    prepare(result.query, result.declarations)
    return result


def run_streams(spark: SparkSession, cases: Sequence[Streamed], until: int, tries: int = 3) -> list[Answer]:
    """The answers up to an instant of cases in one streaming query; one that fails must be the only one.

    tries: on a machine that is very busy, Spark gives a worker up that is slow to start.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    with tempfile.TemporaryDirectory() as folder:
        frames = [
            frame.select(
                F.lit(i).alias("_case"),
                *frame.columns[:2],
                F.to_json(F.struct(*(frame[f"`{c}`"] for c in frame.columns[2:])), {"ignoreNullFields": "false"}),
            )
            for i, frame in enumerate(_stream(spark, c, Path(folder) / str(i), until) for i, c in enumerate(cases))
        ]
        together = reduce(lambda a, b: a.unionAll(b), frames).toDF("_case", "_ts", "_sign", "_row")
        writing = together.writeStream.format("memory").queryName("answers").trigger(availableNow=True)
        failed: tuple[int, str] | None = None
        try:
            writing.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
        except PySparkException as error:
            if tries > 1 and "failed to connect back" in str(error):
                return run_streams(spark, cases, until, tries - 1)
            failed = _failure_of(error)
        rows = [(r[0], (r[1], r[2], tuple(json.loads(r[3]).values()))) for r in spark.table("answers").collect()]
        spark.catalog.dropTempView("answers")
    found = [tuple(change for i, change in rows if i == number) for number in range(len(cases))]
    return [Answer(changes) if failed is None else Answer(changes, *failed) for changes in found]


def _stream(spark: SparkSession, case: Streamed, folder: Path, until: int) -> DataFrame:
    """A case's answer; of each stream come the older half, then the rest and an element that closes `until`."""
    from minidsms.spark import stream
    from minidsms.spark.computed import spark_type
    from minidsms.spark.streaming import prepare

    inputs = {}
    for name, is_stream, schema in prepare(case.query, case.declarations).setting.inputs:
        ddl = ", ".join(f"{field.name} {spark_type(field.type)}" for field in schema)
        if not is_stream:
            rows = [row for _, _, row in case.fed.relations[name.lower()]]
            inputs[name] = spark.createDataFrame(rows, ddl)
            continue
        rows = [row for _, row in case.fed.streams[name.lower()]]
        closing = (*[None] * (len(schema) - 1), until + 1)
        place = folder / name
        place.mkdir(parents=True)
        middle = len(rows) // 2
        for part, some in enumerate((rows[:middle], [*rows[middle:], closing])):
            types = [(field.name, _ARROW.get(field.type, pa.int64())) for field in schema]
            columns = [pa.array(column, type_) for column, (_, type_) in zip(zip(*some), types)] if some else []
            table = pa.table(columns, schema=pa.schema(types)) if some else pa.schema(types).empty_table()
            parquet.write_table(table, place / f"{part}.parquet")
            os.utime(place / f"{part}.parquet", (part, part))  # the oldest is read first
        inputs[name] = spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(place))
    return stream(case.query, inputs, case.declarations, parts=2)


_ARROW = {Type.FLOAT: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_()}


def check_streams(spark: SparkSession, cases: Sequence[Streamed]) -> Iterator[str]:
    """Compare streams and definition: of every case "agreed", or "differs", the story behind."""
    until = max(case.last for case in cases) + 3
    expected = [case.expected(until) for case in cases]
    sound = [(c, e) for c, e in zip(cases, expected) if e.failed_at is None]
    groups = [sound] if sound else []
    for group in groups + [[(c, e)] for c, e in zip(cases, expected) if e.failed_at is not None]:
        for (case, wanted), found in zip(group, run_streams(spark, [c for c, _ in group], until)):
            if wanted.failed_at is not None:  # the answers of the batch that fails are not given
                found = replace(found, changes=wanted.changes)
            yield _compared(wanted, found, f"{case.declarations};\n{case.query}\n{case.fed}")


# ---------------------------------------------------------------------------------------------------------- the run

_TOGETHER = 8
"""Streams in one streaming query."""
_SLICE_BYTES = 4000
"""Of slices of time: a few of the files."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run generated cases; returns the exit status: 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.spark_answers", description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first case's seed; the others follow")
    parser.add_argument("--size", type=int, default=14, help="about how many elements a stream gets")
    parser.add_argument("--way", action="append", choices=(*WAYS, "streams"), help="may be repeated (default: all)")
    parser.add_argument("--keep-going", action="store_true", help="count differences instead of stopping")
    options = parser.parse_args(arguments)
    ways = options.way or [*WAYS, "streams"]
    slicing.SLICE_BYTES = slicing.LEAST_BYTES = _SLICE_BYTES
    spark = session("local[1]", SMALL)
    told = _Told()
    waiting: list[Streamed] = []
    for seed in range(options.seed, options.seed + options.cases):
        case = random_case(seed, ON_SPARK, options.size)
        for way, outcome in check_archived(spark, case, [way for way in ways if way in WAYS]):
            told.add(f"seed {seed}, by {way}", way, outcome)
        if "streams" in ways:
            try:
                waiting.append(streamed(case))
            except (CqlError, Error) as error:
                told.add("", "streams", f"refused: {str(error).splitlines()[0]}")
        if len(waiting) >= _TOGETHER or (seed == options.seed + options.cases - 1 and waiting):
            for outcome in check_streams(spark, waiting):
                told.add(f"up to seed {seed}, as a stream", "streams", outcome)
            waiting = []
        sys.stderr.write(f"\r{seed - options.seed + 1} cases, {told.agreed} answers agreed, {told.differ} differ ")
        sys.stderr.flush()
        if told.differ and not options.keep_going:
            break
    print(f"\n{told}")
    return 1 if told.differ else 0


class _Told:
    """How often what came out."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()

    def add(self, where: str, way: str, outcome: str) -> None:
        if outcome.startswith("differs"):
            print(f"\n{where}\n{outcome}", flush=True)
        self.outcomes[f"{way}: {outcome.splitlines()[0]}"] += 1

    @property
    def agreed(self) -> int:
        return sum(n for outcome, n in self.outcomes.items() if outcome.endswith(": agreed"))

    @property
    def differ(self) -> int:
        return sum(n for outcome, n in self.outcomes.items() if outcome.endswith(": differs"))

    def __str__(self) -> str:
        return "\n".join(f"{n:6d}  {outcome}" for outcome, n in self.outcomes.most_common())


if __name__ == "__main__":
    sys.exit(main())
