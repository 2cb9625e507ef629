"""Spark against the definition: one case, the same history, every closed instant (docs/spark.md).

`python -m tests.long.spark_answers --cases N --seed S` runs generated cases, by DataFrame operations and by
engines in tasks, until one differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidsms.cql.binder import Bound
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError, Error
from minidsms.spark.session import session
from minidsms.testing.compare import Answer, bind_case, catalog_of, difference_of, run_definition
from minidsms.testing.generators import Case, random_case
from minidsms.testing.history import Change
from minidsms.testing.history import History as Fed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minidsms.spark.offload import History

SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for tiny data: one task a stage, no code generated, and Java compiles its own quickly."""


def history_of(spark: SparkSession, catalog: Catalog, fed: Fed, until: int) -> History:
    """What has been fed, as frames, closed up to `until`."""
    from minidsms.spark.computed import spark_type
    from minidsms.spark.offload import History

    elements: dict[str, list[Change]] = {
        name: [(ts, 1, row) for ts, row in fed.streams.get(name, [])] for name in catalog.streams
    }
    elements |= {name: fed.relations.get(name, []) for name in catalog.relations}
    frames = {}
    for name, rows in elements.items():
        schema = (catalog.streams.get(name) or catalog.relations[name]).schema
        columns = ["_ts bigint", "_arrival bigint", "_sign tinyint"]
        columns += [f"c{i} {spark_type(t)}" for i, t in enumerate(schema.types)]
        data = [(ts, i, sign, *row) for i, (ts, sign, row) in enumerate(rows)]
        frames[name] = spark.createDataFrame(data, ", ".join(columns))
    first = min((ts for rows in elements.values() for ts, _, _ in rows), default=0)
    return History(frames, first, until)


def changes_of(frame: DataFrame) -> tuple[Change, ...]:
    """The rows of an answer in the order of time."""
    return tuple(sorted(((r[0], r[1], tuple(r[2:])) for r in frame.collect()), key=lambda c: c[0]))


def run_spark(spark: SparkSession, case: Case, slices: int = 3, by: str | None = None) -> Answer:
    """Spark's answer; where the query fails, with the answers before. Raises CqlError and Error where it is refused."""
    query = bind_case(case)
    fed = case.history(query.streams)
    return answer_of(spark, query, case.query, catalog_of(case), fed, case.closed(), slices, by)


def answer_of(
    spark: SparkSession,
    query: Bound,
    text: str,
    catalog: Catalog,
    fed: Fed,
    until: int,
    slices: int = 3,
    by: str | None = None,
) -> Answer:
    """The same for a bound query and what has been fed. by: "frames" or "engines"; None: what is chosen."""
    from pyspark.errors import PySparkException

    from minidsms.spark.offload import FAILED_AT, History
    from minidsms.spark.plan import carry_out, choose

    history = history_of(spark, catalog, fed, until)
    choice = choose(query, text, catalog, by=by)

    def answer(until: int) -> tuple[Change, ...]:
        part = History(history.sources, history.first, until)
        return changes_of(carry_out(spark, choice, query, part, catalog, slices=slices))

    try:
        return Answer(answer(history.until))
    except PySparkException as error:
        told = re.search(rf"{FAILED_AT}(-?\d+): (.*)", str(error))
        if told is None:
            raise
        return Answer(answer(int(told[1]) - 1), int(told[1]), told[2])


def check_spark(spark: SparkSession, case: Case, slices: int = 3, by: str | None = None) -> str:
    """Compare Spark and definition: "agreed", or why the query was refused. Raises AssertionError with the story."""
    try:
        expected = run_definition(case)
        actual = run_spark(spark, case, slices, by)
    except CqlError as error:
        return f"refused: {error.reason}"
    except Error as error:
        return f"refused: {str(error).splitlines()[0]}"
    # What a relation holds at the end follows from its changes.
    expected = Answer(expected.changes, expected.failed_at, expected.reason)
    difference = difference_of(expected, actual)
    if difference:
        raise AssertionError(f"{difference.replace('the engine   ', 'Spark        ')}\n\n{case}")
    return "agreed"


_TOLD = ("agreed", "differs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run generated cases; returns the exit status: 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.spark_answers", description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first case's seed; the others follow")
    parser.add_argument("--size", type=int, default=14, help="about how many elements a stream gets")
    parser.add_argument("--keep-going", action="store_true", help="count differences instead of stopping")
    options = parser.parse_args(arguments)
    spark = session("local[1]", SMALL)
    outcomes: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.cases):
        case = random_case(seed, size=options.size)
        for by in ("frames", "engines"):
            try:
                outcome = check_spark(spark, case, by=by)
            except AssertionError as difference:
                outcome = "differs"
                print(f"\nseed {seed}, by {by}\n{difference}", flush=True)
            outcomes[f"{by}: {outcome}"] += 1
        agreed, differ = (sum(outcomes[f"{by}: {told}"] for by in ("frames", "engines")) for told in _TOLD)
        sys.stderr.write(f"\r{seed - options.seed + 1} cases, {agreed} answers agreed, {differ} differ ")
        sys.stderr.flush()
        if differ and not options.keep_going:
            break
    print()
    for outcome, n in outcomes.most_common():
        print(f"{n:6d}  {outcome}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
