"""Windows: each element of a stream with the instants from which and up to which it is in the window.

RANGE and HOP are arithmetic, SLIDE rounds to its multiples; in ROWS and PARTITION windows an element stays until the
one that pushes it out arrives. docs/semantics W1 to W7, W9, W10.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.spark.computed import NotExpressibleError
from minidsms.spark.frames import FROM, NEVER, ORDER, TO, TS, Elements, Intervals, World, later, long, names, quotient
from minidsms.spark.sweep import numbered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FEW = 100_000
_CHUNK = 10_000
"""Multiples of a slide that are made at a time."""


def window(world: World, stream: Elements, spec: WindowSpec) -> Intervals:
    """The relation a window holds."""
    match spec.kind:
        case WindowKind.UNBOUNDED:
            held = _rows(stream, stream.frame, F.col(TS), long(NEVER), None)
            return replace(held, is_growing=True)
        case WindowKind.RANGE | WindowKind.HOP:
            return _range(stream, spec)
        case WindowKind.ROWS:
            return _last_rows(world, stream, spec)
        case WindowKind.PARTITION:
            return _partition(stream, spec)
        case WindowKind.SESSION:
            raise NotExpressibleError("a SESSION window")


def _rows(stream: Elements, frame: DataFrame, from_: Column, to: Column, longest: int | None) -> Intervals:
    order = F.struct(F.col(TS), F.col(ORDER)).alias(ORDER)
    held = frame.select(from_.alias(FROM), to.alias(TO), order, *names(stream.width))
    is_light = stream.is_light and longest is not None and frame is stream.frame
    return Intervals(held.where(F.col(FROM) < F.col(TO)), stream.width, longest, True, is_light)


def _multiple(instant: Column, step: int) -> Column:
    """The first multiple of step at or after the instant; NEVER where there is none."""
    up = F.pmod(-instant, long(step))
    return F.least(instant, long(NEVER) - up) + up


def _range(stream: Elements, spec: WindowSpec) -> Intervals:
    assert spec.range_ is not None
    length = max(spec.range_, 1)
    leaves = later(F.col(TS), length)
    if spec.slide is None:
        return _rows(stream, stream.frame, F.col(TS), leaves, length)
    from_ = _multiple(later(F.col(TS), spec.lag), spec.slide)
    to = _multiple(later(leaves, spec.lag), spec.slide)
    return _rows(stream, stream.frame, from_, to, length + spec.slide)


def bounds(world: World, held: Intervals, spec: WindowSpec) -> Intervals:
    """What a window that moves in steps holds, cut at its multiples, each piece with the window's start and end."""
    assert spec.range_ is not None and spec.step is not None
    step = spec.step
    last = F.least(F.col(TO), long(world.until + step)) - long(step)
    cut = held.frame.where(F.col(FROM) <= last).withColumn(FROM, F.explode(F.sequence(F.col(FROM), last, long(step))))
    end = F.col(FROM)
    ends = [(end - long(spec.range_)).alias(f"c{held.width}"), end.alias(f"c{held.width + 1}")]
    order = [ORDER] if held.is_ordered else []
    frame = cut.select(FROM, (end + long(step)).alias(TO), *order, *names(held.width), *ends)
    return replace(held, frame=frame, width=held.width + 2, longest=step, is_light=False)


def _last_rows(world: World, stream: Elements, spec: WindowSpec) -> Intervals:
    """An element enters with the arrival that completes its batch of SLIDE, and leaves with a later one."""
    assert spec.rows is not None
    if spec.slide is None and spec.rows < _FEW:
        return _last_few(world, stream, spec.rows)
    rows = world.shared(numbered(world, stream.frame, (TS, ORDER), TS))
    step = spec.slide or 1
    arrivals = rows.select(F.col("_number").alias("_reached"), F.col(TS).alias("_reached_at"))
    arrivals = arrivals.where(F.col("_reached") % long(step) == long(0))

    def completing(number: Column) -> Column:
        return quotient(number + long(step - 1), step) * long(step)

    entered = arrivals.select(F.col("_reached").alias("_entry"), F.col("_reached_at").alias("_entered"))
    entering = rows.join(entered, completing(F.col("_number")) == F.col("_entry"))
    last = F.col("_number") + long(min(spec.rows, NEVER // 2 - step))
    held = entering.join(arrivals, completing(last) == F.col("_reached"), "left")
    return _rows(stream, held, F.col("_entered"), F.coalesce(F.col("_reached_at"), long(NEVER)), None)


def _last_few(world: World, stream: Elements, rows: int) -> Intervals:
    """[ROWS N] without SLIDE: the N-th later row of the same slice of time pushes a row out, if there is one; the last
    N rows of a slice look theirs up among the first N of the slices after it.
    """
    numbers = numbered(world, stream.frame, (TS, ORDER), TS, ahead=rows)
    heads = numbered(world, stream.frame.select(TS, ORDER), (TS, ORDER), TS, most=rows)
    heads = heads.select(F.col("_number").alias("_reached"), F.col(TS).alias("_reached_at"))
    tail = F.when(F.col("_ahead").isNull(), F.col("_number") + long(rows))
    held = numbers.join(heads, tail == F.col("_reached"), "left")
    to = F.coalesce(F.col("_ahead"), F.col("_reached_at"), long(NEVER))
    return _rows(stream, held, F.col(TS), to, None)


def _partition(stream: Elements, spec: WindowSpec) -> Intervals:
    assert spec.rows is not None
    by_key = Window.partitionBy(*(f"c{k}" for k in spec.keys)).orderBy(TS, ORDER)
    pushed_out = F.lead(TS, spec.rows).over(by_key) if spec.rows < 2**31 else F.lit(None).cast("bigint")
    to = F.coalesce(pushed_out, long(NEVER))
    if spec.range_ is not None:
        to = F.least(to, later(F.col(TS), max(spec.range_, 1)))
    held = stream.frame.withColumn(TO, to)
    longest = None if spec.range_ is None else max(spec.range_, 1)
    return _rows(stream, held, F.col(TS), F.col(TO), longest)


# ----------------------------------------------------------------------------------------------- instants of change


def window_events(world: World, stream: Elements, spec: WindowSpec) -> DataFrame:
    """The instants up to `until` at which the window changes (S2), as `_at`, some more than once."""
    arrivals = stream.frame.select(F.col(TS).alias("_at"))
    if spec.step is not None:
        return _multiples(world, arrivals, spec.step)
    if spec.kind is WindowKind.RANGE:
        leaving = arrivals.select(later(F.col("_at"), max(spec.range_ or 0, 1)).alias("_at"))
        return arrivals.unionByName(leaving)
    if spec.kind is WindowKind.ROWS and spec.slide is not None:
        rows = numbered(world, stream.frame, (TS, ORDER), TS)
        return rows.where(F.col("_number") % long(spec.slide) == long(0)).select(F.col(TS).alias("_at"))
    if spec.kind is WindowKind.SESSION:
        raise NotExpressibleError("a SESSION window")
    if spec.kind is WindowKind.PARTITION and spec.range_ is not None:
        return arrivals.unionByName(_partition(stream, spec).frame.select(F.col(TO).alias("_at")))
    return arrivals


def _multiples(world: World, arrivals: DataFrame, slide: int) -> DataFrame:
    """The multiples of a slide from the first arrival up to `until`, made in chunks by many tasks."""
    first = arrivals.agg(F.min("_at").alias("_first")).where(F.col("_first").isNotNull())
    start = first.select(_multiple(F.col("_first"), slide).alias("_start")).where(F.col("_start") <= long(world.until))
    chunk = slide * _CHUNK
    chunks = start.select(F.explode(F.sequence(F.col("_start"), long(world.until), long(chunk))).alias("_chunk"))
    if world.until - world.first > 2 * chunk:
        chunks = chunks.repartition(F.col("_chunk"))
    end = F.least(F.col("_chunk") + long(chunk - slide), long(world.until))
    return chunks.select(F.explode(F.sequence(F.col("_chunk"), end, long(slide))).alias("_at"))
