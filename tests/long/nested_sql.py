"""Random queries of small parts nested in each other: what is read, and expressions, whose parts are queries again.

Each means one thing whatever the order of rows: an order that decides is of all columns. Names of tables and columns
are few and often stand alone, so that inner ones hide those around them; what a system takes for ambiguous it refuses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple


class Column(NamedTuple):
    """What a query can name. kind: "i", an INTEGER, "t", a TEXT, or "b", a BOOLEAN. table: "" of columns that USING
    merges.  is_alone: its FROM has no other of this name.
    """

    table: str
    name: str
    kind: str
    is_alone: bool = False

    @property
    def text(self) -> str:
        return f"{self.table}.{self.name}" if self.table else self.name


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
_TABLES = ("a", "b", "c", "k", "w", "z")
"""Few, so that those of subqueries hide those around them, and relations."""
_NAMES = ("k", "v", "t", "x", "c0", "c1", "a")
_RUNNING = ("SUM({i})", "COUNT({a})", "MIN({i})", "MAX({i})", "COUNT(*)")


def _beside(columns: Columns, more: Columns) -> Columns:
    """Of a join: a column that USING has merged cannot be named where one of another table is called so, too."""
    names, others = {column.name for column in more}, {column.name for column in columns}
    return [
        *(column for column in columns if column.table or column.name not in names),
        *(column for column in more if column.table or column.name not in others),
    ]


def _unique(columns: Columns) -> list[str]:
    """The names that mean one column."""
    merged = [column.name for column in columns if not column.table]
    names = Counter(column.name for column in columns if column.name not in merged)
    return [*merged, *(name for name, n in names.items() if n == 1)]


def _kind_of(columns: Columns, name: str) -> str:
    return next(column.kind for column in columns if column.name == name)


class NestedSql:
    """Draws queries. sources: names in braces of what they read; whoever asks puts in what each side calls it.  fixed:
    those whose windows name columns, so that an alias may not.
    """

    def __init__(self, rng: Random, sources: Sequence[str], fixed: Sequence[str] = ()) -> None:
        self._rng, self._sources = rng, sources
        self._fixed = ["{" + name + "}" for name in fixed]
        self._with: tuple[tuple[str, Sequence[str]], ...] = ()
        """The queries in WITH that can be read here, and the kinds of their columns."""

    def query(self) -> str:
        text, kinds = self._select(self._rng.choice((1, 2, 2, 3)))
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
        found = [column for column in columns if column.kind == kind]
        return self._written(self._rng.choice(found)) if found else None

    def _written(self, column: Column) -> str:
        return column.name if column.is_alone and self._may(0.3) else column.text

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
        if self._may(0.2):
            other = self._one("i", "t")
            pair = f"({x}, {self._value(scopes, other, 0)})"
            return f"{pair} {no}IN (SELECT {key}, {self._value([*scopes, columns], other, 0)} FROM {read}{where})"
        return f"{x} {no}IN (SELECT {self._value([*scopes, columns], kind, 0)} FROM {read}{where})"

    # What is read

    def _item(self, depth: int, taken: set[str]) -> tuple[str, Columns]:
        """A table with its name, which is put to those that are taken."""
        table = self._one(*(name for name in _TABLES if name not in taken))
        taken.add(table)
        text, names, kinds = self._read(depth)
        if not names or (self._may(0.15) and text not in self._fixed):
            names = [f"n{i}" for i in range(len(kinds))]
            if len(kinds) <= len(_NAMES):
                names = self._rng.sample(_NAMES, len(kinds))
            text = f"{text} AS {table}({', '.join(names)})"
        else:
            text = f"{text} AS {table}"
        return text, [Column(table, name, kind) for name, kind in zip(names, kinds, strict=True)]

    def _read(self, depth: int) -> tuple[str, Sequence[str], Sequence[str]]:
        """What is read, and the names and kinds of its columns; no names where an alias is to give them."""
        if depth > 0 and self._may(0.08):
            read, columns = self._from(depth - 1)
            if all(column.table for column in columns):  # the order of columns behind USING is another in DuckDB
                return f"(SELECT * FROM {read} WHERE {self._condition([columns], 0)})", (), [c.kind for c in columns]
        if depth > 0 and self._may(0.35):
            text, kinds = self._select(depth - 1)
            if self._may(0.15):
                text = f"({text}) {self._one('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} ({self._select_of(kinds)})"
            return f"({text})", [f"c{i}" for i in range(len(kinds))], kinds
        if self._with and self._may(0.4):
            name, kinds = self._rng.choice(self._with)
            return name, [f"c{i}" for i in range(len(kinds))], kinds
        if self._may(0.05):
            rows = ", ".join(f"({self._one('1', '2', 'NULL')}, {self._one('0', '1')}, {self._one(*_LITERALS['t'])})"
                             for _ in range(2))  # fmt: skip
            return f"(VALUES {rows})", (), [kind for _, kind in ROWS]
        return "{" + self._rng.choice(self._sources) + "}", [name for name, _ in ROWS], [kind for _, kind in ROWS]

    def _from(self, depth: int, most: int = 3, scopes: Sequence[Columns] = ()) -> tuple[str, Columns]:
        """scopes: what LATERAL sees beside what stands before it."""
        taken: set[str] = set()
        text, columns = self._item(depth, taken)
        for _ in range(self._rng.choice((0, 0, 1, 2)[: most + 1])):
            text, columns = self._joined(text, columns, depth - 1, taken, scopes)
        if len(taken) < len(_TABLES) and self._may(0.05):
            item, more = self._item(depth - 1, taken)
            text, columns = f"{text}, {item}", _beside(columns, more)
        names = Counter(column.name for column in columns)
        return text, [column._replace(is_alone=names[column.name] == 1) for column in columns]

    def _joined(
        self, text: str, columns: Columns, depth: int, taken: set[str], scopes: Sequence[Columns] = ()
    ) -> tuple[str, Columns]:
        if len(taken) == len(_TABLES):
            return text, columns
        if depth >= 0 and self._may(0.1):
            return self._lateral(text, columns, depth, taken, scopes)
        item, more = self._item(depth, taken)
        if len(taken) < len(_TABLES) and self._may(0.2):
            item, more = self._joined(item, more, depth, taken)
            item = f"({item})"
        join, kind = (
            self._one("CROSS JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"),
            self._one("i", "t"),
        )
        both = _beside(columns, more)
        if join == "CROSS JOIN":
            return f"{text} {join} {item}", both
        shown = columns if join in ("SEMI JOIN", "ANTI JOIN") else both
        merged = [name for name in _unique(columns) if name in _unique(more)]
        merged = [name for name in merged if _kind_of(columns, name) == _kind_of(more, name)]
        if merged and shown is both and self._may(0.25):
            merged = self._rng.sample(merged, self._rng.randint(1, len(merged)))
            kept = [column for column in both if column.table or column.name not in merged]
            both = [*kept, *(Column("", name, _kind_of(more, name)) for name in merged)]
            return f"{text} {join} {item} USING ({', '.join(merged)})", both
        left, right = self._named(columns, kind), self._named(more, kind)
        on = f" ON {left} = {right}" if left and right else " ON TRUE"
        if self._may(0.3):
            on += f" AND {self._condition([*scopes, both], 1 if self._may(0.3) else 0)}"
        return f"{text} {join} {item}{on}", shown

    def _lateral(
        self, text: str, columns: Columns, depth: int, taken: set[str], scopes: Sequence[Columns]
    ) -> tuple[str, Columns]:
        read, inner = self._from(depth - 1, most=1)
        around = [*scopes, columns]
        kinds = [self._kind() for _ in range(self._rng.randint(1, 2))]
        values = [self._value([*around, inner], kind, 1) for kind in kinds]
        table = self._one(*(name for name in _TABLES if name not in taken))
        taken.add(table)
        shown = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        sub = f"LATERAL (SELECT {shown} FROM {read} WHERE {self._correlated(around, inner, 1)}) AS {table}"
        more = [Column(table, f"c{i}", kind) for i, kind in enumerate(kinds)]
        join, on = self._rng.choice((("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE"), ("JOIN", " ON TRUE")))
        return f"{text} {join} {sub}{on}", _beside(columns, more)

    def _select_of(self, kinds: Sequence[str]) -> str:
        """A flat SELECT of columns of these kinds."""
        read, columns = self._from(0)
        where = f" WHERE {self._condition([columns], 1)}" if self._may(0.5) else ""
        return f"SELECT {', '.join(self._value([columns], kind, 1) for kind in kinds)} FROM {read}{where}"

    def _select(self, depth: int) -> tuple[str, Sequence[str]]:
        """A SELECT with columns c0, c1 .., and their kinds; perhaps behind a WITH."""
        around, prefix = self._with, ""
        if depth > 0 and self._may(0.15):
            name = self._one("w", "x", "C")
            text, kinds = self._select(depth - 1)
            prefix = f"WITH {name} AS ({text}) "
            self._with = (*(one for one in around if one[0] != name), (name, kinds))
        text, kinds = self._simple(depth)
        self._with = around
        return prefix + text, kinds

    def _simple(self, depth: int) -> tuple[str, Sequence[str]]:
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
                tail = f" QUALIFY {self._over(columns)} {self._one(*_COMPARISONS)} 1" if self._may(0.3) else ""
            elif form == 3:
                names = ", ".join(f"{column.text} NULLS LAST" for column in columns)
                tail = f" ORDER BY {names} LIMIT {self._one('1', '2', '5')}{self._one('', ' OFFSET 1')}"
        elif form == 4:
            values = [self._grouped(inner, [], kind, depth) for kind in kinds]
            tail = f" HAVING {self._grouped(inner, [], 'i', 1)} > 1" if self._may(0.2) else ""
        else:
            keys = self._rng.sample(columns, min(len(columns), self._rng.randint(1, 2)))
            values = [self._grouped(inner, keys, kind, depth) for kind in kinds]
            listed = ", ".join(self._key(key, values) for key in keys)
            sets = self._one("ROLLUP", "CUBE", "GROUPING SETS") if self._may(0.15) else ""
            if sets and self._may(0.5):
                kinds, values = [*kinds, "i"], [*values, f"GROUPING({self._written(keys[0])})"]
            tail = f" GROUP BY {f'{sets} ({listed})' if sets else listed}"
            if self._may(0.4):
                kind = self._one("i", "t")
                tail += f" HAVING {self._compared(*(self._grouped(inner, keys, kind, depth - 1) for _ in range(3)))}"
        shown = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
        return f"SELECT {prefix}{shown} FROM {read}{where}{tail}", kinds

    def _key(self, key: Column, values: Sequence[str]) -> str:
        """What GROUP BY says of it: perhaps the position or the alias of a value."""
        if key.text in values and self._may(0.4):
            place = values.index(key.text)
            return self._one(str(place + 1), f"c{place}")
        return self._written(key)

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
