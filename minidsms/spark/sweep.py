"""Sweeping over the ends of intervals: what is counted or summed, from each instant to the next at which it changes.

A row adds its amounts at `_from` and takes them away at `_to`; running sums over the instants of a key give the totals
of every segment of time. Without a key the instants are cut into slices that are summed apart and put together by what
each slice begins with: no task sees them all.

Invariant: of the result's segments those of one key touch and do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from minidsms.spark.frames import FROM, TO, Intervals, World, long

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AT, _SLICE, _FIRST = "_at", "_slice", "_first"


@dataclass(frozen=True)
class Fold:
    """Something of the rows so far that cannot be taken back: the least or the greatest value."""

    of_rows: Callable[[Column], Column]
    of_two: Callable[..., Column]


LEAST, GREATEST = Fold(F.min, F.least), Fold(F.max, F.greatest)


def ends(
    relation: Intervals,
    keys: Sequence[str],
    until: int,
    rows: str,
    amounts: Mapping[str, Column] | None = None,
    given: Mapping[str, Column] | None = None,
) -> DataFrame:
    """The instants at which the relation changes, up to `until`: the keys, `_at`, and how the amounts change there.

    rows: the name of how many rows come less those that go.  given: what the rows of a relation that only grows bring
    besides, to be folded.
    """
    amounts = amounts or {}
    columns = [a.alias(name) for name, a in (*amounts.items(), *(given or {}).items())]
    if relation.is_growing:
        came = relation.frame.where(F.col(FROM) <= long(until))
        return came.select(*keys, F.col(FROM).alias(AT), long(1).alias(rows), *columns)
    assert not given
    held = relation.frame.select(*keys, FROM, TO, *columns) if columns else relation.frame
    enter = F.struct(F.col(FROM).alias(AT), long(1).alias(rows))
    leave = F.struct(F.col(TO).alias(AT), long(-1).alias(rows))
    changes = held.select(*keys, *amounts, F.inline(F.array(enter, leave))).where(F.col(AT) <= long(until))
    if not amounts:
        return changes
    return changes.select(*keys, AT, rows, *((F.col(a) * F.col(rows)).alias(a) for a in amounts))


def running(
    world: World,
    changes: DataFrame,
    keys: Sequence[str],
    amounts: Sequence[str],
    folds: Mapping[str, Fold] | None = None,
) -> DataFrame:
    """The keys, [`_from`, `_to`) and the totals of each segment, from a key's first change on.

    changes: the keys, `_at` and by how much each amount changes there, in any number of rows.  folds: columns of the
    changes that are folded.
    """
    folds = folds or {}
    if not keys:
        return _running_over_all(world, changes, amounts, folds)
    at_instants = changes.groupBy(*keys, AT).agg(*_in_one(amounts, folds))
    order = Window.partitionBy(*keys).orderBy(AT)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return at_instants.select(
        *keys,
        F.col(AT).alias(FROM),
        F.coalesce(F.lead(AT).over(order), _end(world)).alias(TO),
        *(F.sum(a).over(so_far).alias(a) for a in amounts),
        *(f.of_rows(F.col(name)).over(so_far).alias(name) for name, f in folds.items()),
    )


def _in_one(amounts: Sequence[str], folds: Mapping[str, Fold]) -> list[Column]:
    """What several changes are together."""
    folded = [fold.of_rows(F.col(name)).alias(name) for name, fold in folds.items()]
    return [*(F.sum(a).alias(a) for a in amounts), *folded]


def _end(world: World) -> Column:
    """Where a key's last segment ends: behind all closed instants, and no later, for a bounded life stays bounded."""
    return F.greatest(long(world.until + 1), F.col(AT) + long(1))


def _running_over_all(world: World, changes: DataFrame, amounts: Sequence[str], folds: Mapping[str, Fold]) -> DataFrame:
    at_instants = changes.groupBy(AT).agg(*_in_one(amounts, folds))
    at_instants = at_instants.withColumn(_SLICE, world.slice_of(F.col(AT)))
    totals = at_instants.groupBy(_SLICE).agg(F.min(AT).alias(_FIRST), *_in_one(amounts, folds))
    by_slice = Window.orderBy(_SLICE)  # a row per slice: a few hundred
    before = by_slice.rowsBetween(Window.unboundedPreceding, -1)
    begins = totals.select(
        F.col(_SLICE).alias("_begins"),
        F.lead(_FIRST).over(by_slice).alias("_next"),
        *(F.coalesce(F.sum(a).over(before), F.lit(0)).alias(f"_before_{a}") for a in amounts),
        *(fold.of_rows(F.col(name)).over(before).alias(f"_before_{name}") for name, fold in folds.items()),
    )
    order = Window.partitionBy(_SLICE).orderBy(AT)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return at_instants.join(F.broadcast(begins), F.col(_SLICE) == F.col("_begins")).select(
        F.col(AT).alias(FROM),
        F.coalesce(F.lead(AT).over(order), F.col("_next"), _end(world)).alias(TO),
        *((F.sum(a).over(so_far) + F.col(f"_before_{a}")).alias(a) for a in amounts),
        *(
            fold.of_two(fold.of_rows(F.col(name)).over(so_far), F.col(f"_before_{name}")).alias(name)
            for name, fold in folds.items()
        ),
    )


def numbered(
    world: World, frame: DataFrame, order: Sequence[str], instant: str, ahead: int = 0, most: int | None = None
) -> DataFrame:
    """The rows with `_number`, 1, 2, .. in their order: numbered inside slices of time, then moved by what came
    before.

    ahead: adds `_ahead`, the instant of the row so many further on in the same slice.  most: the first so many rows
    of every slice alone.
    """
    sliced = frame.withColumn(_SLICE, world.slice_of(F.col(instant)))
    before = Window.orderBy(_SLICE).rowsBetween(Window.unboundedPreceding, -1)
    counts = sliced.groupBy(_SLICE).agg(F.count(F.lit(1)).alias("_count"))
    offsets = counts.select(
        F.col(_SLICE).alias("_begins"), F.coalesce(F.sum("_count").over(before), long(0)).alias("_offset")
    )
    inside = Window.partitionBy(_SLICE).orderBy(*order)
    joined = sliced.join(F.broadcast(offsets), F.col(_SLICE) == F.col("_begins"))
    joined = joined.withColumn("_place", F.row_number().over(inside))
    if ahead:
        joined = joined.withColumn("_ahead", F.lead(instant, ahead).over(inside))
    if most is not None:
        joined = joined.where(F.col("_place") <= F.lit(most))
    number = F.col("_place").cast("bigint") + F.col("_offset")
    return joined.withColumn("_number", number).drop(_SLICE, "_begins", "_offset", "_place")
