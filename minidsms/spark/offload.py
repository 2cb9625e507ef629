"""Offload: what carries a compiled plan to the answer, `_ts`, `_sign`, then the query's columns.

The answer is that of the live engine, instant by instant. Instants are closed up to the greatest one of the elements
read, as when all sources have ended (docs/semantics T4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.elements import Schema, Type
from minidsms.spark.batches import stored
from minidsms.spark.frames import TIME, TS, World, long, names, time_of
from minidsms.spark.reading import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FAILED_AT = "the query failed at instant "


@dataclass(frozen=True)
class History:
    """What is read: by lower-case name, `_ts`, `_arrival`, `_sign`, c0, c1 ..; its first and last closed instants."""

    sources: Mapping[str, DataFrame]
    first: int
    until: int


def finished(world: World, frame: DataFrame, schema: Schema, own: Sequence[str]) -> DataFrame:
    """The columns c0, c1 .. under the names of the schema; where the query failed, evaluating it raises."""
    if world.failures:
        frame = _failing(world, frame)
    unique = schema.unique_names(own)
    columns = zip(names(len(schema)), schema.types, unique)
    return frame.select(*own, *(stored(F.col(c), type_).alias(name) for c, type_, name in columns))


def with_times(frame: DataFrame, schema: Schema, tick_ns: int) -> DataFrame:
    """A finished frame with times as Spark has them: `_time` beside `_ts`, and columns that are TIMESTAMP."""
    own = [name for name in frame.columns[: len(frame.columns) - len(schema)] if name != TS]
    columns = []
    for old, type_, new in zip(frame.columns[1 + len(own) :], schema.types, schema.unique_names((TS, TIME, *own))):
        column = F.col(quoted(old))
        columns.append((time_of(column, tick_ns) if type_ is Type.TIMESTAMP else column).alias(new))
    return frame.select(TS, time_of(F.col(TS), tick_ns).alias(TIME), *own, *columns)


def _first_failure(world: World) -> DataFrame:
    """`_ts` and `_reason` of the first failure, in one row, or in none."""
    every = reduce(lambda a, b: a.unionByName(b), world.failures).where(F.col(TS) <= long(world.until))
    first = every.agg(F.min(F.struct(TS, "_reason")).alias("_first"))
    return first.where(F.col("_first").isNotNull()).select("_first.*")


def _failing(world: World, frame: DataFrame) -> DataFrame:
    told = F.concat(F.lit(FAILED_AT), F.col(TS).cast("string"), F.lit(": "), F.col("_reason"))
    # In a condition, so that it is evaluated whichever columns are asked for.
    raising = _first_failure(world).where(F.raise_error(told).cast("boolean"))
    nothing = [F.lit(None).cast(f.dataType).alias(f.name) for f in frame.schema.fields]
    return frame.union(raising.select(*nothing))
