"""Streams that need no window: RSTREAM over NOW and ISTREAM over UNBOUNDED of one filtered, projected stream.

Both give exactly the stream's elements that pass, at their own instants and in their order (docs/semantics T3, S1,
S2; the law `ISTREAM .. [RANGE UNBOUNDED] = RSTREAM .. [NOW]`), so the relation in between is never made. So do those of
their lists (UNNEST) where no window reads the stream, to which their order within an instant would matter.
"""

from __future__ import annotations

import dataclasses

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind
from minidsms.cql.window_spec import WindowKind
from minidsms.plan.logical import transform


def skip_windows(root: Node) -> Node:
    """Replace each such relation-to-stream operator by the filters and projections on the stream itself."""
    return transform(root, _skip)


def _skip(node: Node) -> Node:
    if not isinstance(node, bound.RelationToStream):
        return node
    passed = (bound.ByRow,) if node.ordered or node.keeps_order else (bound.ByRow, bound.Unnest)
    chain: list[Node] = []
    below = node.input
    while isinstance(below, passed):
        chain.append(below)
        (below,) = below.inputs
    if not isinstance(below, bound.Window) or not (node.keeps_order or any(isinstance(n, bound.Unnest) for n in chain)):
        return node
    unbounded = below.spec.kind is WindowKind.UNBOUNDED and node.op is StreamKind.ISTREAM
    now = below.spec.is_now and node.op is StreamKind.RSTREAM
    if not (unbounded or now):
        return node
    stream: Node = below.input
    for step in reversed(chain):
        stream = dataclasses.replace(step, input=stream)  # type: ignore[call-arg]
    return stream
