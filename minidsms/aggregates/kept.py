"""Aggregates that the kernels keep, and those that are others by another name."""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.aggregates.aggregate import OF_TIMES, Aggregate
from minidsms.elements import Type
from minidsms.functions.function import Signature
from minidsms.values.types import known_type

_ADDED = (Type.INTEGER, Type.FLOAT, Type.INTERVAL)
_NUMBERS = (Type.INTEGER, Type.FLOAT)


def _counted(types: Sequence[Type]) -> Signature:
    return Signature((known_type(types[0]),), Type.INTEGER)


def _any(types: Sequence[Type]) -> Signature:
    return Signature((known_type(types[0]),), known_type(types[0]))


def _ordered(types: Sequence[Type]) -> Signature | None:
    return None if types[0].is_nested else _any(types)


def _sum(types: Sequence[Type]) -> Signature | None:
    return _any(types) if known_type(types[0]) in _ADDED else None


def _mean(types: Sequence[Type]) -> Signature | None:
    return Signature((known_type(types[0]),), Type.FLOAT) if known_type(types[0]) in _NUMBERS else None


def _truth(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.BOOLEAN,), Type.BOOLEAN) if types[0] in (Type.BOOLEAN, Type.NULL) else None


def _truths_counted(types: Sequence[Type]) -> Signature | None:
    return Signature((Type.BOOLEAN,), Type.INTEGER) if _truth(types) else None


def _pairs_counted(types: Sequence[Type]) -> Signature:
    return Signature(tuple(known_type(t) for t in types), Type.INTEGER)


def _pairs_averaged(types: Sequence[Type]) -> Signature | None:
    known = _pairs_counted(types).args
    return Signature(known, Type.FLOAT) if all(t in _NUMBERS for t in known) else None


FUNCTIONS = (
    Aggregate(
        "count", 1, 1, _counted, "anything, or *",
        "the number of rows, or of values that are not NULL", ("COUNT(v)", "3"),
        distinct=True,
    ),
    Aggregate("sum", 1, 1, _sum, "INTEGER, FLOAT or INTERVAL", "the sum", ("SUM(v)", "5"), distinct=True),
    Aggregate("avg", 1, 1, _mean, OF_TIMES, "the mean", ("AVG(w)", "27.5"), distinct=True),
    Aggregate("min", 1, 1, _ordered, "any type but lists", "the least", ("MIN(v)", "1"), several="min_n"),
    Aggregate("max", 1, 1, _ordered, "any type but lists", "the greatest", ("MAX(t)", "'c'"), several="max_n"),
    Aggregate("variance", 1, 1, _mean, "INTEGER or FLOAT", "the variance of a sample", ("VARIANCE(w)", "225.0")),
    Aggregate("stddev", 1, 1, _mean, OF_TIMES, "the standard deviation of a sample", ("STDDEV(w)", "15.0")),
    Aggregate(
        "first", 1, 1, _any, "any type",
        "the value of the row that arrived first; with IGNORE NULLS, the first value that is not NULL",
        ("FIRST(w)", "10"), passes_nulls=False, several="first_n",
    ),
    Aggregate(
        "last", 1, 1, _any, "any type",
        "the value of the row that arrived last; with IGNORE NULLS, the last value that is not NULL",
        ("LAST(v) IGNORE NULLS", "2"), passes_nulls=False, several="last_n",
    ),
    Aggregate("bool_and", 1, 1, _truth, "BOOLEAN", "whether all are true", ("BOOL_AND(b)", "false"), like="min"),
    Aggregate("bool_or", 1, 1, _truth, "BOOLEAN", "whether at least one is true", ("BOOL_OR(b)", "true"), like="max"),
    Aggregate(
        "count_if", 1, 1, _truths_counted, "BOOLEAN",
        "the number of rows where it is true", ("COUNT_IF(b)", "2"), like="count",
    ),
    *(
        Aggregate(name, 2, 2, resolve, "two numbers, y and x", summary, (f"{name.upper()}(w, v)", value), like=like)
        for name, resolve, summary, value, like in (
            ("regr_count", _pairs_counted, "rows where neither is NULL", "3", "count"),
            ("regr_avgy", _pairs_averaged, "the mean of y, of rows where neither is NULL", "23.333333333333332", "avg"),
            ("regr_avgx", _pairs_averaged, "the mean of x, of rows where neither is NULL", "1.6666666666666667", "avg"),
        )
    ),
    Aggregate(
        "any_value", 1, 1, _ordered, "any type", "one of the values: the least, of nested ones by their texts",
        ("ANY_VALUE(t)", "'a'"), like="min",
    ),
)  # fmt: skip
