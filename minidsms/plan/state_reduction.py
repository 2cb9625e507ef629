"""Which joins keep only the rows that can still matter: `SET state_reduction = 'swj' | 'k-mon'`.

A join of windows becomes one over the streams themselves that holds rows of its own (`operators.k_mon_join`).
Filters become a column that says which rows pass: a window of ROWS counts the others, too, and of a row that does not
pass others may learn that they wait in vain (Babu 2005, sections 6.1.5 and 6.3.1). What is not a window whose rows
leave in the order they came is a relation to the join, which follows its changes: declared ones, derived ones, and
windows that slide or are partitioned.

This comes after the rewrite rules, which do not know settings and keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.catalog import Catalog
from minidsms.cql.functions import can_fail
from minidsms.cql.keys import Key, key_among, shown_by
from minidsms.cql.window_spec import LONGEST_WITH_BOUNDS, WindowKind, WindowSpec
from minidsms.elements import Field, Schema, Type
from minidsms.expressions import print_expression
from minidsms.joins.directed_graph import Edge, orientation, tree_of
from minidsms.plan.active_partitions import keep_active_partitions
from minidsms.plan.logical import (
    Entering,
    LogicalPlan,
    MultiJoin,
    ReducedJoin,
    Stop,
    column_refs,
    conjunction,
    reader_counts,
    rebuilt,
    substitute,
    transform,
    unfiltered,
)
from minidsms.plan.rules.merge_joins import merged, name_of, shown_by_istream, stream_below
from minidsms.settings import Settings

_MOST_COLUMNS = 62
"""Columns of an answer whose NULLs one word tells of."""


def reduce_state(plan: LogicalPlan, catalog: Catalog, settings: Settings, memory_is_short: bool = False) -> LogicalPlan:
    """The plan with its joins reduced as far as that can be, and why the others are not."""
    mode, trust = settings["state_reduction"], settings["k_mon"]
    if mode == "auto":
        # Joins that run are reduced when memory gets short (`streamon.k_mon`).
        mode, trust = "k-mon" if memory_is_short else "off", "exact"
    if mode == "off":
        return plan
    start: Node = plan.root
    notes: list[str] = []
    if mode == "k-mon":
        start, notes = keep_active_partitions(start)

    def change(node: Node) -> Node:
        if isinstance(node, MultiJoin) and not node.outer:
            reduced = _reduced(node, catalog, mode, trust)
            if not isinstance(reduced, str):
                notes.extend((*_left_out(reduced, settings), *_held_for_results(reduced)))
                return reduced
            notes.append(_not_reduced(node, reduced))
        elif bound.is_inner_join(node):
            notes.append(_why_not_merged(node, catalog, mode))
        return node

    root = transform(_merged(start, catalog, mode), change)
    assert isinstance(root, Stop)
    stages = plan.stages if root is plan.root else (*plan.stages, ("reduce state", root))
    return LogicalPlan(stages, tuple(notes))


@dataclass(frozen=True)
class _Input:
    """A stream and its window, or a relation (no window); the columns of the join's input over it, and which rows
    pass.
    """

    stream: Node
    spec: WindowSpec | None
    columns: tuple[Expr, ...]
    passing: tuple[Expr, ...] = ()


def _merged(root: Node, catalog: Catalog, mode: str) -> Node:
    """The plan with those binary joins as n-way ones that can be reduced; other rules prefer them binary."""
    readers = reader_counts(root)
    found: dict[int, Node] = {}

    def merge(node: Node, new: Node) -> Node:
        if bound.is_inner_join(new):
            join = _pair(new)
            if join is not None and not isinstance(_tree(join, catalog, mode), str):
                new = merged(new, (False, False))
                found[id(new)] = new
        elif isinstance(new, bound.ByRow) and id(new.input) in found and readers[id(node.inputs[0])] == 1:
            new = merged(new, (True,))
            if not isinstance(new, bound.Project):
                found[id(new)] = new
        return new

    def show(node: Node, new: Node) -> Node:
        if isinstance(new, MultiJoin) and new.specs is None:
            return dataclasses.replace(new, names=tuple(map(name_of, new.windows)), shown=shown.get(id(node)))
        return new

    whole = rebuilt(root, merge)
    if not found:
        return root
    shown = shown_by_istream(whole)
    return rebuilt(whole, show)


def _pair(join: bound.Join) -> MultiJoin | None:
    """A binary join as an n-way one; None where no equality connects its inputs."""
    below, _ = unfiltered(merged(join, (False, False)))
    if not isinstance(below, MultiJoin) or not below.equalities:
        return None
    return dataclasses.replace(below, names=tuple(map(name_of, below.windows)))


def _tree(
    join: MultiJoin, catalog: Catalog, mode: str, inputs: list[_Input] | None = None
) -> tuple[list[_Input], list[Key | None], tuple[Edge, ...]] | str:
    """What the join reads, keys of that, and its equalities as a tree; or why it stays as it is.

    inputs: what it is to read, if not what stands below its windows.
    """
    specs = join.specs or [None] * len(join.windows)
    inputs = inputs or [_input(window, spec) for window, spec in zip(join.windows, specs)]
    if all(each.spec is None for each in inputs):
        return f"{_relations(join, inputs)}, and no other input is a window, whose rows could go"
    if any(each.spec is not None and (each.spec.range_ or 0) > LONGEST_WITH_BOUNDS for each in inputs):
        return f"a window is longer than {LONGEST_WITH_BOUNDS:,} ticks"
    joined: list[list[int]] = [[] for _ in inputs]
    for ends in join.equalities:
        for i, c in ends:
            joined[i].append(c)
    keys = [key_among(shown_by(e.stream.known_keys(catalog), e.columns), joined[i]) for i, e in enumerate(inputs)]
    edges = tree_of(len(inputs), join.equalities, keys)
    if isinstance(edges, str) or mode == "swj":
        return edges if isinstance(edges, str) else (inputs, keys, edges)
    for edge in edges:
        left, right = (inputs[i].spec is not None for i in edge.ends)
        if (left and right) or (left and edge.right_key) or (right and edge.left_key):
            return inputs, keys, edges
    return f"{_relations(join, inputs)}, of which no key lies within the columns by which a window is joined"


def _relations(join: MultiJoin, inputs: Sequence[_Input]) -> str:
    """Which inputs are relations, and why, in words."""

    def kind(node: Node) -> str:
        match node:
            case bound.BaseRelation():
                return "a relation"
            case bound.Window(spec=spec) if spec.kind is WindowKind.PARTITION:
                return "a PARTITION BY window"
            case bound.Window(spec=spec) if spec.kind is WindowKind.SESSION:
                return "a SESSION window"
            case bound.Window():
                return "a window that slides"
            case _:
                return "derived"

    found = [f"{name} is {kind(each.stream)}" for name, each in zip(_names(join), inputs) if each.spec is None]
    return ", ".join(found)


def over_same_streams(join: MultiJoin, catalog: Catalog) -> ReducedJoin | str:
    """What reduces a join over streams while it runs: it reads what the join does, filtered."""
    assert join.specs is not None
    inputs = [_Input(stream, spec, column_refs(stream.schema)) for stream, spec in zip(join.windows, join.specs)]
    return _reduced(join, catalog, "k-mon", "exact", inputs)


def _reduced(
    join: MultiJoin, catalog: Catalog, mode: str, trust: str, inputs: list[_Input] | None = None
) -> ReducedJoin | str:
    """The join over streams, or why it stays as it is. inputs: as of `_tree`."""
    if len(join.columns) > _MOST_COLUMNS:
        return f"its answer has more than {_MOST_COLUMNS} columns"
    tree = _tree(join, catalog, mode, inputs)
    if isinstance(tree, str):
        return tree
    inputs, keys, edges = tree
    unique: tuple[tuple[int, tuple[int, ...]], ...] = ()
    if mode == "k-mon" and join.shown is not None:
        # A relation's row comes again when it is updated.
        roots = {r: (inputs[r].spec and keys[r]) or frozenset() for r in orientation(len(inputs), edges)[1]}
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
    if settings["join_plan"] not in ("mjoin", "auto"):
        notes.append(f"No join_plan: the join of {names} keeps its rows, and no results of some of its inputs")
    if settings["caching"] not in ("off", "auto"):
        notes.append(f"No caches: the join of {names} keeps too few rows to spare any")
    return notes


def _held_for_results(join: ReducedJoin) -> list[str]:
    """What a join with relations keeps although nothing to come can join it, and how to need less."""
    if join.mode != "k-mon" or join.unique or all(spec is not None for spec in join.specs or ()):
        return []
    names, specs = _names(join), join.specs or ()
    changing = ", ".join(name for name, spec in zip(names, specs) if spec is None)
    roots = [names[r] for r in orientation(len(names), join.edges)[1]]
    return [
        f"Rows stay while results hold that they are part of, which end when {changing} changes: they could go if an "
        f"ISTREAM showed the KEY of {' and '.join(roots)}"
    ]


def _names(join: MultiJoin) -> list[str]:
    names = list(join.names) or [""] * len(join.windows)
    return [name or f"input {i + 1}" for i, name in enumerate(names)]


def _not_reduced(join: MultiJoin, reason: str) -> str:
    return f"Not reduced: the join of {', '.join(_names(join))} keeps all rows of its inputs: {reason}"


def _why_not_merged(join: bound.Join, catalog: Catalog, mode: str) -> str:
    """Why a binary join is none that can be reduced, in words."""
    pair = _pair(join)
    if pair is None:
        return "Not reduced: a join keeps all rows of its inputs: no equality connects its inputs"
    tree = _tree(pair, catalog, mode)
    assert isinstance(tree, str)
    return _not_reduced(pair, tree)


# ------------------------------------------------------------------------------------------------------------ inputs


def _input(node: Node, spec: WindowSpec | None) -> _Input:
    """What stands below a window, filtered and projected; or a relation. spec: where given, the node is the stream."""
    source, parts = unfiltered(node)
    if parts and not any(map(can_fail, parts)):
        below = _input(source, spec)
        return dataclasses.replace(below, passing=(*below.passing, *(substitute(p, below.columns) for p in parts)))
    if isinstance(node, bound.Project) and not any(can_fail(e) for e in node.exprs):
        below = _input(node.input, spec)
        return dataclasses.replace(below, columns=tuple(substitute(e, below.columns) for e in node.exprs))
    if spec is None and isinstance(node, bound.ByRow):
        # It can fail, and so looks at every row of the window, as it does at every row of the stream.
        taken = stream_below(node)
        return _Input(node, None, column_refs(node.schema)) if taken is None else _input(*taken)
    if spec is None and isinstance(node, bound.Window) and node.spec.slide is None:
        if node.spec.kind is WindowKind.ROWS:
            return _Input(node.input, node.spec, column_refs(node.input.schema))
        if not node.spec.is_by_key:
            return _input(node.input, node.spec)  # filters commute with a RANGE (docs/semantics W8)
    if spec is None and isinstance(node, bound.Window) and node.spec.kind is WindowKind.RANGE:
        return _sliding(node)
    return _Input(node, spec, column_refs(node.schema))


def _sliding(node: bound.Window) -> _Input:
    """A range that slides is a plain one over the stream of its rows at the multiples of L, if L divides its length:
    a row that comes in at b leaves at b + T (docs/semantics W6). Those that wait for b stand in a window as short as
    can be.
    """
    range_, slide = node.spec.range_ or 0, node.spec.slide
    assert slide is not None
    if not range_ or range_ % slide:
        return _Input(node, None, column_refs(node.schema))
    below = _input(node.input, WindowSpec(WindowKind.RANGE, range_))
    stream = below.stream
    short = bound.Window(stream.schema, stream, WindowSpec(WindowKind.RANGE, slide, slide=slide), node.name)
    return dataclasses.replace(below, stream=Entering(stream.schema, short))


def _source(each: _Input) -> tuple[str, tuple[str, ...]]:
    """The name of the stream that rows come from, with the filter that has dropped some; and of each column.

    No name is given to what is not the stream as it was pushed, or where a column is computed.
    """
    node, columns = each.stream, each.columns
    filters: list[Expr] = []
    while isinstance(node, bound.ByRow):
        if isinstance(node, bound.Project):
            columns = tuple(substitute(e, node.exprs) for e in columns)
            filters = [substitute(f, node.exprs) for f in filters]
        else:
            filters += unfiltered(node)[1]
        node = node.inputs[0]
    names = tuple(e.name.lower() if isinstance(e, bound.ColumnRef) else print_expression(e) for e in columns)
    entering = ""
    if isinstance(node, Entering) and isinstance(node.input, bound.Window):
        # Its rows come later than they do to others, and so have other distances.
        entering, node = f" slide {node.input.spec.slide}", node.input.input
    if not isinstance(node, bound.BaseStream):
        return "", names
    dropped = "".join(f" where {print_expression(f)}" for f in filters)
    return node.name.lower() + entering + dropped, names


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
