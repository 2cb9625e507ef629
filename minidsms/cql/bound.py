"""The bound query: what a CQL text means, as an algebra over positions; and the nodes that plans share with it.

The binder writes this tree; the planner rewrites and runs it; the evaluator by definition (`minidsms.testing`) reads
it as it stands. Names are resolved, types are known, defaults (docs/semantics D1 to D3) are written out, views are
expanded. A node used twice (a view named twice) is one Python object, so the tree is a DAG; nodes compare by
identity.

Rows are positional: a join's row is the left row followed by the right one.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from minidsms.aggregates.aggregate import EVERY_ROW
from minidsms.aggregates.aggregate import SortKey as SortKey
from minidsms.aggregates.over import OverCall as OverCall
from minidsms.counted import counted
from minidsms.cql.functions import can_fail
from minidsms.cql.keys import Key, declared, shown_by
from minidsms.cql.node import AS_WRITTEN, Carried, Memory
from minidsms.cql.node import Node as Node
from minidsms.cql.origins import Origin, Origins, equal_pairs, equal_places, together
from minidsms.cql.scalar import SUBQUERIES as SUBQUERIES
from minidsms.cql.scalar import AggregateCall as AggregateCall
from minidsms.cql.scalar import Call as Call
from minidsms.cql.scalar import Case as Case
from minidsms.cql.scalar import Cast as Cast
from minidsms.cql.scalar import ColumnRef as ColumnRef
from minidsms.cql.scalar import Exists as Exists
from minidsms.cql.scalar import Expr as Expr
from minidsms.cql.scalar import InQuery as InQuery
from minidsms.cql.scalar import Lambda as Lambda
from minidsms.cql.scalar import Literal as Literal
from minidsms.cql.scalar import LiteralList as LiteralList
from minidsms.cql.scalar import OuterRef as OuterRef
from minidsms.cql.scalar import OverRef as OverRef
from minidsms.cql.scalar import Parameter as Parameter
from minidsms.cql.scalar import Quantified as Quantified
from minidsms.cql.scalar import ScalarQuery as ScalarQuery
from minidsms.cql.scalar import UserCall as UserCall
from minidsms.cql.scalar import children as children
from minidsms.cql.scalar import columns_used as columns_used
from minidsms.cql.scalar import conjunction, conjuncts, queries_of_conjuncts, renumbered, shift, substitute
from minidsms.cql.scalar import subqueries as subqueries
from minidsms.cql.scalar import walk as walk
from minidsms.cql.scalar_text import print_aggregate, print_expression
from minidsms.cql.window_spec import BOUNDS, INSTANT, WindowKind, WindowSpec
from minidsms.elements import Field as Field
from minidsms.elements import Schema as Schema
from minidsms.elements import Type as Type

if TYPE_CHECKING:
    from minidsms.cql.catalog import Catalog


@dataclass(frozen=True)
class Narrowed:
    """A node without the columns that nobody reads. old: its columns before.  place: where each that is left stands."""

    old: Schema
    node: Node
    place: Mapping[int, int]

    @cached_property
    def _is_in_place(self) -> bool:
        return all(old == new for old, new in self.place.items())

    def moved(self, expr: Expr) -> Expr:
        """An expression over the old row, over the new one."""
        return expr if self._is_in_place else renumbered(expr, self.place.__getitem__)

    def exactly(self, wanted: Iterable[int]) -> Node:
        """The new node with exactly these old columns, in order: a projection where it has others."""
        columns = list(wanted)
        if [self.place[i] for i in columns] == list(range(len(self.node.schema))):
            return self.node
        refs = [ColumnRef(self.old[i].type, self.place[i], self.old[i].name) for i in columns]
        return projected(self.node, refs, [self.old[i].name for i in columns])


def every_column(node: Node) -> set[int]:
    """All column numbers of a node."""
    return set(range(len(node.schema)))


def whole_rows(node: Node, mine: Set[int]) -> Sequence[Set[int]]:
    """`Node.needs` of what reads its inputs' rows as they are."""
    return [every_column(child) for child in node.inputs]


def no_columns(node: Node, mine: Set[int]) -> Sequence[Set[int]]:
    """`Node.needs` of what has no inputs, or asks them only whether something came."""
    return [set() for _ in node.inputs]


class Declared(Node):
    """A stream or a relation as it was declared."""

    name: str
    memory = Memory.ROWS
    needs = no_columns

    @property
    def shape(self) -> tuple[str, str]:
        return self.kind, self.name.lower()

    def origins(self, below: Sequence[Origins]) -> Origins:
        return [frozenset({(self.name.lower(), i)}) for i in range(len(self.schema))]


class BaseStream(Declared):
    """A declared stream."""

    kind = "stream"
    is_fifo = is_append_only = refers_to_store = True

    def text(self) -> str:
        return f"Stream {self.name}"

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return declared(catalog.streams[self.name.lower()].key)


class BaseRelation(Declared):
    """A declared relation."""

    is_netted = True

    def text(self) -> str:
        return f"Relation {self.name}"

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return declared(catalog.relations[self.name.lower()].key)


class Constant(Node):
    """A relation of rows that are written out, there from the first arrival in any of the sources on (R9).

    sources: all inputs of the query, which the plan knows; in a bound query (), and the rows are there once any of its
    inputs has told of something.
    """

    rows: tuple[tuple[Expr, ...], ...]
    sources: tuple[Node, ...] = ()
    is_fifo = is_append_only = is_netted = True
    memory = Memory.FIRST
    needs = no_columns

    def text(self) -> str:
        return f"Constant {counted(len(self.rows), 'row')}"

    def grows_with(self) -> Sequence[Node]:
        return ()


class Window(Node):
    """A window over a stream: the relation of the elements it holds. name: what FROM calls it, or ""."""

    input: Node
    spec: WindowSpec
    name: str = field(compare=False, default="")
    has_arrival_order = is_empty_with_input = True

    @classmethod
    def of(cls, stream: Node, spec: WindowSpec, name: str = "") -> Window:
        return cls(stream.schema + spec.implied, stream, spec, name)

    @property
    def is_fifo(self) -> bool:
        return not self.spec.is_by_key

    @property
    def fifo_by(self) -> frozenset[int] | None:
        return frozenset(self.spec.keys) if self.spec.is_by_key else frozenset()

    @property
    def is_append_only(self) -> bool:
        return self.spec.kind is WindowKind.UNBOUNDED

    def grows_with(self) -> Sequence[Node] | None:
        return () if self.is_append_only else None

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        return _carrying(self, inputs) if self.spec.kind in (WindowKind.RANGE, WindowKind.UNBOUNDED) else None

    def text(self) -> str:
        return f"Window [{self.spec.text(self.input.schema)}]"

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [(mine & every_column(self.input)) | set(self.spec.keys)]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        wanted = sorted(self.needs(mine)[0])
        place = {i: k for k, i in enumerate(wanted)}
        source = inputs[0].exactly(wanted)
        node = Window.of(source, self.spec.over(place), self.name)
        implied = {len(self.input.schema) + i: len(wanted) + i for i in range(len(self.spec.implied))}
        return Narrowed(self.schema, node, {**place, **implied})

    def known_keys(self, catalog: Catalog) -> list[Key]:
        own = [frozenset(self.spec.keys)] if self.spec.kind is WindowKind.PARTITION and self.spec.rows == 1 else []
        return [*own, *self.input.known_keys(catalog)]

    def origins(self, below: Sequence[Origins]) -> Origins:
        if self.mixes is not None:
            return super().origins(below)
        is_kept = [self.spec.kind is not WindowKind.PARTITION or i in self.spec.keys for i in range(len(self.schema))]
        return [origin if kept else None for origin, kept in zip(below[0], is_kept)]

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return self.spec.is_now

    @property
    def mixes(self) -> str | None:
        return self.spec.mixes

    @property
    def lookback(self) -> int | str:
        return self.spec.lookback

    @property
    def own_windows(self) -> Sequence[tuple[WindowSpec, Node]]:
        return ((self.spec, self.input),)

    @property
    def is_by_arrival(self) -> bool:
        return self.spec.kind is WindowKind.ROWS or self.spec.is_by_key


def is_now_window(node: Node) -> TypeGuard[Window]:
    """Whether it holds the elements of the instant alone (W2)."""
    return isinstance(node, Window) and node.spec.is_now


class Extending(Node):
    """The rows of input with further columns behind theirs, made of nothing that stands in a row."""

    input: Node

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [mine & every_column(self.input)]

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        return _of_input(self.input, condition)

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        (source,) = inputs
        own, new = len(self.input.schema), len(source.node.schema)
        further = self.schema.fields[own:]
        if mine <= every_column(self.input):
            return Narrowed(self.schema, source.node, source.place)
        node = dataclasses.replace(self, schema=source.node.schema + Schema(further), input=source.node)
        return Narrowed(self.schema, node, {**source.place, **{own + i: new + i for i in range(len(further))}})

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.input.known_keys(catalog)

    def origins(self, below: Sequence[Origins]) -> Origins:
        return [*below[0], *([None] * (len(self.schema) - len(below[0])))]


class Stamped(Extending):
    """The elements of a stream with their instants as a last column (W10)."""

    kind = "stream"
    is_fifo = is_append_only = True
    memory = Memory.NOTHING

    @property
    def refers_to_store(self) -> bool:
        return self.input.refers_to_store

    @classmethod
    def of(cls, stream: Node) -> Stamped:
        return cls(stream.schema + INSTANT, stream)

    def text(self) -> str:
        return "Instant as a column"


class Bounds(Extending):
    """What a window that moves in steps holds, each row with the window's start and end as last columns (W10).

    input: the window, perhaps filtered and projected.  spec: the window's.
    """

    spec: WindowSpec
    has_arrival_order = is_fifo = True
    memory = Memory.ROWS

    @classmethod
    def of(cls, window: Node, spec: WindowSpec) -> Bounds:
        return cls(window.schema + BOUNDS, window, spec)

    def text(self) -> str:
        return "Bounds of the window as columns"


class Unnest(Node):
    """For each row of input a row with each element of the list in its last column, in that column's place."""

    input: Node
    memory = Memory.NOTHING

    @classmethod
    def of(cls, node: Node, listed: Expr, name: str) -> Unnest:
        """Each row of the node beside each element of a list that is computed of it."""
        element = listed.type.element
        assert element is not None
        exprs = (*column_refs(node.schema), listed)
        return cls(node.schema + Schema.of((name, element)), projected(node, exprs, (*node.schema.names, name)))

    @property
    def is_append_only(self) -> bool:
        return beneath(self.input).is_append_only

    def text(self) -> str:
        return f"Unnest {self.schema.names[-1]}"

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [mine | {len(self.schema) - 1}]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        """The list stays last, behind what is left of the other columns."""
        last = len(self.schema) - 1
        kept = sorted({*inputs[0].place, last})
        schema = Schema(tuple(self.schema[i] for i in kept))
        return Narrowed(
            self.schema, Unnest(schema, inputs[0].exactly(kept)), {old: new for new, old in enumerate(kept)}
        )

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        return () if len(self.schema) - 1 in columns_used(condition) else (condition,)

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return not lasting[0]

    def grows_with(self) -> Sequence[Node]:
        return self.inputs

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        """With the further columns before the list, which stays last."""
        (below,) = inputs
        *others, listed = (below.column(below.place[i]) for i in range(len(below.place)))
        node = projected(below.node, [*others, *below.carried, listed])
        last, more = len(others), len(below.extra)
        schema = Schema((*node.schema.fields[:-1], self.schema[last]))
        return Carried(
            Unnest(schema, node), {**{i: i for i in range(last)}, last: last + more}, range(last, last + more)
        )

    def origins(self, below: Sequence[Origins]) -> Origins:
        return [*below[0][:-1], None]


class ByRow(Node):
    """What hands on the rows of its input one by one: filtered, or other columns of them."""

    input: Node
    is_empty_with_input = True
    memory = Memory.NOTHING

    @property
    def is_fifo(self) -> bool:
        return beneath(self).is_fifo

    @property
    def is_append_only(self) -> bool:
        return beneath(self).is_append_only

    @property
    def has_one_row(self) -> bool:
        return beneath(self).has_one_row

    @property
    def is_netted(self) -> bool:
        below = beneath(self, lambda project: project.shows_all)
        return not isinstance(below, Project) and below.is_netted

    @property
    def refers_to_store(self) -> bool:
        below = beneath(self, lambda project: project.only_chooses)
        return not isinstance(below, Project) and below.refers_to_store

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return not lasting[0]


class Filter(ByRow):
    """The rows of input for which the condition is TRUE (not FALSE, not NULL). Conjuncts are one flattened `and`."""

    condition: Expr

    @property
    def fifo_by(self) -> frozenset[int] | None:
        return self.input.fifo_by

    def text(self) -> str:
        return f"Filter {print_expression(self.condition)}"

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [mine | columns_used(self.condition)]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        (source,) = inputs
        node = Filter(source.node.schema, source.node, source.moved(self.condition))
        return Narrowed(self.schema, node, source.place)

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.input.known_keys(catalog)

    def grows_with(self) -> Sequence[Node] | None:
        queries = queries_of_conjuncts(self.condition)
        return None if queries is None else (self.input, *queries)

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        return _carrying(self, inputs)

    def origins(self, below: Sequence[Origins]) -> Origins:
        return below[0]


class Project(ByRow):
    """One row of expressions per row of input."""

    exprs: tuple[Expr, ...]

    @property
    def fifo_by(self) -> frozenset[int] | None:
        below = self.input.fifo_by
        if below is None:
            return None
        shown: dict[int, int] = {}
        for i, e in enumerate(self.exprs):
            if isinstance(e, ColumnRef):
                shown.setdefault(e.index, i)  # the first: keys of groups come first
        return frozenset(shown[c] for c in below) if below <= shown.keys() else None

    @property
    def only_chooses(self) -> bool:
        """Every expression is a column of the input."""
        return all(isinstance(e, ColumnRef) for e in self.exprs)

    @property
    def shows_all(self) -> bool:
        """Rows that differ still do: every column of the input is shown."""
        return {e.index for e in self.exprs if isinstance(e, ColumnRef)} >= every_column(self.input)

    def text(self) -> str:
        shown = [(print_expression(e), f.name) for e, f in zip(self.exprs, self.schema)]
        return "Project " + ", ".join(e if e == n or e.endswith(f".{n}") else f"{e} AS {n}" for e, n in shown)

    def _computed(self, mine: Set[int]) -> list[int]:
        """The expressions that must be computed: those read, and those that can fail (R4)."""
        return [i for i, e in enumerate(self.exprs) if i in mine or can_fail(e)]

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [{c for i in self._computed(mine) for c in columns_used(self.exprs[i])}]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        kept = self._computed(mine)
        exprs = [inputs[0].moved(self.exprs[i]) for i in kept]
        node = projected(inputs[0].node, exprs, [self.schema[i].name for i in kept])
        return Narrowed(self.schema, node, {i: k for k, i in enumerate(kept)})

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return shown_by(self.input.known_keys(catalog), self.exprs)

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        return () if any(map(can_fail, self.exprs)) else (substitute(condition, self.exprs),)

    def grows_with(self) -> Sequence[Node] | None:
        return None if any(map(subqueries, self.exprs)) else self.inputs

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        (below,) = inputs
        schema = self.schema + _schema_of(below)
        exprs = (*map(below.moved, self.exprs), *below.carried)
        return Carried.beside(Project(schema, below.node, exprs), len(self.exprs))

    def origins(self, below: Sequence[Origins]) -> Origins:
        return [below[0][e.index] if isinstance(e, ColumnRef) else None for e in self.exprs]


def beneath(node: Node, passes: Callable[[Project], bool] = lambda project: True) -> Node:
    """What stands below the filters and projections on a node, as far as the projections pass; a loop, for views may
    stand on views.
    """
    while isinstance(node, ByRow) and (not isinstance(node, Project) or passes(node)):
        node = node.input
    return node


def moved_onto(node: Node, new: Node) -> Node:
    """The filters and projections that stand on what is `beneath` a node, on another one instead."""
    steps: list[ByRow] = []
    while isinstance(node, ByRow):
        steps.append(node)
        node = node.input
    for step in reversed(steps):
        new = step.over([new])
    return new


def is_of_declared(node: Node) -> bool:
    """Whether it gives elements of a declared stream at their own instants: filtered, projected, with the instant."""
    while isinstance(node, ByRow | Stamped):
        node = node.input
    return isinstance(node, BaseStream)


class JoinKind(enum.Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


def is_inner_join(node: Node) -> TypeGuard[Join]:
    """Whether it is a join that pads nothing."""
    return isinstance(node, Join) and node.join is JoinKind.INNER


class Join(Node):
    """left JOIN right ON condition. A comma or CROSS JOIN is INNER with condition None.

    only_enters: in a plan, whoever reads it passes deletions over; they need not be put out.
    """

    join: JoinKind
    left: Node
    right: Node
    condition: Expr | None
    only_enters: bool = field(default=False, kw_only=True)
    memory = Memory.ROWS

    @classmethod
    def of(cls, left: Node, right: Node, condition: Expr | None = None, join: JoinKind = JoinKind.INNER) -> Join:
        return cls(left.schema + right.schema, join, left, right, condition)

    def text(self) -> str:
        if self.condition is None and self.join is JoinKind.INNER:
            return "Cartesian Product"
        kind = "Join" if self.join is JoinKind.INNER else f"{self.join.value.title()} Join"
        return kind + ("" if self.condition is None else f" on {print_expression(self.condition)}")

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        width = len(self.left.schema)
        used = mine | (columns_used(self.condition) if self.condition is not None else set())
        return [{i for i in used if i < width}, {i - width for i in used if i >= width}]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        left, right = inputs
        width, new_width = len(self.left.schema), len(left.node.schema)
        place = {**left.place, **{i + width: k + new_width for i, k in right.place.items()}}
        node = self.over([left.node, right.node]).rewritten(lambda e: renumbered(e, place.__getitem__))
        node = dataclasses.replace(node, schema=left.node.schema + right.node.schema)
        return Narrowed(self.schema, node, place)

    def pushed(self, condition: Expr) -> Sequence[Expr | None]:
        """Of an outer join: to the side that is not padded, unless its ON can fail: that must not be hidden. An inner
        one takes conditions as its own.
        """
        if self.condition is not None and can_fail(self.condition):
            return ()
        width, used = len(self.left.schema), columns_used(condition)
        if self.join is JoinKind.LEFT and all(i < width for i in used):
            return condition, None
        if self.join is JoinKind.RIGHT and used and all(i >= width for i in used):
            return None, shift(condition, -width)
        return ()

    def grows_with(self) -> Sequence[Node] | None:
        queries = queries_of_conjuncts(self.condition) if self.join is JoinKind.INNER else None
        return None if queries is None else (self.left, self.right, *queries)

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        """Where one side alone carries something: of two, rows that differ in it would have to be told apart."""
        left, right = inputs
        if self.join is not JoinKind.INNER or (left.extra and right.extra):
            return None
        width, new_width = len(self.left.schema), len(left.node.schema)
        place = {**left.place, **{i + width: p + new_width for i, p in right.place.items()}}
        condition = None if self.condition is None else renumbered(self.condition, place.__getitem__)
        node = Join.of(left.node, right.node, condition)
        return Carried(node, place, left.extra or [i + new_width for i in right.extra])

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        if self.join is JoinKind.LEFT:
            return not lasting[0]
        return self.join is JoinKind.INNER and not all(lasting)

    def origins(self, below: Sequence[Origins]) -> Origins:
        """Of an inner one; outer ones have become others where this is asked."""
        if self.join is not JoinKind.INNER:
            return super().origins(below)
        left, right = below
        width = len(left)
        found: list[Origin | None] = [None] * len(self.schema)
        for i, j in equal_places(equal_pairs(conjuncts(self.condition), width)[0]):
            both = together(left[i], right[j])
            # Columns that were equal to one of the two before are equal to both now.
            for k, origin in enumerate((*left, *right)):
                if both is not None and origin == (left[i] if k < width else right[j]):
                    found[k] = both
        return found


class Lateral(Node):
    """input beside the rows that a query has for each of its rows: LATERAL. rows: the query, as other subqueries that
    see a row stand in expressions.  join: INNER, or LEFT by a condition.
    """

    input: Node
    rows: Exists
    join: JoinKind
    condition: Expr | None
    needs = whole_rows

    def text(self) -> str:
        return f"{self.join.value} Lateral"

    def grows_with(self) -> Sequence[Node] | None:
        return (self.input, self.rows.query) if self.join is JoinKind.INNER else None


class Aggregate(Node):
    """A row per group: the keys' values, then the aggregates' results.

    Without GROUP BY keys is empty and is_global True: then there is exactly one row from the first arrival in any of
    `events` on (R3). `events` are the windows this block reads (or, where it reads none, its base relations), as
    written; see `changing`. In a plan they have become `start`, a `logical.FirstArrival`.
    """

    input: Node
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    is_global: bool = False
    events: tuple[Node, ...] = field(compare=False, default=(), metadata=AS_WRITTEN)
    start: Node | None = None
    is_netted = True
    memory = Memory.ROWS

    @property
    def has_one_row(self) -> bool:
        return not self.keys

    def text(self) -> str:
        calls = ", ".join(map(print_aggregate, self.aggregates))
        by = ", ".join(print_expression(k) for k in self.keys)
        return f"Aggregate {calls}" + (f" by {by}" if by else " over all")

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [{i for e in self.expressions for i in columns_used(e)}, set()][: len(self.inputs)]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        node = self.over([i.node for i in inputs]).rewritten(inputs[0].moved)
        return Narrowed(self.schema, node, {i: i for i in range(len(self.schema))})

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return [frozenset(range(len(self.keys)))]

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        used = columns_used(condition)
        if self.start is not None or not used or max(used) >= len(self.keys):
            return ()
        # What fails in a group must not be hidden; a SUM can also fail on the group as a whole.
        sums = [Call(c.type, "+", (c.arg, c.arg)) for c in self.aggregates if c.function == "sum" and c.arg is not None]
        return () if any(map(can_fail, (*self.expressions, *sums))) else (substitute(condition, self.keys),)

    def grows_with(self) -> Sequence[Node] | None:
        return None if self.aggregates or self.is_global else (self.input,)

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        """With the further columns as further keys, behind its own; of a row over all, which is there without any row
        below, there is none.
        """
        if self.is_global:
            return None
        (below,) = inputs
        own, more = len(self.keys), _schema_of(below)
        fields = self.schema.fields
        node = dataclasses.replace(
            self.over([below.node]).rewritten(below.moved), schema=Schema(fields[:own] + more.fields + fields[own:])
        )
        node = dataclasses.replace(node, keys=(*node.keys, *below.carried))
        place = {i: i if i < own else i + len(more) for i in range(len(fields))}
        return Carried(node, place, range(own, own + len(more)))

    def or_of_no_rows(self, results: Sequence[Expr]) -> list[Expr]:
        """The aggregates' results, looked up and NULL where there is no group: of no rows COUNT is 0."""
        zero = Literal(Type.INTEGER, 0)
        counts = [call.function == "count" and not call.user for call in self.aggregates]
        return [Call(r.type, "coalesce", (r, zero)) if is_count else r for r, is_count in zip(results, counts)]

    def origins(self, below: Sequence[Origins]) -> Origins:
        if self.start is not None:
            return super().origins(below)
        keys = [below[0][key.index] if isinstance(key, ColumnRef) else None for key in self.keys]
        return [*keys, *([None] * len(self.aggregates))]

    @property
    def mixes(self) -> str | None:
        return None if self.start is None else "an aggregate without GROUP BY is over all keys"

    @property
    def is_by_arrival(self) -> bool:
        return any(call.is_by_arrival for call in self.aggregates)


class Distinct(Node):
    """Every row of input once."""

    input: Node
    is_netted = True
    memory = Memory.ROWS
    needs = whole_rows

    def text(self) -> str:
        return "Distinct"

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return [frozenset(range(len(self.schema))), *self.input.known_keys(catalog)]

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        return (condition,)

    def grows_with(self) -> Sequence[Node]:
        return self.inputs

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        return _carrying(self, inputs)

    def origins(self, below: Sequence[Origins]) -> Origins:
        return below[0]


class Top(Node):
    """The first rows of input, `limit` behind `offset`, sorted by `order`, then by value, column by column (R6).

    order: by which columns, and how.
    """

    input: Node
    order: tuple[tuple[int, SortKey], ...]
    limit: int
    offset: int = 0
    is_netted = True
    mixes = "ORDER BY .. LIMIT sorts the rows of all keys"
    memory = Memory.ROWS
    needs = whole_rows

    def text(self) -> str:
        keys = [f"{self.schema[i].name}{' DESC' if key.descending else ''}" for i, key in self.order]
        offset = f" behind {self.offset}" if self.offset else ""
        first = "Sort" if self.limit == EVERY_ROW else f"First {self.limit}{offset}"
        return f"{first} by {', '.join(keys)}"

    def numbered(self, node: Node) -> Over:
        """The rows of a node of this schema, each with its place in this order as a last column."""
        return Over.of(node, OverCall("row_number", Type.INTEGER, (), self.order, "ROW_NUMBER()"), in_order=False)

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        """By the numbers of the rows among those that agree in the further columns."""
        numbered = self.numbered(self.input).carrying(inputs).node
        *shown, number = column_refs(numbered.schema)
        least, most = (Literal(Type.INTEGER, n) for n in (self.offset, self.offset + self.limit))
        parts = [Call(Type.BOOLEAN, ">", (number, least)), Call(Type.BOOLEAN, "<=", (number, most))]
        node = projected(filtered(numbered, parts if self.offset else parts[1:]), shown)
        return Carried.beside(node, len(self.schema))

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.input.known_keys(catalog)


class Over(Node):
    """Every row of input with what the call gives it as a last column (R7); equal rows are sorted by value.

    at_most: rows whose rank is greater are of no interest to the reader.  in_order: by its order a row stands behind
    all rows of earlier instants.
    """

    input: Node
    call: OverCall
    at_most: int | None = None
    in_order: bool = False
    is_netted = True
    mixes = "OVER looks at rows beside a row"
    memory = Memory.ROWS
    needs = whole_rows

    @classmethod
    def of(cls, node: Node, call: OverCall, in_order: bool) -> Over:
        return cls(node.schema + Schema.of((call.label, call.type)), node, call, None, in_order)

    @property
    def is_append_only(self) -> bool:
        return self.in_order and not self.call.looks_ahead and self.input.is_append_only

    @property
    def is_fifo(self) -> bool:
        return self.is_append_only

    def text(self) -> str:
        names = self.input.schema.names
        by = f" by {', '.join(names[i] for i in self.call.partition)}" if self.call.partition else ""
        keys = [f"{names[i]}{' DESC' if key.descending else ''}" for i, key in self.call.order]
        ordered = f" in the order of {', '.join(keys)}" if keys else ""
        return f"Over {self.call.label}{by}{ordered}" + (f", up to {self.at_most}" if self.at_most is not None else "")

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        # A partition is there as a whole, or not at all; but what fails in one must not be hidden.
        used = columns_used(condition)
        return (condition,) if used and used <= set(self.call.partition) and not self.call.can_fail else ()

    def grows_with(self) -> Sequence[Node] | None:
        return self.inputs if self.in_order and not self.call.looks_ahead else None

    def carrying(self, inputs: Sequence[Carried]) -> Carried:
        """Partitioned by the further columns, too; they are the same in each partition, and so sort nothing."""
        node, width = further_last(inputs[0]), len(self.input.schema)
        below = Carried.beside(node, width)
        call = dataclasses.replace(self.call, partition=(*self.call.partition, *below.extra))
        place = {**below.place, width: len(node.schema)}
        return Carried(Over.of(node, call, in_order=False), place, below.extra)

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.input.known_keys(catalog)


class SetKind(enum.Enum):
    UNION = "UNION"
    EXCEPT = "EXCEPT"
    INTERSECT = "INTERSECT"


class SetOperation(Node):
    """left UNION|EXCEPT|INTERSECT [ALL] right, of equal column types."""

    op: SetKind
    all: bool
    left: Node
    right: Node

    @property
    def is_union_all(self) -> bool:
        """It compares no rows."""
        return self.all and self.op is SetKind.UNION

    @property
    def is_netted(self) -> bool:
        return not self.is_union_all

    @property
    def memory(self) -> Memory:
        return Memory.NOTHING if self.is_union_all else Memory.ROWS

    def text(self) -> str:
        return f"{self.op.value.title()}{' All' if self.all else ''}"

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [mine, mine] if self.is_union_all else [every_column(child) for child in self.inputs]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        if not self.is_union_all:
            return super().narrowed(mine, inputs)
        kept = sorted(mine)
        left, right = (side.exactly(kept) for side in inputs)
        node = dataclasses.replace(self, schema=left.schema, left=left, right=right)
        return Narrowed(self.schema, node, {i: k for k, i in enumerate(kept)})

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return [] if self.all else [frozenset(range(len(self.schema)))]

    def pushed(self, condition: Expr) -> Sequence[Expr]:
        return condition, condition

    def grows_with(self) -> Sequence[Node] | None:
        return None if self.op is SetKind.EXCEPT else self.inputs

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return self.is_union_all and not any(lasting)

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        left, right = inputs
        is_alike = left.place == right.place and list(left.extra) == list(right.extra)
        return _carrying(self, inputs) if is_alike else None

    def origins(self, below: Sequence[Origins]) -> Origins:
        return [together(a, b) for a, b in zip(below[0], below[1])]


class StreamKind(enum.Enum):
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


class RelationToStream(Node):
    """ISTREAM, DSTREAM or RSTREAM of a relation (S1, S2).

    events: the windows and base relations whose changes are RSTREAM's event instants, as written. ticks: RSTREAM
    speaks at every closed tick instead (`SET rstream = 'ticks'`). keeps_order: the derived stream keeps the arrival
    order of the one stream it filters and projects; else the rows of an instant are ordered by value (T3).

    In a plan the events have become `instants`, streams without columns, and `ordered` says where a window reads the
    stream, so that the order of an instant's rows matters.
    """

    op: StreamKind
    input: Node
    events: tuple[Node, ...] = field(compare=False, metadata=AS_WRITTEN)
    ticks: bool = False
    keeps_order: bool = field(compare=False, default=False)
    instants: tuple[Node, ...] = ()
    ordered: bool = False
    kind = "stream"
    is_fifo = is_append_only = True
    lookback = 1
    memory = Memory.NOTHING

    def text(self) -> str:
        return self.op.value.title() + (" at every tick" if self.ticks else "")

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [every_column(self.input), *(set() for _ in self.instants)]

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        return None if self.op is StreamKind.RSTREAM or self.ordered else _carrying(self, inputs)

    def origins(self, below: Sequence[Origins]) -> Origins:
        return below[0] if self.mixes is None else super().origins(below)

    @property
    def mixes(self) -> str | None:
        is_mixing = self.op is StreamKind.RSTREAM and not self.ticks
        return "RSTREAM speaks when anything changes, whatever its key" if is_mixing else None


def is_stream_of(node: Node, op: StreamKind) -> TypeGuard[RelationToStream]:
    """Whether it is this relation-to-stream operator."""
    return isinstance(node, RelationToStream) and node.op is op


# --------------------------------------------------------------------------------------------------------- building


def column_refs(schema: Schema, offset: int = 0) -> tuple[ColumnRef, ...]:
    """References to every column of a schema, as the identity projection has them."""
    return tuple(ColumnRef(f.type, i + offset, f.name) for i, f in enumerate(schema))


def projected(node: Node, exprs: Sequence[Expr], names: Sequence[str] | None = None) -> Node:
    """A projection of the node, named after its columns where names are not given.

    What only chooses columns of a projection that only chooses columns chooses from below it; what chooses every
    column in order is the node itself.
    """
    while isinstance(node, Project) and node.only_chooses:
        exprs = [substitute(e, node.exprs) for e in exprs]
        node = node.input
    if [e.index if isinstance(e, ColumnRef) else -1 for e in exprs] == list(range(len(node.schema))):
        return node
    fields = tuple(
        Field(names[i] if names is not None else getattr(e, "name", "") or f"column{i + 1}", e.type)
        for i, e in enumerate(exprs)
    )
    return Project(Schema(fields), node, tuple(exprs))


def further_last(carried: Carried) -> Node:
    """What is carried, with the further columns behind those of the node that it stands for."""
    columns = carried.all_columns
    is_so = [ref.index for ref in columns] == list(range(len(columns)))
    return carried.node if is_so else projected(carried.node, columns)


def filtered(node: Node, parts: Sequence[Expr]) -> Node:
    """The node under a filter of these conjuncts; itself when there are none."""
    condition = conjunction(parts)
    return node if condition is None else Filter(node.schema, node, condition)


def unfiltered(node: Node) -> tuple[Node, list[Expr]]:
    """What a filter stands on, and its conjuncts; any other node, and none."""
    return (node.input, conjuncts(node.condition)) if isinstance(node, Filter) else (node, [])


def to_stream(op: StreamKind, node: Node, ticks: bool) -> RelationToStream:
    """ISTREAM, DSTREAM or RSTREAM of a relation."""
    speaks_at_ticks = ticks and op is StreamKind.RSTREAM
    return RelationToStream(node.schema, op, node, changing(node), speaks_at_ticks, _keeps_order(op, node))


def _keeps_order(op: StreamKind, node: Node) -> bool:
    """Whether a derived stream keeps the arrival order of the one stream it filters and projects (T3)."""
    while isinstance(node, ByRow):
        if any(map(subqueries, node.expressions)):
            return False
        node = node.input
    if not isinstance(node, Window):
        return False
    if op is StreamKind.ISTREAM:
        return node.spec.kind is WindowKind.UNBOUNDED
    return op is StreamKind.RSTREAM and node.spec.is_now


def _carrying(node: Node, inputs: Sequence[Carried]) -> Carried:
    """A node that shows the columns of its inputs as they are."""
    first = inputs[0]
    made = node.over([each.node for each in inputs]).rewritten(first.moved)
    return Carried(dataclasses.replace(made, schema=first.node.schema), first.place, first.extra)


def _schema_of(carried: Carried) -> Schema:
    """Of the further columns."""
    return Schema(tuple(carried.node.schema[i] for i in carried.extra))


def _of_input(node: Node, condition: Expr) -> Sequence[Expr]:
    """The condition, if it reads columns of the input only, which come first."""
    return (condition,) if columns_used(condition) <= every_column(node) else ()


# ------------------------------------------------------------------------------------------------------- traversal


def changing(node: Node) -> tuple[Node, ...]:
    """The windows and base relations whose changes can change this relation, as written: found through relations and
    subqueries, stopping at windows (what lies under a window reaches the outside only through it). Each once. Where
    there are none, the constant relations, which begin to be there.

    These are the nodes docs/semantics R3 and S2 speak of.
    """
    found: dict[int, Node] = {}
    seen: set[int] = set()

    def visit(n: Node) -> None:
        if id(n) in seen:
            return
        seen.add(id(n))
        if isinstance(n, Window | BaseRelation | Constant):
            found[id(n)] = n
            return
        for e in n.expressions:
            for q in subqueries(e):
                visit(q)
        for child in n.inputs:
            visit(child)

    visit(node)
    all_ = tuple(found.values())
    return tuple(n for n in all_ if not isinstance(n, Constant)) or all_


def names_read(root: Node) -> list[str]:
    """The streams and relations that a node reads, as they are declared; without those of subqueries."""
    return [n.name for n in (*root.all_below, root) if isinstance(n, Declared)]


def with_subqueries(root: Node) -> Iterator[Node]:
    """Every node once, those in the subqueries of expressions included."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending.extend(node.inputs)
            pending.extend(query for expr in node.expressions for query in subqueries(expr))


def named(schema: Schema, names: tuple[str, ...]) -> Schema:
    """The schema under other column names."""
    return Schema(tuple(Field(name, f.type) for name, f in zip(names, schema)))
