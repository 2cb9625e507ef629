"""DISTINCT and the set operators: how often each row is on either side, from each change to the next.

docs/semantics R1, R5; NULL equals NULL here (R2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql.bound import SetKind
from minidsms.spark.frames import FROM, TO, Intervals, World, copies, long, names
from minidsms.spark.sweep import ends, running

if TYPE_CHECKING:
    from pyspark.sql import Column

_LEFT, _RIGHT = "_left", "_right"


def distinct(world: World, relation: Intervals) -> Intervals:
    """Every row once."""
    keys = names(relation.width)
    changes = ends(relation, keys, world.until, _LEFT)
    counted = running(world, changes, keys, [_LEFT]).where(F.col(_LEFT) > long(0))
    return Intervals(counted.select(FROM, TO, *keys), relation.width)


def set_operation(world: World, op: SetKind, all_: bool, left: Intervals, right: Intervals) -> Intervals:
    """left UNION, EXCEPT or INTERSECT [ALL] right."""
    keys = names(left.width)
    if op is SetKind.UNION and all_:
        both = left.frame.select(FROM, TO, *keys).unionByName(right.frame.select(FROM, TO, *keys))
        bounded = left.longest is not None and right.longest is not None
        longest = max(left.longest or 0, right.longest or 0) if bounded else None
        return Intervals(both, left.width, longest, is_growing=left.is_growing and right.is_growing)
    mine = ends(left, keys, world.until, _LEFT).withColumn(_RIGHT, long(0))
    others = ends(right, keys, world.until, _RIGHT).withColumn(_LEFT, long(0))
    counted = running(world, mine.unionByName(others), keys, [_LEFT, _RIGHT])
    count = _count(op, all_, F.col(_LEFT), F.col(_RIGHT))
    kept = counted.where(count > long(0))
    if all_:
        kept = copies(kept, count, FROM, TO, *keys)
    return Intervals(kept.select(FROM, TO, *keys), left.width)


def _count(op: SetKind, all_: bool, left: Column, right: Column) -> Column:
    """How often the row is in the result."""
    if op is SetKind.UNION:
        return left + right
    if op is SetKind.INTERSECT:
        return F.least(left, right)
    return left - right if all_ else F.when(right == long(0), left).otherwise(long(0))
