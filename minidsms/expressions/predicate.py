"""Predicates: the rows for which a conjunction is TRUE.

A conjunction is computed filter by filter, in the order given, on the rows that may still be TRUE or failed: a row that
was FALSE or NULL once is settled, whatever else fails in it (docs/semantics R4), and a user function is never called
for it. Chunks stay in the second-level cache.

Invariant: neither the order of the filters nor the cut into chunks changes which rows are TRUE and which failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Batch, BoolArray, Column, Int64Array
from minidsms.expressions.compiler import Context
from minidsms.expressions.filter_tests import has_kernels
from minidsms.expressions.filters import Filter, TupleFilter, conjuncts
from minidsms.expressions.joint_program import FROM, JointProgram, Table
from minidsms.expressions.value import Frame

Predicate = Callable[[Batch], tuple[BoolArray, BoolArray | None]]

CHUNK = 65_536
"""Rows filtered at a time: few enough for the cache, enough to make little of what each filter costs per call."""


def filters_of(expr: bound.Expr, context: Context) -> tuple[Filter, ...]:
    """The filters of a condition, in the order written; their numbers are their places here."""
    return tuple(Filter(part, context) for part in conjuncts(expr))


def joint_of(filters: Sequence[TupleFilter]) -> JointProgram | None:
    """Of filters that are often narrowed by together."""
    return JointProgram.of([each.part for each in filters])


def narrow_by(
    filters: Sequence[TupleFilter],
    order: Sequence[int],
    frame: Frame,
    rows: Int64Array | None,
    use_kernels: bool,
    reached: list[int] | None = None,
    joint: JointProgram | None = None,
) -> tuple[Int64Array | None, Int64Array | None]:
    """(the rows of a chunk that no filter drops, None for all; those on which one failed or None), both ascending.

    order: numbers of filters, the first to be evaluated first; it may leave some out.  rows: those in question, None
    for all.  reached: (len(order) + 1,) counters, to which are added the rows that reach each place and the end.
    joint: of the filters.
    """
    wrong: Int64Array | None = None
    n = frame.n if rows is None else len(rows)
    if reached is not None:
        reached[0] += n
    if joint is not None and n >= FROM:
        table = joint.table(n, use_kernels)
        if table is not None:
            return _narrow_together(filters, joint, table, order, frame, rows, use_kernels, reached)
    for place, number in enumerate(order, 1):
        rows, failed = filters[number].narrow(frame, rows, use_kernels)
        if failed is not None:
            wrong = failed if wrong is None else np.union1d(wrong, failed)
        left = len(rows)
        if not left:
            return rows, None
        if reached is not None:
            reached[place] += left
    return rows, wrong


def _narrow_together(
    filters: Sequence[TupleFilter],
    joint: JointProgram,
    table: Table,
    order: Sequence[int],
    frame: Frame,
    rows: Int64Array | None,
    use_kernels: bool,
    reached: list[int] | None,
) -> tuple[Int64Array | None, Int64Array | None]:
    """As `narrow_by`, behind which rows have been counted at the first place."""
    wrong: Int64Array | None = None
    runs = table.runs(order)
    place, is_alone = 0, False
    while place < len(order):
        number, run = order[place], runs[place]
        if run is None or is_alone:
            rows, failed = filters[number].narrow(frame, rows, use_kernels)
            counts = [len(rows)]
            if is_alone:
                joint.called(number)
            is_alone = False
        else:
            counts, rows, failed = joint.narrow(table, run, frame, rows)
            is_alone = len(counts) < len(run) and failed is None
        if failed is not None:
            wrong = failed if wrong is None else np.union1d(wrong, failed)
        for left in counts:
            place += 1
            if not left:
                return rows, None
            if reached is not None:
                reached[place] += left
    return rows, wrong


def settle(rows: Int64Array | None, wrong: Int64Array | None) -> tuple[Int64Array | None, Int64Array | None]:
    """Of what no filter drops: (the rows that pass, None for all; those that count as failed, None for none)."""
    if wrong is None or rows is None:
        return rows, None
    wrong = np.intersect1d(wrong, rows, assume_unique=True)
    if not len(wrong):
        return rows, None
    return np.setdiff1d(rows, wrong, assume_unique=True), wrong


def pass_filters(
    filters: Sequence[TupleFilter],
    order: Sequence[int],
    frame: Frame,
    use_kernels: bool,
    joint: JointProgram | None = None,
) -> tuple[Int64Array | None, Int64Array | None]:
    """(the rows of a chunk that pass all filters, None for all; those that fail, None for none), both ascending."""
    return settle(*narrow_by(filters, order, frame, None, use_kernels, None, joint))


class Tuples(Protocol):
    """What filters read: the columns of some elements, and their instants. A `Batch` is."""

    ts: Int64Array

    def __len__(self) -> int: ...

    def column(self, index: int) -> Column:
        """The column's values of all elements."""


def chunk_of(batch: Tuples, start: int, stop: int) -> Frame:
    """The rows of a batch from start to stop, as filters read them."""
    n = len(batch.ts)
    frame = Frame(batch.column, n)
    return frame if stop - start == n else frame.slice(start, stop)


def compile_predicate(expr: bound.Expr, context: Context) -> Predicate:
    """batch -> (rows where the condition is TRUE, rows where it failed or None), both (n,) bool; the order written."""
    filters = filters_of(expr, context)
    order, joint = range(len(filters)), joint_of(filters)

    def apply(batch: Batch) -> tuple[BoolArray, BoolArray | None]:
        n = len(batch)
        use_kernels = has_kernels(n)
        mask = np.zeros(n, np.bool_)
        failed: BoolArray | None = None
        for start in range(0, n, CHUNK):
            stop = min(start + CHUNK, n)
            rows, wrong = pass_filters(filters, order, chunk_of(batch, start, stop), use_kernels, joint)
            if rows is None:
                mask[start:stop] = True
            else:
                mask[start:stop][rows] = True
            if wrong is not None:
                if failed is None:
                    failed = np.zeros(n, np.bool_)
                failed[start:stop][wrong] = True
        return mask, failed

    return apply
