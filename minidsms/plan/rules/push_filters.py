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
from minidsms.cql.bound import Expr, JoinKind, Node, WindowKind
from minidsms.cql.functions import can_fail
from minidsms.plan.logical import (
    SemiJoin,
    columns_used,
    conjunction,
    conjuncts,
    filtered,
    nodes,
    reader_counts,
    shift,
    substitute,
)


def push_filters(root: Node) -> Node:
    """Move every conjunct as far down as the rules above allow."""
    readers = reader_counts(root)
    done: dict[int, Node] = {}
    counts: dict[int, int] = {}
    for node in nodes(root):
        inputs = [done[id(child)] for child in node.inputs]
        if isinstance(node, bound.Filter):
            new = push(inputs[0], conjuncts(node.condition), counts)
        elif isinstance(node, bound.Join) and node.join is JoinKind.INNER and node.condition is not None:
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
    if isinstance(node, bound.Filter) and can_fail(node.condition):
        return filtered(node, parts)  # below, they would hide rows on which it fails
    if isinstance(node, bound.Filter):
        return push(node.input, [*conjuncts(node.condition), *parts], counts)
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
    if isinstance(below, bound.Filter) and rest:
        # What went no deeper stays in one conjunction with what could not move, in the order written.
        stayed = set(conjuncts(below.condition))
        if stayed <= set(safe):
            staying = stayed | set(rest)
            return filtered(below.input, [part for part in parts if part in staying])
    return filtered(below, rest)


def _split(parts: list[Expr]) -> tuple[list[Expr], list[Expr]]:
    safe: list[Expr] = []
    rest: list[Expr] = []
    for part in parts:
        (rest if can_fail(part) else safe).append(part)
    return safe, rest


def _others(parts: list[Expr], taken: list[Expr]) -> list[Expr]:
    """The parts that are not among those taken."""
    known = set(taken)
    return [part for part in parts if part not in known]


def _push_safe(node: Node, parts: list[Expr], counts: Mapping[int, int]) -> Node:
    """Push conjuncts that cannot fail through one node."""
    match node:
        case bound.Project() if not any(can_fail(e) for e in node.exprs):
            return dataclasses.replace(node, input=push(node.input, [substitute(p, node.exprs) for p in parts], counts))
        case bound.Join(join=JoinKind.INNER) if node.condition is None or not can_fail(node.condition):
            bare = dataclasses.replace(node, condition=None)
            return _push_into_join(bare, [*conjuncts(node.condition), *parts], counts)
        case bound.Join(join=JoinKind.LEFT):
            width = len(node.left.schema)
            left = [p for p in parts if all(i < width for i in columns_used(p))]
            rest = _others(parts, left)
            return filtered(dataclasses.replace(node, left=push(node.left, left, counts)), rest)
        case bound.Join(join=JoinKind.RIGHT):
            width = len(node.left.schema)
            right = [p for p in parts if columns_used(p) and all(i >= width for i in columns_used(p))]
            rest = _others(parts, right)
            pushed = push(node.right, [shift(p, -width) for p in right], counts)
            return filtered(dataclasses.replace(node, right=pushed), rest)
        case bound.Stamped() | bound.Bounds():
            own = len(node.input.schema)
            of_input = [p for p in parts if all(i < own for i in columns_used(p))]
            return filtered(node.over([push(node.input, of_input, counts)]), _others(parts, of_input))
        case bound.Over():
            # A partition is there as a whole, or not at all; but what fails in one must not be hidden.
            whole = [p for p in parts if columns_used(p) and columns_used(p) <= set(node.call.partition)]
            passing = [] if node.call.can_fail else whole
            limited = dataclasses.replace(node, at_most=_least_limit(node, parts))
            return filtered(limited.over([push(node.input, passing, counts)]), _others(parts, passing))
        case bound.Unnest():
            last = len(node.schema) - 1
            of_input = [p for p in parts if last not in columns_used(p)]
            return filtered(node.over([push(node.input, of_input, counts)]), _others(parts, of_input))
        case bound.Distinct():
            return dataclasses.replace(node, input=push(node.input, parts, counts))
        case SemiJoin():
            return dataclasses.replace(node, left=push(node.left, parts, counts))
        case bound.SetOperation():
            return dataclasses.replace(node, left=push(node.left, parts, counts), right=push(node.right, parts, counts))
        case bound.Aggregate(start=None):
            keys = [p for p in parts if all(i < len(node.keys) for i in columns_used(p))]
            keys = [p for p in keys if columns_used(p) and not any(can_fail(e) for e in node.keys)]
            rest = _others(parts, keys)
            if not keys or any(can_fail(e) for e in bound_arguments(node)):
                return filtered(node, parts)
            below = push(node.input, [substitute(p, node.keys) for p in keys], counts)
            return filtered(dataclasses.replace(node, input=below), rest)
        case _:
            return filtered(node, parts)


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


def bound_arguments(node: bound.Aggregate) -> list[Expr]:
    """What the aggregates of a grouping evaluate per row; a SUM can also fail on the group as a whole."""
    found: list[Expr] = []
    for call in node.aggregates:
        if call.arg is not None:
            found.append(call.arg)
            if call.function == "sum":
                found.append(bound.Call(call.type, "+", (call.arg, call.arg)))
        found.extend(call.args)
    return found


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
