"""The logical plan: the bound algebra plus the nodes that rewriting brings in.

A plan is a DAG of `cql.bound` nodes and those below. Windows that docs/semantics R3 and S2 speak of "as written" are
turned into explicit inputs (`FirstArrival`, `WindowEvents`) before any rule runs, so that no rewrite can move an
instant (W8).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.elements import Schema
from minidsms.joins.directed_graph import Edge

NO_COLUMNS = Schema(())


@dataclass(frozen=True, eq=False)
class WindowEvents(Node):
    """The instants at which a window over `input` changes, as a stream without columns (S2)."""

    input: Node
    spec: bound.WindowSpec

    @property
    def kind(self) -> str:
        return "stream"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class RelationEvents(Node):
    """The instants at which a base relation gets a change, as a stream without columns (S2)."""

    relation: str

    @property
    def kind(self) -> str:
        return "stream"


@dataclass(frozen=True, eq=False)
class FirstArrival(Node):
    """A relation of no columns that gains its one row at the first arrival in any of the inputs (R3)."""

    sources: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.sources


@dataclass(frozen=True, eq=False)
class GroupBy(Node):
    """Aggregation. With `start` (a FirstArrival) it is global: one row from that arrival on, whatever the input
    holds.
    """

    input: Node
    keys: tuple[Expr, ...]
    aggregates: tuple[bound.AggregateCall, ...]
    start: Node | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,) if self.start is None else (self.input, self.start)


@dataclass(frozen=True, eq=False)
class ToStream(Node):
    """ISTREAM, DSTREAM or RSTREAM with its event instants as inputs.

    ordered: the rows of an instant come in the order of their values (T3); wanted where a window reads the stream.
    """

    op: bound.StreamKind
    input: Node
    events: tuple[Node, ...]
    ticks: bool
    keeps_order: bool
    ordered: bool = False

    @property
    def kind(self) -> str:
        return "stream"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, *self.events)


@dataclass(frozen=True, eq=False)
class SemiJoin(Node):
    """The rows of left with (anti: without) a row of right whose keys are equal.

    pairs: (expression over left, expression over right).  null_safe: NULL equals NULL; else a NULL key equals nothing.
    """

    left: Node
    right: Node
    pairs: tuple[tuple[Expr, Expr], ...]
    anti: bool
    null_safe: bool = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Probe:
    """A semi-join as a filter. right: its columns are the keys.  keys: the same of the stream, by number."""

    right: Node
    keys: tuple[int, ...]
    anti: bool
    null_safe: bool


@dataclass(frozen=True, eq=False)
class ProbedStream(Node):
    """The elements of a stream for which, at their own instants, the condition is TRUE and all probes say yes."""

    input: Node
    condition: Expr | None
    probes: tuple[Probe, ...]

    @property
    def kind(self) -> str:
        return "stream"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, *(probe.right for probe in self.probes))

    def probe_text(self, number: int) -> str:
        """A probe in words: `a IN (.. S1 ..)`."""
        probe = self.probes[number]
        names = [self.schema[key].name for key in probe.keys]
        keys = names[0] if len(names) == 1 else f"({', '.join(names)})"
        read = [n.name for n in nodes(probe.right) if isinstance(n, bound.BaseStream | bound.BaseRelation)]
        return f"{keys} {'NOT IN' if probe.anti else 'IN'} (.. {', '.join(read)} ..)"


Equality = tuple[tuple[int, int], tuple[int, int]]
"""((input, column), (input, column)) that are equal."""


@dataclass(frozen=True, eq=False)
class MultiJoin(Node):
    """The rows of several relations side by side where all equalities hold.

    columns: the (input, column) of each column of the schema.  shown: the columns that stand unchanged in the rows of
    the ISTREAM above, where nothing else reads them; else None.  specs: where given, `windows` are the streams, and
    the join itself lets their rows go as these windows do; None for a relation, whose changes it follows.  names: what
    FROM calls each window, or "".
    """

    windows: tuple[Node, ...]
    equalities: tuple[Equality, ...]
    columns: tuple[tuple[int, int], ...]
    shown: tuple[int, ...] | None = None
    specs: tuple[bound.WindowSpec | None, ...] | None = None
    names: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.windows


@dataclass(frozen=True, eq=False)
class ReducedJoin(MultiJoin):
    """A join over streams and relations that keeps rows of its own, and only those it needs (`plan.state_reduction`).

    edges: the equalities as a tree, with the keys among them.  passes: of each stream, the column that says which rows
    pass its filter, or None.  mode: 'swj' or 'k-mon'.  trust: what `SET k_mon` says.  unique: where no two rows of the
    ISTREAM above are equal, the roots and their declared keys, which it shows.  sources: of each stream,
    the name by which constraints speak of it, "" where it has none, and of its columns.
    """

    edges: tuple[Edge, ...] = ()
    passes: tuple[int | None, ...] = ()
    mode: str = "swj"
    trust: str = "exact"
    unique: tuple[tuple[int, tuple[int, ...]], ...] = ()
    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class Entering(Node):
    """A window's rows as they enter it: a stream (see `operators.entering`)."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class KeepArrival(Node):
    """A window's rows with their arrival numbers as a last column (see `operators.arrival`)."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class RestoreArrival(Node):
    """The rows without their last column, which holds their arrival numbers."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Stop(Node):
    """The root of a query: what its output operator receives. relation: changes are netted per instant."""

    input: Node
    is_relation: bool

    @property
    def kind(self) -> str:
        return self.input.kind

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


def replace_inputs(node: Node, inputs: Sequence[Node]) -> Node:
    """The node over other inputs; the node itself when they are the same objects."""
    if all(a is b for a, b in zip(node.inputs, inputs)):
        return node
    match node:
        case bound.Join() | bound.SetOperation() | SemiJoin():
            return dataclasses.replace(node, left=inputs[0], right=inputs[1])
        case MultiJoin():
            return dataclasses.replace(node, windows=tuple(inputs))
        case ProbedStream():
            probes = tuple(dataclasses.replace(p, right=r) for p, r in zip(node.probes, inputs[1:]))
            return dataclasses.replace(node, input=inputs[0], probes=probes)
        case FirstArrival():
            return FirstArrival(node.schema, tuple(inputs))
        case GroupBy():
            return dataclasses.replace(node, input=inputs[0], start=inputs[1] if len(inputs) > 1 else None)
        case ToStream():
            return dataclasses.replace(node, input=inputs[0], events=tuple(inputs[1:]))
        case _:
            return dataclasses.replace(node, input=inputs[0])  # type: ignore[call-arg]


def transform(root: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild a plan bottom-up: `change` sees each node once, over its already changed inputs. Shared nodes stay
    shared.
    """
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if not ready:
            stack.append((node, True))
            stack.extend((child, False) for child in node.inputs)
        else:
            done[id(node)] = change(replace_inputs(node, [done[id(child)] for child in node.inputs]))
    return done[id(root)]


def nodes(root: Node) -> list[Node]:
    """Every node once, inputs before their readers."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.inputs))
    return order


def reader_counts(root: Node) -> dict[int, int]:
    """How many nodes read each node, by id."""
    counts: dict[int, int] = {id(root): 1}
    for node in nodes(root):
        for child in node.inputs:
            counts[id(child)] = counts.get(id(child), 0) + 1
    return counts


# ------------------------------------------------------------------------------------------------ expression helpers


def replace_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each direct part."""
    match expr:
        case bound.Call() | bound.UserCall() | bound.InQuery():
            return dataclasses.replace(expr, args=tuple(change(a) for a in expr.args))
        case bound.Case():
            whens = tuple((change(c), change(r)) for c, r in expr.whens)
            return dataclasses.replace(expr, whens=whens, otherwise=change(expr.otherwise))
        case bound.Cast() | bound.Quantified():
            return dataclasses.replace(expr, arg=change(expr.arg))
        case _:
            return expr


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Top-down replacement: where `change` gives an expression it stands, else its parts are rewritten."""
    changed = change(expr)
    return changed if changed is not None else replace_children(expr, lambda e: rewrite(e, change))


def substitute(expr: Expr, columns: Sequence[Expr]) -> Expr:
    """The expression with each column i replaced by columns[i]."""
    return rewrite(expr, lambda e: columns[e.index] if isinstance(e, bound.ColumnRef) else None)


def shift(expr: Expr, offset: int) -> Expr:
    """The expression with every column number moved by offset."""

    def moved(e: Expr) -> Expr | None:
        return dataclasses.replace(e, index=e.index + offset) if isinstance(e, bound.ColumnRef) else None

    return expr if offset == 0 else rewrite(expr, moved)


def columns_used(expr: Expr) -> set[int]:
    """The column numbers an expression reads."""
    return {e.index for e in bound.walk(expr) if isinstance(e, bound.ColumnRef)}


def with_arguments(aggregates: Sequence[bound.AggregateCall], args: Sequence[Expr]) -> tuple[bound.AggregateCall, ...]:
    """The aggregates over other arguments, which stand in the order `bound.expressions` gives them."""
    rest = iter(args)
    changed = []
    for call in aggregates:
        if call.arg is not None:
            changed.append(dataclasses.replace(call, arg=next(rest)))
        else:
            changed.append(dataclasses.replace(call, args=tuple(next(rest) for _ in call.args)))
    return tuple(changed)


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of a conjunction, nested ANDs opened."""
    if condition is None:
        return []
    if isinstance(condition, bound.Call) and condition.function == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def conjunction(parts: Sequence[Expr]) -> Expr | None:
    """The AND of the parts; None for none."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    span = (min(p.span[0] for p in parts), max(p.span[1] for p in parts))
    return bound.Call(bound.Type.BOOLEAN, "and", tuple(parts), span=span)


def column_refs(schema: Schema, offset: int = 0) -> tuple[bound.ColumnRef, ...]:
    """References to every column of a schema, as the identity projection has them."""
    return tuple(bound.ColumnRef(f.type, i + offset, f.name) for i, f in enumerate(schema))


def filtered(node: Node, parts: Sequence[Expr]) -> Node:
    """The node under a filter of these conjuncts; itself when there are none."""
    condition = conjunction(parts)
    return node if condition is None else bound.Filter(node.schema, node, condition)


def _only_chooses(exprs: Sequence[Expr]) -> bool:
    return all(isinstance(e, bound.ColumnRef) for e in exprs)


def projected(node: Node, exprs: Sequence[Expr], names: Sequence[str] | None = None) -> Node:
    """A projection of the node, named after its columns where names are not given.

    What only chooses columns of a projection that only chooses columns chooses from below it; what chooses every
    column in order is the node itself.
    """
    while isinstance(node, bound.Project) and _only_chooses(node.exprs):
        exprs = [substitute(e, node.exprs) for e in exprs]
        node = node.input
    if _only_chooses(exprs) and [e.index for e in exprs] == list(range(len(node.schema))):  # type: ignore[attr-defined]
        return node
    fields = tuple(
        bound.Field(names[i] if names is not None else getattr(e, "name", "") or f"column{i + 1}", e.type)
        for i, e in enumerate(exprs)
    )
    return bound.Project(Schema(fields), node, tuple(exprs))
