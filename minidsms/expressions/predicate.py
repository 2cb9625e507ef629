"""Predicates: the rows a filter lets through.

A conjunction is computed conjunct by conjunct, in the order given, on the rows that may still be TRUE or failed: a row
that was FALSE or NULL once is settled, whatever else fails in it (docs/semantics R4). Rows are dropped when few
are left, or before a user function, which is never called for a row that is settled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Batch, BoolArray, Int64Array
from minidsms.expressions.compiler import CHUNK, Context, compile_node
from minidsms.expressions.value import Frame, Node, full

Predicate = Callable[[Batch], tuple[BoolArray, BoolArray | None]]

_DENSE = 0.5
"""With more than this share of rows left, computing all is cheaper than gathering some."""


def conjuncts(expr: bound.Expr) -> tuple[bound.Expr, ...]:
    """The conjuncts of a condition, nested ANDs opened."""
    if isinstance(expr, bound.Call) and expr.function == "and":
        return tuple(c for arg in expr.args for c in conjuncts(arg))
    return (expr,)


def compile_predicate(expr: bound.Expr, context: Context) -> Predicate:
    """batch -> (rows where the condition is TRUE, rows where it failed or None), both (n,) bool."""
    parts = conjuncts(expr)
    nodes = [compile_node(part, context) for part in parts]
    is_user = [any(isinstance(e, bound.UserCall) for e in bound.walk(part)) for part in parts]

    def apply(batch: Batch) -> tuple[BoolArray, BoolArray | None]:
        n = len(batch)
        with np.errstate(all="ignore"):
            frame = Frame(batch.column, n)
            if n <= CHUNK:
                return _chunk(nodes, is_user, frame)
            mask = np.empty(n, np.bool_)
            failed: BoolArray | None = None
            for start in range(0, n, CHUNK):
                stop = min(start + CHUNK, n)
                mask[start:stop], wrong = _chunk(nodes, is_user, frame.slice(start, stop))
                if wrong is not None:
                    if failed is None:
                        failed = np.zeros(n, np.bool_)
                    failed[start:stop] = wrong
            return mask, failed

    return apply


def _chunk(nodes: list[Node], is_user: list[bool], frame: Frame) -> tuple[BoolArray, BoolArray | None]:
    """TRUE and failed rows of one frame.

    `live` marks the rows of the current frame that may still be TRUE or failed (None: all), `wrong` those of them that
    failed somewhere (None: none); `rows` says where the current frame's rows stand in the first (None: they are it).
    """
    n = frame.n
    rows: Int64Array | None = None
    live: BoolArray | None = None
    wrong: BoolArray | None = None
    for i, node in enumerate(nodes):
        if live is not None:
            left = int(np.count_nonzero(live))
            if left == 0:
                return np.zeros(n, np.bool_), None
            if left < frame.n and (is_user[i] or left < _DENSE * frame.n):
                inside = np.flatnonzero(live)
                rows = inside if rows is None else rows[inside]
                wrong = None if wrong is None else wrong[inside]
                frame = frame.subset(inside)
                live = None
        value = node(frame)
        passes = full(value.values, frame.n)
        if value.failed is not None:
            passes = passes | value.failed
            wrong = full(value.failed, frame.n) if wrong is None else wrong | value.failed
        live = passes if live is None else live & passes
    assert live is not None
    if wrong is not None:
        wrong = wrong & live
        live = live & ~wrong
    return _spread(live, rows, n), None if wrong is None or not wrong.any() else _spread(wrong, rows, n)


def _spread(mask: BoolArray, rows: Int64Array | None, n: int) -> BoolArray:
    """A mask of the current frame as one of the first frame."""
    if rows is None:
        return mask
    spread = np.zeros(n, np.bool_)
    spread[rows[mask]] = True
    return spread
