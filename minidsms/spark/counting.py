"""Parts of joins that are carried out while a query is planned: how many rows they have, and a random sample of them.

What has been counted is kept by Spark, and read by what comes after. docs/spark.md, Babu 2005, section 7.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.elements import Schema
from minidsms.spark.frames import FROM, TO, Intervals, World, long, names
from minidsms.spark.progress import described
from minidsms.spark.sampling import Sample
from minidsms.values.arrow_types import word_type

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 20_000
"""Of a sample, about."""


def counted(world: World, relation: Intervals, key: str) -> Intervals:
    """A relation, carried out; `world` knows its rows as `key`."""
    frame = world.shared(relation.frame)
    with described(world.spark, "count what the order of joins depends on"):
        world.counted[key] = frame.count()
    return replace(relation, frame=frame, is_light=True)


def sampled(world: World, relation: Intervals, schema: Schema, rows: int) -> Sample:
    """Random rows of a relation that has so many."""
    frame, columns = relation.frame, names(len(schema))
    if rows > _ROWS:
        frame = frame.sample(_ROWS / rows, 0)
    life = F.least(F.col(TO), long(world.until + 1)) - F.col(FROM)
    table: pa.Table = frame.select(life.alias("_life"), *columns).toArrow().combine_chunks()
    drawn = len(table)
    arrays = [_whole(table[c].cast(word_type(t))) for c, t in zip(columns, schema.types)]
    lives = table["_life"].to_numpy()
    return Sample(tuple(arrays), drawn, drawn, rows, float(lives.mean()) if drawn else 1.0)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if not hasattr(combined, "chunks") else combined.chunk(0)
