"""Relation-to-stream operators, and what a query puts out: the changes of a relation, netted per instant.

docs/semantics S1, S2, T3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql.bound import StreamKind
from minidsms.spark.frames import FROM, ORDER, SIGN, TO, TS, Elements, Intervals, World, copies, long, names, quotient
from minidsms.spark.joins import slices
from minidsms.spark.sweep import AT, ends

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NET = "_net"


def net_changes(world: World, relation: Intervals) -> DataFrame:
    """`_ts`, the row, and in `_net` how many more of it there are than an instant before, where not 0."""
    row = names(relation.width)
    changes = ends(relation, row, world.until, _NET)
    netted = changes.groupBy(*row, F.col(AT).alias(TS)).agg(F.sum(_NET).alias(_NET))
    return netted.where(F.col(_NET) != long(0))


def to_stream(world: World, op: StreamKind, relation: Intervals, events: Sequence[DataFrame], ticks: bool) -> Elements:
    """ISTREAM, DSTREAM or RSTREAM. events: RSTREAM's instants, as `_at`; ticks: it speaks at each one instead."""
    width = relation.width
    if op is StreamKind.RSTREAM:
        spoken = _at_every_tick(world, relation) if ticks else _at_events(world, relation, events)
    else:
        count = F.col(_NET) if op is StreamKind.ISTREAM else -F.col(_NET)
        net = net_changes(world, relation)
        spoken = copies(net.where(count > long(0)), count, TS, *names(width))
    # Inside an instant rows come in the order of their values, NULL first, as Spark orders structs.
    order = F.struct(*names(width)).alias(ORDER)
    return Elements(spoken.select(TS, order, *names(width)), width)


def _at_every_tick(world: World, relation: Intervals) -> DataFrame:
    last = F.least(F.col(TO) - long(1), long(world.until))
    there = relation.frame.where(F.col(FROM) <= long(world.until))
    return there.select(F.explode(F.sequence(F.col(FROM), last)).alias(TS), *names(relation.width))


def _at_events(world: World, relation: Intervals, events: Sequence[DataFrame]) -> DataFrame:
    """The rows there at each event instant; rows and instants meet in slices of time."""
    instants = reduce(lambda a, b: a.unionByName(b), events).where(F.col(AT) <= long(world.until)).distinct()
    length = relation.longest if relation.longest is not None else world.slice_ticks
    length = max(length, 1)
    until = F.least(F.col(TO), long(world.until + 1))
    rows = relation.frame.where(F.col(FROM) <= long(world.until)).select(
        FROM, TO, *names(relation.width), slices(F.col(FROM), until, length).alias("_slice")
    )
    placed = instants.select(F.col(AT), quotient(F.col(AT), length).alias("_at_slice"))
    inside = (F.col("_slice") == F.col("_at_slice")) & (F.col(FROM) <= F.col(AT)) & (F.col(AT) < F.col(TO))
    return rows.join(placed, inside).select(F.col(AT).alias(TS), *names(relation.width))


def output_of_relation(world: World, relation: Intervals) -> DataFrame:
    """`_ts`, `_sign` and the row of every change."""
    return _signed(net_changes(world, relation), relation.width)


def _signed(net: DataFrame, width: int) -> DataFrame:
    sign = F.signum(F.col(_NET)).cast("tinyint").alias(SIGN)
    return copies(net, F.abs(F.col(_NET)), TS, sign, *names(width))


def output_of_stream(world: World, stream: Elements) -> DataFrame:
    """`_ts`, `_sign` and the row of every element up to `until`."""
    there = stream.frame.where(F.col(TS) <= long(world.until))
    return there.select(TS, F.lit(1).cast("tinyint").alias(SIGN), *names(stream.width))


def net_of_changes(changes: DataFrame, width: int) -> DataFrame:
    """Changes netted: what several parts of a query say of one row at one instant is one change."""
    netted = changes.groupBy(TS, *names(width)).agg(F.sum(SIGN).alias(_NET)).where(F.col(_NET) != F.lit(0))
    return _signed(netted, width)


def contents(relation: Intervals, instants: DataFrame) -> DataFrame:
    """`_ts` and the rows there, for each of a few instants in `_at`."""
    inside = (F.col(FROM) <= F.col(AT)) & (F.col(AT) < F.col(TO))
    return relation.frame.join(F.broadcast(instants), inside).select(F.col(AT).alias(TS), *names(relation.width))
