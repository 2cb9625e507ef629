"""Random CQL: query texts over a few small streams, built from a grammar and a source of randomness.

Every text is meant to be valid and cheap to answer by definition. Columns are qualified and outputs named c0, c1, ..,
so that the same text, without its windows, means the same to another SQL engine.

Invariant: the text depends on the randomness and the options only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from minidsms.aggregates import AGGREGATES
from minidsms.aggregates.aggregate import Aggregate, Ordering
from minidsms.elements import Type

ROUNDED = ("variance", "stddev", "stddev_pop", "corr")
"""Aggregates whose results may differ in the last place, so that nothing may be decided by them."""

INTEGER, FLOAT, TEXT, BOOLEAN = Type.INTEGER, Type.FLOAT, Type.TEXT, Type.BOOLEAN
TIMESTAMP, INTERVAL = Type.TIMESTAMP, Type.INTERVAL
DATE, TIME, LIST = Type.DATE, Type.TIME, Type.INTEGER.list_type
PRICE, TOTAL = Type.decimal(9, 2), Type.decimal(38, 2)
"""A DECIMAL whose codes are all computed, and what its sum is, which may have others."""

STREAMS: dict[str, tuple[tuple[str, Type], ...]] = {
    "Sa": (("k", INTEGER), ("v", INTEGER), ("x", FLOAT), ("t", TEXT)),
    "Sb": (("k", INTEGER), ("v", INTEGER), ("t", TEXT)),
    "Sc": (("k", INTEGER), ("b", BOOLEAN)),
    "Sd": (("k", INTEGER), ("at", TIMESTAMP), ("d", INTERVAL), ("v", INTEGER)),
    "Se": (("k", INTEGER), ("p", PRICE), ("w", TOTAL), ("v", INTEGER)),
    "Sf": (("k", INTEGER), ("d", DATE), ("h", TIME), ("l", LIST), ("v", INTEGER)),
}
RELATIONS: dict[str, tuple[tuple[str, Type], ...]] = {"Rel": (("k", INTEGER), ("a", INTEGER), ("t", TEXT))}


@dataclass(frozen=True)
class Options:
    """What the grammar may use.

    portable: only what other SQL engines define alike (no FIRST and LAST, no division of floats, no CAST to INTEGER).
    extreme: now and then, values at the limits of int64.  times: TIMESTAMP and INTERVAL, and a stream that has them.
    decimals: DECIMAL, likewise.
    functions: the user's.  slack: streams out of order.  ticks: RSTREAM at every tick.  late: registration amid the
    feed.  limits: ORDER BY .. LIMIT.  overs: OVER.  lists: UNNEST.  filters: further conjuncts in every
    WHERE.  constants: the part of FROM items that are VALUES.  forms: those of `further_forms`.  types: those of
    `further_types`, and the blocks of `further_blocks`.
    """

    views: bool = True
    derived: bool = True
    relations: bool = True
    subqueries: bool = True
    now: bool = True
    portable: bool = False
    outputs: bool = True
    extreme: bool = True
    times: bool = True
    decimals: bool = True
    functions: bool = True
    slack: bool = True
    ticks: bool = True
    late: bool = True
    filters: int = 0
    limits: bool = True
    overs: bool = True
    lists: bool = True
    constants: float = 0.0
    forms: bool = True
    types: bool = True


@dataclass(frozen=True)
class Column:
    """A column as an expression names it: `a0.k`."""

    text: str
    type: Type


@dataclass(frozen=True)
class Item:
    """Something in FROM. one_stream: a single windowed stream, which FIRST and LAST may be taken over."""

    text: str
    columns: tuple[Column, ...]
    one_stream: bool


@dataclass(frozen=True)
class View:
    """A declared view and its columns; a stream needs a window where it is used."""

    name: str
    text: str
    columns: tuple[tuple[str, Type], ...]
    is_stream: bool


@dataclass
class Grammar:
    """Writes queries. Each method consumes randomness and gives a text."""

    rng: Random
    options: Options = Options()
    views: list[View] = field(default_factory=list)
    is_correlated: bool = False
    _aliases: int = 0

    @property
    def times(self) -> bool:
        """Whether instants and durations may be used."""
        return self.options.times and not self.options.portable

    @property
    def decimals(self) -> bool:
        """Whether DECIMAL may be used."""
        return self.options.decimals and not self.options.portable

    @property
    def functions(self) -> bool:
        """Whether the user's functions may be used."""
        return self.options.functions and not self.options.portable

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.rng.random() < p

    def pick(self, *texts: str) -> str:
        """One of the texts."""
        return self.rng.choice(texts)

    def alias(self) -> str:
        """A fresh one."""
        self._aliases += 1
        return f"a{self._aliases - 1}"

    def select(self, shown: list[str], rest: str, operator: str, distinct: str = "") -> str:
        """SELECT of the outputs c0, c1, .. FROM the rest."""
        named = ", ".join(f"{s} AS c{i}" for i, s in enumerate(shown))
        return f"SELECT {distinct}{f'{operator}({named})' if operator else named} FROM {rest}"

    # ------------------------------------------------------------------------------------------------- statements

    def view(self, name: str) -> View:
        """CREATE VIEW over the streams and the views before it."""
        body, types = self.body(depth=1, types=None, spread=False)
        is_stream = self.options.derived and self.chance(0.4)
        if is_stream:
            body = f"{self.pick('ISTREAM', 'DSTREAM', 'RSTREAM')} ({body})"
        view = View(name, f"CREATE VIEW {name} AS {body}", tuple((f"c{i}", t) for i, t in enumerate(types)), is_stream)
        self.views.append(view)
        return view

    def query(self) -> str:
        """A whole query, with or without a relation-to-stream operator."""
        op = self.rng.choice(("", "", "ISTREAM", "DSTREAM", "RSTREAM")) if self.options.outputs else ""
        body, _ = self.body(depth=2, types=None, spread=op == "", operator=op if self.chance(0.4) else "")
        return f"{op} ({body})" if op and f"SELECT {op}(" not in body else body

    def body(
        self, depth: int, types: Sequence[Type] | None, spread: bool, operator: str = ""
    ) -> tuple[str, tuple[Type, ...]]:
        """A block, or a set operation over blocks, and its column types. spread: VARIANCE and STDDEV are welcome."""
        if depth > 0 and not operator and self.chance(0.18):
            left, found = self.block(depth - 1, types, False)
            right, _ = self.block(depth - 1, found, False)
            left, right = (f"({side})" if " LIMIT " in side else side for side in (left, right))
            word = self.pick("UNION", "EXCEPT", "INTERSECT") + self.pick("", " ALL")
            return f"{left} {word} {right}", found
        return self.block(depth, types, spread, operator)

    # ----------------------------------------------------------------------------------------------------- blocks

    def block(
        self, depth: int, types: Sequence[Type] | None, spread: bool, operator: str = ""
    ) -> tuple[str, tuple[Type, ...]]:
        """SELECT .. FROM .. WHERE .. GROUP BY .. HAVING .., giving the column types asked for, or any."""
        sources, conditions, items = self.sources(depth)
        columns = [c for item in items for c in item.columns]
        if self.chance(0.3):
            conditions.append(self.predicate(columns, 1, depth if self.options.subqueries else 0))
        conditions += [self.predicate(columns, 1, 0) for _ in range(self.options.filters)]
        wanted = list(types) if types is not None else [self.type() for _ in range(self.rng.randint(1, 3))]
        shape = self.rng.choice(("plain", "plain", "distinct", "group", "group", "global"))
        tail = ""
        if shape in ("plain", "distinct"):
            shown = [self.expression(t, columns, 1) for t in wanted]
            if self.options.overs and not self.options.portable and self.chance(0.12):
                return self.over(shown, wanted, columns, sources, conditions, operator)
        else:
            one_stream = len(items) == 1 and items[0].one_stream and not self.options.portable
            keys = [c for c in self.rng.sample(columns, min(len(columns), self.rng.randint(1, 2)))]
            if shape == "global":
                keys = []
            shown = [self.grouped(t, keys, columns, one_stream, spread) for t in wanted]
            if keys:
                tail = f" GROUP BY {', '.join(k.text for k in keys)}"
            elif not any("(" in s for s in shown):
                shown[0], wanted[0] = self.global_one(wanted[0])
            if self.chance(0.15):
                tail += f" HAVING {self.comparison(INTEGER, self.aggregate(INTEGER, columns, False, False), '1')}"
        distinct = "DISTINCT " if shape == "distinct" else ""
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        is_sorted = self.options.limits and not self.options.portable and self.are_sorted(wanted)
        if is_sorted and self.chance(0.12):
            tail += self.first_rows(len(wanted))
        return self.select(shown, f"{sources}{where}{tail}", "" if distinct else operator, distinct), tuple(wanted)

    @staticmethod
    def are_sorted(types: Sequence[Type]) -> bool:
        """Whether rows of these types may be chosen by their order: floats may differ in the last place."""
        return not any(type_ is FLOAT or type_.is_nested for type_ in types)

    def over(
        self,
        shown: list[str],
        wanted: list[Type],
        columns: list[Column],
        sources: str,
        conditions: list[str],
        operator: str,
    ) -> tuple[str, tuple[Type, ...]]:
        """A block with OVER: its result in place of a column, or what ranks are asked for in a query around it."""
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        partition = f"PARTITION BY {self.rng.choice(columns).text}" if self.chance(0.6) else ""
        stamps = [c.text for c in columns if c.text.endswith(".ts")]
        key = self.rng.choice(columns)
        is_distance = key.type is INTEGER or key.text in stamps
        first = key.text
        if stamps and self.chance(0.7):
            first, is_distance = stamps[0], True
        order = f"ORDER BY {first}{self.pick('', '', ' DESC')}{self.pick('', '', ' NULLS FIRST')}"
        if self.chance(0.4):
            rank = f"{self.pick('ROW_NUMBER', 'RANK', 'DENSE_RANK')}() OVER ({partition} {order})"
            inner = ", ".join([*(f"{s} AS c{i}" for i, s in enumerate(shown)), f"{rank} AS n"])
            outer = ", ".join(f"c{i}" for i in range(len(shown)))
            condition = self.pick("n <= 2", "n = 1", "2 > n", "n > 1", "n < 3 AND c0 IS NOT NULL")
            if self.chance(0.4):
                qualified = condition.replace("n ", f"{rank} ", 1) if condition[0] == "n" else f"2 > {rank}"
                return self.select(shown, f"{sources}{where} QUALIFY {qualified}", operator), tuple(wanted)
            select = f"{operator}({outer})" if operator else outer
            return f"SELECT {select} FROM (SELECT {inner} FROM {sources}{where}) WHERE {condition}", tuple(wanted)
        place = self.rng.randrange(len(wanted))
        type_ = wanted[place]
        arg = self.expression(type_, columns, 0)
        rows = "ROWS 1 PRECEDING", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"
        distances = (
            "RANGE 2 PRECEDING",
            "RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING",
            "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        )
        frame = self.pick("", *(f" {text}" for text in (*rows, *(distances if is_distance else ()))))
        extreme = self.pick(f"MIN({arg})", f"MAX({arg})", f"MODE({arg})", f"QUANTILE_DISC({arg}, 0.3)")
        aggregates = [f"{extreme} OVER ({partition} {order}{frame})"]
        if type_ in (INTEGER, FLOAT):
            aggregates.append(f"SUM({arg}) OVER ({partition}{self.pick(f' {order}{frame}', '')})")
        if type_ is INTEGER:
            aggregates.append(f"COUNT({self.pick('*', arg)}) OVER ({partition} {order}{frame}) - 1")
            aggregates.append(f"{self.pick('RANK()', 'DENSE_RANK()', 'NTILE(2)')} OVER ({partition} {order})")
            aggregates.append(f"COUNT(DISTINCT {arg}) OVER ({partition} {order}{frame})")
            aggregates.append(f"{self.pick('BIT_OR', 'BIT_XOR')}({arg}) OVER ({partition} {order}{frame})")
        if type_ is FLOAT:
            spread = self.pick("STDDEV", "VARIANCE", "VAR_POP", "STDDEV_POP", "MEDIAN")
            aggregates.append(f"{spread}({arg}) OVER ({partition} {order}{frame})")
            aggregates.append(f"AVG({self.expression(INTEGER, columns, 0)}) OVER ({partition} {order}{frame})")
            aggregates.append(f"{self.pick('PERCENT_RANK', 'CUME_DIST')}() OVER ({partition} {order})")
        default = f", 1, {self.expression(type_, columns, 0)}"
        neighbour = f"{self.pick('LAG', 'LEAD')}({arg}{self.pick('', ', 2', default)}) OVER ({partition} {order})"
        value = self.pick(f"FIRST_VALUE({arg})", f"LAST_VALUE({arg})", f"NTH_VALUE({arg}, 2)")
        shown[place] = self.rng.choice([neighbour, f"{value} OVER ({partition} {order}{frame})", *aggregates])
        return self.select(shown, f"{sources}{where}", operator), tuple(wanted)

    def first_rows(self, width: int) -> str:
        """ORDER BY .. LIMIT over the outputs c0, c1, .."""
        keys = [
            f"c{i}{self.pick('', ' ASC', ' DESC')}{self.pick('', ' NULLS FIRST', ' NULLS LAST')}"
            for i in self.rng.sample(range(width), self.rng.randint(1, width))
        ]
        return f" ORDER BY {', '.join(keys)} LIMIT {self.rng.randint(1, 3)}{self.pick('', '', ' OFFSET 1')}"

    def global_one(self, type_: Type) -> tuple[str, Type]:
        """An aggregate of a given type that needs no column."""
        text = {
            INTEGER: "COUNT(*)",
            FLOAT: "AVG(1)",
            TEXT: "MIN('a')",
            BOOLEAN: "COUNT(*) > 1",
            TIMESTAMP: "MAX(CAST(7 AS TIMESTAMP))",
            INTERVAL: "SUM(INTERVAL '2' MILLISECOND)",
            PRICE: "MAX(DECIMAL '0000001.50')",
            TOTAL: "SUM(DECIMAL '0.25')",
        }[type_]
        return text, type_

    def grouped(self, type_: Type, keys: list[Column], columns: list[Column], one_stream: bool, spread: bool) -> str:
        """An expression of a grouped query: a key, an aggregate, or arithmetic over one."""
        fitting = [k.text for k in keys if k.type is type_]
        if fitting and self.chance(0.6):
            return self.rng.choice(fitting)
        if type_ is BOOLEAN:
            if not self.options.portable and self.chance(0.3):
                return self.of_table(type_, columns, one_stream, spread)
            return self.comparison(INTEGER, self.aggregate(INTEGER, columns, one_stream, False), "1")
        aggregate = self.aggregate(type_, columns, one_stream, spread)
        return f"{aggregate} + 1" if type_ is INTEGER and self.chance(0.15) else aggregate

    def aggregate(self, type_: Type, columns: list[Column], one_stream: bool, spread: bool) -> str:
        """An aggregate whose result has the type (INTEGER, FLOAT or TEXT)."""
        if not self.options.portable and self.chance(0.15):
            return self.of_table(type_, columns, one_stream, spread)
        arg = self.expression(type_, columns, 0)
        if one_stream and self.chance(0.2):
            return f"{self.pick('FIRST', 'LAST')}({arg})"
        if type_ is INTEGER:
            anything = self.expression(self.type(), columns, 0)
            choices = [f"SUM({arg})", f"MIN({arg})", f"MAX({arg})", "COUNT(*)", f"COUNT({anything})"]
            choices += [f"COUNT(DISTINCT {anything})", f"SUM(DISTINCT {arg})"]
            if not self.options.portable and self.chance(0.1):
                choices = [f"COUNT(DISTINCT {anything}, {arg})"]
            if self.functions and self.chance(0.15):
                other = self.expression(INTEGER, columns, 0)
                choices = [f"ua_span({arg})", f"ua_products({arg}, {other})"]
            return self.rng.choice(choices)
        if type_ is FLOAT:
            number = self.expression(INTEGER, columns, 0)
            choices = [f"SUM({arg})", f"MIN({arg})", f"AVG({arg})", f"AVG({number})", f"AVG(DISTINCT {number})"]
            return self.rng.choice(choices + [f"VARIANCE({number})", f"STDDEV({arg})"] * spread)
        if type_ is TOTAL and self.chance(0.7):
            return f"SUM({self.pick('', 'DISTINCT ')}{self.expression(self.rng.choice((PRICE, TOTAL)), columns, 1)})"
        return f"{self.pick('MIN', 'MAX', *['SUM', 'AVG'] * (type_ is INTERVAL))}({arg})"

    def of_table(self, type_: Type, columns: list[Column], one_stream: bool, spread: bool) -> str:
        """An aggregate of the table whose result has the type."""
        called = []
        for row in AGGREGATES.values():
            if (not row.passes_nulls and not one_stream) or (row.name in ROUNDED and not spread):
                continue
            for args in ([type_] * 2, [type_, INTEGER], [INTEGER] * 2, [BOOLEAN] * 2):
                signature = row.resolve(args[: row.values])
                if signature is not None and signature.result is type_:
                    called.append((row, signature.args))
        row, types = self.rng.choice(called)
        return self.call_of(row, types, columns, one_stream)

    def call_of(self, row: Aggregate, types: Sequence[Type], columns: list[Column], one_stream: bool) -> str:
        """A call of the aggregate over arguments of these types."""
        args = [self.expression(t, columns, 0) for t in types]
        literals = [
            self.rng.choice([v for v in ("-", 0, 0.1, 0.5, 0.75, 1, 2, 5) if check(v) is None])
            for check in row.literals.values()
        ]
        written = [f"'{v}'" if isinstance(v, str) else str(v) for v in literals]
        name, condition = row.name.upper(), f" FILTER (WHERE {self.predicate(columns, 0, 0)})"
        behind = condition if row.passes_nulls and self.chance(0.2) else ""
        distinct = "DISTINCT " if row.distinct and self.chance(0.25) else ""
        nulls = "" if row.passes_nulls else self.pick("", " IGNORE NULLS", " RESPECT NULLS")
        if row.ordering is Ordering.WITHIN and (row.literals or self.chance(0.5)):
            order = f"ORDER BY {args[0]}{self.pick('', ' ASC', ' DESC')}"
            return f"{name}({', '.join(written)}) WITHIN GROUP ({order}){behind}"
        if row.ordering is Ordering.INSIDE:
            keys = self.sort_keys(columns) if not distinct and (not one_stream or self.chance(0.7)) else ""
            return f"{name}({distinct}{', '.join([args[0], *written])}{keys}){nulls}{behind}"
        return f"{name}({distinct}{', '.join([*args, *written])}){nulls}{behind}"

    def sort_keys(self, columns: list[Column]) -> str:
        """ORDER BY, of one or two expressions."""
        keys = [
            f"{self.expression(self.type(), columns, 0)}{self.pick('', ' DESC')}{self.pick('', '', ' NULLS FIRST')}"
            for _ in range(self.rng.randint(1, 2))
        ]
        return f" ORDER BY {', '.join(keys)}"

    # ------------------------------------------------------------------------------------------------------- FROM

    def sources(self, depth: int) -> tuple[str, list[str], list[Item]]:
        """One to three items, joined in every way; the conditions of comma joins are left to WHERE."""
        items = [self.item(depth)]
        text = items[0].text
        conditions: list[str] = []
        joined = list(items[0].columns)  # what an ON may name: the items since the last comma
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2))):
            item = self.item(depth)
            style = self.rng.random()
            if style < 0.4:
                text = f"{text}, {item.text}"
                if self.chance(0.8):
                    before = [c for known in items for c in known.columns]
                    conditions.append(self.equality(before, list(item.columns)))
                joined = list(item.columns)
            elif style < 0.45:
                text = f"{text} CROSS JOIN {item.text}"
                joined += item.columns
            else:
                kind = "" if style < 0.65 else self.pick("LEFT ", "RIGHT ", "FULL OUTER ")
                on = self.equality(joined, list(item.columns))
                joined += item.columns
                if self.chance(0.25):
                    on = f"{on} AND {self.predicate(joined, 0, 0)}"
                text = f"{text} {kind}JOIN {item.text} ON {on}"
            items.append(item)
        if self.options.lists and not self.options.portable and self.chance(0.06):
            item = self.unnested([c for known in items for c in known.columns])
            form = self.pick(", {}", " CROSS JOIN {}", " JOIN {} ON TRUE", " LEFT JOIN {} ON TRUE")
            # Behind a comma the list may use all items; behind JOIN, those since the last comma.
            if ", " in text and form != ", {}":
                form = ", {}"
            text += form.format(item.text)
            items.append(item)
        return text, conditions, items

    def unnested(self, columns: list[Column]) -> Item:
        """The elements of a list of integers or of texts that is made of the columns."""
        alias = self.alias()
        number, text = (self.expression(t, columns, 0) for t in (INTEGER, TEXT))
        if self.chance(0.4):
            separator = self.pick("'a'", "''")
            listed, type_ = f"STRING_SPLIT({text}, {separator})", TEXT
        else:
            literal = f"[{number}, {self.expression(INTEGER, columns, 0)}, NULL]"
            choice = self.pick(literal, f"LIST_SLICE({literal}, {number})", "GENERATE_SERIES(1, 3)")
            listed, type_ = choice, INTEGER
        return Item(f"UNNEST({listed}) AS {alias}(e)", (Column(f"{alias}.e", type_),), False)

    def item(self, depth: int) -> Item:
        """A windowed stream, base relation, view, subquery or windowed subquery, under a fresh alias."""
        alias = self.alias()
        if self.options.constants and self.chance(self.options.constants):
            return self.values(alias)
        chosen = self.rng.random()
        if chosen < 0.12 and self.options.relations:
            name = self.rng.choice(sorted(RELATIONS))
            return self.named(f"{name} AS {alias}", alias, RELATIONS[name])
        if chosen < 0.4 and self.views:
            view = self.rng.choice(self.views)
            if view.is_stream:
                return self.named(f"{view.name} {self.window('c0')} AS {alias}", alias, view.columns, True)
            return self.named(f"{view.name} AS {alias}", alias, view.columns)
        if chosen > 0.82 and depth > 0:
            body, types = self.body(depth - 1, None, False)
            columns = tuple((f"c{i}", t) for i, t in enumerate(types))
            if self.options.derived and self.chance(0.6):
                op = self.pick("ISTREAM", "DSTREAM", "RSTREAM")
                return self.named(f"({op} ({body})) {self.window('c0')} AS {alias}", alias, columns, True)
            return self.named(f"({body}) AS {alias}", alias, columns)
        name = self.rng.choice(("Sa", "Sa", "Sb", "Sb", "Sc", *["Sd"] * self.times, *["Se"] * self.decimals))
        return self.named(f"{name} {self.window('k')} AS {alias}", alias, STREAMS[name], True)

    def values(self, alias: str) -> Item:
        """Rows written out."""
        types = [self.type() for _ in range(self.rng.randint(1, 3))]
        rows = [[self.literal(t) if self.chance(0.9) else "NULL" for t in types] for _ in range(self.rng.randint(1, 4))]
        rows.append([self.literal(t) for t in types])  # it tells the types
        written = ", ".join(f"({', '.join(row)})" for row in rows)
        names = [f"c{i}" for i in range(len(types))]
        return self.named(f"(VALUES {written}) AS {alias}({', '.join(names)})", alias, list(zip(names, types)))

    def named(self, text: str, alias: str, columns: Sequence[tuple[str, Type]], one_stream: bool = False) -> Item:
        """The item with its columns under the alias, now and then with those that a window has beside its stream's."""
        named = [Column(f"{alias}.{name}", type_) for name, type_ in columns]
        if one_stream and self.times and self.chance(0.2):
            named.append(Column(f"{alias}.ts", TIMESTAMP))
            if re.search(r"\[(HOP|TUMBLE|RANGE \d+ SLIDE)[^]]*\] AS \w+$", text):
                named += [Column(f"{alias}.{bound}", TIMESTAMP) for bound in ("window_start", "window_end")]
            if re.search(r"\[SESSION[^]]*\] AS \w+$", text):
                named += [Column(f"{alias}.window_start", TIMESTAMP), Column(f"{alias}.session_id", INTEGER)]
                if self.chance(0.5):  # joined in, and so not in the order of arrival
                    return Item(text, (*named, Column(f"{alias}.window_end", TIMESTAMP)), False)
        return Item(text, tuple(named), one_stream)

    def window(self, key: str) -> str:
        """A window of any kind; small, so that rows leave."""
        rng = self.rng
        shape = rng.randrange(20)
        if shape < 6:
            return f"[RANGE {rng.randint(1, 6)}]"
        if shape < 8 and self.options.now:
            return self.pick("[NOW]", "[RANGE 0]")
        if shape < 10:
            return self.pick("[RANGE UNBOUNDED]", "[ROWS UNBOUNDED]", "")
        if shape < 13:
            return f"[ROWS {rng.randint(1, 4)}]"
        if shape < 15:
            return f"[RANGE {rng.randint(1, 7)} SLIDE {rng.randint(1, 4)}]"
        if shape < 16:
            length = rng.randint(1, 5)
            return self.pick(f"[TUMBLE {length}]", f"[HOP {length} EVERY {rng.randint(1, 4)}]")
        if shape < 17:
            return f"[ROWS {rng.randint(1, 4)} SLIDE {rng.randint(1, 3)}]"
        if shape < 18:
            return f"[SESSION {rng.randint(1, 4)}{self.pick('', f' PARTITION BY {key}', f' PARTITION BY {key}')}]"
        span = f" RANGE {rng.randint(1, 6)}" if self.chance(0.4) else ""
        return f"[PARTITION BY {key} ROWS {rng.randint(1, 2)}{span}]"

    def equality(self, left: list[Column], right: list[Column]) -> str:
        """A join condition on columns of equal type; a constant one where there are none."""
        pairs = [(a, b) for a in left for b in right if a.type is b.type]
        keys = [(a, b) for a, b in pairs if a.text.endswith(".k") and b.text.endswith(".k")]
        if not pairs:
            return "1 = 1"
        a, b = self.rng.choice(keys if keys and self.chance(0.7) else pairs)
        return f"{a.text} {self.pick('=', '=', '=', '<=', '>=', '<>')} {b.text}"

    # ------------------------------------------------------------------------------------------------ expressions

    def type(self) -> Type:
        """A column type, integers mostly."""
        more = [TIMESTAMP, INTERVAL] * self.times + [PRICE, TOTAL] * self.decimals
        return self.rng.choice((INTEGER, INTEGER, INTEGER, FLOAT, TEXT, BOOLEAN, *more))

    def literal(self, type_: Type) -> str:
        """A small constant."""
        if type_ is INTEGER:
            return str(self.rng.randint(-1, 4))
        if type_ is FLOAT:
            return str(self.rng.randint(0, 6) / 2)
        if type_ is TIMESTAMP:
            return self.pick(f"CAST({self.rng.randint(0, 2)} AS TIMESTAMP)", "CAST('1970-01-02' AS TIMESTAMP)")
        if type_ is INTERVAL:
            return self.pick(f"INTERVAL '{self.rng.randint(0, 3)}' MILLISECOND", "2 MILLISECONDS", "1 WEEK")
        if type_ in (PRICE, TOTAL):
            return f"CAST({self.pick('-0.5', '0', '1.25', '3')} AS {type_})"
        return self.pick("'a'", "'b'", "'c'", "'d'") if type_ is TEXT else self.pick("TRUE", "FALSE")

    def expression(self, type_: Type, columns: list[Column], depth: int) -> str:
        """A scalar expression of the type over the columns."""
        fitting = [c.text for c in columns if c.type is type_]
        if depth <= 0 or self.chance(0.5):
            return self.rng.choice(fitting) if fitting and self.chance(0.8) else self.literal(type_)

        def part(t: Type = type_) -> str:
            return self.expression(t, columns, depth - 1)

        if type_ is BOOLEAN:
            return f"({self.predicate(columns, depth - 1, 0)})"
        common = [f"COALESCE({part()}, {part()})", f"NULLIF({part()}, {part()})", f"GREATEST({part()}, {part()})"]
        choice = self.pick("CASE WHEN {} THEN {} ELSE {} END", "IF({}, {}, {})")
        common.append(choice.format(self.predicate(columns, 0, 0), part(), part()))
        if type_ is INTEGER:
            own = [f"{part()} {self.pick('+', '-', '*', '/', '%')} {part()}", f"ABS({part()})", f"LENGTH({part(TEXT)})"]
            own.append(f"- {self.rng.choice(fitting)}" if fitting else "-1")
            if not self.options.portable:
                own.append(f"CAST({part(FLOAT)} AS INTEGER)")
            if self.times:
                own += [f"{part(INTERVAL)} / {part(INTERVAL)}", f"CAST({part(TIMESTAMP)} AS INTEGER)"]
                own.append(f"{self.pick('DAY', 'SECOND', 'DAYOFWEEK', 'YEAR')}({part(TIMESTAMP)})")
            if self.functions:
                own.append(f"uf_twice({part()})")
        elif type_ is FLOAT:
            own = [f"{part()} {self.pick('+', '-', '*')} {part()}", f"{part()} * {part(INTEGER)}", f"FLOOR({part()})"]
            own.append(f"CAST({part(INTEGER)} AS FLOAT)")
            if not self.options.portable:
                own.append(f"{part()} / {self.pick('2.0', '4.0', '0.0')}")
            if self.times:
                own.append(f"EXTRACT(EPOCH FROM {part(self.rng.choice((TIMESTAMP, INTERVAL)))})")
            if self.functions:
                own.append(f"uf_half({part()})")
        elif type_ is TIMESTAMP:
            own = [f"{part()} {self.pick('+', '-')} {part(INTERVAL)}", f"{part()} + 2"]
        elif type_ is INTERVAL:
            own = [f"{part()} {self.pick('+', '-')} {part()}", f"{part()} {self.pick('*', '/')} {part(INTEGER)}"]
            own += [f"{part(TIMESTAMP)} - {part(TIMESTAMP)}", f"ABS({part()})"]
        elif type_ in (PRICE, TOTAL):
            two = f"{part()} {self.pick('+', '-', '*', '%')} {part(self.rng.choice((PRICE, TOTAL, INTEGER)))}"
            one = f"{self.pick('ABS', 'FLOOR', 'CEIL', 'ROUND', '-')}({part()})"
            read = [f"{part()} * 1.19", f"ROUND({part(PRICE)} * 0.125, 1)", part(FLOAT), part(INTEGER)]
            own = [f"CAST({text} AS {type_})" for text in (two, one, *read, part(TOTAL))]
        else:
            own = [
                f"{part()} || {part()}",
                f"UPPER({part()})",
                f"SUBSTRING({part()}, 1, 1)",
                f"REPLACE({part()}, 'a', 'd')",
            ]
            if self.times:
                own.append(f"CAST({part(TIMESTAMP)} AS TEXT)")
            if self.functions:
                own.append(f"uf_tag({part()}, {part(INTEGER)})")
        return self.rng.choice(own if self.chance(0.65) else common)

    def comparison(self, type_: Type, left: str, right: str) -> str:
        """left op right."""
        return f"{left} {self.pick('=', '<>', '<>', '<', '<=', '<=', '>', '>=', '>=')} {right}"

    def predicate(self, columns: list[Column], depth: int, subqueries: int) -> str:
        """A condition. subqueries: how deep blocks inside may go; 0 is none."""
        if depth > 0 and self.chance(0.3):
            parts = [self.predicate(columns, depth - 1, subqueries) for _ in range(2)]
            word = self.pick(" AND ", " OR ", " OR ")
            return f"({word.join(parts)})" if self.chance(0.8) else f"NOT ({word.join(parts)})"
        if subqueries > 0 and self.chance(0.4):
            return self.subquery(columns)
        type_ = self.rng.choice(columns).type if self.chance(0.85) else self.type()
        left = self.expression(type_, columns, depth)
        right = self.expression(type_, columns, depth)
        form = self.rng.randrange(9)
        if form == 0:
            return f"{left} IS {self.pick('', 'NOT ', 'NOT ', 'NOT ')}NULL"
        if form == 5 and self.functions and self.chance(0.5):
            return f"uf_odd({self.expression(INTEGER, columns, 0)}, {self.expression(INTEGER, columns, 0)})"
        if form == 6 and type_ is TIMESTAMP:
            return f"{left} {self.pick('<', '>=')} {self.pick('1', repr('1970-01-01 00:00:01'))}"
        if form == 1:
            return f"{left} {self.pick('', 'NOT ')}IN ({right}, {self.literal(type_)})"
        if form == 2 and type_ is not BOOLEAN:
            return f"{left} {self.pick('', 'NOT ')}BETWEEN {right} AND {self.literal(type_)}"
        if form == 3 and type_ is TEXT:
            return f"{left} {self.pick('', 'NOT ')}LIKE '{self.pick('a%', '%b', '_', '%c%')}'"
        if form == 4:
            return f"{left} IS {self.pick('', 'NOT ')}DISTINCT FROM {right}"
        if type_ is BOOLEAN:
            return f"({left}) = ({right})"
        return self.comparison(type_, left, right)

    def subquery(self, outer: list[Column]) -> str:
        """IN, EXISTS, a quantified or a scalar comparison; correlated by equality half of the time."""
        item = self.item(0)
        inner = list(item.columns)
        type_ = self.rng.choice((INTEGER, INTEGER, TEXT))
        shown = self.expression(type_, inner, 0)
        conditions = [self.predicate(inner, 0, 0)] if self.chance(0.4) else []
        pairs = [(a, b) for a in inner for b in outer if a.type is b.type]
        if pairs and self.chance(0.5):
            self.is_correlated = True
            a, b = self.rng.choice(pairs)
            conditions.append(f"{a.text} = {b.text}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rest = f"FROM {item.text}{where}"
        value = self.expression(type_, outer, 0)
        form = self.rng.randrange(4)
        if form == 0:
            return f"{value} {self.pick('', 'NOT ')}IN (SELECT {shown} AS c0 {rest})"
        if form == 1:
            return f"{self.pick('', 'NOT ')}EXISTS (SELECT {shown} AS c0 {rest})"
        op = self.pick("=", "<>", "<", "<=", ">", ">=")
        if form == 2:
            return f"{value} {op} {self.pick('ALL', 'ANY')} (SELECT {shown} AS c0 {rest})"
        aggregate = self.aggregate(type_, inner, False, False)
        return f"{value} {op} (SELECT {aggregate} AS c0 {rest})"
