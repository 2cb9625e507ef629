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
_LIMB_BITS = 36
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
        limb = (rest / F.lit(unit)).cast("bigint")  # toward zero: what is left is then exact
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
    some = F.when(n > long(0), n).cast("double")
    total = _of_floats(name)
    return Computed(finite(total / some if call.function == "avg" else F.when(some.isNotNull(), total)))


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
    rest = limbs[-1]
    total: Column = F.lit(0.0)
    for limb, unit in zip(reversed(limbs[:-1]), reversed(_UNITS)):  # the smallest first
        # Balanced digits: a small negative sum is one small digit, not a large one less another.
        carry = F.shiftright(F.shiftright(rest, _LIMB_BITS - 1) + long(1), 1)
        total = total + (rest - F.shiftleft(carry, _LIMB_BITS)).cast("double") * F.lit(unit)
        rest = limb + carry
    total = total + rest.cast("double") * F.lit(_UNITS[0])
    up, down, large = F.col(f"{name}_up"), F.col(f"{name}_down"), F.col(f"{name}_large")
    total = total + F.when(large > long(0), F.col(f"{name}_sum")).otherwise(F.lit(0.0))
    beyond = F.when((up > long(0)) & (down > long(0)), F.lit(float("nan")))
    beyond = beyond.when(up > long(0), F.lit(_INFINITY)).when(down > long(0), F.lit(-_INFINITY))
    return beyond.otherwise(total)
