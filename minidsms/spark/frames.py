"""Streams and relations as DataFrames.

A stream is its elements: `_ts`, `_order` (what comes first inside an instant, T3), c0, c1 ..  A relation is its rows
with the instants they are there: [`_from`, `_to`), `_order` (the element a window's row was), c0, c1 ..

Invariants: `_from` < `_to`; a row that never leaves has `_to` = NEVER; where and how often an interval is cut in two
has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.elements import MAX_INSTANT
from minidsms.spark.computed import Computed
from minidsms.spark.computed import long as long
from minidsms.spark.expressions import Expressions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TS, ORDER, FROM, TO, SIGN, TIME = "_ts", "_order", "_from", "_to", "_sign", "_time"
NEVER = MAX_INSTANT


@dataclass(frozen=True)
class Elements:
    """A stream. is_light: reading it again costs no more than scanning its source again."""

    frame: DataFrame
    width: int
    is_light: bool = False

    @property
    def instant(self) -> str:
        return TS


@dataclass(frozen=True)
class Intervals:
    """A relation. longest: a bound of its intervals' lengths in ticks, None for none. is_ordered: it has `_order`.

    is_light: as that of a stream.  is_growing: what comes stays, every `_to` is NEVER.
    """

    frame: DataFrame
    width: int
    longest: int | None = None
    is_ordered: bool = False
    is_light: bool = False
    is_growing: bool = False

    @property
    def instant(self) -> str:
        return FROM


@dataclass
class World:
    """What the parts of one compiled query share.

    first, until: the first instant of any element, and the last closed one.  slices: into how many parts the time
    between is cut where one task cannot hold it all.  failures: (`_ts`, `_reason`) of rows on which expressions fail.
    counted: the rows of parts of joins that had to be known, by what they are called.  counts_all: all are to be known
    of which a sample leaves it open.
    """

    spark: SparkSession
    expressions: Expressions
    first: int
    until: int
    slices: int = 256
    failures: list[DataFrame] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)
    counts_all: bool = False

    @property
    def slice_ticks(self) -> int:
        """The length of a part of time."""
        return max(1, -(-(self.until - self.first + 1) // self.slices))

    def slice_of(self, instant: Column) -> Column:
        """The number of the part an instant lies in."""
        part = quotient(instant - long(self.first), self.slice_ticks)
        return F.least(F.greatest(part, long(0)), long(self.slices - 1))

    @staticmethod
    def shared(frame: DataFrame) -> DataFrame:
        """The frame, to be read more than once: it is computed once, and its plan is not repeated in its readers'.

        Plans that name a part twice double at every such step, and Spark's planning time with them.
        """
        return frame.localCheckpoint(eager=False)

    def failed(self, node: Elements | Intervals, computed: Sequence[Computed]) -> None:
        """Note where expressions over the node's rows fail."""
        reasons = [c.failed for c in computed if c.failed is not None]
        if reasons:
            reason = reasons[0] if len(reasons) == 1 else F.coalesce(*reasons)
            told = node.frame.select(F.col(node.instant).alias(TS), reason.alias("_reason"))
            self.failures.append(told.where(F.col("_reason").isNotNull()))


def quotient(a: Column, b: int) -> Column:
    """floor(a / b), b positive."""
    down = F.when(a % long(b) < long(0), long(1)).otherwise(long(0))
    return F.call_function("div", a, long(b)) - down


def time_of(ticks: Column, tick_ns: int) -> Column:
    """Ticks as Spark's timestamp, floored to microseconds; NULL where Spark has no such time."""
    step = tick_ns // 1000
    micros = F.try_multiply(ticks, long(step)) if step else quotient(ticks, 1000 // tick_ns)
    return F.timestamp_micros(micros)


def later(instant: Column, ticks: int) -> Column:
    """The instant so many ticks later; NEVER beyond the end of time."""
    if not ticks:
        return instant
    if ticks > NEVER // 2:
        return F.when(instant > long(NEVER - ticks), long(NEVER)).otherwise(instant + long(min(ticks, NEVER)))
    return F.least(instant, long(NEVER - ticks)) + long(ticks)


def names(width: int, prefix: str = "c") -> list[str]:
    """The names of a row's columns."""
    return [f"{prefix}{i}" for i in range(width)]


def computed_columns(values: Sequence[Computed], exprs: Sequence[bound.Expr]) -> list[Column]:
    """The values under the names of a row's columns."""
    return [v.value.alias(f"c{i}") for i, (v, _) in enumerate(zip(values, exprs))]


def same(a: Sequence[str], b: Sequence[str]) -> Column:
    """Whether columns are equal pairwise, NULL equal to NULL; TRUE of none."""
    result: Column = F.lit(True)
    for x, y in zip(a, b):
        result = result & F.col(x).eqNullSafe(F.col(y))
    return result


def copies(frame: DataFrame, count: Column, *columns: str | Column) -> DataFrame:
    """These columns of each row as often as `count` says, beside one of no meaning."""
    return frame.select(*columns, F.explode(F.array_repeat(F.lit(1), count.cast("int"))))


def shortest(a: int | None, b: int | None) -> int | None:
    """The smaller of two bounds, None being none."""
    return b if a is None else a if b is None else min(a, b)
