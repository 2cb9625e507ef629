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
from minidsms.plan.logical import NewRows, momentary, rebuilt

_MOST_JOINS = 1
"""Inner joins below an ISTREAM that is replaced."""


def stream_of_instants(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    of_an_instant = momentary(root)
    joins: dict[int, int] = {}

    def change(node: Node, new: Node) -> Node:
        joins[id(node)] = int(bound.is_inner_join(node)) + sum(joins[id(child)] for child in node.inputs)
        if not (bound.is_stream_of(new, StreamKind.ISTREAM) and not new.ordered):
            return new
        if id(node.inputs[0]) not in of_an_instant or joins[id(node)] > _MOST_JOINS:
            return new
        return NewRows(new.schema, dataclasses.replace(new, op=StreamKind.RSTREAM))

    return rebuilt(root, change)
