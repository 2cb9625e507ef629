"""ISTREAM of rows that last an instant is RSTREAM of them less what was there an instant before.

    ISTREAM (SELECT * FROM S [NOW] WHERE ..)

At an instant at which no row comes there is none, and RSTREAM says nothing. So whatever passes on what enters a NOW
window, and keeps nothing of it, does so below ISTREAM, too: `skip_windows`, `pipeline_semi_joins`, `pass_what_enters`.

A join of three and more inputs nets as it runs, and adapts to it, and is left as it is.
"""

from __future__ import annotations

import dataclasses

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind
from minidsms.plan.logical import NewRows, nodes
from minidsms.plan.rules.pass_what_enters import is_momentary

_MOST_JOINS = 1
"""Inner joins below an ISTREAM that is replaced."""


def stream_of_instants(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    momentary: set[int] = set()
    joins: dict[int, int] = {}
    done: dict[int, Node] = {}
    for node in nodes(root):
        lasting = [id(child) not in momentary for child in node.inputs]
        if is_momentary(node, lasting):
            momentary.add(id(node))
        joins[id(node)] = int(bound.is_inner_join(node)) + sum(joins[id(child)] for child in node.inputs)
        new = node.over([done[id(child)] for child in node.inputs])
        if isinstance(node, bound.RelationToStream) and isinstance(new, bound.RelationToStream):
            is_istream = node.op is StreamKind.ISTREAM and not node.ordered
            if is_istream and not lasting[0] and joins[id(node.input)] <= _MOST_JOINS:
                passing = dataclasses.replace(new, op=StreamKind.RSTREAM, ticks=False, instants=())
                new = NewRows(node.schema, passing)
        done[id(node)] = new
    return done[id(root)]
