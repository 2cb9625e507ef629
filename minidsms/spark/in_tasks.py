"""Queries that Spark cannot say: the engine itself answers them, in many tasks, each for a part of the keys.

Every input's elements travel in one frame; a task gets those of its part and runs the query over them from their first
instant to the last closed one. docs/spark.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from minidsms.cql.errors import QueryError
from minidsms.elements import Schema
from minidsms.spark.computed import no_value
from minidsms.spark.engines import (
    Setting,
    answer_ddl,
    answer_schema,
    data_of,
    engine_of,
    failure_of,
    failures_of,
    result_of,
)
from minidsms.spark.frames import SIGN, TS, World, long, names
from minidsms.spark.partitioning import ByKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.spark.offload import History

PART, INPUT = "_part", "_input"


def in_tasks(world: World, setting: Setting, history: History, cut: ByKey, parts: int) -> DataFrame:
    """`_ts`, `_sign`, c0 .. of the query's answer; notes its failures in `world`."""
    together = reduce(
        lambda a, b: a.unionByName(b),
        [_placed(world, setting, i, history.sources[name.lower()], cut, parts) for i, (name, _, _) in _all(setting)],
    )
    run = _runner(setting, world.until)
    answered = failures_of(world, together.groupBy(PART).applyInArrow(run, answer_ddl(setting)))
    return answered.select(TS, SIGN, *names(len(setting.columns)))


def _all(setting: Setting) -> list[tuple[int, tuple[str, bool, Schema]]]:
    return list(enumerate(setting.inputs))


def _placed(world: World, setting: Setting, index: int, frame: DataFrame, cut: ByKey, parts: int) -> DataFrame:
    """One input's elements with their parts, in columns beside those of the other inputs."""
    columns = [F.lit(index).alias(INPUT), F.col(TS), F.col("_arrival"), F.col(SIGN)]
    for i, (_, _, schema) in enumerate(setting.inputs):
        for c, type_ in zip(names(len(schema)), schema.types):
            columns.append((F.col(c) if i == index else no_value(type_)).alias(f"s{i}{c}"))
    key = F.col(f"c{cut.columns[setting.inputs[index][0].lower()]}")
    return frame.select(F.pmod(F.xxhash64(key), long(parts)).alias(PART), *columns)


def _runner(setting: Setting, until: int) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """The function a task applies to a part."""

    def run(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        return answer_part(setting, table, until)

    return run


def answer_part(setting: Setting, table: pa.Table, until: int) -> pa.Table:
    """The engine's answer over a part's elements, up to the closed instant `until`."""
    table = table.sort_by([(TS, "ascending"), ("_arrival", "ascending")])
    tables = []
    with engine_of(setting) as (db, query):
        try:
            _feed(db, setting, table)
            db.advance(until)
            while len(fetched := query.fetch_arrow()):
                tables.append(result_of(setting, fetched))
        except QueryError as failed:  # told once what was answered before has been fetched
            tables.append(failure_of(setting, failed))
    return pa.concat_tables(tables) if tables else answer_schema(setting).empty_table()


def _feed(db: Any, setting: Setting, table: pa.Table) -> None:
    """Relations first: they never hold time back, and a change after a closed instant would be refused."""
    order = sorted(_all(setting), key=lambda item: item[1][1])
    for index, (name, is_stream, schema) in order:
        mine = table.filter(pc.equal(table[INPUT], index))
        data = data_of(schema, mine, f"s{index}c")
        ts = mine[TS].to_numpy()
        if not len(mine):
            continue
        if is_stream:
            db.push(name, data, ts=ts)
        else:
            db.push(name, data, ts=ts, sign=mine[SIGN].to_numpy())
