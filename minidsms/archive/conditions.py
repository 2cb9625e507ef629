"""Conditions on rows as readers of Parquet know them: pyarrow's expressions, Spark's columns, and whole files."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from minidsms.archive.demand import AllOf, AnyOf, Comparison, Condition, IsNull, demand
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.archive.statistics import Range
from minidsms.cql.bound import Node

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


def needed(files: Sequence[ArchiveFile], condition: Condition | None, fields: Sequence[str]) -> list[ArchiveFile]:
    """The files that may hold a row for which the condition is true, by what the log tells of them."""

    def may_hold(file: ArchiveFile, condition: Condition) -> bool:
        match condition:
            case AllOf(parts):
                return all(may_hold(file, part) for part in parts)
            case AnyOf(parts):
                return any(may_hold(file, part) for part in parts)
        known = None if file.statistics is None else file.statistics.ranges.get(fields[condition.column])
        if known is None:
            return True
        if isinstance(condition, IsNull):
            return known.has_values if condition.negated else known.has_nulls
        return known.has_values and _can_be(known, condition)

    return [file for file in files if condition is None or may_hold(file, condition)]


def needed_by(archive: Archive, root: Node, until: int | None = None) -> list[ArchiveFile]:
    """The files of an archive, up to an instant, that a plan needs; all of a relation."""
    metadata = archive.metadata
    is_stream = metadata.kind == "stream"
    condition = demand([root], metadata.name).condition if is_stream else None
    return needed(archive.files(None, until), condition, metadata.fields)


def _can_be(known: Range, comparison: Comparison) -> bool:
    """Whether some value of a range may compare so."""
    low: Any = known.low
    high: Any = known.high
    value: Any = comparison.value
    if any(isinstance(bound, str) is not isinstance(value, str) for bound in (low, high) if bound is not None):
        return True  # nothing is known of a column of another type
    if isinstance(value, float):  # a column that was INTEGER holds the nearest FLOATs
        low, high = (None if bound is None else float(bound) for bound in (low, high))
    match comparison.op:
        case "=":
            return bool((low is None or low <= value) and (high is None or high >= value))
        case "<>":
            return bool(low != high or low != value)
        case "<" | "<=":
            return low is None or bool(_OPERATORS[comparison.op](low, value))
        case _:
            return high is None or bool(_OPERATORS[comparison.op](high, value))


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
