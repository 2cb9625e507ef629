"""Random queries whose conditions and values fail here and there: in WHERE, in the ONs of joins of every kind and
nesting, in derived tables, HAVING and QUALIFY.

A few values are at the limits of 64 bits, and a few texts are no numbers, so that most rows are met before one fails.
A correlated subquery looks at the outer row by what cannot fail (docs/semantics R4 leaves open what is judged there),
and reads what may. Invariant: the case depends on the seed alone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from minidsms.testing.feeds import Push, Step, random_feed
from minidsms.testing.generators import Case, declaration
from minidsms.testing.history import Row

_STREAMS = ("Sa", "Sb")
_WINDOWS = ("[RANGE 3]", "[NOW]", "[ROWS 2]", "", "[RANGE 4 SLIDE 2]", "[PARTITION BY k ROWS 1]", "[SESSION 2]")
_FAILING = ("({} * 2)", "({} + 1)", "ABS({})", "CAST(CAST({} AS FLOAT) * 4 AS INTEGER)", "CAST({table}.t AS INTEGER)")
_COMPARED = ("{0} = {1}", "{0} < {1}", "{0} <> {1}", "{1} IN ({0}, {2})", "{0} IS NOT NULL", "{1} BETWEEN {2} AND {0}")
_LIMITS = (2**63 - 1, -(2**63), 2**62)


def random_failing(seed: int, size: int = 10) -> Case:
    """A case; `size` is about how many elements each stream gets."""
    rng = Random(seed)
    query = _Query(rng).text()
    names = [name for name in _STREAMS if re.search(rf"\b{name}\b", query)]
    share = rng.choice((0.02, 0.08, 0.2))
    feed = [_at_limits(rng, step, share) for step in random_feed(rng, names, size, may_be_extreme=False)]
    return Case(tuple(map(declaration, names)), query, tuple(feed))


def _at_limits(rng: Random, step: Step, share: float) -> Step:
    """The step with this share of its integers at a limit, and of its texts no digits."""

    def changed(row: Row) -> Row:
        values = [rng.choice("0123") if isinstance(value, str) else value for value in row]
        ends = ["x" if isinstance(value, str) else rng.choice(_LIMITS) for value in values]
        return tuple(e if type(v) in (int, str) and rng.random() < share else v for v, e in zip(values, ends))

    return (
        replace(step, rows=tuple((t, sign, changed(row)) for t, sign, row in step.rows))
        if isinstance(step, Push)
        else step
    )


class _Query:
    """Draws one. Every table has the columns k, v and t, under an alias of its own."""

    def __init__(self, rng: Random) -> None:
        self._rng, self._aliases = rng, 0

    def text(self) -> str:
        operator = self._one("", "", "ISTREAM", "RSTREAM", "DSTREAM")
        return f"{operator} ({self._block()})" if operator else self._block()

    def _one(self, *of: str) -> str:
        return self._rng.choice(of)

    def _may(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _value(self, tables: list[str], may_fail: bool = True) -> str:
        table = self._one(*tables)
        column = f"{table}.{self._one('k', 'v')}"
        if may_fail and self._may(0.4):
            return self._one(*_FAILING).format(column, table=table)
        return column if self._may(0.8) else self._one("0", "1", f"COALESCE({column}, 2)", f"NULLIF({column}, 1)")

    def _condition(self, tables: list[str], depth: int = 1, asks: bool = False) -> str:
        if depth and self._may(0.35):
            one, other = (self._condition(tables, depth - 1, asks) for _ in range(2))
            return self._one(f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})")
        chance = self._rng.random() if asks else 1
        if chance < 0.1:
            table, name = self._read()
            return f"{self._value(tables, False)} {self._one('', 'NOT ')}IN (SELECT {self._value([name])} FROM {table})"
        if chance < 0.16:
            return self._correlated(self._value(tables, False))
        values = self._value(tables), self._value(tables, False), self._value(tables, False)
        return self._one(*_COMPARED).format(*values)

    def _correlated(self, outer: str) -> str:
        """A condition that asks a subquery in which a value of the outer row stands."""
        table, name = self._table()
        rest = f"FROM {table} WHERE {name}.{self._one('k', 'v')} {self._one('=', '=', '<')} {outer}"
        asked = f"{self._one('', 'NOT ')}EXISTS (SELECT 1 {rest})"
        return self._one(asked, f"{outer} < (SELECT {self._one('MAX', 'COUNT')}({name}.v) {rest})")

    def _where(self, tables: list[str]) -> str:
        return f" WHERE {self._condition(tables, asks=True)}" if self._may(0.5) else ""

    def _read(self) -> tuple[str, str]:
        self._aliases += 1
        return f"{self._one(*_STREAMS)} {self._one(*_WINDOWS)} AS x{self._aliases}", f"x{self._aliases}"

    def _table(self) -> tuple[str, str]:
        """A window, or a query over one, and its alias."""
        table, name = self._read()
        if self._may(0.75):
            return table, name
        self._aliases += 1
        value, where, alias = self._value([name]), self._where([name]), f"x{self._aliases}"
        select, groups = self._one("SELECT", "SELECT DISTINCT"), ""
        if self._may(0.4):
            select, value, groups = "SELECT", f"{self._one('SUM', 'MAX', 'COUNT')}({value})", f" GROUP BY {name}.k"
        text = f"MIN({name}.t)" if groups else f"{name}.t"
        return f"({select} {name}.k AS k, {value} AS v, {text} AS t FROM {table}{where}{groups}) AS {alias}", alias

    def _from(self) -> tuple[str, list[str]]:
        text, name = self._table()
        tables, joined = [name], [name]
        for _ in range(self._rng.choice((0, 1, 1, 2, 2))):
            table, name = self._table()
            tables.append(name)
            if self._may(0.2):
                text, joined = f"{text}, {table}", [name]
                continue
            joined.append(name)
            if self._may(0.2):
                inner, other = self._table()
                table = f"({table} {self._one('JOIN', 'LEFT JOIN')} {inner} ON {self._condition([name, other])})"
                tables.append(other)
                joined.append(other)
            kind = self._one("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
            text += f" {kind} {table} ON {self._condition(joined)}"
        return text, tables

    def _block(self) -> str:
        text, tables = self._from()
        value, plain, rest = self._value(tables), self._value(tables, False), f"FROM {text}{self._where(tables)}"
        key = f"{tables[0]}.k"
        return self._one(
            f"SELECT {value} AS c0, {plain} AS c1 {rest}",
            f"SELECT DISTINCT {value} AS c0 {rest}",
            f"SELECT {key} AS c0, {self._one('SUM', 'MAX', 'COUNT')}({value}) AS c1 {rest} GROUP BY {key}",
            f"SELECT MAX({plain}) AS c0 {rest} HAVING SUM({value}) > 0",
            f"SELECT {plain} AS c0, {value} AS c1 {rest} ORDER BY c0, c1 LIMIT 2",
            f"SELECT {plain} AS c0, SUM({value}) OVER (PARTITION BY {key} ORDER BY {tables[0]}.v) AS c1 {rest}",
            f"SELECT {plain} AS c0 {rest} QUALIFY ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {value}) = 1",
        )
