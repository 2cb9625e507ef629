"""Aggregates that cannot be taken back: MIN, MAX, FIRST, LAST, VARIANCE and STDDEV of the rows of every segment.

Time is a binary tree: a row's interval is the union of at most two nodes of each level, and an instant lies in one
node of each level. Rows are aggregated per node, and a segment's result is that of the nodes above its first
instant: with intervals of length T that is O(log T) for a row and for a segment, whatever a group holds, and no task
sees more than the rows of a node. docs/semantics R3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.spark.computed import finite
from minidsms.spark.frames import FROM, ORDER, TO, Intervals, World, long, same
from minidsms.spark.sweep import GREATEST, LEAST, Fold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LEVEL, _NODE = "_level", "_node"


@dataclass(frozen=True)
class Extreme:
    """One aggregate: what a row gives, how a node's rows become a state, states a state, and a state the result.

    fold: how what the rows give is gathered one after the other, where that is possible.
    """

    given: Column
    of_rows: Callable[[Column], Column]
    of_states: Callable[[Column], Column]
    result: Callable[[Column], Column]
    fold: Fold | None = None


def extreme(call: bound.AggregateCall, arg: Column) -> Extreme:
    """The parts of a built-in aggregate over `arg`."""
    match call.function:
        case "min":
            return Extreme(arg, F.min, F.min, lambda s: s, LEAST)
        case "max":
            return Extreme(arg, F.max, F.max, lambda s: s, GREATEST)
        case "first" | "last":
            placed = F.struct(F.col(ORDER).alias("at"), arg.alias("value"))
            placed = F.when(arg.isNotNull(), placed) if call.ignores_nulls else placed
            fold = LEAST if call.function == "first" else GREATEST
            return Extreme(placed, fold.of_rows, fold.of_rows, lambda s: s["value"], fold)
    number = arg.cast("double")
    root = call.function == "stddev"
    return Extreme(number, _moments, lambda s: F.aggregate(F.collect_list(s), _NOTHING(), _merged), _variance(root))


def _NOTHING() -> Column:
    return F.struct(long(0).alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2"))


def _moments(x: Column) -> Column:
    """How many numbers, their mean and their squared distance from it; NULL of none."""
    n = F.count(x)
    state = F.struct(n.alias("n"), F.avg(x).alias("mean"), (F.var_pop(x) * n.cast("double")).alias("m2"))
    return F.when(n > long(0), state)


def _merged(a: Column, b: Column) -> Column:
    """The moments of two sets of numbers together (Chan, Golub, LeVeque 1979)."""
    n = a["n"] + b["n"]
    share = b["n"].cast("double") / F.when(n > long(0), n).cast("double")
    delta = b["mean"] - a["mean"]
    mean = a["mean"] + delta * share
    m2 = a["m2"] + b["m2"] + delta * delta * a["n"].cast("double") * share
    return F.struct(n.alias("n"), F.coalesce(mean, a["mean"]).alias("mean"), F.coalesce(m2, a["m2"]).alias("m2"))


def _variance(root: bool) -> Callable[[Column], Column]:
    def result(state: Column) -> Column:
        enough = state["n"] > long(1)
        variance = state["m2"] / F.when(enough, state["n"] - long(1)).cast("double")
        return finite(F.sqrt(variance) if root else variance)

    return result


def extremes_of(
    world: World, rows: Intervals, keys: Sequence[str], segments: DataFrame, wanted: Mapping[str, Extreme]
) -> DataFrame:
    """The segments with the wanted aggregates of the rows there, NULL where there are none.

    rows: with the columns of `keys`.  segments: the keys, `_from`, `_to` and more; a row is there during all of a
    segment or none of it.
    """
    length = world.until - world.first + 1
    if rows.longest is not None:
        length = min(length, rows.longest)
    levels = max(length, 1).bit_length()
    nodes = _nodes_of_rows(world, rows, keys, wanted).groupBy(*keys, _LEVEL, _NODE)
    states = nodes.agg(*(e.of_rows(F.col(f"_given_{name}")).alias(f"_state_{name}") for name, e in wanted.items()))
    renamed = states.select(
        *(F.col(k).alias(f"_of_{k}") for k in keys),
        F.col(_LEVEL).alias("_of_level"),
        F.col(_NODE).alias("_of_node"),
        *(F.col(f"_state_{name}") for name in wanted),
    )
    condition = (F.col(_LEVEL) == F.col("_of_level")) & (F.col(_NODE) == F.col("_of_node"))
    above = _above(world, segments, levels)
    met = above.join(renamed, condition & same(keys, [f"_of_{k}" for k in keys]), "left")
    merged = met.groupBy(*segments.columns).agg(
        *(e.of_states(F.col(f"_state_{name}")).alias(f"_merged_{name}") for name, e in wanted.items())
    )
    results = (e.result(F.col(f"_merged_{name}")).alias(name) for name, e in wanted.items())
    return merged.select(*segments.columns, *results)


def _nodes_of_rows(world: World, rows: Intervals, keys: Sequence[str], wanted: Mapping[str, Extreme]) -> DataFrame:
    """A row for each node of the tree that an interval is made of."""
    inside = rows.frame.where(F.col(FROM) <= long(world.until)).select(
        *keys,
        (F.col(FROM) - long(world.first)).alias("_a"),
        (F.least(F.col(TO), long(world.until + 1)) - long(world.first)).alias("_b"),
        *(e.given.alias(f"_given_{name}") for name, e in wanted.items()),
    )
    height = F.floor(F.log2((F.col("_b") - F.col("_a")).cast("double"))).cast("int")

    def nodes(level: Column) -> Column:
        step = F.call_function("shiftleft", long(1), level)
        low = F.call_function("shiftright", F.col("_a") + step - long(1), level)
        high = F.call_function("shiftright", F.col("_b"), level)
        some = low < high
        left = F.when(some & (low % long(2) == long(1)), F.struct(level.alias(_LEVEL), low.alias(_NODE)))
        right = F.when(some & (high % long(2) == long(1)), F.struct(level.alias(_LEVEL), (high - long(1)).alias(_NODE)))
        return F.array(left, right)

    made = F.array_compact(F.flatten(F.transform(F.sequence(F.lit(0), height), nodes)))
    return inside.select(*keys, *(f"_given_{name}" for name in wanted), F.inline(made))


def _above(world: World, segments: DataFrame, levels: int) -> DataFrame:
    """A row for each node above a segment's first instant."""
    above = segments.withColumn(_LEVEL, F.explode(F.sequence(F.lit(0), F.lit(levels - 1))))
    node = F.call_function("shiftright", F.col(FROM) - long(world.first), F.col(_LEVEL))
    return above.withColumn(_NODE, node)


def is_extreme(call: bound.AggregateCall) -> bool:
    """Whether the aggregate belongs here."""
    return not call.has_objects and call.function in ("min", "max", "first", "last", "variance", "stddev")
