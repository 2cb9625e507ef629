"""A chunk divided by route: each part runs through the filters in its own order; then survivors stand in order again.

Invariant: the parts are a partition of the rows in question, each ascending; what comes out is what `narrow_by` gives
of all rows in any one order.  Content-Based Routing, section 4.2, in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes, UInt8Array
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.predicate import narrow_by
from minidsms.expressions.routes import Routes
from minidsms.expressions.value import Frame
from minidsms.kernels import content_routing as kernels

_NO_ROWS = np.zeros(0, np.int64)
_ITSELF = np.arange(256, dtype=np.uint8)


def divided(
    routes: Routes, attributes: Attributes, frame: Frame, rows: Int64Array | None
) -> list[tuple[int, Int64Array]]:
    """(the number of its order, its rows) of each part that has any.  rows: those in question, None for all."""
    in_question = frame.n if rows is None else len(rows)
    if not in_question:
        return []
    cells, table = _cells(routes, attributes, frame)
    ends = np.zeros(len(routes.orders) + 1, np.int64)
    out = np.empty(in_question, np.int64)
    kernels.divide(cells, table, _NO_ROWS if rows is None else rows, ends, out)
    bounds = ends.tolist()
    return [(part, out[start:stop]) for part, (start, stop) in enumerate(pairwise(bounds)) if stop > start]


def _cells(routes: Routes, attributes: Attributes, frame: Frame) -> tuple[UInt8Array, UInt8Array]:
    """(by row a number, by number the part); pairs of buckets are taken to their parts at once."""
    table = np.frombuffer(routes.table, np.uint8).copy()
    first = attributes.cells(routes.classifiers[0], frame)
    if len(routes.classifiers) == 1:
        return first, table
    parts = np.empty(frame.n, np.uint8)
    second = attributes.cells(routes.classifiers[1], frame)
    kernels.route_pairs(first, second, routes.classifiers[1].buckets, table, parts)
    return parts, _ITSELF


def narrow_by_routes(
    filters: Sequence[TupleFilter],
    parts: Sequence[tuple[Sequence[int], Int64Array, list[int]]],
    frame: Frame,
    use_kernels: bool,
) -> tuple[Int64Array, Int64Array | None]:
    """As `narrow_by`.  parts: (order, rows, counters of what reaches each place and the end)."""
    passing = np.zeros(frame.n, np.bool_)
    wrong: list[Int64Array] = []
    for order, rows, reached in parts:
        kept, failed = narrow_by(filters, order, frame, rows, use_kernels, reached)
        if kept is not None:
            passing[kept] = True
        if failed is not None:
            wrong.append(failed)
    return np.flatnonzero(passing), np.sort(np.concatenate(wrong)) if wrong else None
