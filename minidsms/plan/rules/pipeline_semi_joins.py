"""Semi-joins of what arrives now become filters of the stream.

RSTREAM over semi-joins of a NOW window gives, at each instant at which something arrives, what arrived and has its
partners. No row outlives its instant, so nothing has to be taken back: the elements pass, or do not, by what the other
relations hold at their own instants, and the semi-joins may be asked in any order (docs/semantics W2, S2).

    RSTREAM (SELECT * FROM S0 [NOW] WHERE S0 IN (SELECT * FROM S1 [ROWS 10000]) AND S0.a > 5)

It holds where the rows of an instant need no order by value (T3), and the keys are columns of the stream.
Babu 2005, section 4.7.
"""

from __future__ import annotations

import dataclasses

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind
from minidsms.cql.functions import can_fail
from minidsms.plan.logical import Probe, ProbedStream, SemiJoin, conjunction, projected, transform, unfiltered


def pipeline_semi_joins(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    return transform(root, _pipeline)


def _pipeline(node: Node) -> Node:
    if not bound.is_stream_of(node, StreamKind.RSTREAM) or node.ordered:
        return node
    projections: list[bound.Project] = []
    below = node.input
    while isinstance(below, bound.Project):
        projections.append(below)
        below = below.input
    conditions: list[bound.Expr] = []
    probes: list[Probe] = []
    while True:
        below, parts = unfiltered(below)
        if probes and any(map(can_fail, parts)):
            return node  # it fails whatever the semi-joins above it say (R4)
        conditions = [*parts, *conditions]
        if isinstance(below, SemiJoin):
            asked, left = [_probe(below)], below.left
        elif isinstance(below, bound.SetOperation) and below.is_union_all:
            asked, left = _of_nulls_apart(below)
        elif parts:
            continue
        else:
            break
        if None in asked:
            return node
        probes[:0] = [probe for probe in asked if probe is not None]
        below = left
    if not probes or not bound.is_now_window(below):
        return node
    stream, parts = unfiltered(below.input)
    if any(map(can_fail, parts)):
        stream, parts = below.input, []
    conditions = [*parts, *conditions]
    result: Node = ProbedStream(stream.schema, stream, conjunction(conditions), tuple(probes))
    for project in reversed(projections):
        result = dataclasses.replace(project, input=result)
    return result


def _of_nulls_apart(union: bound.SetOperation) -> tuple[list[Probe | None], Node]:
    """x NOT IN q, of rows in which x is a number and of those in which it is NULL; what both are taken from."""
    match union.left, union.right:
        case SemiJoin(anti=True) as unequal, SemiJoin(anti=True) as of_nulls:
            (below, parts), (same, nulls) = unfiltered(unequal.left), unfiltered(of_nulls.left)
            match parts, nulls:
                case [bound.Call(function="not", args=(is_null,))], [
                    bound.Call(args=(bound.ColumnRef() as x,)) as test
                ]:
                    if test == is_null and test.function == "is null" and below is same:
                        probe = _probe(of_nulls)
                        return [_probe(unequal), probe and dataclasses.replace(probe, of_nulls=x.index)], below
    return [None], union


def _probe(node: SemiJoin) -> Probe | None:
    keys = [left for left, _ in node.pairs]
    if not all(isinstance(key, bound.ColumnRef) for key in keys):
        return None
    right = projected(node.right, [b for _, b in node.pairs], [f"key{i + 1}" for i in range(len(keys))])
    places = tuple(key.index for key in keys if isinstance(key, bound.ColumnRef))
    return Probe(right, places, node.anti, node.null_safe)
