"""RSTREAM of rows that last an instant passes on what enters: there is nothing else at that instant.

Rows of a NOW window, and what joins make of them, leave at the next tick. So all that is present at an instant has come
at it. Whatever comes is present, too: windows put out no row that comes and leaves at one instant, and joins the
deletions of an instant before its insertions. No account of the rows present is kept, and nobody asks at which instants
to speak (docs/semantics S2).

    RSTREAM (SELECT * FROM S [NOW] JOIN R ON R.k = S.k)

What chooses rows and computes columns is given what enters alone, and a join that nobody else reads need not put out
what leaves.

It holds where the rows of an instant need no order by value (T3). A join that lets rows go by itself nets what it puts
out, a row of the instant before with an equal one of now, and is left as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, Node, StreamKind
from minidsms.plan.logical import Entering, MultiJoin, SemiJoin, nodes, reader_counts


def pass_what_enters(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    readers = reader_counts(root)
    momentary: set[int] = set()
    done: dict[int, Node] = {}
    for node in nodes(root):
        lasting = [id(child) not in momentary for child in node.inputs]
        if _is_momentary(node, lasting):
            momentary.add(id(node))
        new = node.over([done[id(child)] for child in node.inputs])
        is_rstream = isinstance(node, bound.RelationToStream) and node.op is StreamKind.RSTREAM and not node.ordered
        done[id(node)] = _entering(node, readers, done) if is_rstream and not lasting[0] else new
    return done[id(root)]


def _entering(stream: Node, readers: Mapping[int, int], done: Mapping[int, Node]) -> Node:
    """What enters a relation that is put out as a stream. done: what nodes have become."""
    passing: list[Node] = []
    node = stream.inputs[0]
    while isinstance(node, bound.ByRow) and readers[id(node)] == 1 and (passing or node.schema == stream.schema):
        passing.append(node)
        node = node.input
    below = done[id(node)]
    if isinstance(below, bound.Join | MultiJoin) and readers[id(node)] == 1:
        below = dataclasses.replace(below, only_enters=True)
    entering: Node = Entering(below.schema if passing else stream.schema, below)
    for node in reversed(passing):
        entering = node.over([entering])
    return entering


def _is_momentary(node: Node, lasting: Sequence[bool]) -> bool:
    """No row outlives the instant at which it came. lasting: of each input, whether some row may."""
    match node:
        case bound.Window():
            return node.spec.is_now
        case bound.ByRow() | bound.Unnest() | SemiJoin() | bound.Join(join=JoinKind.LEFT):
            return not lasting[0]
        case MultiJoin(outer=True, specs=None):
            return not lasting[0]
        case bound.Join(join=JoinKind.INNER) | MultiJoin(outer=False, specs=None):
            return not all(lasting)
        case bound.SetOperation(is_union_all=True):
            return not any(lasting)
        case _:
            return False
