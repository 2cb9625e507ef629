"""The logical plan: the bound algebra plus the nodes that rewriting brings in.

A plan is a DAG of `cql.bound` nodes and those below. Windows that docs/semantics R3 and S2 speak of "as written" are
turned into explicit inputs (`FirstArrival`, `WindowEvents`) before any rule runs, so that no rewrite can move an
instant (W8).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Narrowed, Node, every_column, no_columns, whole_rows
from minidsms.cql.bound import column_refs as column_refs
from minidsms.cql.bound import filtered as filtered
from minidsms.cql.bound import projected as projected
from minidsms.cql.bound import unfiltered as unfiltered
from minidsms.cql.functions import can_fail
from minidsms.cql.node import Carried, Memory
from minidsms.cql.origins import Origins, equal_places, together
from minidsms.cql.scalar import Part
from minidsms.cql.scalar import columns_used as columns_used
from minidsms.cql.scalar import conjunction as conjunction
from minidsms.cql.scalar import conjuncts as conjuncts
from minidsms.cql.scalar import renumbered as renumbered
from minidsms.cql.scalar import replace_children as replace_children
from minidsms.cql.scalar import rewrite as rewrite
from minidsms.cql.scalar import shift as shift
from minidsms.cql.scalar import substitute as substitute
from minidsms.cql.scalar_text import print_expression
from minidsms.cql.window_spec import WindowSpec
from minidsms.elements import Field, Schema
from minidsms.joins.bands import Band
from minidsms.joins.directed_graph import Edge
from minidsms.joins.equal_columns import equalities_text
from minidsms.plan.input_names import input_names
from minidsms.synopses.measure import Measure

if TYPE_CHECKING:
    from minidsms.cql.catalog import Catalog
    from minidsms.cql.keys import Key

NO_COLUMNS = Schema(())


class WindowEvents(Node):
    """The instants at which a window over `input` changes, as a stream without columns (S2)."""

    input: Node
    spec: WindowSpec
    kind = "stream"
    memory = Memory.OWN

    def text(self) -> str:
        return f"Instants of [{self.spec.text(self.input.schema)}]"

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [set(self.spec.keys)]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        node = dataclasses.replace(self, input=inputs[0].node, spec=self.spec.over(inputs[0].place))
        return Narrowed(self.schema, node, {})

    @property
    def lookback(self) -> int | str:
        return self.spec.lookback


class RelationEvents(Node):
    """The instants at which a base relation gets a change, as a stream without columns (S2)."""

    relation: str
    kind = "stream"
    memory = Memory.ROWS
    needs = no_columns

    @property
    def shape(self) -> tuple[str, str]:
        return "relation events", self.relation.lower()

    def text(self) -> str:
        return f"Changes of {self.relation}"


class FirstArrival(Node):
    """A relation of no columns that gains its one row at the first arrival in any of the inputs (R3)."""

    sources: tuple[Node, ...]
    memory = Memory.FIRST
    needs = no_columns

    def text(self) -> str:
        return "First Arrival"


class SemiJoin(Node):
    """The rows of left with (anti: without) a row of right whose keys are equal.

    pairs: (expression over left, expression over right); none: any row of right will do.  null_safe: NULL equals NULL;
    else a NULL key equals nothing.
    """

    left: Node
    right: Node
    pairs: tuple[tuple[Expr, Expr], ...]
    anti: bool
    null_safe: bool = False
    is_empty_with_input = True
    memory = Memory.ROWS

    def text(self) -> str:
        on = ", ".join(f"{print_expression(a)} = {print_expression(b)}" for a, b in self.pairs) or "any row"
        return f"{'Antijoin' if self.anti else 'Semijoin'} on {on}" + (" (NULL = NULL)" if self.null_safe else "")

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        own = {i for a, _ in self.pairs for i in columns_used(a)}
        return [mine | own, {i for _, b in self.pairs for i in columns_used(b)}]

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        left, right = inputs
        pairs = tuple((left.moved(a), right.moved(b)) for a, b in self.pairs)
        node = SemiJoin(left.node.schema, left.node, right.node, pairs, self.anti, self.null_safe)
        return Narrowed(self.schema, node, left.place)

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.left.known_keys(catalog)

    def pushed(self, condition: Expr) -> Sequence[Expr | None]:
        return condition, None

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return not lasting[0]

    def origins(self, below: Sequence[Origins]) -> Origins:
        found = list(super().origins(below))
        for i, j in equal_places(self.pairs):
            found[i] = together(below[0][i], below[1][j])
        return found


@dataclass(frozen=True)
class Probe(Part):
    """A semi-join as a filter. right: its columns are the keys.  keys: the same of the stream, by number; none: any row
    of right will do.  of_nulls: the number of a column; only rows in which it is NULL ask, all others pass.
    """

    right: Node
    keys: tuple[int, ...]
    anti: bool
    null_safe: bool
    of_nulls: int | None = None


class ProbedStream(Node):
    """The elements of a stream for which, at their own instants, the condition is TRUE and all probes say yes."""

    input: Node
    condition: Expr | None
    probes: tuple[Probe, ...]
    kind = "stream"
    shape = None
    is_fifo = is_append_only = True
    memory = Memory.ROWS
    needs = whole_rows

    def text(self) -> str:
        parts = [] if self.condition is None else [print_expression(self.condition)]
        return "Filter " + " AND ".join([*parts, *map(self.probe_text, range(len(self.probes)))])

    def probe_text(self, number: int) -> str:
        """A probe in words: `a IN (.. S1 ..)`."""
        probe = self.probes[number]
        names = [self.schema[key].name for key in probe.keys]
        keys = "" if not names else f"{names[0]} " if len(names) == 1 else f"({', '.join(names)}) "
        read = bound.names_read(probe.right)
        asked = f"{keys}{'NOT ' if probe.anti else ''}{'IN' if keys else 'EXISTS'} (.. {', '.join(read)} ..)"
        return asked if probe.of_nulls is None else f"({self.schema[probe.of_nulls].name} IS NOT NULL OR {asked})"


Equality = tuple[tuple[int, int], tuple[int, int]]
"""((input, column), (input, column)) that are equal."""


class MultiJoin(Node):
    """The rows of several relations side by side where all equalities hold.

    columns: the (input, column) of each column of the schema.  shown: the columns that stand unchanged in the rows of
    the ISTREAM above, where nothing else reads them; else None.  specs: where given, `windows` are the streams, and
    the join itself lets their rows go as these windows do; None for a relation, whose changes it follows.  names: what
    FROM calls each window, or "".  bands: what the filter above asks for; pairs outside may be left out. Beside an
    equality they may be a part of what windows are indexed by.  outer: a left outer join of two relations.
    only_enters: as of `bound.Join`, where it is a relation.
    """

    windows: tuple[Node, ...]
    equalities: tuple[Equality, ...]
    columns: tuple[tuple[int, int], ...]
    shown: tuple[int, ...] | None = None
    specs: tuple[WindowSpec | None, ...] | None = None
    names: tuple[str, ...] = field(compare=False, default=())
    bands: tuple[Band, ...] = field(default=(), kw_only=True)
    outer: bool = field(default=False, kw_only=True)
    only_enters: bool = field(default=False, kw_only=True)
    memory = Memory.ROWS

    @property
    def own_windows(self) -> Sequence[tuple[WindowSpec, Node]]:
        return [(spec, stream) for spec, stream in zip(self.specs or (), self.windows) if spec is not None]

    def text(self) -> str:
        specs = zip(self.specs or (), self.windows)
        of = ", ".join("changes" if spec is None else f"[{spec.text(stream.schema)}]" for spec, stream in specs)
        names = [window.schema.names for window in self.windows]
        told = input_names(self.names)
        equal = equalities_text(self.equalities, names, told)
        bands = self.bands if len(self.windows) > 2 or not equal else ()
        on = " AND ".join([*([equal] if equal else []), *(band.text(names, told) for band in bands)])
        kind = "Left " if self.outer else f"{len(names)}-way "
        kind += f"Join{self._how()} on {on}" if on else "Product"
        return kind + (f" of {of}" if of else "")

    def _how(self) -> str:
        return ""

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [every_column(window) for window in self.windows]

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        """Where one of them alone carries something, behind its own columns."""
        own = [i for i, each in enumerate(inputs) if each.extra]
        if len(own) != 1 or any(old != new for each in inputs for old, new in each.place.items()):
            return None
        which = own[0]
        if self.outer and which == 1:
            return None
        width, more = len(self.schema), inputs[which].carried
        node = dataclasses.replace(
            self,
            schema=self.schema + Schema(tuple(Field(ref.name, ref.type) for ref in more)),
            windows=tuple(each.node for each in inputs),
            columns=(*self.columns, *((which, ref.index) for ref in more)),
            shown=None if self.shown is None else (*self.shown, *range(width, width + len(more))),
        )
        return Carried.beside(node, width)

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        return self.specs is None and not (lasting[0] if self.outer else all(lasting))


class LookupJoin(Node):
    """The elements of a stream beside the rows that a relation has of their key at their own instants.

    keys: (column of the stream, column of the relation) that are equal, NULL equals nothing; none: every row will do.
    columns: the (input, column) of each column of the schema.  outer: elements without such a row are there, too.
    """

    input: Node
    right: Node
    keys: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]
    outer: bool
    kind = "stream"
    is_fifo = is_append_only = True
    memory = Memory.ROWS
    needs = whole_rows

    def text(self) -> str:
        names = [each.schema.names for each in self.inputs]
        on = equalities_text([((0, a), (1, b)) for a, b in self.keys], names)
        return f"{'Left ' if self.outer else ''}Lookup Join on {on or 'every row'}"


def putting_out(project: bound.Project, join: MultiJoin | LookupJoin, above: Sequence[Expr] = ()) -> Node:
    """A projection over a join that puts out the columns read and no others, and itself chooses columns.

    above: filters that stand between the two.
    """
    if not above and project.only_chooses:
        chosen = [e.index for e in project.exprs if isinstance(e, bound.ColumnRef)]
        return dataclasses.replace(join, schema=project.schema, columns=tuple(join.columns[i] for i in chosen))
    used = sorted({i for e in (*project.exprs, *above) for i in columns_used(e)})
    place = {old: new for new, old in enumerate(used)}.__getitem__
    schema, columns = Schema(tuple(join.schema[i] for i in used)), tuple(join.columns[i] for i in used)
    source = filtered(dataclasses.replace(join, schema=schema, columns=columns), [renumbered(e, place) for e in above])
    return dataclasses.replace(project, input=source, exprs=tuple(renumbered(e, place) for e in project.exprs))


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
    memory = Memory.ALL
    own_windows = ()

    @property
    def shape(self) -> Hashable:
        how = self.mode, self.trust, self.unique
        return "reduced join", self.edges, self.columns, self.shown is None, self.specs, self.passes, how

    def _how(self) -> str:
        return f" reduced ({self.mode})"

    def carrying(self, inputs: Sequence[Carried]) -> None:
        return None


class Entering(Node):
    """A window's rows as they enter it: a stream (see `operators.entering`)."""

    input: Node
    is_fifo = is_append_only = True
    memory = Memory.NOTHING
    needs = whole_rows

    def text(self) -> str:
        return "Entering"

    def known_keys(self, catalog: Catalog) -> list[Key]:
        return self.input.known_keys(catalog)


class NewRows(Node):
    """Of rows that last an instant, as a stream, those that were not there an instant before (S1)."""

    input: Node
    kind = "stream"
    is_fifo = is_append_only = True
    lookback = 1
    memory = Memory.OWN
    needs = whole_rows

    def text(self) -> str:
        return "Istream of rows of one instant"

    def origins(self, below: Sequence[Origins]) -> Origins:
        return below[0]


class KeepArrival(Node):
    """A window's rows with their arrival numbers as a last column (see `operators.arrival`)."""

    input: Node
    memory = Memory.NOTHING
    needs = whole_rows

    @property
    def is_fifo(self) -> bool:
        return self.input.is_fifo

    @property
    def is_append_only(self) -> bool:
        return self.input.is_append_only

    def text(self) -> str:
        return "Keep Arrival"


class RestoreArrival(Node):
    """The rows without their last column, which holds their arrival numbers."""

    input: Node
    memory = Memory.NOTHING
    needs = whole_rows

    def text(self) -> str:
        return "Restore Arrival"


class Constants(Node):
    """The rows of a stream, each once for every query of a family whose filter it passes, with the query's number as a
    last column (see `operators.constants`).
    """

    input: Node
    family: int
    kind = "stream"
    is_fifo = is_append_only = True
    needs = whole_rows

    def text(self) -> str:
        return "Join with the constants of queries"


class Openings(Node):
    """A row of NULLs for every query of a family, at the first arrival in any of the streams, that never leaves.

    number: the column that has the query's number instead.
    """

    sources: tuple[Node, ...]
    family: int
    number: int
    is_fifo = is_append_only = is_netted = True
    needs = no_columns

    def text(self) -> str:
        return "A row for every query"


class Panes(Node):
    """The elements of a stream between two multiples of a slide, as one row per group: the keys, then the measures (see
    `operators.panes`). lag: of the window's spec.
    """

    input: Node
    slide: int
    lag: int
    keys: tuple[int, ...]
    measures: tuple[Measure, ...]
    kind = "stream"
    is_fifo = is_append_only = True

    def text(self) -> str:
        names = self.input.schema.names
        told = ", ".join(measure.text(self.input.schema) for measure in self.measures)
        by = ", ".join(names[key] for key in self.keys)
        return f"Panes of {self.slide}: {told}" + (f" by {by}" if by else "")

    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        return [{*self.keys, *(measure.column for measure in self.measures if measure.column >= 0)}]


class Netted(Node):
    """A relation of which no row is both deleted and inserted at one instant."""

    input: Node
    is_netted = True
    memory = Memory.NOTHING
    needs = whole_rows

    def text(self) -> str:
        return "Net"


class OwnRows(bound.Project):
    """Of rows that are all of one query, all columns but its number."""

    @property
    def shows_all(self) -> bool:
        return True


class Stop(Node):
    """The root of a query: what its output operator receives. relation: changes are netted per instant."""

    input: Node
    is_relation: bool
    shape = None
    needs = whole_rows

    @property
    def kind(self) -> str:
        return self.input.kind

    def text(self) -> str:
        return "Output" + (", netted per instant" if self.is_relation else "")

    def origins(self, below: Sequence[Origins]) -> Origins:
        return below[0]


@dataclass(frozen=True)
class LogicalPlan:
    """The plan as built, after each rule that changed it (rule name, plan), and at the end.

    notes: what was asked for and could not be, in words.
    """

    stages: tuple[tuple[str, Stop], ...]
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> Stop:
        return self.stages[-1][1]


def transform(root: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild a plan bottom-up: `change` sees each node once, over its already changed inputs. Shared nodes stay
    shared.
    """
    return rebuilt(root, lambda _, node: change(node))


def rebuilt(root: Node, change: Callable[[Node, Node], Node]) -> Node:
    """As `transform`; `change` sees the node as it was, too, before itself over other inputs."""
    done: dict[int, Node] = {}
    for node in nodes(root):
        done[id(node)] = change(node, node.over([done[id(child)] for child in node.inputs]))
    return done[id(root)]


def nodes(root: Node) -> tuple[Node, ...]:
    """Every node once, inputs before their readers."""
    return (*root.all_below, root)


def momentary(root: Node) -> set[int]:
    """The nodes no row of which outlives the instant at which it came, by id."""
    found: set[int] = set()
    for node in nodes(root):
        if node.is_momentary([id(child) not in found for child in node.inputs]):
            found.add(id(node))
    return found


def reader_counts(root: Node) -> dict[int, int]:
    """How many nodes read each node, by id."""
    counts: dict[int, int] = {id(root): 1}
    for node in nodes(root):
        for child in node.inputs:
            counts[id(child)] = counts.get(id(child), 0) + 1
    return counts


def union_all(a: Node, b: Node) -> Node:
    """The rows of both, with the names of the first."""
    return bound.SetOperation(a.schema, bound.SetKind.UNION, True, a, b)


# ------------------------------------------------------------------------------------------------ expression helpers


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


def taken_as_where(node: Node) -> tuple[Node, list[Expr]]:
    """What stands below a filter, and the filter's conjuncts: with WHERE the ONs of inner joins are one conjunction
    (R4), so what they say and can fail is taken out of them.
    """
    below, parts = unfiltered(node)
    bare, failing = _without_failing(below)
    return bare, [*failing, *parts]


def _without_failing(node: Node, offset: int = 0) -> tuple[Node, list[Expr]]:
    """Inner joins without the conjuncts of their ON that can fail, and these. offset: of the node's first column."""
    if not bound.is_inner_join(node):
        return node, []
    parts = conjuncts(node.condition)
    left, from_left = _without_failing(node.left, offset)
    right, from_right = _without_failing(node.right, offset + len(node.left.schema))
    failing = [shift(p, offset) for p in parts if can_fail(p)]
    if not failing and left is node.left and right is node.right:
        return node, []
    kept = conjunction([p for p in parts if not can_fail(p)])
    return dataclasses.replace(node, left=left, right=right, condition=kept), [*from_left, *from_right, *failing]
