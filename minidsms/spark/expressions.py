"""From a bound expression to Spark columns with the meaning of docs/semantics R2 and R4.

The columns of a row are named c0, c1, .. by position. Invariant: the columns made never raise and never depend on
Spark's ANSI mode or time zone; what Spark cannot say exactly is refused with `NotExpressibleError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.catalog import FunctionDef
from minidsms.elements import Type
from minidsms.spark import batches, calendar
from minidsms.spark.arithmetic import arithmetic
from minidsms.spark.computed import (
    Computed,
    NotExpressibleError,
    any_failed,
    fails,
    no_value,
    spark_type,
)
from minidsms.spark.texts import from_text, text_function, to_text
from minidsms.values.coded import text_of

if TYPE_CHECKING:
    from pyspark.sql import Column

_COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

_OF_ANY_TYPE = {
    *_COMPARE, "in", "is null", "is distinct from", "least", "greatest", "coalesce", "nullif", "single", "try",
}  # fmt: skip
"""What is the same of values and of the texts by which they are coded, which have their order."""


class Expressions:
    """Makes columns of expressions over rows; tick_ns is the length of a tick, functions are the user's.

    in_batches: what the engine's own evaluator computes over batches, in words, as far as it has come up.
    """

    def __init__(self, tick_ns: int, functions: Mapping[str, FunctionDef]) -> None:
        self.tick_ns = tick_ns
        self.functions = functions
        self.in_batches: list[str] = []

    def compute(self, expr: bound.Expr) -> Computed:
        """The value of an expression and why it failed. Raises NotExpressibleError on a Spark before 4.1."""
        try:
            return self._compute(expr)
        except NotExpressibleError as problem:
            if not batches.are_possible():
                raise
            self.in_batches.append(str(problem))
            return batches.in_batches(expr, self.tick_ns, self.functions)

    def _compute(self, expr: bound.Expr) -> Computed:
        match expr:
            case bound.ColumnRef(index=index):
                return Computed(F.col(f"c{index}"))
            case bound.Literal():
                return Computed(_literal(expr))
            case bound.Call():
                return self._call(expr)
            case bound.Case():
                return self._case(expr)
            case bound.Cast():
                return self._cast(expr)
            case bound.UserCall(function=function):
                raise NotExpressibleError(f"the user function {function}")
        raise AssertionError(f"{type(expr).__name__} is the planner's, not an expression over a row")

    def _call(self, expr: bound.Call) -> Computed:
        name = expr.function
        if name in calendar.PARTS:
            (arg,) = (self.compute(a) for a in expr.args)
            return Computed(calendar.part(name, arg.value, self.tick_ns), arg.failed)
        if name == "in" and isinstance(expr.args[1], bound.LiteralList):
            listed = expr.args[1]
            expr = replace(expr, args=(expr.args[0], *(bound.Literal(listed.type, v) for v in listed.values)))
        if name not in _OF_ANY_TYPE and not all(e.type.is_basic for e in (expr, *expr.args)):
            raise NotExpressibleError(f"{name.upper()} of {', '.join(str(a.type) for a in expr.args)}")
        args = [self.compute(a) for a in expr.args]
        values = [a.value for a in args]
        if name in _COMPARE:
            return Computed(_COMPARE[name](*values), any_failed(args))
        match name:
            case "and" | "or":
                return _junction(args, name == "and")
            case "not":
                return Computed(~values[0], args[0].failed)
            case "in":
                return _member(args)
            case "is null":
                return _judged(values[0].isNull(), args)
            case "is distinct from":
                return _judged(~values[0].eqNullSafe(values[1]), args)
            case "try":
                return Computed(_judged(values[0], args).value)
            case "least" | "greatest":
                function = F.least if name == "least" else F.greatest
                return _judged(values[0] if len(values) == 1 else function(*values), args)
            case "coalesce":
                return _coalesce(args)
            case "nullif":
                return _judged(F.when(~F.coalesce(values[0] == values[1], F.lit(False)), values[0]), args)
            case "single":
                several = values[0] > F.lit(1)
                why = F.concat(F.lit("it gave "), values[0].cast("string"), F.lit(" rows; at most one is allowed"))
                return Computed(F.when(~F.coalesce(several, F.lit(False)), values[1]), fails(expr, several, args, why))
        found = text_function(expr, args) or arithmetic(expr, args)
        if found is None:
            raise NotExpressibleError(f"the function {name.upper()}")
        return found

    def _case(self, expr: bound.Case) -> Computed:
        whens = [(self.compute(c), self.compute(r)) for c, r in expr.whens]
        otherwise = self.compute(expr.otherwise)
        value, failed = otherwise.value, otherwise.failed
        for condition, result in reversed(whens):
            value = F.when(condition.value, result.value).otherwise(value)
            if failed is not None or result.failed is not None:
                none = F.lit(None).cast("string")
                left = none if failed is None else failed
                failed = F.when(condition.value, none if result.failed is None else result.failed).otherwise(left)
            if condition.failed is not None:
                value = F.when(condition.failed.isNull(), value)
                failed = condition.failed if failed is None else F.coalesce(condition.failed, failed)
        return Computed(value.cast(spark_type(expr.type)), failed)

    def _cast(self, expr: bound.Cast) -> Computed:
        source, target = expr.arg.type, expr.type
        if source is Type.NULL:
            return Computed(no_value(target), self.compute(expr.arg).failed)
        if expr.or_null or (source is not target and not (source.is_basic and target.is_basic)):
            raise NotExpressibleError(f"CAST from {source} to {target}")
        arg = self.compute(expr.arg)
        if source is target or spark_type(source) == spark_type(target):
            return arg
        if target is Type.TEXT:
            return to_text(expr, arg)
        if source is Type.TEXT:
            return from_text(expr, arg, self.tick_ns)
        if target is Type.BOOLEAN:
            return Computed(arg.value != F.lit(0), arg.failed)
        if source is Type.FLOAT:
            inside = (arg.value >= F.lit(-(2.0**63))) & (arg.value < F.lit(2.0**63))
            value = F.when(inside, F.when(inside, arg.value).cast("bigint"))
            why = F.concat(arg.value.cast("string"), F.lit(f" is out of range for {target}"))
            return Computed(value, fails(expr, ~inside, (arg,), why))
        return Computed(arg.value.cast(spark_type(target)), arg.failed)


def _literal(expr: bound.Literal) -> Column:
    value = expr.value
    if value is None or value != value:
        return no_value(expr.type)
    if expr.type is Type.FLOAT:
        value = float(value) + 0.0
    elif expr.type.is_coded:
        value = text_of(value, expr.type)
    return F.lit(value).cast(spark_type(expr.type))


def _judged(value: Column, args: Sequence[Computed]) -> Computed:
    """What is made of NULLs too: NULL where an operand failed."""
    failed = any_failed(args)
    return Computed(value) if failed is None else Computed(F.when(failed.isNull(), value), failed)


def _junction(args: Sequence[Computed], is_and: bool) -> Computed:
    """AND is FALSE if any operand is, else NULL if any is, else failed if any has; OR mirrors it (R4)."""
    value = args[0].value
    for arg in args[1:]:
        value = value & arg.value if is_and else value | arg.value
    failed = any_failed(args)
    if failed is None:
        return Computed(value)
    # NULL where the value is undecided and no operand is NULL by itself: then it is the failures that leave it open.
    open_ = value.isNull()
    for arg in args:
        own = arg.value.isNotNull() if arg.failed is None else arg.value.isNotNull() | arg.failed.isNotNull()
        open_ = open_ & own
    return Computed(value, F.when(open_, failed))


def _member(args: Sequence[Computed]) -> Computed:
    """The OR of the equalities with the list's values."""
    needle, items = args[0], args[1:]
    if any_failed(args) is None:
        return Computed(needle.value.isin(*(item.value for item in items)))
    equal = [Computed(needle.value == item.value, any_failed((needle, item))) for item in items]
    return equal[0] if len(equal) == 1 else _junction(equal, False)


def _coalesce(args: Sequence[Computed]) -> Computed:
    """The first that is not NULL; what stands after it is not evaluated."""
    value, failed = args[-1].value, args[-1].failed
    for arg in reversed(args[:-1]):
        value = F.coalesce(arg.value, value)
        if failed is not None:
            failed = F.when(arg.value.isNull(), failed)
        if arg.failed is not None:
            value = F.when(arg.failed.isNull(), value)
            failed = arg.failed if failed is None else F.coalesce(arg.failed, failed)
    return Computed(value, failed)
