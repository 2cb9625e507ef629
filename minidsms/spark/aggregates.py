"""Aggregation: the segments of time between the changes of a group, and what the group is during each.

Counts and sums sweep over the ends of the rows' intervals (`sums`, `sweep`), DISTINCT ones over the ends of the times
during which a group has a value; the others look up a tree over time (`extremes`). docs/semantics R3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.spark import sums
from minidsms.spark.computed import Computed, NotExpressibleError
from minidsms.spark.extremes import Extreme, extreme, extremes_of, is_extreme
from minidsms.spark.frames import FROM, NEVER, ORDER, TO, Intervals, World, long
from minidsms.spark.sweep import AT, Fold, ends, running

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS, _VALUES = "_rows", "_values"


def beyond_columns(node: bound.Aggregate) -> str | None:
    """The aggregate that no Spark column computes, in words; None where all can be said."""
    call = next((call for call in node.aggregates if call.has_objects), None)
    return None if call is None else f"the {'user ' * call.user}aggregate {call.function}"


def aggregate(world: World, relation: Intervals, node: bound.Aggregate, start: Intervals | None) -> Intervals:
    """A row per group. start: of an aggregate over all, the instant its one row begins at."""
    calls = node.aggregates
    refused = beyond_columns(node)
    if refused is not None:
        raise NotExpressibleError(refused)
    keys = [world.expressions.compute(key) for key in node.keys]
    args = [None if call.arg is None else world.expressions.compute(call.arg) for call in calls]
    world.failed(relation, [*keys, *(a for a in args if a is not None)])
    # A constant key divides nothing; its value is put back at the end.
    fixed = [isinstance(key, bound.Literal) for key in node.keys]
    by = [f"k{i}" for i, is_fixed in enumerate(fixed) if not is_fixed]
    columns = [F.col(FROM), F.col(TO), *([F.col(ORDER)] if relation.is_ordered else [])]
    columns += [key.value.alias(f"k{i}") for i, key in enumerate(keys) if not fixed[i]]
    columns += [arg.value.alias(f"a{i}") for i, arg in enumerate(args) if arg is not None]
    rows = replace(relation, frame=relation.frame.select(*columns), width=0)
    wanted = {f"r{i}": extreme(call, F.col(f"a{i}")) for i, call in enumerate(calls) if is_extreme(call)}
    # Of rows that stay the least so far is the least of all: no tree is needed.
    folded = {name: e for name, e in wanted.items() if e.fold is not None and rows.is_growing}
    segments = _segments(world, rows, by, calls, start, folded)
    looked_up = {name: e for name, e in wanted.items() if name not in folded}
    if looked_up:
        segments = extremes_of(world, rows, by, segments, looked_up)
    results = [
        Computed(folded[f"r{i}"].result(F.col(f"r{i}")) if f"r{i}" in folded else F.col(f"r{i}"))
        if is_extreme(call)
        else sums.result(call, _ROWS, f"s{i}")
        for i, call in enumerate(calls)
    ]
    width = len(node.keys) + len(calls)
    if any(r.failed is not None for r in results):
        segments = world.shared(segments)
    world.failed(Intervals(segments, width), results)
    shown = [key.value if is_fixed else F.col(f"k{i}") for i, (key, is_fixed) in enumerate(zip(keys, fixed))]
    shown += [r.value for r in results]
    frame = segments.select(FROM, TO, *(column.alias(f"c{i}") for i, column in enumerate(shown)))
    # A group changes whenever one of its rows goes: it is never the same for longer than its rows are there.
    return Intervals(frame, width, None if start is not None else relation.longest)


def _segments(
    world: World,
    rows: Intervals,
    by: Sequence[str],
    calls: Sequence[bound.AggregateCall],
    start: Intervals | None,
    folded: Mapping[str, Extreme],
) -> DataFrame:
    """The keys, `_from`, `_to`, and the totals of the groups that are there then, and what is folded."""
    plain: dict[str, Column] = {}
    changes: list[DataFrame] = []
    every = [_ROWS]
    for i, call in enumerate(calls):
        if is_extreme(call) or call.arg is None:
            continue
        own = sums.amounts(call, F.col(f"a{i}"), f"s{i}")
        every += own
        if not call.distinct:
            plain |= own
        else:
            changes.append(_distinct_changes(world, rows, by, i, own))
    given = {name: e.given for name, e in folded.items()}
    changes.insert(0, ends(rows, by, world.until, _ROWS, plain, given))
    folds = {name: e.fold for name, e in folded.items() if e.fold is not None}
    if start is not None:
        changes.append(start.frame.select(F.col(FROM).alias(AT)).where(F.col(AT) <= long(world.until)))
    if len(changes) > 1:
        changes = [_widened(c, by, every, folds) for c in changes]
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), changes)
    segments = running(world, together, by, every, folds)
    if start is None:
        return segments.where(F.col(_ROWS) > long(0))
    begin = start.frame.select(F.col(FROM).alias("_start"))
    return segments.join(F.broadcast(begin), F.col(FROM) >= F.col("_start")).drop("_start")


def _widened(changes: DataFrame, by: Sequence[str], amounts: Sequence[str], folds: Mapping[str, Fold]) -> DataFrame:
    """Changes with all amounts, 0 where they do not speak of one, and what they have to be folded."""
    there = set(changes.columns)
    zero = [F.col(a) if a in there else (F.lit(0.0) if a.endswith("_sum") else long(0)).alias(a) for a in amounts]
    return changes.select(*by, AT, *zero, *(name for name in folds if name in there))


def _distinct_changes(
    world: World, rows: Intervals, by: Sequence[str], i: int, amounts: dict[str, Column]
) -> DataFrame:
    """How the amounts change where a group gains a value or loses its last row of it."""
    keys = [*by, f"a{i}"]
    counted = running(world, ends(rows, keys, world.until, _ROWS), keys, [_ROWS])
    held = Intervals(counted.where((F.col(_ROWS) > long(0)) & F.col(f"a{i}").isNotNull()), 0)
    return ends(held, by, min(world.until, NEVER - 1), _VALUES, amounts)
