"""A filter: one conjunct of a condition, and what it does to the rows of a chunk.

Rows in question are positions in a chunk, ascending; None stands for all of them. A filter keeps those on which it is
TRUE and, for now, those on which it fails: a row counts as failed only if every other filter lets it pass
(docs/semantics R4), so filters may be evaluated in any order. Babu 2005, section 4.2.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from minidsms.cql import bound
from minidsms.cql.scalar_text import print_expression
from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.compiler import Context, compile_quietly, is_thread_safe, programmed
from minidsms.expressions.filter_tests import AT, DENSE, GATHERED, keep, split
from minidsms.expressions.joint_program import Part
from minidsms.expressions.value import Frame, full

_MOST = 0.5
"""With more than this share of a chunk in question, computing all rows is cheaper than gathering some."""


def conjuncts(expr: bound.Expr) -> tuple[bound.Expr, ...]:
    """The conjuncts of a condition, nested ANDs opened."""
    if isinstance(expr, bound.Call) and expr.function == "and":
        return tuple(c for arg in expr.args for c in conjuncts(arg))
    return (expr,)


def _null_of_column(expr: bound.Expr) -> tuple[int, bool] | None:
    """(column, whether it must not be NULL) of IS NULL and IS NOT NULL."""
    match expr:
        case bound.Call(function="is null", args=(bound.ColumnRef(index=column),)):
            return column, False
        case bound.Call(function="not", args=(bound.Call(function="is null", args=(bound.ColumnRef(index=column),)),)):
            return column, True
    return None


def _null_rows(frame: Frame, rows: Int64Array | None, column: int, is_not: bool) -> Int64Array:
    """The rows in question whose value is NULL; is_not: is none."""
    valid = frame.column(column).valid
    if valid is None:
        kept = np.arange(frame.n) if rows is None else rows
        return kept if is_not else kept[:0]
    wanted = valid if is_not else ~valid
    return wanted.nonzero()[0] if rows is None else rows[wanted[rows]]


class TupleFilter(Protocol):
    """What a pipeline orders: something that drops tuples or lets them pass.

    text: as CQL.  is_fixed: it must stay where it was written.  is_thread_safe: several threads may ask it at once,
    each of rows of its own.  part: how it is run together with others, None where it must be called by itself.
    """

    text: str
    is_fixed: bool
    is_thread_safe: bool
    part: Part | None

    def narrow(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> tuple[Int64Array, Int64Array | None]:
        """(the rows on which the filter is TRUE or fails, those on which it fails or None), both ascending.

        frame: the chunk.  rows: those in question, None for all.  use_kernels: compiled tests are loaded.
        """


class Filter:
    """One conjunct. text: as CQL.  is_fixed: it contains a user function that must stay where it was written.
    is_thread_safe, part: of `TupleFilter`.
    """

    def __init__(self, expr: bound.Expr, context: Context) -> None:
        self.expr = expr
        self.text = print_expression(expr)
        calls = [e for e in bound.walk(expr) if isinstance(e, bound.UserCall)]
        self.is_fixed = any(context.functions[call.function.lower()].fixed for call in calls)
        self._calls_user = bool(calls)
        self.is_thread_safe = is_thread_safe(expr, context)
        self._asks_null = _null_of_column(expr)
        operand, self._test = split(expr, context.dictionary)
        self._column = operand.index if isinstance(operand, bound.ColumnRef) else None
        self._node = compile_quietly(operand, context)
        self._programmed = its = programmed((expr,), context, is_condition=True)
        # What numpy finds in bytes, TRUE or NULL, it finds as fast as a kernel.
        is_by_itself = its is None or bool(calls) or self._asks_null is not None
        self.part = None if is_by_itself else Part(its, self._column, self._test)  # type: ignore[arg-type]

    def narrow(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> tuple[Int64Array, Int64Array | None]:
        """(the rows on which the filter is TRUE or fails, those on which it fails or None), both ascending.

        frame: the chunk.  A user function is called for the rows in question only.
        """
        if self._asks_null is not None:
            return _null_rows(frame, rows, *self._asks_null), None
        if self._column is not None:
            value = frame.column(self._column)
            if value.valid is not None:
                rows = value.valid.nonzero()[0] if rows is None else rows[value.valid[rows]]
            return keep(self._test, value.values, rows, DENSE if rows is None else AT, use_kernels), None
        if self._programmed is not None:
            found = self._programmed.keep(frame, rows, use_kernels)
            if found is not None:
                return found
        is_dense = rows is None or (not self._calls_user and len(rows) > _MOST * frame.n)
        part = frame if is_dense or rows is None else frame.subset(rows)
        value = self._node(part)
        values = full(value.values, part.n)
        layout = DENSE if rows is None else AT if is_dense else GATHERED
        if value.valid is None and value.failed is None:
            return keep(self._test, values, rows, layout, use_kernels), None
        return self._with_masks(values, value.valid, value.failed, rows, layout)

    def _with_masks(
        self,
        values: np.ndarray,
        valid: BoolArray | None,
        failed: BoolArray | None,
        rows: Int64Array | None,
        layout: int,
    ) -> tuple[Int64Array, Int64Array | None]:
        """Where some rows are NULL or failed."""
        n = len(values)
        passes = self._test.mask(values)
        if valid is not None:
            passes = passes & valid
        kept = passes if failed is None else (passes | failed)
        kept = full(kept, n)
        wrong = None if failed is None else full(failed, n)
        if layout == AT:
            assert rows is not None
            found, wrong = rows[kept[rows]], None if wrong is None else rows[wrong[rows]]
        else:
            found, wrong = kept.nonzero()[0], None if wrong is None else wrong.nonzero()[0]
            if rows is not None:
                found, wrong = rows[found], None if wrong is None else rows[wrong]
        return found, wrong if wrong is not None and len(wrong) else None
