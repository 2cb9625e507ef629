"""What an expression becomes: a Spark column for its value, and one for why it failed.

Invariants: a value is NULL where the expression is NULL or failed; a FLOAT is never NaN and never -0.0; `failed` is a
text that names the innermost part that failed and why, NULL where nothing did, and None where nothing can. Nothing
here raises while rows flow: failures are data until the plan's end (docs/semantics R4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from minidsms.cql import bound
from minidsms.elements import Type
from minidsms.expressions import print_expression
from minidsms.values.arrow_types import word_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_SPARK_TYPES = {pa.float64(): "double", pa.bool_(): "boolean", pa.string(): "string", pa.int64(): "bigint"}


def spark_type(type_: Type) -> str:
    """The Spark type of a column of frames, in the engine's own form (`minidsms.values.arrow_types`): ticks, days and
    integers are bigint, and so is NULL.
    """
    return _SPARK_TYPES[word_type(type_)]


class NotExpressibleError(Exception):
    """Spark has no column expression that means exactly this; its text says what."""


@dataclass(frozen=True)
class Computed:
    """The value of an expression, and the reason of its failure."""

    value: Column
    failed: Column | None = None


def no_value(type_: Type) -> Column:
    """NULL of a type."""
    from pyspark.sql import functions as F

    return F.lit(None).cast(spark_type(type_))


def long(value: int) -> Column:
    """A constant of ticks, or an INTEGER."""
    from pyspark.sql import functions as F

    return F.lit(value).cast("bigint")


def finite(value: Column) -> Column:
    """A computed FLOAT as the engine keeps it: NaN is NULL, -0.0 is 0.0."""
    from pyspark.sql import functions as F

    # The value stands there once: what names its operand twice doubles with every operator in an expression.
    return F.nanvl(value, F.lit(None).cast("double")) + F.lit(0.0)


def any_failed(args: Sequence[Computed]) -> Column | None:
    """The first reason among several operands."""
    from pyspark.sql import functions as F

    reasons = [a.failed for a in args if a.failed is not None]
    return None if not reasons else reasons[0] if len(reasons) == 1 else F.coalesce(*reasons)


def fails(expr: bound.Expr, condition: Column, args: Sequence[Computed], why: str | Column) -> Column:
    """The reason where an operand failed, else `why` where the condition is true."""
    from pyspark.sql import functions as F

    told = why if not isinstance(why, str) else F.lit(why)
    own = F.when(condition, F.concat(F.lit(f"{print_expression(expr)}: "), told))
    inner = any_failed(args)
    return own if inner is None else F.coalesce(inner, own)


def overflow(expr: bound.Expr, condition: Column, args: Sequence[Computed]) -> Column:
    """The reason where int64 arithmetic left its range."""
    from pyspark.sql import functions as F

    shown = F.concat_ws(", ", *(a.value.cast("string") for a in args))
    return fails(expr, condition, args, F.concat(F.lit(f"{expr.type} overflow for "), shown))
