"""Scalar expressions over one row: what a CQL expression means, by column numbers, and how such trees are rebuilt.

Invariant: an expression in which nothing is replaced comes back as the same object.  docs/semantics R2, R4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import wraps
from typing import TYPE_CHECKING, TypeGuard, TypeVar, dataclass_transform

from minidsms.elements import Type

if TYPE_CHECKING:
    from minidsms.aggregates.aggregate import Settings
    from minidsms.cql.node import Node

E = TypeVar("E", bound="Expr | Part")
R = TypeVar("R")


@dataclass(frozen=True)
class Part:
    """What is neither a node nor an expression, but holds some: a node's fields are looked through for them."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Expr:
    """A scalar expression over one row; what is derived from it is a frozen dataclass, too. `span` is (start, end) in
    the statement's text; it does not count as a difference.
    """

    type: Type
    span: tuple[int, int] = field(compare=False, default=(0, 0), kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class ColumnRef(Expr):
    """Column `index` of the input row."""

    index: int
    name: str = field(compare=False, default="")


class OuterRef(Expr):
    """Column `index` of the enclosing query's row: correlation. `level` 1 is the directly enclosing query."""

    index: int
    name: str = field(compare=False, default="")
    level: int = 1


class OverRef(Expr):
    """The result of a block's OVER call `index`, until the block's rows have it as a column (`cql.over`)."""

    index: int


class Literal(Expr):
    """A constant: None, bool, int (INTEGER, TIMESTAMP and INTERVAL in ticks, DATE, TIME), float, str or Decimal.

    exact: of a FLOAT, what is written, where that has more digits.  is_cast: CAST has made it a FLOAT, which it stays
    beside a DECIMAL.
    """

    value: bool | int | float | str | Decimal | None
    exact: Decimal | None = None
    is_cast: bool = field(default=False, compare=False)


class LiteralList(Expr):
    """Many constants of one type, none of them NULL: the list of an `in`, whose second and last argument it then is."""

    values: tuple[int | float | str | Decimal, ...]


class Call(Expr):
    """A built-in operator or function of `cql.functions`, by its lower-case name.

    Operators: + - * / % neg || = <> < <= > >= and or not like in, "is null", "is distinct from". `and` and `or` take
    two or more arguments (flattened). `in` takes the value, then the list, or one LiteralList. Negated forms are `not`
    of the plain one, except that `is not null` is `not(is null)`. BETWEEN is bound to its two comparisons.
    """

    function: str
    args: tuple[Expr, ...]


class Parameter(Expr):
    """A parameter of a lambda around this. slot: its number among those of all lambdas around, outermost first."""

    slot: int
    name: str = field(compare=False, default="")


class Lambda(Expr):
    """The last argument of a function that calls it for elements: of the type of its body, which may also read the row.

    first: the slot of the first of its `names`.
    """

    body: Expr
    first: int
    names: tuple[str, ...] = field(compare=False, default=())


class UserCall(Expr):
    """A function registered with `create_function`. `fixed`: it asks to stay where it was written among the filters."""

    function: str
    args: tuple[Expr, ...]
    fixed: bool = False


class Case(Expr):
    """CASE WHEN condition THEN result .. ELSE otherwise END; only the chosen branch is evaluated."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr


class Cast(Expr):
    """CAST(arg AS type); also written by the binder where INTEGER meets FLOAT. or_null: NULL where it fails."""

    arg: Expr
    or_null: bool = False


class Exists(Expr):
    """EXISTS (query)."""

    query: Node


class InQuery(Expr):
    """(args) IN (query), with SQL's NULL rules; args and the query's columns are of the same types."""

    args: tuple[Expr, ...]
    query: Node


class ScalarQuery(Expr):
    """(query) as a value: its one column of its one row; NULL without a row; more than one row is an error."""

    query: Node


class Quantified(Expr):
    """arg op ALL|ANY (query). op is a comparison; quantifier is 'all' or 'any'."""

    op: str
    quantifier: str
    arg: Expr
    query: Node


SUBQUERIES = Exists | InQuery | ScalarQuery | Quantified


@dataclass(frozen=True)
class AggregateCall(Part):
    """One aggregate of a group.

    function: what a kernel keeps (count, sum, avg, min, max, variance, stddev, first, last), of `arg`, None for
    COUNT(*); or what a state of Python values keeps, of `args`: a user aggregate (user True), or one of the table, with
    its settings.  ignores_nulls: FIRST and LAST pass over NULLs.
    """

    function: str
    arg: Expr | None
    type: Type
    distinct: bool = False
    user: bool = False
    args: tuple[Expr, ...] = ()
    settings: Settings | None = None
    ignores_nulls: bool = False
    span: tuple[int, int] = field(compare=False, default=(0, 0), kw_only=True)

    @property
    def has_objects(self) -> bool:
        """Its state is of Python values."""
        return self.user or self.settings is not None

    @property
    def is_by_arrival(self) -> bool:
        """The order of arrival matters to it."""
        if self.settings is not None:
            return self.settings.by_arrival
        return self.function in ("first", "last") and not self.user


# ------------------------------------------------------------------------------------------------------- traversal


def kept(fact: Callable[[E], R]) -> Callable[[E], R]:
    """What follows from an expression or part alone is found once, and kept beside its fields: rules ask many times."""
    name = f"_{fact.__name__}"

    @wraps(fact)
    def asked(expr: E) -> R:
        facts = vars(expr)
        if name not in facts:
            facts[name] = fact(expr)
        known: R = facts[name]
        return known

    return asked


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside (not those of subqueries)."""
    match expr:
        case ColumnRef() | Literal():
            return ()
        case Call(args=args) | UserCall(args=args):
            return args
        case Case(whens=whens, otherwise=otherwise):
            return (*(e for pair in whens for e in pair), otherwise)
        case Cast(arg=arg):
            return (arg,)
        case Lambda(body=body):
            return (body,)
        case InQuery(args=args):
            return args
        case Quantified(arg=arg):
            return (arg,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything inside it, outermost first; subqueries' insides are not entered."""
    pending = [expr]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(children(found)))


@kept
def subqueries(expr: Expr) -> tuple[Node, ...]:
    """The queries of the subquery expressions inside."""
    return tuple(e.query for e in walk(expr) if isinstance(e, SUBQUERIES))


@kept
def columns_used(expr: Expr) -> frozenset[int]:
    """The column numbers an expression reads."""
    return frozenset(e.index for e in walk(expr) if isinstance(e, ColumnRef))


# -------------------------------------------------------------------------------------------------------- rebuilding


def replace_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to each direct part; those of subqueries are none of them."""
    old = children(expr)
    new = [change(child) for child in old]
    if all(a is b for a, b in zip(old, new)):
        return expr
    match expr:
        case Call() | UserCall() | InQuery():
            return replace(expr, args=tuple(new))
        case Case():
            pairs = tuple((new[i], new[i + 1]) for i in range(0, len(new) - 1, 2))
            return replace(expr, whens=pairs, otherwise=new[-1])
        case Cast() | Quantified():
            return replace(expr, arg=new[0])
        case Lambda():
            return replace(expr, body=new[0])
        case _:
            raise AssertionError(f"no rule to rebuild {type(expr).__name__}")


def rewrite(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with every part, outermost first, replaced by `change(part)` unless that is None.

    What was replaced is not entered again; neither are subqueries.
    """
    changed = change(expr)
    return changed if changed is not None else replace_children(expr, lambda e: rewrite(e, change))


def substitute(expr: Expr, columns: Sequence[Expr]) -> Expr:
    """The expression with each column i replaced by columns[i]."""
    return rewrite(expr, lambda e: columns[e.index] if isinstance(e, ColumnRef) else None)


def rewrite_through(expr: Expr, change: Callable[[Expr, int], Expr | None]) -> Expr:
    """As `rewrite`, in subqueries, too. `change` is also told how many queries further in the part stands."""
    queries: dict[tuple[int, int], Node] = {}

    def rewritten(part: Expr, depth: int) -> Expr:
        changed = change(part, depth)
        if changed is not None:
            return changed
        found = replace_children(part, lambda child: rewritten(child, depth))
        if not isinstance(found, SUBQUERIES):
            return found
        query = inside(found.query, depth + 1)
        return found if query is found.query else replace(found, query=query)

    def inside(node: Node, depth: int) -> Node:
        key = id(node), depth
        if key not in queries:
            over = node.over([inside(child, depth) for child in node.inputs])
            queries[key] = over.rewritten(lambda e: rewritten(e, depth))
        return queries[key]

    return rewritten(expr, 0)


def is_own(part: Expr, depth: int) -> TypeGuard[ColumnRef | OuterRef]:
    """Whether it is a column of the row, seen from so many queries further in."""
    return isinstance(part, ColumnRef) if depth == 0 else isinstance(part, OuterRef) and part.level == depth


def renumbered(expr: Expr, number: Callable[[int], int]) -> Expr:
    """The expression with each column i of its row read as column number(i), in its subqueries, too."""
    return rewrite_through(expr, lambda e, depth: replace(e, index=number(e.index)) if is_own(e, depth) else None)


def shift(expr: Expr, by: int) -> Expr:
    """The expression over a row that stands `by` columns further right."""
    return expr if by == 0 else renumbered(expr, lambda i: i + by)


# ---------------------------------------------------------------------------------------------------- conditions


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of a conjunction, nested ANDs opened."""
    if condition is None:
        return []
    if isinstance(condition, Call) and condition.function == "and":
        return [part for arg in condition.args for part in conjuncts(arg)]
    return [condition]


def conjunction(parts: Sequence[Expr]) -> Expr | None:
    """The AND of the parts; None for none."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    span = (min(p.span[0] for p in parts), max(p.span[1] for p in parts))
    return Call(Type.BOOLEAN, "and", tuple(parts), span=span)


def queries_of_conjuncts(condition: Expr | None) -> tuple[Node, ...] | None:
    """The subqueries that turn conjuncts TRUE, never away from TRUE, as they grow; None when others occur."""
    found: list[Node] = []
    for conjunct in conjuncts(condition):
        match conjunct:
            case Exists(query=query):
                found.append(query)
            case InQuery(args=args, query=query) if not any(map(subqueries, args)):
                found.append(query)
            case Quantified(quantifier="any", arg=arg, query=query) if not subqueries(arg):
                found.append(query)
            case _ if subqueries(conjunct):
                return None
    return tuple(found)
