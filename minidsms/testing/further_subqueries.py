"""Random CQL with further subqueries and FROM items: of groups, joins, sets and first rows, in every clause, two deep.

Invariant: as of `further_forms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.elements import Type
from minidsms.testing.further_types import BESIDE, FurtherTypes
from minidsms.testing.grammar import FLOAT, INTEGER, PRICE, TEXT, TIMESTAMP, TOTAL, Column, Item


@dataclass
class FurtherSubqueries(FurtherTypes):
    """Writes queries."""

    # ------------------------------------------------------------------------------------------------------- FROM

    def item(self, depth: int) -> Item:
        """As of `FurtherTypes`, or rows written out, a query whose columns are named behind it, or all of an item."""
        if not self.is_typed or self.chance(0.92):
            return super().item(depth)
        if depth <= 0 or self.chance(0.35):
            return self.values(self.alias()) if self.chance(0.3) else super().item(depth)
        alias = self.alias()
        if self.chance(0.5):
            body, types = self.body(depth - 1, None, False)
            names = [f"z{i}" for i in range(len(types))]
            return self.named(f"({body}) AS {alias}({', '.join(names)})", alias, [*zip(names, types)])
        inner = super().item(depth - 1)
        hidden = (".ts", ".window_start", ".window_end", ".session_id")
        columns = [(c.text.split(".")[1], c.type) for c in inner.columns if not c.text.endswith(hidden)]
        where = f" WHERE {self.predicate(list(inner.columns), 1, 0)}" if self.chance(0.5) else ""
        text = f"(SELECT {self.pick('', '', 'DISTINCT ')}* FROM {inner.text}{where}) AS {alias}"
        return self.named(text, alias, columns)

    def sources(self, depth: int) -> tuple[str, list[str], list[Item]]:
        """As of `FurtherForms`, or an item joined with a join in parentheses."""
        if not self.is_typed or self.chance(0.92):
            return super().sources(depth)
        style = self.rng.random()
        if style < 0.4:
            return self._lateral(self.item(depth - 1))
        if style < 0.6:
            return self._asking_in_on()
        first, second, third = (self.item(0) for _ in range(3))
        columns = [list(item.columns) for item in (first, second, third)]
        joined = f"{second.text} {self.pick('', 'LEFT ')}JOIN {third.text} ON {self.equality(columns[1], columns[2])}"
        on = self.equality(columns[0], [*columns[1], *columns[2]])
        return f"{first.text} {self.pick('', 'LEFT ', 'FULL ')}JOIN ({joined}) ON {on}", [], [first, second, third]

    def _asking_in_on(self) -> tuple[str, list[str], list[Item]]:
        """Two items joined by an equality and a subquery that looks at the row of one of them."""
        items = [self.item(0), self.item(0)]
        columns = [list(item.columns) for item in items]
        on = f"{self.equality(*columns)} AND {self.subquery(self.rng.choice(columns))}"
        kind = self.pick("", "LEFT ", "RIGHT ", "FULL ")
        return f"{items[0].text} {kind}JOIN {items[1].text} ON {on}", [], items

    def _lateral(self, first: Item) -> tuple[str, list[str], list[Item]]:
        """An item beside the rows that a query has for each of its rows."""
        outer, alias = list(first.columns), self.alias()
        item, where = self.correlated(outer)
        self.is_correlated = True
        columns = [(f"z{i}", self.rng.choice((INTEGER, TEXT))) for i in range(self.rng.randint(1, 2))]
        shown = ", ".join(f"{self.expression(t, [*item.columns, *outer], 1)} AS {name}" for name, t in columns)
        order = f" ORDER BY {columns[0][0]}{self.pick('', ' DESC')} LIMIT {self.pick('1', '2')}"
        text = f"LATERAL (SELECT {shown} FROM {item.text}{where}{order if self.chance(0.4) else ''}) AS {alias}"
        found = self.named(text, alias, columns)
        join = self.pick(", ", " CROSS JOIN ", " JOIN ", " LEFT JOIN ")
        on = f" ON {self.predicate([*outer, *found.columns], 1, 0)}" if join in (" JOIN ", " LEFT JOIN ") else ""
        return f"{first.text}{join}{text}{on}", [], [first, found]

    # -------------------------------------------------------------------------------------------------------- sets

    def body(
        self, depth: int, types: Sequence[Type] | None, spread: bool, operator: str = ""
    ) -> tuple[str, tuple[Type, ...]]:
        """As of `Grammar`, or several set operations, now and then over two types and over rows written out."""
        if depth <= 0 or operator or not self.is_typed or self.chance(0.95):
            return super().body(depth, types, spread, operator)
        text, found = self.block(depth - 1, types, False)
        text = f"({text})"
        for _ in range(self.rng.randint(1, 3)):
            asked = found if types is not None else tuple(map(self._beside_in_sets, found))
            word = self.pick("UNION", "EXCEPT", "INTERSECT") + self.pick("", " ALL")
            right = f"({self.block(depth - 1, asked, False)[0]})"
            if self.chance(0.2):
                text = f"{text} {word} VALUES ({', '.join(map(self.literal, asked))})"
            else:
                text = f"{text} {word} {right}" if self.chance(0.7) else f"{right} {word} ({text})"
            found = tuple(a if a is b else FLOAT if FLOAT in (a, b) else TOTAL for a, b in zip(found, asked))
        return text, found

    def _beside_in_sets(self, type_: Type) -> Type:
        others = {INTEGER: FLOAT, FLOAT: INTEGER, PRICE: TOTAL, TOTAL: PRICE}
        return others.get(type_, type_) if self.chance(0.3) else type_

    # -------------------------------------------------------------------------------------------------- subqueries

    def subquery(self, outer: list[Column]) -> str:
        """As of `FurtherForms`, or one that is more than a block over one item."""
        if not self.is_typed or self.chance(0.75):
            return super().subquery(outer)
        plain = (self._of_sets, self._of_groups_inside, self._of_join, self._two_deep, self._of_first, self._of_others)
        forms = (*plain, self._of_outer_columns)
        return self.rng.choice(forms)(outer)

    def _asked(self, type_: Type, outer: list[Column], query: str) -> str:
        how = self.pick("IN", "NOT IN", "= ANY", "<> ALL", "< ALL", ">= ANY")
        return f"{self.expression(type_, outer, 0)} {how} ({query})"

    def _of_sets(self, outer: list[Column]) -> str:
        type_ = self.rng.choice((INTEGER, TEXT))
        sides = []
        for _ in range(2):
            item, where = self.correlated(outer)
            sides.append(f"SELECT {self.expression(type_, list(item.columns), 0)} AS c0 FROM {item.text}{where}")
        query = f" {self.pick('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT', 'EXCEPT ALL')} ".join(sides)
        return self._asked(type_, outer, query) if self.chance(0.6) else f"{self.pick('', 'NOT ')}EXISTS ({query})"

    def _of_groups_inside(self, outer: list[Column]) -> str:
        item, where = self.correlated(outer)
        inner, type_ = list(item.columns), self.rng.choice((INTEGER, TEXT))
        having = self.comparison(INTEGER, self.aggregate(INTEGER, inner, False, False), "1")
        shown = self.aggregate(type_, inner, False, False)
        rest = f"FROM {item.text}{where} GROUP BY {self.rng.choice(inner).text} HAVING {having}"
        return self._asked(type_, outer, f"SELECT {shown} AS c0 {rest}")

    def _of_join(self, outer: list[Column]) -> str:
        items = [self.item(0), self.item(0)]
        columns = [[*item.columns] for item in items]
        inner = [*columns[0], *columns[1]]
        on = self.equality(*columns)
        where = f" WHERE {' AND '.join(pairs)}" if (pairs := self.correlating(inner, outer)) else ""
        rest = f"FROM {items[0].text} {self.pick('', 'LEFT ')}JOIN {items[1].text} ON {on}{where}"
        type_ = self.rng.choice((INTEGER, TEXT))
        if self.chance(0.3):
            return f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 {rest})"
        if self.chance(0.5):
            return self._asked(type_, outer, f"SELECT {self.expression(type_, inner, 0)} AS c0 {rest}")
        shown = self.aggregate(type_, inner, False, False)
        return f"{self.expression(type_, outer, 0)} {self.pick('=', '<', '>=')} (SELECT {shown} AS c0 {rest})"

    def _two_deep(self, outer: list[Column]) -> str:
        """A subquery inside a subquery that looks at the rows of both queries around it."""
        near, far = self.item(0), self.item(0)
        columns, below = list(near.columns), list(far.columns)
        inside = [*self.correlating(below, columns), *self.correlating(below, outer)]
        where = f" WHERE {' AND '.join(inside)}" if inside else ""
        deepest = f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM {far.text}{where})"
        conditions = [*self.correlating(columns, outer), deepest]
        return f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 FROM {near.text} WHERE {' AND '.join(conditions)})"

    def _of_first(self, outer: list[Column]) -> str:
        """Of first rows, or of different ones."""
        (item, where), type_ = self.correlated(outer), self.rng.choice((INTEGER, TEXT))
        shown = f"SELECT {self.pick('', 'DISTINCT ')}{self.expression(type_, list(item.columns), 0)} AS c0"
        query = f"{shown} FROM {item.text}{where} ORDER BY c0{self.pick('', ' DESC')}"
        if self.chance(0.5):
            return f"{self.expression(type_, outer, 0)} {self.pick('=', '<', '<>')} ({query} LIMIT 1)"
        return self._asked(type_, outer, f"{query} LIMIT 2")

    def _of_outer_columns(self, outer: list[Column]) -> str:
        """That shows, aggregates and sorts by columns of the row outside."""
        item, where = self.correlated(outer)
        inner, both = list(item.columns), [*item.columns, *outer]
        self.is_correlated, type_ = True, self.rng.choice((INTEGER, TEXT))
        mixed = self.expression(type_, both, 1)
        if self.chance(0.3):
            return self._asked(type_, outer, f"SELECT {mixed} AS c0 FROM {item.text}{where}")
        left, fallback = self.expression(type_, outer, 0), self.expression(type_, outer, 0)
        start = f"{left} {self.pick('=', '<', '>=')} (SELECT"
        if self.chance(0.5):
            shown = f"COALESCE({self.aggregate(type_, inner, False, False)}, {fallback}) AS c0"
            having = self.comparison(INTEGER, "COUNT(*)", self.expression(INTEGER, outer, 0))
            return f"{start} {shown} FROM {item.text}{where} HAVING {having})"
        order = f"ORDER BY {mixed}{self.pick('', ' DESC')} LIMIT 1"
        return f"{start} {self.expression(type_, inner, 0)} AS c0 FROM {item.text}{where} {order})"

    def _of_others(self, outer: list[Column]) -> str:
        """Of another type than the value that is compared."""
        item, where = self.correlated(outer)
        type_ = self.rng.choice((INTEGER, FLOAT, PRICE, TIMESTAMP))
        shown = self.expression(self.rng.choice(BESIDE[type_]), list(item.columns), 0)
        return self._asked(type_, outer, f"SELECT {shown} AS c0 FROM {item.text}{where}")

    # -------------------------------------------------------------------------------------------------- aggregates

    def aggregate(self, type_: Type, columns: list[Column], one_stream: bool, spread: bool) -> str:
        """As of `FurtherTypes`; some of the rows that pass a condition, or of subqueries."""
        if not self.is_typed or type_ not in (INTEGER, FLOAT, TEXT) or self.chance(0.85):
            return super().aggregate(type_, columns, one_stream, spread)
        if type_ is INTEGER and self.chance(0.15):
            return f"{self.pick('SUM', 'MAX')}({self.value(INTEGER, columns)})"
        value = self.expression(type_, columns, 1)
        calls = [f"MIN({value})", f"MAX({value})"]
        if type_ is not TEXT:
            calls += [f"SUM({self.pick('', 'DISTINCT ')}{value})"]
        if type_ is INTEGER:
            calls += ["COUNT(*)", f"COUNT({self.pick('', 'DISTINCT ')}{value})"]
        condition = self.subquery(columns) if self.chance(0.1) else self.predicate(columns, 1, 0)
        return f"{self.rng.choice(calls)} FILTER (WHERE {condition})"

    def grouped(self, type_: Type, keys: list[Column], columns: list[Column], one_stream: bool, spread: bool) -> str:
        """As of `Grammar`, or an expression of the keys."""
        if keys and self.is_typed and self.chance(0.12) and any(k.type is type_ for k in keys):
            return self.expression(type_, keys, 1)
        return super().grouped(type_, keys, columns, one_stream, spread)
