"""Queries that Spark cannot say: the engine itself answers them, in many tasks, each for a part of the keys.

Every input's elements travel in one frame; a task gets those of its part and runs the query over them from their first
instant to the last closed one. Here too is what any engine in a task needs. docs/spark.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from minidsms.cql.catalog import AggregateDef, FunctionDef
from minidsms.cql.errors import QueryError
from minidsms.elements import Schema, Type
from minidsms.spark.computed import no_value, spark_type
from minidsms.spark.frames import SIGN, TS, World, long, names
from minidsms.spark.partitioning import ByKey
from minidsms.spark.reading import quoted
from minidsms.values.arrow_types import array_of_words, stored_type, word_type, words_of_array
from minidsms.values.types import known_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.connection import Connection
    from minidsms.query import Query
    from minidsms.spark.offload import History

PART, INPUT, FAILED_TS, REASON = "_part", "_input", "_failed_ts", "_reason"


@dataclass(frozen=True)
class Setting:
    """What an engine in a task is told before it is fed.

    inputs: (name, is a stream, schema), in the order of INPUT.  others: what else views name, alike.  ticks, bags:
    RSTREAM, UNION and EXCEPT mean what they do in scripts of the prototype.
    """

    inputs: tuple[tuple[str, bool, Schema], ...]
    others: tuple[tuple[str, bool, Schema], ...]
    views: tuple[str, ...]
    query: str
    columns: tuple[Type, ...]
    time_unit: str
    ticks: bool
    bags: bool
    functions: tuple[FunctionDef, ...]
    aggregates: tuple[AggregateDef, ...]


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
    return pa.concat_tables(tables) if tables else _answer_schema(setting).empty_table()


@contextmanager
def engine_of(setting: Setting) -> Iterator[tuple[Connection, Query]]:
    """An engine with the setting's declarations and its query."""
    from minidsms.connection import connect

    with connect(time_unit=setting.time_unit, rstream="ticks" if setting.ticks else "events") as db:
        db.catalog.bag_set_operations = setting.bags
        for name, is_stream, schema in (*setting.inputs, *setting.others):
            kind = "STREAM" if is_stream else "RELATION"
            columns = ", ".join(f"{quoted(f.name)} {_declared(f.type)}" for f in schema)
            db.execute(f"CREATE {kind} {quoted(name)} ({columns})")
        db.catalog.functions |= {f.name.lower(): f for f in setting.functions}
        db.catalog.aggregates |= {a.name.lower(): a for a in setting.aggregates}
        for view in setting.views:
            db.execute(view)
        yield db, db.query(setting.query)


def _declared(type_: Type) -> str:
    """A column that is always NULL has no type of its own to be declared with."""
    return str(known_type(type_))


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


def data_of(schema: Schema, table: pa.Table, prefix: str = "c") -> pa.Table:
    """The columns of a frame as they are pushed."""
    columns = zip(names(len(schema), prefix), schema)
    return pa.table({f.name: array_of_words(table[c], f.type, stored_type(f.type)) for c, f in columns})


def answer_ddl(setting: Setting) -> str:
    """The columns a task gives, as Spark declares them: of an answer, or of a failure."""
    ddl = f"{TS} bigint, {SIGN} tinyint, {FAILED_TS} bigint, {REASON} string"
    columns = zip(names(len(setting.columns)), setting.columns)
    return ddl + "".join(f", {c} {spark_type(t)}" for c, t in columns)


def _answer_schema(setting: Setting) -> pa.Schema:
    own = [(TS, pa.int64()), (SIGN, pa.int8()), (FAILED_TS, pa.int64()), (REASON, pa.string())]
    return pa.schema(own + [(c, word_type(t)) for c, t in zip(names(len(setting.columns)), setting.columns)])


def result_of(setting: Setting, table: pa.Table) -> pa.Table:
    """Fetched answers as frames have them."""
    n = len(table)
    arrays = [table["_ts"].cast(pa.int64()), table["_sign"], pa.nulls(n, pa.int64()), pa.nulls(n, pa.string())]
    arrays += [words_of_array(table.column(2 + i).cast(stored_type(t)), t) for i, t in enumerate(setting.columns)]
    return pa.table(arrays, schema=_answer_schema(setting))


def failure_of(setting: Setting, failed: QueryError) -> pa.Table:
    """A row that tells of a failure."""
    row = {FAILED_TS: failed.ts, REASON: failed.reason}
    return pa.Table.from_pylist([row], schema=_answer_schema(setting))


def failures_of(world: World, answered: DataFrame) -> DataFrame:
    """What tasks gave without the rows that tell of failures, which are noted in `world`: the engines run once."""
    answered = world.shared(answered)
    failed = answered.where(F.col(REASON).isNotNull())
    world.failures.append(failed.select(F.col(FAILED_TS).alias(TS), F.col(REASON)))
    return answered.where(F.col(REASON).isNull())
