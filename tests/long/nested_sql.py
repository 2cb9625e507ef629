"""Random queries of small parts nested in each other: what is read, and expressions, whose parts are queries again.

Each means one thing whatever the order of rows: an order that decides is of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple


class Column(NamedTuple):
    """What a query can name. kind: "i", an INTEGER, "t", a TEXT, or "b", a BOOLEAN."""

    text: str
    kind: str


Columns = Sequence[Column]
"""What the names of one FROM mean."""

ROWS = (("k", "i"), ("v", "i"), ("t", "t"))
"""Columns of everything that is read."""
_COMPARISONS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")
_LITERALS = {
    "i": ("0", "1", "2", "3", "NULLIF(1, 1)"),
    "t": ("'a'", "'b'", "''", "NULLIF('a', 'a')"),
    "b": ("TRUE", "FALSE", "NULL"),
}
_RUNNING = ("SUM({i})", "COUNT({a})", "MIN({i})", "MAX({i})", "COUNT(*)")


class NestedSql:
    """Draws queries. sources: names in braces of what they read; whoever asks puts in what each side calls it."""

    def __init__(self, rng: Random, sources: Sequence[str]) -> None:
        self._rng, self._sources = rng, sources
        self._aliases = 0

    def query(self) -> str:
        depth = self._rng.choice((1, 2, 2, 3))
        text, kinds = self._select(depth)
        if self._may(0.15):
            other = self._select_of(kinds)
            operator = self._one("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
            text = f"({text}) {operator} ({other})"
        return text

    # What is drawn

    def _may(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _one(self, *of: str) -> str:
        return self._rng.choice(of)

    def _kind(self) -> str:
        return self._one("i", "i", "i", "t", "t", "b")

    def _named(self, columns: Columns, kind: str) -> str | None:
        found = [column.text for column in columns if column.kind == kind]
        return self._rng.choice(found) if found else None

    # Expressions. scopes: what names mean, the innermost last

    def _value(self, scopes: Sequence[Columns], kind: str, depth: int) -> str:
        if kind == "b":
            column = self._named(scopes[-1], "b")
            return column if column is not None and self._may(0.3) else f"({self._condition(scopes, depth)})"
        if depth <= 0 or self._may(0.4):
            scope = scopes[-1] if self._may(0.65) else self._rng.choice(scopes)
            column = self._named(scope, kind) or self._named(scopes[-1], kind)
            return column if column is not None and self._may(0.85) else self._one(*_LITERALS[kind])

        def part(kind_of_part: str = kind) -> str:
            return self._value(scopes, kind_of_part, depth - 1)

        form = self._rng.randrange(8)
        if form < 2:
            return self._scalar(scopes, kind, depth - 1)
        if form == 2:
            return f"CASE WHEN {self._condition(scopes, depth - 1)} THEN {part()} {self._one('', f'ELSE {part()}')} END"
        if form == 3:
            return f"{self._one('COALESCE', 'NULLIF')}({part()}, {part()})"
        if kind == "i":
            return self._one(
                f"({part()} {self._one('+', '-', '*')} {part()})", f"ABS({part()})", f"LENGTH({part('t')})"
            )
        return self._one(f"({part()} || {part()})", f"UPPER({part()})", f"CAST({part('i')} AS VARCHAR)")

    def _aggregate(self, columns: Columns, kind: str) -> str:
        def of(kind_of_argument: str, depth: int = 0) -> str:
            return self._value([columns], kind_of_argument, depth)

        if kind == "t":
            return f"{self._one('MIN', 'MAX')}({of('t')})"
        if kind == "b":
            return f"{self._one('BOOL_AND', 'BOOL_OR')}({of('b')})"
        filtered = f" FILTER (WHERE {self._condition([columns], 0)})" if self._may(0.15) else ""
        counted = of(self._one("i", "t"))
        return self._one(
            "COUNT(*)", f"COUNT({counted})", f"SUM({of('i', 1)})", f"MIN({of('i')})", f"MAX({of('i')})",
            f"COUNT(DISTINCT {counted})",
        ) + filtered  # fmt: skip

    def _grouped(self, scopes: Sequence[Columns], keys: Columns, kind: str, depth: int) -> str:
        """A value of a group: of its keys, aggregates, and subqueries that know its keys."""
        key = self._named(keys, kind)
        form = self._rng.random()
        if form < 0.35 and key is not None:
            return key
        if form < 0.8 or depth <= 0:
            return self._aggregate(scopes[-1], kind)
        if form < 0.9:
            return self._scalar([*scopes[:-1], keys], kind, depth - 1)
        one, other = (self._grouped(scopes, keys, kind, depth - 1) for _ in range(2))
        return f"({one} {({'i': self._one('+', '-'), 't': '||', 'b': self._one('AND', 'OR')})[kind]} {other})"

    def _condition(self, scopes: Sequence[Columns], depth: int) -> str:
        if depth > 0 and self._may(0.3):
            one, other = (self._condition(scopes, depth - 1) for _ in range(2))
            return self._one(f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})")
        if depth > 0 and self._may(0.4):
            return self._asks(scopes, depth - 1)
        kind = self._one("i", "i", "t")
        return self._compared(*(self._value(scopes, kind, depth - 1) for _ in range(3)))

    def _compared(self, x: str, y: str, z: str) -> str:
        no = self._one("", "NOT ")
        return self._one(
            f"{x} {self._one(*_COMPARISONS)} {y}", f"{x} {self._one(*_COMPARISONS)} {y}", f"{x} IS {no}NULL",
            f"{x} {no}IN ({y}, {z})", f"{x} {no}BETWEEN {y} AND {z}", f"{x} IS {no}DISTINCT FROM {y}",
        )  # fmt: skip

    # Subqueries

    def _correlated(self, scopes: Sequence[Columns], columns: Columns, depth: int) -> str:
        """A WHERE of a subquery over these columns, mostly with what is around it."""
        kind = self._one("i", "i", "t")
        inner, outer = self._named(columns, kind), self._named([c for scope in scopes for c in scope], kind)
        parts = []
        if inner is not None and outer is not None and self._may(0.9):
            parts.append(f"{inner} {self._one(*_COMPARISONS, 'IS NOT DISTINCT FROM')} {outer}")
        if not parts or self._may(0.35):
            parts.append(self._condition([*scopes, columns], depth - 1))
        return " AND ".join(parts)

    def _scalar(self, scopes: Sequence[Columns], kind: str, depth: int) -> str:
        read, columns = self._from(depth, most=2)
        where = f" WHERE {self._correlated(scopes, columns, depth)}" if self._may(0.85) else ""
        having = " HAVING COUNT(*) > 1" if self._may(0.1) else ""
        return f"(SELECT {self._aggregate(columns, kind)} FROM {read}{where}{having})"

    def _asks(self, scopes: Sequence[Columns], depth: int) -> str:
        """A condition about the rows of a subquery."""
        kind = self._one("i", "i", "t")
        x, no = self._value(scopes, kind, min(depth, 1)), self._one("", "NOT ")
        read, columns = self._from(depth, most=2)
        where = f" WHERE {self._correlated(scopes, columns, depth)}" if self._may(0.7) else ""
        compared, key = self._one("=", "<>", "<", ">="), self._named(columns, kind)
        if key is None or self._may(0.25):
            return f"{no}EXISTS (SELECT 1 FROM {read}{where})"
        if self._may(0.3):
            return f"{x} {compared} {self._one('ANY', 'ALL')} (SELECT {key} FROM {read}{where})"
        if self._may(0.3):
            return (
                f"{x} {no}IN (SELECT {key} FROM {read}{where} GROUP BY {key} HAVING COUNT(*) > {self._one('0', '1')})"
            )
        if self._may(0.3):
            return f"{x} {compared} {self._scalar(scopes, kind, depth)}"
        return f"{x} {no}IN (SELECT {self._value([*scopes, columns], kind, 0)} FROM {read}{where})"

    # What is read

    def _alias(self) -> str:
        self._aliases += 1
        return f"a{self._aliases}"

    def _item(self, depth: int) -> tuple[str, Columns]:
        alias = self._alias()
        if depth > 0 and self._may(0.35):
            text, kinds = self._select(depth - 1)
            if self._may(0.15):
                text = f"({text}) {self._one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} ({self._select_of(kinds)})"
            columns = [Column(f"{alias}.c{i}", kind) for i, kind in enumerate(kinds)]
            return f"({text}) AS {alias}", columns
        if self._may(0.05):
            rows = ", ".join(f"({self._one('1', '2', 'NULL')}, {self._one('0', '1')}, {self._one(*_LITERALS['t'])})"
                             for _ in range(2))  # fmt: skip
            return f"(VALUES {rows}) AS {alias}(k, v, t)", [Column(f"{alias}.{name}", kind) for name, kind in ROWS]
        read = "{" + self._rng.choice(self._sources) + "}"
        return f"{read} AS {alias}", [Column(f"{alias}.{name}", kind) for name, kind in ROWS]

    def _from(self, depth: int, most: int = 3) -> tuple[str, Columns]:
        text, columns = self._item(depth)
        for _ in range(self._rng.choice((0, 0, 1, 2)[: most + 1])):
            item, more = self._item(depth - 1)
            join, kind = (
                self._one("CROSS JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
                self._one("i", "t"),
            )
            left, right = self._named(columns, kind), self._named(more, kind)
            both = [*columns, *more]
            on = ""
            if join != "CROSS JOIN":
                on = " ON " + (f"{left} = {right}" if left and right else "TRUE")
                if self._may(0.3):
                    on += (
                        f" AND {self._condition([both], 1 if join in ('JOIN', 'LEFT JOIN') and self._may(0.3) else 0)}"
                    )
            text, columns = f"{text} {join} {item}{on}", both
        return text, columns

    def _select_of(self, kinds: Sequence[str]) -> str:
        """A flat SELECT of columns of these kinds."""
        read, columns = self._from(0)
        where = f" WHERE {self._condition([columns], 1)}" if self._may(0.5) else ""
        return f"SELECT {', '.join(self._value([columns], kind, 1) for kind in kinds)} FROM {read}{where}"

    def _select(self, depth: int) -> tuple[str, Sequence[str]]:
        """A SELECT with columns c0, c1 .., and their kinds."""
        read, columns = self._from(depth)
        inner = [columns]
        where = f" WHERE {self._condition(inner, depth)}" if self._may(0.5) else ""
        kinds = [self._kind() for _ in range(self._rng.randint(1, 3))]
        form, prefix, tail = self._rng.randrange(10), "", ""
        if form < 4:
            values = [self._value(inner, kind, depth) for kind in kinds]
            if form == 1:
                prefix = "DISTINCT "
            elif form == 2:
                kinds, values = [*kinds, "i"], [*values, self._over(columns)]
            elif form == 3:
                names = ", ".join(f"{column.text} NULLS LAST" for column in columns)
                tail = f" ORDER BY {names} LIMIT {self._one('1', '2', '5')}{self._one('', ' OFFSET 1')}"
        elif form == 4:
            values = [self._grouped(inner, [], kind, depth) for kind in kinds]
            tail = f" HAVING {self._grouped(inner, [], 'i', 1)} > 1" if self._may(0.2) else ""
        else:
            keys = self._rng.sample(columns, min(len(columns), self._rng.randint(1, 2)))
            values = [self._grouped(inner, keys, kind, depth) for kind in kinds]
            listed = ", ".join(key.text for key in keys)
            sets = self._one("ROLLUP", "CUBE", "GROUPING SETS") if self._may(0.15) else ""
            tail = f" GROUP BY {f'{sets} ({listed})' if sets else listed}"
            if self._may(0.4):
                kind = self._one("i", "t")
                tail += f" HAVING {self._compared(*(self._grouped(inner, keys, kind, depth - 1) for _ in range(3)))}"
        shown = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        return f"SELECT {prefix}{shown} FROM {read}{where}{tail}", kinds

    def _over(self, columns: Columns) -> str:
        """An INTEGER over rows. Where neighbours decide, the order is of all columns."""
        all_of = ", ".join(f"{column.text} {self._one('', 'DESC')} NULLS LAST" for column in columns)
        by = self._rng.choice(columns).text
        partition = f"PARTITION BY {by}" if self._may(0.7) else ""
        integer = self._named(columns, "i") or "1"
        running = self._one(*_RUNNING).format(i=integer, a=by)
        some = f"ORDER BY {self._rng.choice(columns).text} NULLS LAST"
        frame = self._one("ROWS 1 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS UNBOUNDED PRECEDING")
        neighbour = f"{self._one('LAG', 'LEAD')}({integer})"
        return self._one(
            f"ROW_NUMBER() OVER ({partition} ORDER BY {all_of})", f"RANK() OVER ({partition} {some})",
            f"DENSE_RANK() OVER ({partition} {some})", f"{neighbour} OVER ({partition} ORDER BY {all_of})",
            f"{running} OVER ({partition})", f"{running} OVER ({partition} {some})",
            f"{running} OVER ({partition} ORDER BY {all_of} {frame})",
        )  # fmt: skip
