"""Conditions on rows as readers of Parquet know them: pyarrow's expressions, and Spark's columns."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from minidsms.archive.demand import AllOf, AnyOf, Comparison, Condition, IsNull

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def arrow_condition(condition: Condition, fields: Sequence[str]) -> pc.Expression:
    """For pyarrow. fields: the name of each column of the stream in the files."""
    return _condition(condition, lambda i: pc.field(fields[i]), lambda c: c.is_null())


def spark_condition(condition: Condition, fields: Sequence[str]) -> Any:
    """For Spark: a `pyspark.sql.Column`."""
    from pyspark.sql import functions

    def column(i: int) -> Any:
        return functions.col("`" + fields[i].replace("`", "``") + "`")

    return _condition(condition, column, lambda c: c.isNull())


def _condition(condition: Condition, column: Callable[[int], Any], is_null: Callable[[Any], Any]) -> Any:
    match condition:
        case Comparison():
            return _OPERATORS[condition.op](column(condition.column), condition.value)
        case IsNull():
            null = is_null(column(condition.column))
            return ~null if condition.negated else null
        case AllOf() | AnyOf():
            parts = [_condition(part, column, is_null) for part in condition.parts]
            return functools.reduce(operator.and_ if isinstance(condition, AllOf) else operator.or_, parts)
