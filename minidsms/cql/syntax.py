"""The syntax tree: what a CQL text says, before anybody asks what it means.

The parser writes it, the binder reads it, the printer turns it back into text. Names are as written and unresolved,
durations are a number and a unit as written (the binder knows the connection's tick), nothing is defaulted.

Invariant: two texts that differ only in layout, comments, letter case of keywords, the spelling S3 of a
relation-to-stream operator or redundant parentheses give equal trees: `span` does not count as a difference.
docs/semantics R1, S3, "Statements".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, dataclass_transform

from minidsms.elements import Type

Span = tuple[int, int]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Syntax:
    """Any node; what is derived from it is a frozen dataclass, too. `span` is (start, end) in the text that was parsed;
    (0, 0) for a node nobody wrote.
    """

    span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Duration(Syntax):
    """A length of time. number: digits, perhaps with a decimal point, separators taken out.

    unit: lower-case singular from nanosecond to week, or None for ticks; of an Interval also month, quarter and year.
    """

    number: str
    unit: str | None = None


# ---------------------------------------------------------------------------------------------------- expressions


class Name(Syntax):
    """A column, `name` or `qualifier.name`; a bare one may also be a FROM alias that stands for its whole row."""

    name: str
    qualifier: str | None = None


class Star(Syntax):
    """`*` or `qualifier.*`: in a select list, or as the argument of COUNT(*).

    left_out: the columns behind EXCLUDE.  replaced: those behind REPLACE, whose aliases say in whose places they stand.
    renamed: names of columns, and the aliases that RENAME gives them.
    """

    qualifier: str | None = None
    left_out: tuple[Name, ...] = ()
    replaced: tuple[SelectItem, ...] = ()
    renamed: tuple[SelectItem, ...] = ()


class Literal(Syntax):
    """NULL, TRUE, FALSE, a number or a text. `-5` is the literal -5."""

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and TRUE differ: what is computed with them does."""
        return isinstance(other, Literal) and type(self.value) is type(other.value) and bool(self.value == other.value)


class Interval(Syntax):
    """`INTERVAL '10' SECOND` or `10 SECONDS`; the duration's unit is never None."""

    duration: Duration


class Unary(Syntax):
    """op: '-' or 'not'. (A leading plus is dropped.)"""

    op: str
    operand: Expr


class Binary(Syntax):
    """op: + - * / % || = <> < <= > >=."""

    op: str
    left: Expr
    right: Expr


class Logical(Syntax):
    """A chain of one connective. op: 'and' or 'or'; two or more operands, none of them a Logical of the same op."""

    op: str
    operands: tuple[Expr, ...]


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """What AND connects, or the condition alone."""
    return condition.operands if isinstance(condition, Logical) and condition.op == "and" else (condition,)


class IsNull(Syntax):
    """operand IS [NOT] NULL."""

    operand: Expr
    negated: bool = False


class IsDistinctFrom(Syntax):
    """left IS [NOT] DISTINCT FROM right."""

    left: Expr
    right: Expr
    negated: bool = False


class Between(Syntax):
    """operand [NOT] BETWEEN low AND high. column: where SYMMETRIC stands before a sign, and may be one."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False
    column: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


class Like(Syntax):
    """operand [NOT] LIKE | ILIKE pattern [ESCAPE escape]."""

    operand: Expr
    pattern: Expr
    escape: Expr | None = None
    negated: bool = False
    ignores_case: bool = False


class InList(Syntax):
    """operand [NOT] IN (items)."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


class LiteralList(Syntax):
    """The only item of an InList that names many numbers, or many texts: one node, however many they are."""

    values: tuple[int | float, ...] | tuple[str, ...]


class InQuery(Syntax):
    """operand [NOT] IN (query). The operand may be a Row, or a Name that stands for a whole row."""

    operand: Expr
    query: Query
    negated: bool = False


class Exists(Syntax):
    """EXISTS (query); NOT EXISTS is Unary('not', Exists)."""

    query: Query


class ScalarQuery(Syntax):
    """(query) as a value; is_list: ARRAY(query), the list of its values."""

    query: Query
    is_list: bool = False


class Quantified(Syntax):
    """operand op ALL|ANY (query). op: a comparison of Binary; quantifier: 'all' or 'any' (SOME is 'any')."""

    op: str
    quantifier: str
    operand: Expr
    query: Query


class Call(Syntax):
    """function([DISTINCT] args [ORDER BY order]): scalar, aggregate or user's; the name as written.

    COUNT(*) has args (Star(),).  within: the order stands in WITHIN GROUP.  nulls: "ignore" or "respect" where NULLS
    says so behind it.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    within: bool = False
    nulls: str = ""


class GroupingSets(Syntax):
    """GROUPING SETS ((a, b), a, ROLLUP (c), ()): in GROUP BY only. ROLLUP and CUBE, too, which are written as calls."""

    items: tuple[Expr, ...]


class EveryKey(Syntax):
    """ALL behind GROUP BY: whatever the select list shows that has no aggregate."""


class SortKey(Syntax):
    """One expression of ORDER BY. nulls_first: None where the text does not say."""

    expr: Expr
    descending: bool = False
    nulls_first: bool | None = None


class FrameBound(Syntax):
    """length PRECEDING (direction -1) or FOLLOWING (1), without a length UNBOUNDED; CURRENT ROW (0)."""

    direction: int
    length: Duration | None = None


class Frame(Syntax):
    """unit BETWEEN start AND end. unit: rows, range or groups."""

    unit: str
    start: FrameBound
    end: FrameBound


class Over(Syntax):
    """call OVER ([window] [PARTITION BY partition] [ORDER BY order] [frame]).

    window: a name that WINDOW would have to give; None in every tree of a query.
    """

    call: Call
    partition: tuple[Expr, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: Frame | None = None
    window: str | None = None


class Case(Syntax):
    """CASE [operand] WHEN .. THEN .. [ELSE otherwise] END."""

    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None


class Cast(Syntax):
    """CAST(operand AS type). or_null: TRY_CAST."""

    operand: Expr
    type: Type
    or_null: bool = False


class TypedText(Cast):
    """TIMESTAMP, DATE or TIME 'text': a literal, read with the statement and not row by row."""


class Pair(Syntax):
    """`name := value`, an argument of STRUCT or MAP; the name is any expression."""

    name: Expr
    value: Expr


class Lambda(Syntax):
    """`x -> body` or `(x, y) -> body`, an argument of a function that calls it."""

    parameters: tuple[str, ...]
    body: Expr


ELEMENT = "an element"
"""The parameter of the lambda that ALL and ANY of a list are read as; no name a user writes has a blank."""


class Row(Syntax):
    """(a, b, ..): two or more items; of none, in GROUP BY only, the set of no keys."""

    items: tuple[Expr, ...]


# -------------------------------------------------------------------------------------------------------- windows


class RangeWindow(Syntax):
    """[RANGE range [SLIDE slide]]."""

    range: Duration
    slide: Duration | None = None


class NowWindow(Syntax):
    """[NOW]."""


class UnboundedWindow(Syntax):
    """[RANGE UNBOUNDED] or [ROWS UNBOUNDED], which mean the same."""


class RowsWindow(Syntax):
    """[ROWS rows [SLIDE slide]]."""

    rows: int
    slide: int | None = None


class HopWindow(Syntax):
    """[HOP length EVERY step], or [TUMBLE length] where step is None."""

    length: Duration
    step: Duration | None = None


class SessionWindow(Syntax):
    """[SESSION gap [PARTITION BY keys]]."""

    gap: Duration
    keys: tuple[Name, ...] = ()


class PartitionWindow(Syntax):
    """[PARTITION BY keys ROWS rows [RANGE range] [SLIDE slide]]; a slide is written down for the binder to refuse."""

    keys: tuple[Name, ...]
    rows: int
    range: Duration | None = None
    slide: Duration | None = None


# ----------------------------------------------------------------------------------------------------------- FROM


class TableRef(Syntax):
    """name [window] [[AS] alias [(columns)]]: a stream, relation or view."""

    name: str
    window: Window | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()


class QueryRef(Syntax):
    """[LATERAL] (query) [window] [[AS] alias [(columns)]]. is_lateral: the query sees the items before it."""

    query: Query
    window: Window | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()
    is_lateral: bool = False


class ParenthesisedRef(Syntax):
    """(item) [window] [AS alias [(columns)]], with at least one of the two: `(CarStr [PARTITION BY cid ROWS 1]) AS
    LastRep`.
    """

    item: FromItem
    window: Window | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()


class Unnest(Syntax):
    """UNNEST(list) [WITH ORDINALITY] [[AS] alias [(columns)]]: a row for each element; the list may use the items
    before it. is_numbered: WITH ORDINALITY, a second column is the place of the element.
    """

    list: Expr
    alias: str | None = None
    columns: tuple[str, ...] = ()
    is_numbered: bool = False


class Join(Syntax):
    """left [NATURAL] kind JOIN right [ON on | USING (using)].

    kind: 'inner', 'left', 'right', 'full', 'cross', 'semi' or 'anti'.

    as_of: it is an ASOF JOIN, inner or left; what MATCH_CONDITION says is the last condition of on, beside USING on.
    """

    kind: str
    left: FromItem
    right: FromItem
    on: Expr | None = None
    using: tuple[Name, ...] = ()
    natural: bool = False
    as_of: bool = False


# -------------------------------------------------------------------------------------------------------- queries


class SelectItem(Syntax):
    """expr [AS alias]. The expr may be a Star, then without alias."""

    expr: Expr
    alias: str | None = None


class Select(Syntax):
    """SELECT [DISTINCT] items FROM sources [WHERE where] [GROUP BY group_by] [HAVING having] [QUALIFY qualify].

    sources: the comma-separated items of FROM; () where FROM is missing.  written: the items whose names WHERE may use,
    where they are others.  absent: the keys of other sets, which are NULL. Both are () but in the query of a set of
    GROUPING SETS.  shown: ORDER BY behind DISTINCT ON, by which what is returned at once is sorted, too.
    """

    items: tuple[SelectItem, ...]
    sources: tuple[FromItem, ...]
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    qualify: Expr | None = None
    written: tuple[SelectItem, ...] = ()
    absent: tuple[Expr, ...] = ()
    shown: tuple[SortKey, ...] = field(default=(), compare=False)


class Limited(Syntax):
    """query ORDER BY order LIMIT limit [OFFSET offset]. limit: None where it is not written."""

    query: Select
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0


class Values(Syntax):
    """Rows written out: `VALUES (..), ..`, whose items have no aliases, or `SELECT items` without FROM, one row."""

    rows: tuple[tuple[SelectItem, ...], ...]
    is_select: bool = False


class SetOperation(Syntax):
    """left op [ALL] [BY NAME] right. op: 'union', 'except' or 'intersect'."""

    op: str
    all: bool
    left: Query
    right: Query
    by_name: bool = False


class RelationToStream(Syntax):
    """op (query). op: 'istream', 'dstream' or 'rstream'.

    `SELECT ISTREAM(a) FROM ..` is RelationToStream over the Select.
    """

    op: str
    query: Query


class CommonTable(Syntax):
    """name [(columns)] AS (query), of a WITH."""

    name: str
    query: Query
    columns: tuple[str, ...] = ()


class With(Syntax):
    """WITH tables query: each table is a name in those behind it and in the query, and hides what else is called so."""

    tables: tuple[CommonTable, ...]
    query: Query


# ----------------------------------------------------------------------------------------------------- statements


class ColumnDef(Syntax):
    """name type: of a declaration."""

    name: str
    type: Type


class Option(Syntax):
    """name = value inside WITH (..); the name is lower-case."""

    name: str
    value: bool | int | float | str | Duration


class Source(Syntax):
    """FROM 'path' [FORMAT format] [WITH (options)]; format lower-case: csv, json, parquet, arrow or archive."""

    path: str
    format: str | None = None
    options: tuple[Option, ...] = ()


class Generator(Syntax):
    """FROM GENERATOR name(args) [FORMAT format] [WITH (options)]."""

    name: str
    args: tuple[Expr, ...] = ()
    format: str | None = None
    options: tuple[Option, ...] = ()


class Named(Syntax):
    """A statement about what has a name. name_span: where that stands."""

    name: str
    name_span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)


class CreateStream(Named):
    """CREATE STREAM (or REGISTER STREAM); clauses in any order. archive: the folder, or None.

    is_optional: IF NOT EXISTS, of all that is created.
    """

    columns: tuple[ColumnDef, ...]
    timestamp_by: Name | None = None
    slack: Duration | None = None
    late_drop: bool = False
    key: tuple[Name, ...] = ()
    source: Source | Generator | None = None
    archive: str | None = None
    is_optional: bool = False


class CreateRelation(Named):
    """CREATE RELATION (or REGISTER RELATION)."""

    columns: tuple[ColumnDef, ...]
    key: tuple[Name, ...] = ()
    source: Source | Generator | None = None
    archive: str | None = None
    is_optional: bool = False


class CreateView(Named):
    """CREATE [OR REPLACE] VIEW name [(columns)] AS query.

    types: what a STREAM script's `vtable` gives its columns, or ().
    """

    query: Query
    columns: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    is_optional: bool = False
    replaces: bool = False


class CreateQuery(Named):
    """CREATE [OR REPLACE] QUERY name AS query, then INTO path FORMAT format, ARCHIVE folder, WITH HISTORY, BACKFILL
    FROM folder.

    options: of WITH (..) behind INTO. Paths stand in quotes; the clauses are optional and in any order.
    """

    query: Query
    into: str | None = None
    format: str | None = None
    archive: str | None = None
    with_history: bool = False
    backfill: str | None = None
    options: tuple[Option, ...] = ()
    is_optional: bool = False
    replaces: bool = False


class Drop(Named):
    """DROP kind [IF EXISTS] name. kind: 'stream', 'relation', 'view' or 'query'."""

    kind: str
    is_optional: bool = False


class AlterQuery(Named):
    """ALTER QUERY name action. action: 'set' (then setting and value), 'pause', 'resume', 'pin plan', 'unpin plan'."""

    action: str
    setting: str | None = None
    value: bool | int | float | str | None = None
    setting_span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)


class AlterStream(Named):
    """ALTER STREAM name action. action: 'pause' or 'resume', of its source."""

    action: str


class AddColumn(Named):
    """ALTER STREAM name ADD COLUMN [IF NOT EXISTS] column."""

    column: ColumnDef
    is_optional: bool = False


class Checkpoint(Syntax):
    """CHECKPOINT."""


class Show(Syntax):
    """SHOW what. what: 'tables', 'streams', 'relations', 'queries', 'views', 'settings', 'functions', 'sources',
    'sinks', 'checkpoints', 'constraints', 'screens' or 'system'.
    """

    what: str


class Describe(Named):
    """DESCRIBE name."""


FORMATS = ("csv", "json", "parquet", "arrow", "stream", "sqlite", "duckdb", "archive", "avro", "protobuf")
"""What FORMAT names."""
PLAN_FORMATS = ("text", "json", "mermaid", "svg", "spark")
"""What EXPLAIN can give; spark tells how Spark would carry the query out over archives."""


class Explain(Syntax):
    """EXPLAIN [(ANALYZE, RULES, FORMAT format)] target: a query, or the name of a registered one."""

    target: Query | str
    analyze: bool = False
    format: str = "text"
    rules: bool = False
    name_span: Span = field(default=(0, 0), compare=False, repr=False, kw_only=True)


class SetSetting(Named):
    """SET name = value. A bare word is its text, in the case it was written in; TRUE and FALSE are booleans."""

    value: bool | int | float | str


class Insert(Named):
    """INSERT [OR REPLACE] INTO name [(columns)] VALUES rows. columns: () where the text names none."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Expr, ...], ...]
    replaces: bool = False


class Delete(Syntax):
    """DELETE FROM name [AS alias] [WHERE where]. table: without window."""

    table: TableRef
    where: Expr | None = None

    @property
    def name(self) -> str:
        """Of the relation, as in Insert."""
        return self.table.name


class Update(Syntax):
    """UPDATE name [AS alias] SET column = expr, .. [WHERE where].

    table: without window.  assignments: the expressions, the columns as their aliases.
    """

    table: TableRef
    assignments: tuple[SelectItem, ...]
    where: Expr | None = None

    @property
    def name(self) -> str:
        """Of the relation, as in Insert."""
        return self.table.name


class QueryStatement(Syntax):
    """A query that stands alone: it is registered and runs."""

    query: Query


Predicate = IsNull | IsDistinctFrom | Between | Like | InList | InQuery | Quantified
"""What compares, in words."""
Expr = (
    Predicate
    | Name
    | Star
    | Literal
    | Interval
    | Unary
    | Binary
    | Logical
    | LiteralList
    | Exists
    | ScalarQuery
    | Call
    | Over
    | Case
    | Cast
    | Pair
    | Lambda
    | Row
    | GroupingSets
    | EveryKey
)
"""An expression."""
Window = RangeWindow | NowWindow | UnboundedWindow | RowsWindow | HopWindow | SessionWindow | PartitionWindow
"""What stands in [ .. ] behind a stream."""
FromItem = TableRef | QueryRef | ParenthesisedRef | Unnest | Join
"""What stands in FROM."""
Query = Select | Limited | Values | SetOperation | RelationToStream | With
"""A query."""
RowChange = Insert | Delete | Update
"""What gives rows, or takes them, and declares nothing."""
Statement = (
    CreateStream
    | CreateRelation
    | CreateView
    | CreateQuery
    | Drop
    | AlterQuery
    | AlterStream
    | AddColumn
    | Checkpoint
    | Show
    | Describe
    | Explain
    | SetSetting
    | RowChange
    | QueryStatement
)
"""A statement."""
Look = Show | Describe | Explain
"""A statement that only tells what there is."""


def rewritten(value: Any, change: Callable[[Syntax], Syntax | None]) -> Any:
    """The tree with what `change` gives in the place of nodes; where it gives None, their parts are looked at."""
    if isinstance(value, tuple):
        return tuple(rewritten(part, change) for part in value)
    if not isinstance(value, Syntax) or isinstance(value, LiteralList):
        return value
    changed = change(value)
    if changed is not None:
        return changed
    return replace(value, **{f.name: rewritten(getattr(value, f.name), change) for f in fields(value)})
