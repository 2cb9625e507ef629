"""Aggregates OVER whole partitions are aggregates by group, which their rows are joined with.

    SELECT k, v, AVG(v) OVER (PARTITION BY k) FROM S [ROWS 100]
    SELECT x.k, v, a FROM S [ROWS 100] AS x JOIN (SELECT k, AVG(v) AS a FROM S [ROWS 100] GROUP BY k) AS y ON x.k = y.k

Rows with NULL in what they are partitioned by are a partition, too (R7), and no equality joins them: they keep their
OVER, and stand beside the others. A row changes as often as the aggregates of its group, which kernels keep. Over all
that has come of a stream OVER stays where kernels slide its frames: there folders hold its state by its name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from minidsms.aggregates.aggregate import Settings
from minidsms.aggregates.over import FILLING, PARTITION, OverCall
from minidsms.cql import bound
from minidsms.cql.bound import ColumnRef, Expr, Node
from minidsms.elements import Schema, Type
from minidsms.plan.logical import column_refs, conjunction, filtered, nodes, projected, union_all


def aggregate_partitions(root: Node) -> Node:
    """Replace each run of such calls that have the partitions in common."""
    done: dict[int, Node] = {}
    for node in nodes(root):
        run = _run(node)
        if run:
            done[id(node)] = _joined(done[id(run[0].input)], run)
        else:
            done[id(node)] = node.over([done[id(child)] for child in node.inputs])
    return done[id(root)]


def _run(node: Node) -> list[bound.Over]:
    """The calls up to this one that look at the same rows, the lowest first; none where it is no such call."""
    run: list[bound.Over] = []
    while isinstance(node, bound.Over) and _is_whole(node):
        width = len(node.input.schema)
        if run and (node.call.partition != run[0].call.partition or any((o.call.arg or 0) >= width for o in run)):
            break
        run.insert(0, node)
        node = node.input
    while isinstance(node, bound.Over):
        node = node.input
    return [] if run and node.is_append_only and all(over.call.slides for over in run) else run


def _is_whole(node: bound.Over) -> bool:
    """Its frame is the partition, in whatever order."""
    call = node.call
    is_partition = (call.frame.start, call.frame.end) == (PARTITION.start, PARTITION.end)
    return is_partition and call.is_aggregate and not call.sees_order


def _joined(below: Node, run: Sequence[bound.Over]) -> Node:
    keys = [_column(below.schema, i) for i in run[0].call.partition]
    calls = [as_aggregate(o.call, None if o.call.arg is None else _column(below.schema, o.call.arg)) for o in run]
    results = [(o.call.label, o.call.type) for o in run]
    schema = Schema.of(*((key.name, key.type) for key in keys), *results)
    groups = bound.Aggregate(schema, below, tuple(keys), tuple(calls))
    width = len(below.schema)
    pairs = [bound.Call(Type.BOOLEAN, "=", (key, _column(schema, i, width))) for i, key in enumerate(keys)]
    joined = bound.Join.of(below, groups, conjunction(pairs))
    told = [_column(schema, i, width) for i in range(len(keys), len(schema))]
    rows = projected(joined, [*column_refs(below.schema), *told], run[-1].schema.names)
    if not keys:
        return rows
    rest = _with_null(below, keys)
    for over in run:
        rest = dataclasses.replace(over, input=rest)
    return union_all(rows, rest)


def as_aggregate(call: OverCall, arg: Expr | None) -> bound.AggregateCall:
    """The aggregate of the rows of a group that the call is of those of a frame. arg: None for COUNT(*)."""
    settings = Settings() if call.sums_decimals else call.settings
    if arg is not None and (call.user or call.values > 1):
        args = tuple(_part(arg, i) for i in range(call.values)) if call.values > 1 else (arg,)
        return bound.AggregateCall(call.function, None, call.type, user=call.user, args=args, settings=settings)
    if settings is not None and arg is not None:
        return bound.AggregateCall(call.aggregate, None, call.type, call.distinct, args=(arg,), settings=settings)
    return bound.AggregateCall(call.function, arg, call.type, call.distinct, ignores_nulls=call.function in FILLING)


def _part(struct: Expr, i: int) -> Expr:
    """The value of a STRUCT at a place."""
    return bound.Call(struct.type.fields[i][1], "struct_extract", (struct, bound.Literal(Type.INTEGER, i)))


def _with_null(node: Node, keys: Sequence[Expr]) -> Node:
    """The rows with NULL in what they are partitioned by, which no equality joins."""
    tests = [bound.Call(Type.BOOLEAN, "is null", (key,)) for key in keys]
    return filtered(node, [tests[0] if len(tests) == 1 else bound.Call(Type.BOOLEAN, "or", tuple(tests))])


def _column(schema: Schema, i: int, offset: int = 0) -> ColumnRef:
    return ColumnRef(schema[i].type, i + offset, schema[i].name)
