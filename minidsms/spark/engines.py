"""Engines in Spark's tasks: what they are told, how they are fed, and what they give. docs/spark.md.

An answer and a failure are rows of one table, so that engines run once, whatever is asked of what they have given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from minidsms.cql.binder import Bound
from minidsms.cql.catalog import AggregateDef, Catalog, FunctionDef
from minidsms.cql.errors import QueryError
from minidsms.cql.printer import print_query
from minidsms.cql.words import TICK_NS
from minidsms.elements import Schema, Type
from minidsms.spark.computed import spark_type
from minidsms.spark.frames import SIGN, TS, World, names
from minidsms.spark.reading import quoted
from minidsms.values.arrow_types import array_of_words, stored_type, word_type, words_of_array
from minidsms.values.types import known_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.connection import Connection
    from minidsms.query import Query

FAILED_TS, REASON = "_failed_ts", "_reason"


@dataclass(frozen=True)
class Setting:
    """What an engine in a task is told before it is fed.

    inputs: (name, is a stream, schema), in the order of the query's.  others: what else views name, alike.
    ticks, bags: RSTREAM, UNION and EXCEPT mean what they do in scripts of the prototype.
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


def setting_of(query: Bound, catalog: Catalog) -> Setting:
    """What an engine in a task must know."""
    views: list[str] = []
    for view in catalog.views.values():
        columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
        views.append(f"CREATE VIEW {quoted(view.name)}{columns} AS {print_query(view.query)}")
    text = print_query(query.expanded)
    said = " ".join([text, *views]).lower()  # what nobody names need not be fit to travel
    read = {name.lower() for name in (*query.streams, *query.relations)}
    others = [(s.name, True, s.schema) for key, s in catalog.streams.items() if key not in read and not s.is_system]
    others += [(r.name, False, r.schema) for key, r in catalog.relations.items() if key not in read]
    return Setting(
        tuple(_inputs(query, catalog)),
        tuple(others) if views else (),
        tuple(views),
        text,
        query.node.schema.types,
        next(unit for unit, ns in TICK_NS.items() if ns == catalog.tick_ns),
        catalog.rstream_ticks,
        catalog.bag_set_operations,
        tuple(f for f in catalog.functions.values() if f.name.lower() in said),
        tuple(a for a in catalog.aggregates.values() if a.name.lower() in said),
    )


def _inputs(query: Bound, catalog: Catalog) -> list[tuple[str, bool, Schema]]:
    """What a query reads: (name, is a stream, schema)."""
    found = [(name, True, catalog.streams[name.lower()].schema) for name in query.streams]
    return found + [(name, False, catalog.relations[name.lower()].schema) for name in query.relations]


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


def data_of(schema: Schema, table: pa.Table, prefix: str = "c") -> pa.Table:
    """The columns of a frame as they are pushed."""
    columns = zip(names(len(schema), prefix), schema)
    return pa.table({f.name: array_of_words(table[c], f.type, stored_type(f.type)) for c, f in columns})


def answer_ddl(setting: Setting) -> str:
    """The columns a task gives, as Spark declares them: of an answer, or of a failure."""
    ddl = f"{TS} bigint, {SIGN} tinyint, {FAILED_TS} bigint, {REASON} string"
    columns = zip(names(len(setting.columns)), setting.columns)
    return ddl + "".join(f", {c} {spark_type(t)}" for c, t in columns)


def answer_schema(setting: Setting) -> pa.Schema:
    """The same in Arrow."""
    own = [(TS, pa.int64()), (SIGN, pa.int8()), (FAILED_TS, pa.int64()), (REASON, pa.string())]
    return pa.schema(own + [(c, word_type(t)) for c, t in zip(names(len(setting.columns)), setting.columns)])


def result_of(setting: Setting, table: pa.Table) -> pa.Table:
    """Fetched answers as frames have them."""
    n = len(table)
    arrays = [table["_ts"].cast(pa.int64()), table["_sign"], pa.nulls(n, pa.int64()), pa.nulls(n, pa.string())]
    arrays += [words_of_array(table.column(2 + i).cast(stored_type(t)), t) for i, t in enumerate(setting.columns)]
    return pa.table(arrays, schema=answer_schema(setting))


def failure_of(setting: Setting, failed: QueryError) -> pa.Table:
    """A row that tells of a failure."""
    row = {FAILED_TS: failed.ts, REASON: failed.reason}
    return pa.Table.from_pylist([row], schema=answer_schema(setting))


def failures_of(world: World, answered: DataFrame) -> DataFrame:
    """What tasks gave without the rows that tell of failures, which are noted in `world`: the engines run once."""
    answered = world.shared(answered)
    failed = answered.where(F.col(REASON).isNotNull())
    world.failures.append(failed.select(F.col(FAILED_TS).alias(TS), F.col(REASON)))
    return answered.where(F.col(REASON).isNull())
