"""Columns nobody reads are not carried: each node keeps what its readers need, and stores keep no more.

Needs flow from the root down and are joined over all readers of a shared node; then the plan is rebuilt with the
columns renumbered. What a node needs, and what is left of it, it says itself (`Node.needs`, `Node.narrowed`): rows that
are compared as wholes (DISTINCT, set operators, netting) keep all their columns.
"""

from __future__ import annotations

from minidsms.cql.bound import Narrowed, Node, every_column
from minidsms.plan.logical import nodes


def prune_columns(root: Node) -> Node:
    """Drop the columns that are never read."""
    read = columns_read(root)
    done: dict[int, Narrowed] = {}
    for node in nodes(root):
        done[id(node)] = node.narrowed(read[id(node)], [done[id(child)] for child in node.inputs])
    return done[id(root)].node


def columns_read(root: Node) -> dict[int, set[int]]:
    """The columns of each node that its readers need, by the node's id; of the root all."""
    read: dict[int, set[int]] = {id(root): every_column(root)}
    for node in reversed(nodes(root)):
        mine = read.setdefault(id(node), set())
        for child, wanted in zip(node.inputs, node.needs(mine), strict=True):
            read.setdefault(id(child), set()).update(wanted)
    return read
