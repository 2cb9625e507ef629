"""Filters move towards the streams, and comma joins take their conditions from WHERE.

A conjunct moves only if it cannot fail, for below a join it would meet rows that the other conjuncts exclude (R4),
and never past an expression that can: that would hide rows on which it fails. It never passes a ROWS or PARTITION
window (W8), an outer join's padded side, or a node that others read too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from minidsms.aggregates.over import RANKS
from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.functions import can_fail
from minidsms.cql.window_spec import WindowKind
from minidsms.plan.logical import (
    columns_used,
    conjunction,
    conjuncts,
    filtered,
    nodes,
    reader_counts,
    shift,
    unfiltered,
)


def push_filters(root: Node) -> Node:
    """Move every conjunct as far down as the rules above allow."""
    readers = reader_counts(root)
    done: dict[int, Node] = {}
    counts: dict[int, int] = {}
    for node in nodes(root):
        inputs = [done[id(child)] for child in node.inputs]
        _, parts = unfiltered(node)
        if parts:
            new = push(inputs[0], parts, counts)
        elif bound.is_inner_join(node) and node.condition is not None:
            bare = dataclasses.replace(node, left=inputs[0], right=inputs[1], condition=None)
            new = _push_into_join(bare, conjuncts(node.condition), counts)
        else:
            new = node.over(inputs)
        done[id(node)] = new
        counts[id(new)] = max(counts.get(id(new), 0), readers[id(node)])
    return done[id(root)]


def push(node: Node, parts: list[Expr], counts: Mapping[int, int]) -> Node:
    """The node filtered by the conjuncts, each as deep as it may go.

    counts: readers per node, by id; a node not in it has one. Filters stop above a node that others read too.
    """
    if not parts:
        return node
    if counts.get(id(node), 1) > 1:
        return filtered(node, parts)
    below, conditions = unfiltered(node)
    if any(map(can_fail, conditions)):
        return filtered(node, parts)  # below, they would hide rows on which it fails
    if conditions:
        return push(below, [*conditions, *parts], counts)
    if isinstance(node, bound.Window) and node.spec.kind in (WindowKind.RANGE, WindowKind.HOP, WindowKind.UNBOUNDED):
        if node.spec.slide is None:
            # Every element is in the window at its own instant: below it meets exactly the rows it met above.
            return dataclasses.replace(node, input=push(node.input, parts, counts))
        safe, rest = _split(parts)
        if safe:
            node = dataclasses.replace(node, input=push(node.input, safe, counts))
        return filtered(node, rest)
    safe, rest = _split(parts)
    below = _push_safe(node, safe, counts) if safe else node
    deeper, conditions = unfiltered(below)
    if rest and conditions and set(conditions) <= set(safe):
        # What went no deeper stays in one conjunction with what could not move, in the order written.
        staying = {*conditions, *rest}
        return filtered(deeper, [part for part in parts if part in staying])
    return filtered(below, rest)


def _split(parts: list[Expr]) -> tuple[list[Expr], list[Expr]]:
    safe: list[Expr] = []
    rest: list[Expr] = []
    for part in parts:
        (rest if can_fail(part) else safe).append(part)
    return safe, rest


def _push_safe(node: Node, parts: list[Expr], counts: Mapping[int, int]) -> Node:
    """Push conjuncts that cannot fail through one node."""
    if bound.is_inner_join(node):
        if node.condition is not None and can_fail(node.condition):
            return filtered(node, parts)
        bare = dataclasses.replace(node, condition=None)
        return _push_into_join(bare, [*conjuncts(node.condition), *parts], counts)
    if isinstance(node, bound.Over):
        node = dataclasses.replace(node, at_most=_least_limit(node, parts))
    asked = [node.pushed(part) for part in parts]
    of_inputs = [[e for e in of_input if e is not None] for of_input in zip(*filter(None, asked))]
    if of_inputs:
        node = node.over([push(child, own, counts) for child, own in zip(node.inputs, of_inputs)])
    return filtered(node, [part for part, below in zip(parts, asked) if not below])


def _least_limit(node: bound.Over, parts: list[Expr]) -> int | None:
    """Above which rank the conditions let no row pass."""
    if node.call.function not in RANKS:
        return None
    limits = [] if node.at_most is None else [node.at_most]
    for part in parts:
        match part:
            case bound.Call(
                function="<" | "<=" | "=" as op, args=(bound.ColumnRef(index=i), bound.Literal(value=int(n)))
            ):
                limits += [n - (op == "<")] if i == len(node.input.schema) else []
            case bound.Call(
                function=">" | ">=" | "=" as op, args=(bound.Literal(value=int(n)), bound.ColumnRef(index=i))
            ):
                limits += [n - (op == ">")] if i == len(node.input.schema) else []
    return min(limits, default=None)


def _push_into_join(join: bound.Join, parts: list[Expr], counts: Mapping[int, int]) -> Node:
    """Conjuncts of one side to that side, those of both to the join's condition, failing ones above."""
    width = len(join.left.schema)
    left: list[Expr] = []
    right: list[Expr] = []
    both: list[Expr] = []
    above: list[Expr] = []
    for part in parts:
        used = columns_used(part)
        if can_fail(part):
            above.append(part)
        elif used and all(i < width for i in used):
            left.append(part)
        elif used and all(i >= width for i in used):
            right.append(shift(part, -width))
        else:
            both.append(part)
    joined = dataclasses.replace(
        join,
        left=push(join.left, left, counts),
        right=push(join.right, right, counts),
        condition=conjunction(both),
    )
    return filtered(joined, above)
