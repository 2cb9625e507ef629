"""RSTREAM of rows that last an instant passes on what enters: there is nothing else at that instant.

Rows of a NOW window, and what joins make of them, leave at the next tick. So all that is present at an instant has come
at it. Whatever comes is present, too: windows put out no row that comes and leaves at one instant, and joins the
deletions of an instant before its insertions. No account of the rows present is kept, and nobody asks at which instants
to speak (docs/semantics S2).

    RSTREAM (SELECT * FROM S [NOW] JOIN R ON R.k = S.k)

It holds where the rows of an instant need no order by value (T3). A join that lets rows go by itself nets what it puts
out, a row of the instant before with an equal one of now, and is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, Node, StreamKind
from minidsms.plan.logical import Entering, MultiJoin, SemiJoin, nodes


def pass_what_enters(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    momentary: set[int] = set()
    done: dict[int, Node] = {}
    for node in nodes(root):
        lasting = [id(child) not in momentary for child in node.inputs]
        if _is_momentary(node, lasting):
            momentary.add(id(node))
        new = node.over([done[id(child)] for child in node.inputs])
        is_rstream = isinstance(node, bound.RelationToStream) and node.op is StreamKind.RSTREAM and not node.ordered
        done[id(node)] = Entering(node.schema, new.inputs[0]) if is_rstream and not lasting[0] else new
    return done[id(root)]


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
