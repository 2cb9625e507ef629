"""Aggregates that can be taken back: COUNT, SUM and AVG as amounts that rows add and take away.

An INTEGER is added in two halves of 32 bits, a FLOAT in whole multiples of four powers of two: both are exact in any
order and number, so that a sum of what is left after millions of rows have come and gone is the sum of what is left.
A float beyond 2 ** 56 is the exception: those alone are added as doubles. A sum holds for 2 ** 27 rows that are in a
group at once. docs/semantics R3, R4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.elements import Type
from minidsms.expressions import print_expression
from minidsms.spark.computed import Computed, finite
from minidsms.spark.frames import long

if TYPE_CHECKING:
    from pyspark.sql import Column

_HALF = 2**32
_LIMB = 2**36
_UNITS = tuple(2.0**e for e in (20, -16, -52, -88))
_LARGE = 2.0**56
_INFINITY = float("inf")


def amounts(call: bound.AggregateCall, arg: Column | None, name: str) -> dict[str, Column]:
    """What one row adds, by column name; `name` begins them all."""
    if arg is None:
        return {}
    some = F.when(arg.isNotNull(), long(1)).otherwise(long(0))
    counted = {f"{name}_n": some}
    if call.function == "count":
        return counted
    assert call.arg is not None
    if call.arg.type is not Type.FLOAT:
        value = F.coalesce(arg, long(0))
        low = F.pmod(value, long(_HALF))
        return counted | {
            f"{name}_high": F.call_function("shiftright", value, F.lit(32)),
            f"{name}_low": low,
        }
    is_plain = F.abs(arg) < F.lit(_LARGE)
    rest = F.when(is_plain, arg).otherwise(F.lit(0.0))
    for i, unit in enumerate(_UNITS):
        limb = F.floor(rest / F.lit(unit))
        counted[f"{name}_{i}"] = limb
        rest = rest - limb.cast("double") * F.lit(unit)
    infinite = F.abs(arg) == F.lit(_INFINITY)
    large = F.coalesce(~is_plain & ~infinite, F.lit(False))
    return counted | {
        f"{name}_up": F.when(arg == F.lit(_INFINITY), long(1)).otherwise(long(0)),
        f"{name}_down": F.when(arg == F.lit(-_INFINITY), long(1)).otherwise(long(0)),
        f"{name}_large": F.when(large, long(1)).otherwise(long(0)),
        f"{name}_sum": F.when(large, arg).otherwise(F.lit(0.0)),
    }


def result(call: bound.AggregateCall, rows: str, name: str) -> Computed:
    """The aggregate of a segment's totals. rows: the column that counts the rows."""
    if call.arg is None:
        return Computed(F.col(rows))
    n = F.col(f"{name}_n")
    if call.function == "count":
        return Computed(n)
    if call.arg.type is not Type.FLOAT:
        return _of_integers(call, n, F.col(f"{name}_high"), F.col(f"{name}_low"))
    total = _of_floats(name)
    value = total if call.function == "sum" else total / n.cast("double")
    return Computed(finite(F.when(n > long(0), value)))


def _of_integers(call: bound.AggregateCall, n: Column, high: Column, low: Column) -> Computed:
    assert call.arg is not None
    carried = high + F.call_function("shiftright", low, F.lit(32))
    below = F.pmod(low, long(_HALF))
    if call.function == "avg":
        total = carried.cast("double") * F.lit(float(_HALF)) + below.cast("double")
        return Computed(F.when(n > long(0), total / F.when(n > long(0), n).cast("double") + F.lit(0.0)))
    fits = (carried >= long(-(2**31))) & (carried < long(2**31))
    whole = F.when(fits, carried) * long(_HALF) + below
    told = F.lit(f"SUM({print_expression(call.arg)}): {call.type} overflow")
    return Computed(F.when(n > long(0), whole), F.when((n > long(0)) & ~fits, told))


def _of_floats(name: str) -> Column:
    """The sum of the limbs, carried first so that what cancels cancels exactly, and of what is beyond them."""
    limbs = [F.col(f"{name}_{i}") for i in range(len(_UNITS))]
    carry: Column = long(0)
    total: Column = F.lit(0.0)
    parts: list[Column] = []
    for limb in reversed(limbs[1:]):
        sum_ = limb + carry
        rest = F.pmod(sum_, long(_LIMB))
        # Balanced digits: a small negative sum is one small digit, not a large one less another.
        digit = F.when(rest >= long(_LIMB // 2), rest - long(_LIMB)).otherwise(rest)
        carry = F.call_function("div", sum_ - digit, long(_LIMB))
        parts.append(digit)
    parts.append(limbs[0] + carry)
    for part, unit in zip(parts, reversed(_UNITS)):  # the smallest first
        total = total + part.cast("double") * F.lit(unit)
    up, down, large = F.col(f"{name}_up"), F.col(f"{name}_down"), F.col(f"{name}_large")
    total = F.when(large > long(0), total + F.col(f"{name}_sum")).otherwise(total)
    beyond = F.when((up > long(0)) & (down > long(0)), F.lit(float("nan")))
    beyond = beyond.when(up > long(0), F.lit(_INFINITY)).when(down > long(0), F.lit(-_INFINITY))
    return beyond.otherwise(total)
