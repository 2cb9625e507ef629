"""Joins: pairs of rows that are there at the same time, for as long as both are.

Where both sides' rows live a bounded time, time is cut into slices of that length and becomes part of the key: rows
meet only those of their own time, however long the history, and a frequent key is spread over many tasks. A pair is
made in the slice in which it begins.

Semijoins meet the time during which the right side has the key; antijoins its complement. Babu 2005, section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.bound import Expr
from minidsms.cql.origins import equal_pairs
from minidsms.elements import MIN_INSTANT
from minidsms.plan.logical import conjunction, conjuncts
from minidsms.spark.computed import Computed
from minidsms.spark.frames import FROM, NEVER, ORDER, TO, Intervals, World, long, names, quotient, shortest
from minidsms.spark.sweep import ends, running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SLICE = "_slice"


def join(world: World, left: Intervals, right: Intervals, condition: Expr | None, small: str = "") -> Intervals:
    """The inner join; the left row, then the right one. small: "left" or "right", a side to be sent to all tasks."""
    pairs, rest = equal_pairs(conjuncts(condition), left.width)
    pieces = slice_length(left, right)
    a = _side(world, left, [e for e, _ in pairs], "l", 0, pieces)
    b = _side(world, right, [e for _, e in pairs], "r", left.width, pieces)
    a, b = (F.broadcast(side) if small == name else side for name, side in (("left", a), ("right", b)))
    width = left.width + right.width
    frame = _meeting(a, b, len(pairs), pieces)
    frame = frame.select(FROM, TO, *names(width))
    longest = shortest(left.longest, right.longest)
    is_growing = left.is_growing and right.is_growing
    if not rest:
        return Intervals(frame, width, longest, is_growing=is_growing)
    whole = conjunction(rest)
    assert whole is not None
    verdict = world.expressions.compute(whole)
    shared = world.shared(frame) if verdict.failed is not None else frame
    joined = Intervals(shared, width, longest, is_growing=is_growing)
    world.failed(joined, [verdict])
    return replace(joined, frame=shared.where(verdict.value))


def slice_length(left: Intervals, right: Intervals) -> int | None:
    """How long the slices of time are in which rows of two relations meet; None where one side's live without bound."""
    if left.longest is None or right.longest is None:
        return None
    return max(left.longest, right.longest, 1)


def _side(
    world: World, relation: Intervals, keys: Sequence[Expr], prefix: str, offset: int, pieces: int | None
) -> DataFrame:
    """One side of a join under names of its own: `l_from`, `l_to`, keys lk0 .., and its columns from c`offset` on."""
    computed = [world.expressions.compute(key) for key in keys]
    columns = [
        F.col(FROM).alias(f"{prefix}_from"),
        F.col(TO).alias(f"{prefix}_to"),
        *(c.value.alias(f"{prefix}k{i}") for i, c in enumerate(computed)),
        *(F.col(f"c{i}").alias(f"c{i + offset}") for i in range(relation.width)),
    ]
    if relation.is_ordered:
        columns.append(F.col(ORDER).alias(f"{prefix}{ORDER}"))
    if pieces is not None:
        columns.append(slices(F.col(FROM), F.col(TO), pieces).alias(f"{prefix}{_SLICE}"))
    return relation.frame.select(*columns)


def slices(from_: Column, to: Column, length: int) -> Column:
    """A row for every slice of time that [from, to) touches."""
    return F.explode(F.sequence(quotient(from_, length), quotient(to - long(1), length)))


def _meeting(a: DataFrame, b: DataFrame, keys: int, pieces: int | None) -> DataFrame:
    """Pairs of equal keys that overlap in time, with `_from` and `_to` of the time both are there."""
    from_, to, condition = _overlap(keys, pieces is not None, null_safe=False)
    if pieces is not None:
        condition = condition & (F.col(f"l{_SLICE}") == quotient(from_, pieces))
    return a.join(b, condition).withColumn(FROM, from_).withColumn(TO, to)


def _overlap(keys: int, has_slices: bool, null_safe: bool) -> tuple[Column, Column, Column]:
    """From when to when both rows of a pair are there, and whether there is such a time and the keys are equal."""
    from_ = F.greatest(F.col("l_from"), F.col("r_from"))
    to = F.least(F.col("l_to"), F.col("r_to"))
    condition: Column = from_ < to
    for i in range(keys):
        x, y = F.col(f"lk{i}"), F.col(f"rk{i}")
        condition = (x.eqNullSafe(y) if null_safe else x == y) & condition
    if has_slices:
        condition = condition & (F.col(f"l{_SLICE}") == F.col(f"r{_SLICE}"))
    return from_, to, condition


# ------------------------------------------------------------------------------------------------------- semijoins


def semi_join(
    world: World,
    left: Intervals,
    right: Intervals,
    pairs: Sequence[tuple[Expr, Expr]],
    anti: bool,
    null_safe: bool,
) -> Intervals:
    """The rows of left as long as right has (anti: has not) a row of equal keys."""
    # A constant that equals itself divides nothing: without it the sweeps below are cut by time alone.
    pairs = [(a, b) for a, b in pairs if not (isinstance(a, bound.Literal) and a == b and a.value is not None)]
    mine = [world.expressions.compute(a) for a, _ in pairs]
    others = [world.expressions.compute(b) for _, b in pairs]
    world.failed(left, mine)
    world.failed(right, others)
    pieces = slice_length(left, right)
    keys = [f"k{i}" for i in range(len(pairs))]
    present = _coverage(world, right, others, keys, pieces, null_safe)
    if not anti:
        return _meets(left, mine, present, pieces, null_safe)
    present = world.shared(present)
    cut = _cut(left, pieces)
    sides = _with_keys(cut, mine)
    absent = _gaps(present, keys, pieces)
    kept = _meets(cut, mine, absent, None, null_safe, slice_key=pieces is not None)
    by = [*keys, *_slice_key(pieces)]
    known = present.select(*(F.col(k).alias(f"r{k}") for k in by)).distinct() if by else present.select(FROM).limit(1)
    condition: Column = F.lit(True)
    for i in range(len(pairs)):
        x, y = F.col(f"lk{i}"), F.col(f"rk{i}")
        condition = condition & (x.eqNullSafe(y) if null_safe else x == y)
    if pieces is not None:
        condition = condition & (F.col(_SLICE) == F.col(f"r{_SLICE}"))
    untouched = sides.join(known, condition, "left_anti").select(*kept.frame.columns)
    frame = kept.frame.unionByName(untouched)
    return Intervals(frame, left.width, left.longest, left.is_ordered)


def _slice_key(pieces: int | None) -> list[str]:
    return [] if pieces is None else [_SLICE]


def _coverage(
    world: World,
    right: Intervals,
    keys: Sequence[Computed],
    key_names: Sequence[str],
    pieces: int | None,
    null_safe: bool,
) -> DataFrame:
    """When each key is there: the keys, (the slice,) `_from`, `_to`, disjoint."""
    frame = right.frame
    if not null_safe:
        for key in keys:
            frame = frame.where(key.value.isNotNull())
    columns = [k.value.alias(name) for k, name in zip(keys, key_names)]
    frame = frame.select(FROM, TO, *columns)
    if pieces is not None:
        frame = _clipped(frame.select("*", slices(F.col(FROM), F.col(TO), pieces).alias(_SLICE)), pieces)
    by = [*key_names, *_slice_key(pieces)]
    held = Intervals(frame, 0)
    until = NEVER - 1 if pieces is not None else world.until
    counted = running(world, ends(held, by, until, "_n"), by, ["_n"])
    return counted.where(F.col("_n") > long(0)).select(*by, FROM, TO)


def _clipped(frame: DataFrame, pieces: int) -> DataFrame:
    """Intervals cut to the slice in their row."""
    begin = F.col(_SLICE) * long(pieces)
    return frame.withColumn(FROM, F.greatest(F.col(FROM), begin)).withColumn(
        TO, F.least(F.col(TO), begin + long(pieces))
    )


def _cut(relation: Intervals, pieces: int | None) -> Intervals:
    """The relation with its rows cut at the borders of slices, whose number each piece carries."""
    if pieces is None:
        return relation
    frame = relation.frame.select("*", slices(F.col(FROM), F.col(TO), pieces).alias(_SLICE))
    return Intervals(_clipped(frame, pieces), relation.width, relation.longest, relation.is_ordered)


def _gaps(present: DataFrame, keys: Sequence[str], pieces: int | None) -> DataFrame:
    """When each key that is ever there (in a slice) is not (within it)."""
    by = [*keys, *_slice_key(pieces)]
    order = Window.partitionBy(*by).orderBy(FROM)
    begin = long(MIN_INSTANT) if pieces is None else F.col(_SLICE) * long(pieces)
    end = long(NEVER) if pieces is None else (F.col(_SLICE) + long(1)) * long(pieces)
    before = F.struct(F.coalesce(F.lag(TO).over(order), begin).alias("_begin"), F.col(FROM).alias("_end"))
    after = F.struct(F.col(TO).alias("_begin"), F.coalesce(F.lead(FROM).over(order), end).alias("_end"))
    is_last = F.lead(FROM).over(order).isNull()
    gaps = F.when(is_last, F.array(before, after)).otherwise(F.array(before))
    found = present.select(*by, gaps.alias("_gaps")).select(*by, F.inline("_gaps"))
    return found.where(F.col("_begin") < F.col("_end")).select(
        *by, F.col("_begin").alias(FROM), F.col("_end").alias(TO)
    )


def _with_keys(left: Intervals, keys: Sequence[Computed]) -> DataFrame:
    return left.frame.select("*", *(k.value.alias(f"lk{i}") for i, k in enumerate(keys)))


def _meets(
    left: Intervals,
    keys: Sequence[Computed],
    times: DataFrame,
    pieces: int | None,
    null_safe: bool,
    slice_key: bool = False,
) -> Intervals:
    """The left rows within the times of their keys. pieces: cut left here.  slice_key: it has been cut."""
    cut = _cut(left, pieces)
    has_slices = slice_key or pieces is not None
    kept = [*([ORDER] if left.is_ordered else []), *names(left.width)]
    columns = [F.col(FROM).alias("l_from"), F.col(TO).alias("l_to"), *map(F.col, kept)]
    if has_slices:
        columns.append(F.col(_SLICE).alias(f"l{_SLICE}"))
    a = cut.frame.select(*columns, *[k.value.alias(f"lk{i}") for i, k in enumerate(keys)])
    other = [F.col(FROM).alias("r_from"), F.col(TO).alias("r_to")]
    other += [F.col(f"k{i}").alias(f"rk{i}") for i in range(len(keys))]
    if has_slices:
        other.append(F.col(_SLICE).alias(f"r{_SLICE}"))
    b = times.select(*other)
    from_, to, condition = _overlap(len(keys), has_slices, null_safe)
    frame = a.join(b, condition).select(from_.alias(FROM), to.alias(TO), *kept)
    return Intervals(frame, left.width, left.longest, left.is_ordered)
