"""Which joins keep only the rows that can still matter: `SET state_reduction = 'swj' | 'k-mon'`.

An n-way join of windows becomes one over the streams themselves that holds rows of its own (`operators.k_mon_join`).
Filters become a column that says which rows pass: a window of ROWS counts the others, too, and of a row that does not
pass others may learn that they wait in vain (Babu 2005, sections 6.1.5 and 6.3.1).

This comes after the rewrite rules, which do not know settings and keys.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node, WindowKind
from minidsms.cql.catalog import Catalog
from minidsms.cql.functions import can_fail
from minidsms.elements import Field, Schema, Type
from minidsms.expressions import print_expression
from minidsms.plan.active_partitions import keep_active_partitions
from minidsms.plan.logical import (
    MultiJoin,
    ReducedJoin,
    Stop,
    column_refs,
    conjunction,
    nodes,
    replace_inputs,
    substitute,
)
from minidsms.plan.planner import LogicalPlan
from minidsms.settings import Settings
from minidsms.streamon.k_mon.join_graph import orientation, tree_of

_MOST_COLUMNS = 62
"""Columns of an answer whose NULLs one word tells of."""


def reduce_state(plan: LogicalPlan, catalog: Catalog, settings: Settings) -> LogicalPlan:
    """The plan with its joins reduced as far as that can be, and why the others are not."""
    mode = settings["state_reduction"]
    if mode == "off":
        return plan
    start: Node = plan.root
    notes: list[str] = []
    if mode == "k-mon":
        start, notes = keep_active_partitions(start)
    done: dict[int, Node] = {}
    for node in nodes(start):
        new = replace_inputs(node, [done[id(child)] for child in node.inputs])
        if isinstance(new, MultiJoin):
            reduced = _reduced(new, catalog, mode, settings["k_mon"])
            if isinstance(reduced, str):
                notes.append(
                    f"Not reduced: the join of {', '.join(_names(new))} keeps all rows of its windows: {reduced}"
                )
            else:
                new = reduced
                notes += _left_out(reduced, settings)
        elif isinstance(new, bound.Join) and new.join is JoinKind.INNER:
            notes.append(f"Not reduced: a join keeps all rows of its inputs: {_why_not_merged(new)}")
        done[id(node)] = new
    root = done[id(start)]
    assert isinstance(root, Stop)
    stages = plan.stages if root is plan.root else (*plan.stages, ("reduce state", root))
    return LogicalPlan(stages, tuple(notes))


@dataclass(frozen=True)
class _Input:
    """A stream, its window, the columns of the join's input over it, and which rows pass."""

    stream: Node
    spec: bound.WindowSpec
    columns: tuple[Expr, ...]
    passing: tuple[Expr, ...] = ()


def _reduced(join: MultiJoin, catalog: Catalog, mode: str, trust: str) -> ReducedJoin | str:
    """The join over streams, or why it stays as it is."""
    if len(join.columns) > _MOST_COLUMNS:
        return f"its answer has more than {_MOST_COLUMNS} columns"
    inputs: list[_Input] = []
    for i, window in enumerate(join.windows):
        found = _input(window, None if join.specs is None else join.specs[i])
        if isinstance(found, str):
            return found
        inputs.append(found)
    keys = [_key(each, catalog) for each in inputs]
    edges = tree_of(len(inputs), join.equalities, keys)
    if isinstance(edges, str):
        return edges
    unique: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if mode == "k-mon" and join.shown is not None:
        roots = {r: keys[r] or frozenset() for r in orientation(len(inputs), edges)[1]}
        shown = {join.columns[c] for c in join.shown}
        if all(key and {(r, c) for c in key} <= shown for r, key in roots.items()):
            unique = tuple((r, tuple(sorted(key))) for r, key in roots.items())
    streams: list[Node] = []
    passes: list[int | None] = []
    for each in inputs:
        condition = conjunction(each.passing)
        passes.append(None if condition is None else len(each.columns))
        streams.append(_stream(each, condition))
    specs = tuple(e.spec for e in inputs)
    return ReducedJoin(
        join.schema, tuple(streams), join.equalities, join.columns, join.shown, specs, join.names, edges,
        tuple(passes), mode, trust, unique, tuple(_source(e) for e in inputs),
    )  # fmt: skip


def _left_out(join: ReducedJoin, settings: Settings) -> list[str]:
    """What adapts other joins of three inputs and more and not this one, and why."""
    if len(join.windows) < 3:
        return []
    names = ", ".join(_names(join))
    notes = [f"No orders that adapt: the join of {names} visits children first, of which there is one at most"]
    if join.mode == "swj":
        notes = [f"No orders that adapt: the join of {names} keeps rows of its own, in one order"]
    if settings["join_plan"] != "mjoin":
        notes.append(f"No join_plan: the join of {names} keeps its rows, and no results of some of its inputs")
    if settings["caching"] != "off":
        notes.append(f"No caches: the join of {names} keeps too few rows to spare any")
    return notes


def _names(join: MultiJoin) -> list[str]:
    names = list(join.names) or [""] * len(join.windows)
    return [name or f"input {i + 1}" for i, name in enumerate(names)]


def _why_not_merged(join: bound.Join) -> str:
    """Why the join is none of windows whose rows leave in the order they came."""
    for side in join.inputs:
        below = side
        while isinstance(below, bound.Filter | bound.Project):
            below = below.inputs[0]
        match below:
            case bound.BaseRelation():
                return f"{below.name} is a relation, whose rows leave when they are deleted"
            case bound.Window(spec=spec) if spec.kind is WindowKind.PARTITION:
                return "rows of a PARTITION BY window leave in no fixed order"
            case bound.Window() | MultiJoin():
                continue
            case _:
                return "it reads a derived relation"
    return "no equality connects its inputs"


# ------------------------------------------------------------------------------------------------------------ inputs


def _input(node: Node, spec: bound.WindowSpec | None) -> _Input | str:
    """What stands below a window, filtered and projected. spec: where given, the node is the stream itself."""
    if isinstance(node, bound.Filter):
        if can_fail(node.condition):
            return _as_it_stands(node, spec, "a filter that can fail stands above its window")
        below = _input(node.input, spec)
        if isinstance(below, str):
            return below
        return dataclasses.replace(below, passing=(*below.passing, substitute(node.condition, below.columns)))
    if isinstance(node, bound.Project):
        if any(can_fail(e) for e in node.exprs):
            return _as_it_stands(node, spec, "an expression that can fail stands above its window")
        below = _input(node.input, spec)
        if isinstance(below, str):
            return below
        return dataclasses.replace(below, columns=tuple(substitute(e, below.columns) for e in node.exprs))
    if spec is not None or not isinstance(node, bound.Window):
        return _as_it_stands(node, spec, "an input is no window")
    if node.spec.slide is not None:
        return "a window slides"
    if node.spec.kind is WindowKind.PARTITION:
        return "a window is partitioned"
    if node.spec.kind is WindowKind.ROWS:
        return _Input(node.input, node.spec, column_refs(node.input.schema))
    return _input(node.input, node.spec)  # filters commute with a RANGE (docs/semantics W8)


def _as_it_stands(node: Node, spec: bound.WindowSpec | None, reason: str) -> _Input | str:
    return reason if spec is None else _Input(node, spec, column_refs(node.schema))


def _key(each: _Input, catalog: Catalog) -> frozenset[int] | None:
    """The columns of the input that are the declared key of its stream; None where there is none, or not all of it."""
    node, columns = each.stream, each.columns
    while isinstance(node, bound.Filter | bound.Project):
        if isinstance(node, bound.Project):
            columns = tuple(substitute(e, node.exprs) for e in columns)
        node = node.inputs[0]
    if not isinstance(node, bound.BaseStream):
        return None
    key = catalog.streams[node.name.lower()].key
    places = {e.index: i for i, e in reversed(list(enumerate(columns))) if isinstance(e, bound.ColumnRef)}
    return frozenset(places[c] for c in key) if key and all(c in places for c in key) else None


def _source(each: _Input) -> tuple[str, tuple[str, ...]]:
    """The name of the stream that rows come from, with the filter that has dropped some; and of each column.

    No name is given to what is not the stream as it was pushed, or where a column is computed.
    """
    node, columns = each.stream, each.columns
    filters: list[Expr] = []
    while isinstance(node, bound.Filter | bound.Project):
        if isinstance(node, bound.Project):
            columns = tuple(substitute(e, node.exprs) for e in columns)
            filters = [substitute(f, node.exprs) for f in filters]
        else:
            filters.append(node.condition)
        node = node.inputs[0]
    names = tuple(e.name.lower() if isinstance(e, bound.ColumnRef) else print_expression(e) for e in columns)
    if not isinstance(node, bound.BaseStream):
        return "", names
    dropped = "".join(f" where {print_expression(f)}" for f in filters)
    return node.name.lower() + dropped, names


def _stream(each: _Input, condition: Expr | None) -> Node:
    """The stream with the columns of the join's input, and last whether a row passes."""
    node, exprs = each.stream, list(each.columns)
    if condition is not None:
        exprs.append(condition)
    elif all(isinstance(e, bound.ColumnRef) for e in exprs) and [e.index for e in exprs] == list(  # type: ignore[attr-defined]
        range(len(node.schema))
    ):
        return node
    fields = [Field(getattr(e, "name", "") or f"column{i + 1}", e.type) for i, e in enumerate(exprs)]
    if condition is not None:
        fields[-1] = Field("passes", Type.BOOLEAN)
    return bound.Project(Schema(tuple(fields)), node, tuple(exprs))
