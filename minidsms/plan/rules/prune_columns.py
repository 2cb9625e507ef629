"""Columns nobody reads are not carried: each node keeps what its readers need, and stores keep no more.

Needs flow from the root down and are joined over all readers of a shared node; then the plan is rebuilt with the
columns renumbered. Rows that are compared as wholes (DISTINCT, set operators, netting) keep all their columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node, SetKind
from minidsms.plan.logical import (
    GroupBy,
    KeepArrival,
    RestoreArrival,
    SemiJoin,
    Stop,
    ToStream,
    WindowEvents,
    columns_used,
    nodes,
    projected,
    replace_inputs,
    rewrite,
)


def prune_columns(root: Node) -> Node:
    """Drop the columns that are never read."""
    order = nodes(root)
    needs: dict[int, set[int]] = {id(root): set(range(len(root.schema)))}
    for node in reversed(order):
        mine = needs.setdefault(id(node), set())
        for child, wanted in zip(node.inputs, _needs_of_inputs(node, mine)):
            needs.setdefault(id(child), set()).update(wanted)
    pruner = _Pruner(needs)
    for node in order:
        pruner.rebuild(node)
    return pruner.node(root)


def _union(exprs: Iterable[Expr]) -> set[int]:
    return {i for e in exprs for i in columns_used(e)}


def _all(node: Node) -> set[int]:
    return set(range(len(node.schema)))


def _needs_of_inputs(node: Node, mine: set[int]) -> list[set[int]]:
    """The columns of each input that a node reads, when `mine` of its own are read."""
    match node:
        case bound.Filter():
            return [mine | columns_used(node.condition)]
        case bound.Project():
            return [_union(node.exprs[i] for i in _computed(node, mine))]
        case bound.Join():
            width = len(node.left.schema)
            used = mine | (columns_used(node.condition) if node.condition is not None else set())
            return [{i for i in used if i < width}, {i - width for i in used if i >= width}]
        case SemiJoin():
            return [mine | _union(a for a, _ in node.pairs), _union(b for _, b in node.pairs)]
        case GroupBy():
            used = _union(node.keys) | _union(
                e for call in node.aggregates for e in ((call.arg,) if call.arg is not None else call.args)
            )
            return [used, set()][: len(node.inputs)]
        case bound.Window():
            return [mine | set(node.spec.keys)]
        case WindowEvents():
            return [set(node.spec.keys)]
        case bound.SetOperation(op=SetKind.UNION, all=True):
            return [set(mine), set(mine)]
        case bound.Distinct() | bound.SetOperation() | Stop() | KeepArrival() | RestoreArrival():
            return [_all(child) for child in node.inputs]
        case ToStream():
            return [_all(node.input), *(set() for _ in node.events)]
        case _:
            return [set() for _ in node.inputs]


def _computed(node: bound.Project, mine: set[int]) -> list[int]:
    """The expressions of a projection that must be computed: those read, and those that can fail (R4)."""
    from minidsms.cql.functions import can_fail

    return [i for i, e in enumerate(node.exprs) if i in mine or can_fail(e)]


class _Pruner:
    """Rebuilds a plan; remembers for each old node the new one and where each kept column went."""

    def __init__(self, needs: dict[int, set[int]]) -> None:
        self._needs = needs
        self._new: dict[int, Node] = {}
        self._place: dict[int, dict[int, int]] = {}

    def node(self, old: Node) -> Node:
        return self._new[id(old)]

    def _keep(self, old: Node, new: Node, place: dict[int, int]) -> None:
        self._new[id(old)] = new
        self._place[id(old)] = place

    def _moved(self, expr: Expr, place: dict[int, int]) -> Expr:
        def change(e: Expr) -> Expr | None:
            return dataclasses.replace(e, index=place[e.index]) if isinstance(e, bound.ColumnRef) else None

        return rewrite(expr, change)

    def _exactly(self, old: Node, wanted: list[int]) -> Node:
        """The new node with exactly these old columns, in order: a projection where it has others."""
        new, place = self._new[id(old)], self._place[id(old)]
        if [place[i] for i in wanted] == list(range(len(new.schema))):
            return new
        refs = [bound.ColumnRef(old.schema[i].type, place[i], old.schema[i].name) for i in wanted]
        return projected(new, refs, [old.schema[i].name for i in wanted])

    def rebuild(self, old: Node) -> None:
        mine = sorted(self._needs[id(old)])
        match old:
            case bound.BaseStream() | bound.BaseRelation():
                self._keep(old, old, {i: i for i in range(len(old.schema))})
            case bound.Filter():
                child, place = self._new[id(old.input)], self._place[id(old.input)]
                condition = self._moved(old.condition, place)
                self._keep(old, dataclasses.replace(old, schema=child.schema, input=child, condition=condition), place)
            case bound.Project():
                kept = _computed(old, self._needs[id(old)])
                place = self._place[id(old.input)]
                exprs = [self._moved(old.exprs[i], place) for i in kept]
                names = [old.schema[i].name for i in kept]
                node = projected(self._new[id(old.input)], exprs, names)
                self._keep(old, node, {i: k for k, i in enumerate(kept)})
            case bound.Join():
                self._join(old)
            case SemiJoin():
                self._semi_join(old)
            case GroupBy():
                self._group_by(old)
            case bound.Window():
                wanted = sorted(self._needs[id(old)] | set(old.spec.keys))
                child = self._exactly(old.input, wanted)
                place = {i: k for k, i in enumerate(wanted)}
                spec = dataclasses.replace(old.spec, keys=tuple(place[i] for i in old.spec.keys))
                self._keep(old, dataclasses.replace(old, schema=child.schema, input=child, spec=spec), place)
            case WindowEvents():
                place = self._place[id(old.input)]
                spec = dataclasses.replace(old.spec, keys=tuple(place[i] for i in old.spec.keys))
                self._keep(old, dataclasses.replace(old, input=self._new[id(old.input)], spec=spec), {})
            case bound.SetOperation(op=SetKind.UNION, all=True):
                left, right = self._exactly(old.left, mine), self._exactly(old.right, mine)
                node = dataclasses.replace(old, schema=left.schema, left=left, right=right)
                self._keep(old, node, {i: k for k, i in enumerate(mine)})
            case bound.Distinct() | bound.SetOperation() | Stop() | KeepArrival() | RestoreArrival():
                self._whole(old, [self._exactly(c, sorted(_all(c))) for c in old.inputs])
            case ToStream():
                first = self._exactly(old.input, sorted(_all(old.input)))
                self._whole(old, [first, *(self._new[id(c)] for c in old.events)])
            case _:
                self._whole(old, [self._new[id(c)] for c in old.inputs])

    def _whole(self, old: Node, inputs: list[Node]) -> None:
        self._keep(old, replace_inputs(old, inputs), {i: i for i in range(len(old.schema))})

    def _join(self, old: bound.Join) -> None:
        left, right = self._new[id(old.left)], self._new[id(old.right)]
        width, new_width = len(old.left.schema), len(left.schema)
        place = dict(self._place[id(old.left)])
        place.update({i + width: k + new_width for i, k in self._place[id(old.right)].items()})
        condition = None if old.condition is None else self._moved(old.condition, place)
        schema = left.schema + right.schema
        node = dataclasses.replace(old, schema=schema, left=left, right=right, condition=condition)
        self._keep(old, node, place)

    def _semi_join(self, old: SemiJoin) -> None:
        left, right = self._new[id(old.left)], self._new[id(old.right)]
        place, other = self._place[id(old.left)], self._place[id(old.right)]
        pairs = tuple((self._moved(a, place), self._moved(b, other)) for a, b in old.pairs)
        node = dataclasses.replace(old, schema=left.schema, left=left, right=right, pairs=pairs)
        self._keep(old, node, place)

    def _group_by(self, old: GroupBy) -> None:
        place = self._place[id(old.input)]
        keys = tuple(self._moved(e, place) for e in old.keys)
        aggregates = tuple(
            dataclasses.replace(
                call,
                arg=None if call.arg is None else self._moved(call.arg, place),
                args=tuple(self._moved(a, place) for a in call.args),
            )
            for call in old.aggregates
        )
        start = None if old.start is None else self._new[id(old.start)]
        node = dataclasses.replace(old, input=self._new[id(old.input)], keys=keys, aggregates=aggregates, start=start)
        self._keep(old, node, {i: i for i in range(len(old.schema))})
