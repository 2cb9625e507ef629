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
    if not (isinstance(node, bound.RelationToStream) and node.op is StreamKind.RSTREAM and not node.ordered):
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
            probe = _probe(below)
            if probe is None:
                return node
            probes.insert(0, probe)
            below = below.left
        elif not parts:
            break
    if not probes or not (isinstance(below, bound.Window) and below.spec.is_now):
        return node
    stream, parts = unfiltered(below.input)
    if any(map(can_fail, parts)):
        stream, parts = below.input, []
    conditions = [*parts, *conditions]
    result: Node = ProbedStream(stream.schema, stream, conjunction(conditions), tuple(probes))
    for project in reversed(projections):
        result = dataclasses.replace(project, input=result)
    return result


def _probe(node: SemiJoin) -> Probe | None:
    keys = [left for left, _ in node.pairs]
    if not keys or not all(isinstance(key, bound.ColumnRef) for key in keys):
        return None
    right = projected(node.right, [b for _, b in node.pairs], [f"key{i + 1}" for i in range(len(keys))])
    places = tuple(key.index for key in keys if isinstance(key, bound.ColumnRef))
    return Probe(right, places, node.anti, node.null_safe)
