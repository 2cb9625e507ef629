"""Aggregates OVER frames which no kernel slides are aggregates by row, of those rows which a join finds in its frame.

    SELECT v, MEDIAN(v) OVER (PARTITION BY k ORDER BY v ROWS 2 PRECEDING) FROM S [ROWS 9]

with n = ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) beside each row x and y of S [ROWS 9] becomes

    SELECT x.v, MEDIAN(y.v) FROM x JOIN y ON x.k = y.k AND y.n >= x.n - 2 AND y.n <= x.n GROUP BY x.k, x.v, x.n

The rows of a frame by value stand one behind the other in that order, too: the last of them has as many rows before it
as COUNT(*) gives of a frame without a beginning, and there are as many as COUNT(*) gives of the frame. A row that is
not in its own frame is joined with itself all the same, and gives it NULL, so that each row stays. Where the row looks
at none behind it in a stream the OVER stays, for `operators.stream_over` computes it.

A row of a partition is not compared with all others: their numbers are cut into stretches as long as the frame, which
lies in two of them, x.n / 3 and the next. Each y stands in its stretch and, for the rows of the one before, in that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from minidsms.aggregates.aggregate import Settings
from minidsms.aggregates.over import FILLING, PARTITION, Frame
from minidsms.cql import bound
from minidsms.cql.bound import ColumnRef, Expr, JoinKind, Node
from minidsms.elements import Schema, Type
from minidsms.plan.logical import column_refs, conjunction, projected, shift, transform, union_all
from minidsms.plan.rules.aggregate_partitions import as_aggregate, with_null

_FARTHEST = 1 << 62
"""As many rows away are none; numbers of rows and so much are INTEGERs."""


def expand_frames(root: Node) -> Node:
    """Replace each such call."""
    return transform(root, lambda node: _expanded(node) if isinstance(node, bound.Over) and _is_beyond(node) else node)


def _is_beyond(node: bound.Over) -> bool:
    return node.call.is_aggregate and not node.call.slides and not node.is_append_only


def _expanded(node: bound.Over) -> Node:
    call, below = node.call, node.input
    assert call.arg is not None, "COUNT(*) slides"
    width, frame = len(below.schema), call.frame
    numbered = row = _counted(node, below, "row_number", PARTITION)
    if frame.by_value:
        row = _counted(node, _counted(node, row, "count", Frame(True, None, frame.end)), "count", frame)
    refs = column_refs(numbered.schema)
    chosen = [*(refs[i] for i in call.partition), refs[width], refs[call.arg]]
    beside = projected(numbered, chosen, [f"column{i + 1}" for i in range(len(chosen))])
    mine, theirs = column_refs(row.schema), column_refs(beside.schema, len(row.schema))
    *_, number, value = theirs
    arg: Expr = value
    near = _in_frame(frame, mine[width:], number)
    reach = frame
    if (frame.start or 0) > 0 or (frame.end or 0) < 0:
        is_near = conjunction(near)
        assert is_near is not None
        arg = bound.Case(value.type, ((is_near, value),), bound.Literal(value.type, None))
        if frame.by_value:
            near = [_test("or", is_near, _test("=", number, mine[width]))]
        else:
            start, end = (None if n is None else far(n, 0) for n, far in ((frame.start, min), (frame.end, max)))
            reach = Frame(False, start, end)
            near = _in_frame(reach, mine[width:], number)
    keys = [(mine[i], theirs[k]) for k, i in enumerate(call.partition)]
    pairs = _pairs(row, beside, keys, near, _stretches(reach, mine[width], beside))
    schema = row.schema + Schema.of((call.label, call.type))
    aggregate = as_aggregate(call, arg)
    if call.function in FILLING:
        extreme = "arg_min" if call.function == "first" else "arg_max"
        aggregate = bound.AggregateCall(extreme, None, call.type, args=(arg, number), settings=Settings(2))
    groups = bound.Aggregate(schema, pairs, mine, (aggregate,))
    result = column_refs(schema)
    return projected(groups, [*result[:width], result[-1]], node.schema.names)


def _counted(node: bound.Over, below: Node, function: str, frame: Frame) -> Node:
    """The rows with the number of each, or of those in a frame, in the order of the node."""
    call = dataclasses.replace(
        node.call, function=function, type=Type.INTEGER, label=function, arg=None, frame=frame, settings=None,
        distinct=False,
    )  # fmt: skip
    return bound.Over.of(below, call, node.in_order)


def _in_frame(frame: Frame, mine: Sequence[ColumnRef], number: ColumnRef) -> list[Expr]:
    """That the row of a number is in the frame. mine: the row's own number, and by value also how many rows there are
    up to the frame's end, and in the frame.
    """
    parts = []
    if frame.by_value:
        _, last, size = mine
        parts.append(_test("<=", number, last))
        if frame.start is not None:
            parts.append(_test(">", number, _of("-", last, size)))
        return parts
    for operator, distance in ((">=", frame.start), ("<=", frame.end)):
        if distance is not None:
            away = bound.Literal(Type.INTEGER, max(-_FARTHEST, min(distance, _FARTHEST)))
            parts.append(_test(operator, number, _of("+", mine[0], away)))
    return parts


def _stretches(frame: Frame, number: Expr, beside: Node) -> tuple[Expr, Node] | None:
    """In which stretch the frame of a row begins, and the rows beside it, each once for every stretch in which a frame
    that reaches it can begin; None where the frame has no bound.

    frame: has the row in it.  number: the row's own, from 1.
    """
    if frame.by_value or frame.start is None or frame.end is None or frame.end - frame.start >= _FARTHEST:
        return None
    refs = column_refs(beside.schema)
    length, back = (bound.Literal(Type.INTEGER, n) for n in (frame.end - frame.start + 1, -frame.start))
    stretch = _of("/", _of("+", refs[-2], back), length)
    names = [*beside.schema.names, "stretch"]
    both = [projected(beside, [*refs, e], names) for e in (stretch, _of("-", stretch, bound.Literal(Type.INTEGER, 1)))]
    return _of("/", number, length), union_all(*both)


def _pairs(
    row: Node,
    beside: Node,
    keys: Sequence[tuple[ColumnRef, ColumnRef]],
    near: Sequence[Expr],
    stretches: tuple[Expr, Node] | None,
) -> Node:
    """The rows of each partition, joined."""
    schema, width = row.schema + beside.schema, len(row.schema)
    if not keys:
        return bound.Join(schema, JoinKind.INNER, row, beside, conjunction(near))
    mine = with_null(row, [key for key, _ in keys])
    theirs = with_null(beside, [shift(key, -width) for _, key in keys])
    same = conjunction([*(_test("not", _test("is distinct from", *pair)) for pair in keys), *near])
    alone = bound.Join(schema, JoinKind.INNER, mine, theirs, same)
    equal = [_test("=", *pair) for pair in keys]
    if stretches is None:
        rows: Node = bound.Join(schema, JoinKind.INNER, row, beside, conjunction([*equal, *near]))
    else:
        first, cut = stretches
        joined = row.schema + cut.schema
        equal.append(_test("=", first, column_refs(joined)[-1]))
        join = bound.Join(joined, JoinKind.INNER, row, cut, conjunction([*equal, *near]))
        rows = projected(join, column_refs(schema), schema.names)
    return union_all(rows, alone)


def _test(function: str, *args: Expr) -> Expr:
    return bound.Call(Type.BOOLEAN, function, args)


def _of(function: str, *args: Expr) -> Expr:
    return bound.Call(Type.INTEGER, function, args)
