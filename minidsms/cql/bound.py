"""The bound query: what a CQL text means, as an algebra over positions.

The binder writes this tree; the planner rewrites and runs it; the evaluator by definition (`minidsms.testing`) reads
it as it stands. Names are resolved, types are known, defaults (docs/semantics D1 to D3) are written out, views are
expanded. A node used twice (a view named twice) is one Python object, so the tree is a DAG; nodes compare by
identity.

Rows are positional: a join's row is the left row followed by the right one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from minidsms.elements import Field as Field
from minidsms.elements import Schema as Schema
from minidsms.elements import Type as Type

# ---------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Expr:
    """A scalar expression over one row. `span` is (start, end) in the statement's text; it does not count as a
    difference.
    """

    type: Type
    span: tuple[int, int] = field(compare=False, default=(0, 0), kw_only=True)


@dataclass(frozen=True)
class ColumnRef(Expr):
    """Column `index` of the input row."""

    index: int
    name: str = field(compare=False, default="")


@dataclass(frozen=True)
class OuterRef(Expr):
    """Column `index` of the enclosing query's row: correlation. `level` 1 is the directly enclosing query."""

    index: int
    name: str = field(compare=False, default="")
    level: int = 1


@dataclass(frozen=True)
class Literal(Expr):
    """A constant: None, bool, int (INTEGER, TIMESTAMP and INTERVAL in ticks), float or str."""

    value: bool | int | float | str | None


@dataclass(frozen=True)
class Call(Expr):
    """A built-in operator or function of `cql.functions`, by its lower-case name.

    Operators: + - * / % neg || = <> < <= > >= and or not like in, "is null", "is distinct from". `and` and `or` take
    two or more arguments (flattened). `in` takes the value, then the list. Negated forms are `not` of the plain one,
    except that `is not null` is `not(is null)`. BETWEEN is bound to its two comparisons.
    """

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class UserCall(Expr):
    """A function registered with `create_function`. `fixed`: it asks to stay where it was written among the filters."""

    function: str
    args: tuple[Expr, ...]
    fixed: bool = False


@dataclass(frozen=True)
class Case(Expr):
    """CASE WHEN condition THEN result .. ELSE otherwise END; only the chosen branch is evaluated."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


@dataclass(frozen=True)
class Cast(Expr):
    """CAST(arg AS type); also written by the binder where INTEGER meets FLOAT."""

    arg: Expr


@dataclass(frozen=True)
class Exists(Expr):
    """EXISTS (query)."""

    query: Node


@dataclass(frozen=True)
class InQuery(Expr):
    """(args) IN (query), with SQL's NULL rules; args and the query's columns are of the same types."""

    args: tuple[Expr, ...]
    query: Node


@dataclass(frozen=True)
class ScalarQuery(Expr):
    """(query) as a value: its one column of its one row; NULL without a row; more than one row is an error."""

    query: Node


@dataclass(frozen=True)
class Quantified(Expr):
    """arg op ALL|ANY (query). op is a comparison; quantifier is 'all' or 'any'."""

    op: str
    quantifier: str
    arg: Expr
    query: Node


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a group. arg is None for COUNT(*).

    function: count, sum, avg, min, max, variance, stddev, first, last, or the name of a user aggregate (user True; then
    `args` holds all its arguments).
    """

    function: str
    arg: Expr | None
    type: Type
    distinct: bool = False
    user: bool = False
    args: tuple[Expr, ...] = ()
    span: tuple[int, int] = field(compare=False, default=(0, 0), kw_only=True)


# ---------------------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True, eq=False)
class Node:
    """A stream or a relation. `schema` gives its columns."""

    schema: Schema

    @property
    def kind(self) -> str:
        """ "stream" or "relation"."""
        return "relation"

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes read directly (subqueries inside expressions are not among them)."""
        return ()


@dataclass(frozen=True, eq=False)
class BaseStream(Node):
    """A declared stream."""

    name: str

    @property
    def kind(self) -> str:
        return "stream"


@dataclass(frozen=True, eq=False)
class BaseRelation(Node):
    """A declared relation."""

    name: str


class WindowKind(enum.Enum):
    """The windows of docs/semantics W1 to W7."""

    RANGE = "RANGE"
    ROWS = "ROWS"
    PARTITION = "PARTITION"
    UNBOUNDED = "UNBOUNDED"


@dataclass(frozen=True)
class WindowSpec:
    """What stands in the brackets, in ticks and rows.

    RANGE: range_ (0 is NOW), slide or None.  ROWS: rows, slide or None.  PARTITION: keys (column positions), rows,
    range_ or None. UNBOUNDED: nothing.
    """

    kind: WindowKind
    range_: int | None = None
    rows: int | None = None
    slide: int | None = None
    keys: tuple[int, ...] = ()

    @property
    def is_now(self) -> bool:
        return self.kind is WindowKind.RANGE and self.range_ == 0 and self.slide is None


@dataclass(frozen=True, eq=False)
class Window(Node):
    """A window over a stream: the relation of the elements it holds. name: what FROM calls it, or ""."""

    input: Node
    spec: WindowSpec
    name: str = ""

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """The rows of input for which the condition is TRUE (not FALSE, not NULL). Conjuncts are one flattened `and`."""

    input: Node
    condition: Expr

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Project(Node):
    """One row of expressions per row of input."""

    input: Node
    exprs: tuple[Expr, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


class JoinKind(enum.Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"


@dataclass(frozen=True, eq=False)
class Join(Node):
    """left JOIN right ON condition. A comma or CROSS JOIN is INNER with condition None."""

    join: JoinKind
    left: Node
    right: Node
    condition: Expr | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """A row per group: the keys' values, then the aggregates' results.

    Without GROUP BY keys is empty and is_global True: then there is exactly one row from the first arrival in any of
    `events` on (R3). `events` are the windows this block reads (or, where it reads none, its base relations), as
    written; see `changing`.
    """

    input: Node
    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    is_global: bool
    events: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Distinct(Node):
    """Every row of input once."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


class SetKind(enum.Enum):
    UNION = "UNION"
    EXCEPT = "EXCEPT"
    INTERSECT = "INTERSECT"


@dataclass(frozen=True, eq=False)
class SetOperation(Node):
    """left UNION|EXCEPT|INTERSECT [ALL] right, of equal column types."""

    op: SetKind
    all: bool
    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


class StreamKind(enum.Enum):
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"


@dataclass(frozen=True, eq=False)
class RelationToStream(Node):
    """ISTREAM, DSTREAM or RSTREAM of a relation (S1, S2).

    events: the windows and base relations whose changes are RSTREAM's event instants, as written. ticks: RSTREAM
    speaks at every closed tick instead (`SET rstream = 'ticks'`). keeps_order: the derived stream keeps the arrival
    order of the one stream it filters and projects; else the rows of an instant are ordered by value (T3).
    """

    op: StreamKind
    input: Node
    events: tuple[Node, ...]
    ticks: bool = False
    keeps_order: bool = False

    @property
    def kind(self) -> str:
        return "stream"

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


# ------------------------------------------------------------------------------------------------------- traversal


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside (not those of subqueries)."""
    match expr:
        case Call(args=args) | UserCall(args=args):
            return args
        case Case(whens=whens, otherwise=otherwise):
            return (*(e for pair in whens for e in pair), otherwise)
        case Cast(arg=arg):
            return (arg,)
        case InQuery(args=args):
            return args
        case Quantified(arg=arg):
            return (arg,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first; subqueries' insides are not entered."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def subqueries(expr: Expr) -> Iterator[Node]:
    """The queries of the subquery expressions inside."""
    for e in walk(expr):
        if isinstance(e, Exists | InQuery | ScalarQuery | Quantified):
            yield e.query


def expressions(node: Node) -> tuple[Expr, ...]:
    """The expressions a node evaluates itself."""
    match node:
        case Filter(condition=condition):
            return (condition,)
        case Project(exprs=exprs):
            return exprs
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Aggregate(keys=keys, aggregates=aggregates):
            args = [e for a in aggregates for e in ((a.arg,) if a.arg is not None else a.args)]
            return (*keys, *args)
        case _:
            return ()


def changing(node: Node) -> tuple[Node, ...]:
    """The windows and base relations whose changes can change this relation, as written: found through relations and
    subqueries, stopping at windows (what lies under a window reaches the outside only through it). Each once.

    These are the nodes docs/semantics R3 and S2 speak of.
    """
    found: dict[int, Node] = {}
    seen: set[int] = set()

    def visit(n: Node) -> None:
        if id(n) in seen:
            return
        seen.add(id(n))
        if isinstance(n, Window | BaseRelation):
            found[id(n)] = n
            return
        for e in expressions(n):
            for q in subqueries(e):
                visit(q)
        for child in n.inputs:
            visit(child)

    visit(node)
    return tuple(found.values())


def named(schema: Schema, names: tuple[str, ...]) -> Schema:
    """The schema under other column names."""
    return Schema(tuple(Field(name, f.type) for name, f in zip(names, schema)))
