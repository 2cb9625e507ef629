"""CQL on Structured Streaming: streaming DataFrames in, a streaming DataFrame of the answer's changes out.

Elements are packed, sent to the part of their key, and answered there by an engine (`stateful`) as the watermark
passes. A query that cannot be cut by a key runs in one task.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from minidsms.cql import bound, syntax
from minidsms.cql.binder import Bound, view_def
from minidsms.cql.catalog import Catalog, StreamDef
from minidsms.cql.declarations import relation_def, stream_def
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parser import parse
from minidsms.cql.printer import print_query
from minidsms.cql.times import tick_words
from minidsms.durability.kept_state import kept_state
from minidsms.elements import Schema, Type
from minidsms.plan.explain import logical_text
from minidsms.plan.logical import SemiJoin, Stop, nodes
from minidsms.settings import length_of_tick
from minidsms.spark.batches import stored, words
from minidsms.spark.compiler import logical_plan
from minidsms.spark.computed import spark_type
from minidsms.spark.costs import shape_of
from minidsms.spark.engines import Setting, engine_of, setting_of
from minidsms.spark.frames import SIGN, TS, long, names, time_of
from minidsms.spark.offload import with_times
from minidsms.spark.packing import AT, PACKED, by_part, packed, packer, unpack
from minidsms.spark.partitioning import ByKey, by_key
from minidsms.spark.raw_columns import read_column
from minidsms.spark.reading import quoted
from minidsms.spark.running import query_of
from minidsms.spark.session import activate
from minidsms.spark.stateful import Engines
from minidsms.spark.workers import check_workers
from minidsms.statements.constant_rows import bind_continuous

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from minidsms.connection import Connection

_STORE = "spark.sql.streaming.stateStore.providerClass"
_DEFAULT_STORE = "HDFSBackedStateStoreProvider"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_made: dict[str, Iterator[int]] = {}
"""How many streaming DataFrames of a shape this process has made."""


@dataclass(frozen=True)
class Streamable:
    """A query that is ready to run over streams. cut: by which columns, or why by none.  reach: what it remembers."""

    query: Bound
    catalog: Catalog
    root: Stop
    cut: ByKey | str
    setting: Setting

    def __str__(self) -> str:
        with engine_of(self.setting) as (db, query):
            db.advance(0)  # before that there is no state
            kept = kept_state(query)
        reach = kept.reach
        if reach.whole:
            state = "all elements so far"
        else:
            state = f"that of {', '.join(name for _, name, _ in kept.operators)}; " if kept.operators else ""
            state += f"the elements of {reach.ticks:,} ticks of {tick_words(self.catalog.tick_ns)}"
            state += "".join(f", the last {n:,} of {name}" for name, n in reach.rows.items())
        if isinstance(self.cut, str):
            return f"On Spark's streams: one engine in one task, for {self.cut}\nState: {state}"
        columns = [f"{name}.{schema.names[self.cut.columns[name.lower()]]}" for name, _, schema in self.setting.inputs]
        return f"On Spark's streams: engines in tasks, by {', '.join(columns)}\nState of an engine: {state}"

    def text(self) -> str:
        """For EXPLAIN."""
        return f"Logical plan\n{logical_text(self.root)}\n{self}"


def prepare(cql: str, declarations: str, time_unit: str = "ms", db: Connection | None = None) -> Streamable:
    """A query over streams that are declared with it. Raises CqlError and Error where it cannot be run.

    db: whose functions and aggregates it may name.
    """
    catalog = Catalog(tick_ns=length_of_tick(time_unit))
    if db is not None:
        catalog.functions.update(db.catalog.functions)
        catalog.aggregates.update(db.catalog.aggregates)
    _declare(catalog, declarations)
    query = bind_continuous(query_of(cql, catalog), catalog, cql)
    if not query.streams:
        raise Error("the query reads no stream, so time does not pass for it")
    for name in query.streams:
        if catalog.streams[name.lower()].timestamp_by is None:
            raise Error(f"nothing says when the rows of {name} come\nhelp: TIMESTAMP BY names the column")
    root = logical_plan(query.node, cql)
    cut = by_key(root)
    if query.relations and any(isinstance(node, SemiJoin | bound.SetOperation) for node in nodes(root)):
        cut = "rows of relations may answer where no element of a stream comes"
    return Streamable(query, catalog, root, cut, setting_of(query, catalog))


def _declare(catalog: Catalog, declarations: str) -> None:
    for statement in parse(declarations):
        match statement:
            case syntax.CreateStream(source=None):
                catalog.streams[statement.name.lower()] = stream_def(statement, catalog, declarations)
            case syntax.CreateRelation(source=None):
                catalog.relations[statement.name.lower()] = relation_def(statement, catalog, declarations)
            case syntax.CreateView():
                catalog.views[statement.name.lower()] = view_def(statement, catalog, declarations)
            case _:
                raise CqlError(
                    "streams, relations and views are declared here, without FROM: their rows come from DataFrames",
                    declarations,
                    statement.span,
                )


def stream(
    cql: str,
    inputs: Mapping[str, DataFrame],
    declarations: str,
    time_unit: str = "ms",
    parts: int | None = None,
    times: bool = False,
    db: Connection | None = None,
) -> DataFrame:
    """See `minidsms.spark.stream`."""
    ready = prepare(cql, declarations, time_unit, db)
    setting, by_name = ready.setting, {name.lower(): frame for name, frame in inputs.items()}
    unknown = [name for name in inputs if name.lower() not in {n.lower() for n, _, _ in setting.inputs}]
    missing = [name for name, _, _ in setting.inputs if name.lower() not in by_name]
    if unknown or missing:
        told = f"the query does not read {unknown[0]}" if unknown else f"no DataFrame is given for {missing[0]}"
        raise Error(f"{told}\nhelp: it reads {', '.join(name for name, _, _ in setting.inputs)}")
    spark = next(iter(inputs.values())).sparkSession
    check_workers(spark)
    activate(spark)  # whoever writes the answer by a format of this session's finds it
    if (spark.conf.get(_STORE, None) or _DEFAULT_STORE).endswith(_DEFAULT_STORE):
        spark.conf.set(_STORE, _ROCKS)  # the only one of Spark's own that keeps more than a value a key
    count = 1 if isinstance(ready.cut, str) else parts or int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    elements: list[DataFrame] = []
    relations: dict[int, dict[int, bytes]] = {}
    for index, (name, is_stream, schema) in enumerate(setting.inputs):
        frame = by_name[name.lower()]
        if frame.isStreaming != is_stream:
            wanted = "a streaming DataFrame" if is_stream else "a DataFrame that does not stream: its rows are read now"
            raise Error(f"{name} is a {'stream' if is_stream else 'relation'}, and takes {wanted}")
        columns = _columns(frame, name, schema, ready.catalog.tick_ns)
        key = None if isinstance(ready.cut, str) else columns[ready.cut.columns[name.lower()]]
        part = (long(0) if key is None else F.pmod(F.xxhash64(key), long(count))).cast("int").alias("part")
        values = [column.alias(c) for column, c in zip(columns, names(len(schema)))]
        if is_stream:
            elements.append(_elements(frame, ready.catalog.streams[name.lower()], index, part, values, ready))
        else:
            for number, table in by_part(frame.select(part, *values).toArrow()):
                relations.setdefault(number, {})[index] = packed(table)
    together = reduce(lambda a, b: a.unionByName(b), elements)
    engines = Engines(setting, relations, ready.catalog.tick_ns)
    answered = together.groupBy("part").transformWithStateInPandas(engines, "payload binary", "append", "eventtime")
    own = names(len(schema := ready.query.node.schema))
    ddl = f"{TS} bigint, {SIGN} tinyint" + "".join(f", {c} {spark_type(t)}" for c, t in zip(own, schema.types))
    unique = schema.unique_names((TS, SIGN))
    changes = answered.mapInArrow(unpack, ddl).select(
        TS, SIGN, *[stored(F.col(c), t).alias(n) for c, t, n in zip(own, schema.types, unique)]
    )
    told = f"minidsms {shape_of(print_query(ready.query.expanded))}"
    nth = next(_made.setdefault(told, itertools.count(1)))
    if nth > 1:
        told = f"{told} {nth}"  # Spark refuses a query in which two parts observe under one name
    observed = changes.observe(told, F.count(F.lit(1)).alias("changes"), F.max(TS).alias("last"))
    return with_times(observed, schema, ready.catalog.tick_ns) if times else observed


def _columns(frame: DataFrame, name: str, schema: Schema, tick_ns: int) -> list[Column]:
    """The declared columns of a frame, found by name."""
    fields = {field.name.lower(): field for field in frame.schema.fields}
    found = []
    for column in schema:
        field = fields.get(column.name.lower())
        if field is None:
            raise Error(
                f'the DataFrame of {name} has no column "{column.name}"\nhelp: it has {", ".join(frame.columns)}'
            )
        if isinstance(field.dataType, T.StringType) and column.type.is_basic and column.type is not Type.TEXT:
            raise Error(
                f"column {column.name} of {name} is string, and is declared {column.type}\nhelp: cast it before"
            )
        value = read_column(F.col(quoted(field.name)), field.dataType, column.type, tick_ns, column.name)
        found.append(words(value, column.type))
    return found


def _elements(
    frame: DataFrame, stream: StreamDef, index: int, part: Column, values: list[Column], ready: Streamable
) -> DataFrame:
    """The elements of a stream, packed, with a watermark that lets them be late by its slack."""
    if any("spark.watermarkDelayMs" in field.metadata for field in frame.schema.fields):
        raise Error(
            f"the DataFrame of {stream.name} has a watermark already\n"
            "help: leave it out; SLACK in the declaration says how late rows may come"
        )
    assert stream.timestamp_by is not None
    tick_ns = ready.catalog.tick_ns
    missing = F.raise_error(F.lit(f"{stream.name}: the timestamp is NULL")).cast("bigint")
    ts = F.coalesce(values[stream.timestamp_by], missing)
    beyond = F.raise_error(F.concat(F.lit(f"{stream.name}: Spark has no time for "), ts.cast("string")))
    first = F.unix_micros(F.coalesce(time_of(ts, tick_ns), beyond.cast("timestamp_ltz")))
    # By a tick's last microsecond Spark takes for late what `closed_by` closes. Its first watermark is 1970, which has
    # closed nothing: what lies before must not be late for it.
    last = F.coalesce(F.try_add(first, long(max(tick_ns // 1000, 1) - 1)), first)
    at = F.timestamp_micros(F.greatest(last, long(1))).alias(AT)
    packed_rows = frame.select(part, at, ts.alias(TS), *values).mapInArrow(packer(index), PACKED)
    slack_ms = -(-stream.slack * tick_ns // 1_000_000)
    return packed_rows.withWatermark(AT, f"{slack_ms} milliseconds")
