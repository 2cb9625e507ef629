"""A chunk divided by route: each part runs through the filters in its own order; then survivors stand in order again.

Where orders differ in their first places alone, filters of the other places are called once for the tuples of all
parts, and not for each part.
Invariant: the parts are a partition of the rows in question, each ascending; no filter is asked twice about a tuple;
what comes out is what `narrow_by` gives of all rows in any one order.  Content-Based Routing, section 4.2, in columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes, UInt8Array
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.joint_program import JointProgram
from minidsms.expressions.predicate import narrow_by
from minidsms.expressions.routes import Routes
from minidsms.expressions.value import Frame
from minidsms.kernels import content_routing as kernels

_NO_ROWS = np.zeros(0, np.int64)
_ITSELF = np.arange(256, dtype=np.uint8)


def divided(routes: Routes, attributes: Attributes, frame: Frame, rows: Int64Array | None) -> list[Int64Array]:
    """By order, its rows.  rows: those in question, None for all."""
    ends = np.zeros(len(routes.orders) + 1, np.int64)
    out = np.empty(frame.n if rows is None else len(rows), np.int64)
    if len(out):
        cells, table = _cells(routes, attributes, frame)
        kernels.divide(cells, table, _NO_ROWS if rows is None else rows, ends, out)
    return [out[start:stop] for start, stop in pairwise(ends.tolist())]


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
    routes: Routes,
    parts: Sequence[Int64Array],
    frame: Frame,
    use_kernels: bool,
    reached: Sequence[list[int]],
    joint: JointProgram | None = None,
) -> tuple[Int64Array, Int64Array | None]:
    """As `narrow_by`.  parts: as `divided` gives them.  reached: by order, counters of what reaches each place and the
    end.
    """
    left: list[Int64Array] = []
    wrong: list[Int64Array] = []
    for order, rows, counts in zip(routes.orders, parts, reached):
        if len(rows):
            kept, failed = narrow_by(filters, order[: routes.own], frame, rows, use_kernels, counts, joint)
            rows = rows if kept is None else kept
            if failed is not None:
                wrong.append(failed)
        left.append(rows)
    for number in () if routes.own is None else routes.order:
        places = [order.index(number) if number in order[routes.own :] else -1 for order in routes.orders]
        asked = [rows if place >= 0 else _NO_ROWS for place, rows in zip(places, left)]
        together = np.concatenate(asked)
        if not len(together):
            continue
        # Of a subset all are asked: what it keeps are places in it, which tell the parts.
        passing, failed = filters[number].narrow(frame.subset(together), None, use_kernels)
        if failed is not None:
            wrong.append(together[failed])
        kept = together[passing]
        ends = np.searchsorted(passing, np.cumsum([0, *map(len, asked)])).tolist()
        for i, place in enumerate(places):
            if place >= 0:
                left[i] = kept[ends[i] : ends[i + 1]]
                reached[i][place + 1] += len(left[i])
    is_left = np.zeros(frame.n, np.bool_)
    for rows in left:
        is_left[rows] = True
    return np.flatnonzero(is_left), np.unique(np.concatenate(wrong)) if wrong else None
