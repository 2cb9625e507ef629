"""UNION ALL: the elements of both inputs, merged by ts.

Invariant: within an instant deletions stand before insertions, and of the same sign those of left before those of
right. No state: equal rows are interchangeable (docs/semantics T2, R5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema
from minidsms.kernels.arrays import normal
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class UnionAll(Operator):
    """Both inputs, of equal column types. The arrival numbers of two streams have nothing in common: none come out."""

    name = "UnionAll"
    is_stateless = True
    acts_on_time = False

    def __init__(self, left: Queue, right: Queue, schema: Schema | None = None) -> None:
        super().__init__([left, right], schema or left.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        present = [batch for batch in batches if batch is not None and len(batch)]
        sides = [Batch(b.ts, b.sign, typed(b.columns, self.schema)) for b in present]
        if len(sides) == 1:
            yield sides[0]
        elif sides:
            yield _merge(sides[0], sides[1])

    def describe(self) -> Description:
        return Description(self.name)


def typed(columns: Sequence[Column], schema: Schema) -> list[Column]:
    """The columns in the arrays the schema asks for: a column of bare NULLs may come as another type's zeros."""
    return [
        c if c.values.dtype == t.dtype else Column(c.values.astype(t.dtype), c.valid)
        for c, t in zip(columns, schema.types)
    ]


def _merge(left: Batch, right: Batch) -> Batch:
    """The two runs as one."""
    to_left, to_right = _places(left, right)
    n = len(left) + len(right)

    def merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = np.empty(n, a.dtype)
        result[to_left] = a
        result[to_right] = b
        return result

    columns = []
    for a, b in zip(left.columns, right.columns):
        valid = None
        if a.valid is not None or b.valid is not None:
            valid = merged(_mask(a), _mask(b))
        columns.append(Column(merged(a.values, b.values), valid))
    sign = None if left.sign is None and right.sign is None else merged(left.signs, right.signs)
    return Batch(merged(left.ts, right.ts), sign, columns)


def _mask(column: Column) -> np.ndarray:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid


def _places(left: Batch, right: Batch) -> tuple[Int64Array, Int64Array]:
    """Where each element of left and of right goes."""
    from minidsms.kernels.merging import merge_runs

    to_left, to_right = np.empty(len(left), np.int64), np.empty(len(right), np.int64)
    merge_runs(normal(left.ts), normal(left.signs), normal(right.ts), normal(right.signs), to_left, to_right)
    return to_left, to_right
