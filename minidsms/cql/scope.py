"""Names: which column of the row a name in the text stands for (docs/semantics R1).

A `Scope` is what FROM offers: tables by alias, each with its columns as expressions over the joined row, the columns
that USING merged, and which columns an equality makes equal, so that either may be meant by a bare name.

Invariant: resolution never guesses. A name with two meanings that are not provably equal is an error that lists them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from minidsms.cql import bound
from minidsms.cql.errors import CqlError
from minidsms.cql.printer import print_text
from minidsms.cql.scalar import shift
from minidsms.elements import Schema, Type

SHOWN = 12
"""How many candidates an error lists."""
NO_COLUMN = "no column"
"""What the only column of the row is called that stands for FROM where that is missing."""


@dataclass(frozen=True)
class Column:
    """A column as FROM offers it: its name and where it stands in the row."""

    name: str
    expr: bound.Expr


@dataclass(frozen=True)
class Table:
    """One FROM item. alias: the name it goes by, or "". declared: the name it was declared under, or "".

    implied: what `*` does not show and what gives way to a column of the same name (docs/semantics W10).
    """

    alias: str
    columns: tuple[Column, ...]
    declared: str = ""
    implied: tuple[Column, ...] = ()

    def find(self, name: str) -> Sequence[tuple[str, bound.Expr]]:
        """The columns of that name: alias and place."""
        return self._named.get(name.lower(), ()) or self.find_implied(name)

    def has_column(self, name: str) -> bool:
        """Whether a column of that name was declared, not implied."""
        return name.lower() in self._named

    def find_implied(self, name: str) -> Sequence[tuple[str, bound.Expr]]:
        """The implied column of that name, if there is one."""
        return [(self.alias, column.expr) for column in self.implied if column.name == name.lower()]

    @cached_property
    def _named(self) -> dict[str, list[tuple[str, bound.Expr]]]:
        """The columns by lower-case name: a list of all columns must not look through all of them for each."""
        named: dict[str, list[tuple[str, bound.Expr]]] = {}
        for column in self.columns:
            named.setdefault(column.name.lower(), []).append((self.alias, column.expr))
        return named

    def shifted(self, by: int) -> Table:
        """The table in a row with `by` more columns on its left."""
        columns, implied = (
            tuple(Column(c.name, shift(c.expr, by)) for c in some) for some in (self.columns, self.implied)
        )
        return Table(self.alias, columns, self.declared, implied)


@dataclass(frozen=True)
class Merged:
    """A column USING has merged.

    covers: the columns it stands for; bare names and `*` do not see those any more.  before: the number of the join's
    first table; there `*` shows the column.  is_implied: it is merged of implied ones, and `*` does not show it.
    """

    column: Column
    covers: frozenset[bound.Expr]
    before: int = 0
    is_implied: bool = False

    def shifted(self, by: int, tables: int) -> Merged:
        """The column in a row with `by` more columns and `tables` more tables on its left."""
        column = Column(self.column.name, shift(self.column.expr, by))
        covers = frozenset(shift(e, by) for e in self.covers)
        return Merged(column, covers, self.before + tables, self.is_implied)


class Ambiguous(Exception):
    """A name with several meanings. found: alias and place of each in the scope."""

    def __init__(self, scope: Scope, found: Sequence[tuple[str, bound.Expr]]) -> None:
        self._scope, self._found = scope, found

    @property
    def tables(self) -> list[str]:
        """The aliases it may belong to."""
        return [alias or self._scope.alias_of(expr) for alias, expr in self._found]


@dataclass
class Scope:
    """The tables of one FROM, or of a part of it."""

    tables: list[Table]
    merged: list[Merged] = field(default_factory=list)
    _same: dict[bound.Expr, bound.Expr] = field(default_factory=dict)
    _named: dict[str, list[tuple[str, bound.Expr]]] | None = None

    @classmethod
    def of_table(cls, alias: str, schema: Schema, declared: str = "") -> Scope:
        """The scope of one table whose columns are the row."""
        columns = tuple(Column(f.name, bound.ColumnRef(f.type, i, f.name)) for i, f in enumerate(schema))
        return cls([Table(alias, columns, declared)])

    def beside(self, right: Scope, by: int) -> Scope:
        """This scope and another one to its right; `by` is the width of this one's row."""
        joined = Scope(
            [*self.tables, *(t.shifted(by) for t in right.tables)],
            [*self.merged, *(m.shifted(by, len(self.tables)) for m in right.merged)],
            dict(self._same),
        )
        for a, b in right._same.items():
            joined._same[shift(a, by)] = shift(b, by)
        return joined

    def renamed(self, alias: str, names: Sequence[str]) -> Scope:
        """Everything `*` shows, as one table, whose columns have these names: `(A JOIN B ..) AS alias (..)`."""
        merged = tuple(m.column for m in self.merged if m.is_implied)
        implied = self.tables[0].implied if len(self.tables) == 1 else merged
        columns = tuple(Column(name, column.expr) for name, (_, column) in zip(names, self.star(), strict=True))
        return Scope([Table(alias, columns, implied=implied)])

    def implying(self, columns: Iterable[Column]) -> Scope:
        """The scope of one table that has these columns, too, where they are named."""
        (table,) = self.tables
        return Scope([replace(table, implied=tuple(columns))])

    # ------------------------------------------------------------------------------------------------ equalities

    def equate(self, a: bound.Expr, b: bound.Expr) -> None:
        """Two columns are equal in every row that counts."""
        a, b = self._representative(a), self._representative(b)
        if a != b:
            # The column further left stands for both: after a LEFT JOIN it is the one that is there.
            first, second = sorted((a, b), key=_position)
            self._same[second] = first

    def _representative(self, expr: bound.Expr) -> bound.Expr:
        while expr in self._same:
            expr = self._same[expr]
        return expr

    # ------------------------------------------------------------------------------------------------ resolution

    def star(self, alias: str | None = None) -> list[tuple[str, Column]]:
        """The columns of `*` (or of `alias.*`) with the alias of the table each belongs to ("" for a merged one)."""
        if alias is not None:
            key = alias.lower()
            return [(t.alias, c) for t in self.tables if t.alias.lower() == key for c in t.columns]
        hidden = self._hidden()
        found: list[tuple[str, Column]] = []
        for i, table in enumerate(self.tables):
            found += [("", m.column) for m in self.merged if m.before == i and not m.is_implied]
            found += [(table.alias, c) for c in table.columns if c.expr not in hidden]
        return found

    def _hidden(self) -> set[bound.Expr]:
        return {e for m in self.merged for e in m.covers}

    def find(self, name: str, qualifier: str | None) -> bound.Expr | None:
        """The column's place in the row; None where there is none. Raises Ambiguous."""
        if qualifier is not None:
            table = self.table(qualifier)
            found = table.find(name) if table is not None else ()
        else:
            implied = [m for m in self.merged if m.is_implied]
            hidden = {e for m in implied for e in m.covers}
            found = self._bare().get(name.lower(), ()) or [
                *(("", m.column.expr) for m in implied if m.column.name == name.lower()),
                *(each for table in self.tables for each in table.find_implied(name) if each[1] not in hidden),
            ]
        if not found:
            return None
        if len(found) > 1:
            first = self._representative(found[0][1])
            if any(self._representative(expr) != first for _, expr in found):
                raise Ambiguous(self, found)  # whose tables are told where somebody asks: `*` asks for each column
            return min((expr for _, expr in found), key=_position)
        return found[0][1]

    def alias_of(self, expr: bound.Expr) -> str:
        """The table of a column that USING has merged, or ""."""
        of = (t.alias for t in self.tables if any(c.expr == expr for c in (*t.columns, *t.implied)))
        return next(of, "")

    def _bare(self) -> dict[str, list[tuple[str, bound.Expr]]]:
        """What bare names may mean, by lower-case name: alias and place."""
        if self._named is None:
            self._named = {}
            for alias, column in self.star():
                self._named.setdefault(column.name.lower(), []).append((alias, column.expr))
        return self._named

    def merge(self, merged: list[Merged]) -> None:
        """Take other merged columns."""
        self.merged, self._named = merged, None

    def table(self, alias: str) -> Table | None:
        """The table that goes by the name."""
        key = alias.lower()
        return next((t for t in self.tables if t.alias.lower() == key), None)

    @property
    def is_without_from(self) -> bool:
        """Whether there is no FROM."""
        return not self.tables or [c.name for c in self.tables[0].columns] == [NO_COLUMN]

    # ---------------------------------------------------------------------------------------------------- errors

    def unknown(self, name: str, qualifier: str | None, text: str, span: tuple[int, int]) -> CqlError:
        """The error for a name that means nothing here."""
        shown = f"{qualifier}.{name}" if qualifier else name
        if not self.tables:
            note, hint = "nothing stands before it in FROM", "behind what has it: FROM S [NOW], UNNEST(S.list) AS e"
            return CqlError(f'unknown column "{shown}"', text, span, note, hint)
        if qualifier is not None and self.table(qualifier) is None:
            return self._unknown_table(qualifier, text, span)
        tables = self.tables if qualifier is None else [t for t in (self.table(qualifier),) if t is not None]
        having = [(f"{t.alias} has" if t.alias else "the columns are", t.columns) for t in tables[:3]]
        notes = [f"{which}: {listing(c.name for c in columns)}" for which, columns in having]
        hint = did_you_mean(name, [c.name for t in tables for c in t.columns])
        if not hint and qualifier is None and self.table(name) is not None:
            hint = f'"{name}" is a whole row here: name one of its columns, or use it in {name} IN (SELECT * ..)'
        if not hint:
            hint = _where_else(name, qualifier, self.tables)
        if qualifier is None and text[span[0] : span[0] + 1] == '"':
            hint = f"double quotes enclose names; a text stands in single quotes: {print_text(name[:40])}"
        return CqlError(f'unknown column "{shown}"', text, span, "; ".join(notes), hint)

    def _unknown_table(self, qualifier: str, text: str, span: tuple[int, int]) -> CqlError:
        known = [t.alias for t in self.tables if t.alias]
        called = next((t.alias for t in self.tables if t.declared.lower() == qualifier.lower()), "")
        hint = f'"{qualifier}" is called "{called}" here' if called else did_you_mean(qualifier, known)
        columns = (c for t in self.tables for c in t.columns if c.name.lower() == qualifier.lower())
        if (column := next(columns, None)) is not None and column.expr.type is Type.TEXT:
            hint = f"{column.name} is TEXT: a member of JSON is {column.name} -> 'a', or as text {column.name} ->> 'a'"
        note = f"FROM has: {listing(known)}" if known else "no table of this FROM has a name"
        hint = hint or "name it in FROM; a query in FROM sees the tables before its comma behind LATERAL"
        return CqlError(f'unknown table "{qualifier}"', text, span, note, hint)


def ambiguous(name: str, tables: list[str], text: str, span: tuple[int, int], advice: str = "write") -> CqlError:
    """The error for a name with several meanings. advice: what stands before the ways to name one."""
    aliases = [t for t in dict.fromkeys(tables) if t]
    if len(aliases) > 1:
        hint = f"{advice} " + " or ".join(f"{alias}.{name}" for alias in aliases[:SHOWN])
    else:
        hint = "give the columns different names with AS"
    note = f"it is in {listing(aliases)}" if aliases else ""
    return CqlError(f'the column name "{name}" is ambiguous', text, span, note, hint)


def listing(names: Iterable[str]) -> str:
    """Names for a reader, the first of many."""
    all_names = list(names)
    shown = ", ".join(all_names[:SHOWN])
    return shown + (", .." if len(all_names) > SHOWN else "")


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A hint that names the nearest candidate, or ""."""
    by_key = {c.lower(): c for c in candidates}
    # A name of many thousand letters is no slip of the pen, and comparing it is slow.
    close = difflib.get_close_matches(name.lower(), list(by_key), 1, 0.6) if len(name) <= 100 else []
    return f'did you mean "{by_key[close[0]]}"?' if close else ""


def _where_else(name: str, qualifier: str | None, tables: list[Table]) -> str:
    holders = [t.alias for t in tables if t.alias and t.find(name)]
    return f"{holders[0]} has it: write {holders[0]}.{name}" if qualifier is not None and holders else ""


def _position(expr: bound.Expr) -> int:
    return min((e.index for e in bound.walk(expr) if isinstance(e, bound.ColumnRef)), default=0)
