"""Random CQL with further forms: WITH, sets of keys, subqueries as values, names of the select list, several OVER.

Invariant: as of `grammar`; a text may be refused, and then by both sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from minidsms.elements import Type
from minidsms.testing.grammar import BOOLEAN, FLOAT, INTEGER, STREAMS, TEXT, Column, Grammar, Item, View

_SHARE = 0.4
"""The part of blocks that have a form of this file."""


@dataclass
class FurtherForms(Grammar):
    """Writes queries. tables: those of the WITH that stands before."""

    tables: list[View] = field(default_factory=list)

    @property
    def is_wide(self) -> bool:
        """Whether they may be used."""
        return self.options.forms and not self.options.portable

    # ------------------------------------------------------------------------------------------------------- WITH

    def query(self) -> str:
        """As of `Grammar`; now and then behind a WITH whose tables may be read several times."""
        self.tables = []
        if self.is_wide and self.chance(0.2):
            for i in range(self.rng.randint(1, 2)):
                self.tables.append(self._table(f"w{i}"))
        query = super().query()
        read = [table for i, table in enumerate(self.tables) if self._is_read(table, i, query)]
        head = ", ".join(f"{table.name} AS ({table.text})" for table in read)
        return f"WITH {head} {query}" if read else query

    def _table(self, name: str) -> View:
        body, types = self.body(depth=1, types=None, spread=False)
        is_stream = self.options.derived and self.chance(0.3)
        if is_stream:
            body = f"{self.pick('ISTREAM', 'DSTREAM', 'RSTREAM')} ({body})"
        return View(name, body, tuple((f"c{i}", t) for i, t in enumerate(types)), is_stream)

    def _is_read(self, table: View, i: int, query: str) -> bool:
        texts = (query, *(later.text for later in self.tables[i + 1 :]))
        return any(re.search(rf"\b{table.name}\b", text) for text in texts)

    def item(self, depth: int) -> Item:
        """As of `Grammar`, or a table of the WITH."""
        if not self.tables or self.chance(0.65):
            return super().item(depth)
        table = self.rng.choice(self.tables)
        alias = self.alias()
        window = f"{self.window('c0')} " if table.is_stream else ""
        return self.named(f"{table.name} {window}AS {alias}", alias, table.columns, table.is_stream)

    # ------------------------------------------------------------------------------------------------------- FROM

    def sources(self, depth: int) -> tuple[str, list[str], list[Item]]:
        """As of `Grammar`, or two streams joined by USING, NATURAL JOIN or ASOF JOIN."""
        if not self.is_wide or self.chance(0.92):
            return super().sources(depth)
        if self.chance(0.3):
            return self._as_of()
        names = [self.rng.choice(("Sa", "Sb", "Sc")) for _ in range(2)]
        items = []
        for name in names:
            alias = self.alias()
            items.append(self.named(f"{name} {self.window('k')} AS {alias}", alias, STREAMS[name], True))
        left, right = (dict(STREAMS[name]) for name in names)
        common = [column for column in left if left[column] is right.get(column)]
        kind, using = (
            self.pick("", "", "LEFT ", "RIGHT ", "FULL "),
            self.rng.sample(common, self.rng.randint(1, len(common))),
        )
        text = f"{items[0].text} {kind}JOIN {items[1].text} USING ({', '.join(using)})"
        if self.chance(0.3):
            text = f"{items[0].text} NATURAL {kind}JOIN {items[1].text}"
        columns = tuple(c for item in items for c in item.columns if not c.text.endswith(".ts"))
        return text, [], [Item(text, columns, False)]

    def _as_of(self) -> tuple[str, list[str], list[Item]]:
        """The elements of a stream with what they find in one stream or two."""
        window = self.pick("", "[NOW] ", f"[RANGE {self.rng.randint(1, 6)}] ", "[TUMBLE 3] ", "[RANGE 4 SLIDE 2] ")
        items: list[Item] = []
        for i in range(self.rng.randint(2, 3)):
            name, alias = self.rng.choice(("Sa", "Sb", "Sc")), self.alias()
            before = "" if items else window
            items.append(self.named(f"{name} {before}AS {alias}", alias, STREAMS[name], True))
            if i > 0:
                keys = self.pick(f"{items[0].columns[0].text} = {alias}.k AND ", "")
                first = items[0].text.rpartition(" ")[2]
                kind = self.pick("ASOF", "ASOF LEFT")
                on = self.pick(f"ON {keys}{first}.ts >= {alias}.ts", f"MATCH_CONDITION ({alias}.ts <= {first}.ts)")
                items[i] = replace(items[i], text=f"{items[i - 1].text} {kind} JOIN {items[i].text} {on}")
        columns = tuple(column for item in items for column in item.columns)
        return items[-1].text, [], [Item(items[-1].text, columns, False)]

    # ----------------------------------------------------------------------------------------- subqueries as values

    def subquery(self, outer: list[Column]) -> str:
        """As of `Grammar`, or correlated by more than one equality."""
        if not self.is_wide or self.chance(0.6):
            return super().subquery(outer)
        if self.chance(0.6):
            return self.truth(outer)
        type_ = self.rng.choice((INTEGER, TEXT, FLOAT))
        return f"{self.expression(type_, outer, 0)} {self.pick('=', '<', '>=', '<>')} {self.value(type_, outer)}"

    def truth(self, outer: list[Column]) -> str:
        """EXISTS, or IN of one value or two."""
        item, where = self.correlated(outer)
        negation = self.pick("", "NOT ")
        if self.chance(0.4):
            return f"{negation}EXISTS (SELECT 1 FROM {item.text}{where})"
        types = [self.rng.choice((INTEGER, TEXT)) for _ in range(self.rng.randint(1, 2))]
        asked = ", ".join(self.expression(t, outer, 0) for t in types)
        inner = list(item.columns)
        shown = ", ".join(f"{self.expression(t, inner, 0)} AS c{i}" for i, t in enumerate(types))
        return f"({asked}) {negation}IN (SELECT {shown} FROM {item.text}{where})"

    def value(self, type_: Type, outer: list[Column]) -> str:
        """A subquery that gives one value."""
        if type_ is BOOLEAN:
            return self.truth(outer)
        item, where = self.correlated(outer)
        having = f" HAVING {self.comparison(INTEGER, 'COUNT(*)', '1')}" if self.chance(0.15) else ""
        shown = self.aggregate(type_, list(item.columns), False, False)
        return f"(SELECT {shown} AS c0 FROM {item.text}{where}{having})"

    def correlated(self, outer: list[Column]) -> tuple[Item, str]:
        """What a subquery reads, and its WHERE."""
        item = self.item(0)
        inner = list(item.columns)
        conditions = [self.predicate(inner, 0, 0)] if self.chance(0.3) else []
        conditions += self.correlating(inner, outer)
        if self.chance(0.15):
            conditions.append(self.subquery(inner))
        return item, f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def correlating(self, inner: list[Column], outer: list[Column]) -> list[str]:
        """Mostly, one condition or two on columns of a subquery and of the query around it."""
        pairs = [(a, b) for a in inner for b in outer if a.type is b.type]
        if not pairs or not self.chance(0.75):
            return []
        self.is_correlated = True
        chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 2))))
        compared = ("=", "=", "=", "<", "<>", "IS NOT DISTINCT FROM")
        return [f"{a.text} {self.pick(*compared)} {b.text}" for a, b in chosen]

    # ----------------------------------------------------------------------------------------------------- blocks

    def block(
        self, depth: int, types: Sequence[Type] | None, spread: bool, operator: str = ""
    ) -> tuple[str, tuple[Type, ...]]:
        """As of `Grammar`, or with a form of this file."""
        if not self.is_wide or self.chance(1 - _SHARE):
            return super().block(depth, types, spread, operator)
        sources, conditions, items = self.sources(depth)
        columns = [c for item in items for c in item.columns]
        if self.chance(0.3):
            conditions.append(self.predicate(columns, 1, depth if self.options.subqueries else 0))
        wanted = list(types) if types is not None else [self.type() for _ in range(self.rng.randint(1, 3))]
        forms: list[Callable[[list[Type], list[Column]], tuple[str, list[str], str]]]
        forms = [self._plain, self._of_groups, self._sets_of_keys, self._named, self._grouped_by_name]
        if self.options.overs:
            forms.append(self._overs)
        if self.options.limits and not operator:
            forms += [self._first_of_keys, *[self._first_rows] * self.are_sorted(wanted)]
        distinct, shown, tail = self.rng.choice(forms)(wanted, columns)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return self.select(shown, f"{sources}{where}{tail}", operator, distinct), tuple(wanted)

    def _expressions(self, wanted: list[Type], columns: list[Column], depth: int = 1) -> list[str]:
        return [self.expression(t, columns, depth) for t in wanted]

    def _plain(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """A subquery in the select list."""
        shown, i = self._expressions(wanted, columns), self.rng.randrange(len(wanted))
        shown[i] = self.value(wanted[i], columns)
        if wanted[i] is INTEGER and self.chance(0.4):
            shown[i] = f"COALESCE({shown[i]}, 0) + {self.expression(INTEGER, columns, 0)}"
        return "", shown, ""

    def _of_groups(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """A subquery of the keys beside aggregates, and in HAVING."""
        keys = self.rng.sample(columns, min(len(columns), self.rng.randint(1, 2)))
        shown, i = [self.grouped(t, keys, columns, False, False) for t in wanted], self.rng.randrange(len(wanted))
        shown[i] = self.value(wanted[i], keys)
        tail = f" GROUP BY {', '.join(k.text for k in keys)}"
        if self.chance(0.4):
            counted = self.aggregate(INTEGER, columns, False, False)
            tail += f" HAVING {counted} {self.pick('<', '>=', '<>')} {self.value(INTEGER, keys)}"
        return "", shown, tail

    def _sets_of_keys(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        keys = self.rng.sample(columns, min(len(columns), self.rng.randint(1, 3)))
        texts = [k.text for k in keys]
        sets = [self.rng.sample(texts, self.rng.randint(0, len(texts))) for _ in range(self.rng.randint(1, 3))]
        written = ", ".join(f"({', '.join(set_)})" for set_ in [*sets, texts])
        by = self.pick(f"ROLLUP ({', '.join(texts)})", f"CUBE ({', '.join(texts)})", f"GROUPING SETS ({written})")
        shown = [self.grouped(t, keys, columns, False, False) for t in wanted]
        if INTEGER in wanted and self.chance(0.5):
            told = self.rng.sample(texts, self.rng.randint(1, len(texts)))
            shown[wanted.index(INTEGER)] = f"GROUPING({', '.join(told)})"
        having = f" HAVING {self.comparison(INTEGER, 'COUNT(*)', '1')}" if self.chance(0.2) else ""
        return "", shown, f" GROUP BY {by}{having}"

    def _named(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """Expressions that use the names of those before them."""
        shown: list[str] = []
        for i, t in enumerate(wanted):
            before = [Column(f"c{j}", wanted[j]) for j in range(i) if not self._is_column(f"c{j}", columns)]
            shown.append(self.expression(t, [*before, *before, *columns], 1))
        return "", shown, ""

    def _grouped_by_name(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        fitting = [c.text for c in columns if c.type is wanted[0]]
        if not fitting:
            return self._named(wanted, columns)
        first = self.rng.choice(fitting)
        first = self.pick(first, f"COALESCE({first}, {self.literal(wanted[0])})")
        shown = [first, *(self.aggregate(t, columns, False, False) for t in wanted[1:])]
        names = ["1", first, *["ALL"] * (len(wanted) > 1), *["c0"] * (not self._is_column("c0", columns))]
        return "", shown, f" GROUP BY {self.rng.choice(names)}"

    @staticmethod
    def _is_column(name: str, columns: list[Column]) -> bool:
        return any(c.text.endswith(f".{name}") for c in columns)

    def _first_of_keys(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """DISTINCT ON."""
        keys = [self.rng.choice(columns).text for _ in range(self.rng.randint(1, 2))]
        more = [self.sort_key(columns) for _ in range(self.rng.randint(0, 2))]
        order = f" ORDER BY {', '.join([*keys, *more])}" if self.chance(0.8) else ""
        return f"DISTINCT ON ({', '.join(keys)}) ", self._expressions(wanted, columns), order

    def _first_rows(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """LIMIT by what is not shown."""
        keys = ", ".join(self.sort_key(columns) for _ in range(2))
        return "", self._expressions(wanted, columns), f" ORDER BY {keys} LIMIT {self.rng.randint(1, 3)}"

    def sort_key(self, columns: list[Column]) -> str:
        """A column or an expression, in some order."""
        key = self.rng.choice(columns).text
        if self.chance(0.4):
            key = f"COALESCE({self.expression(INTEGER, columns, 0)}, {self.expression(INTEGER, columns, 0)})"
        return f"{key}{self.pick('', ' DESC')}{self.pick('', '', ' NULLS FIRST')}"

    def _overs(self, wanted: list[Type], columns: list[Column]) -> tuple[str, list[str], str]:
        """Several calls over one named window."""
        frame = self.pick(
            "",
            " ROWS 2 PRECEDING",
            " ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        )
        shown = [self.call_over(t, self.expression(t, columns, 0), f"OVER (w{frame})") for t in wanted]
        partition = f"PARTITION BY {self.rng.choice(columns).text} " if self.chance(0.6) else ""
        return "", shown, f" WINDOW w AS ({partition}ORDER BY {self.sort_key(columns)})"

    def call_over(self, type_: Type, arg: str, over: str) -> str:
        """A call of the type over the window w, or a frame of it."""
        calls = [
            arg,
            f"{self.pick('LAG', 'LEAD')}({arg}) IGNORE NULLS OVER w",
            f"{self.pick('FIRST_VALUE', 'LAST_VALUE')}({arg}) IGNORE NULLS {over}",
            f"{self.pick('MIN', 'MAX', 'MODE')}({arg}) {over}",
            f"NTH_VALUE({arg}, 2) {over}",
        ]
        if type_ is INTEGER:
            calls += ["ROW_NUMBER() OVER w - RANK() OVER w", f"SUM({arg}) {over}", f"COUNT(DISTINCT {arg}) {over}"]
        if type_ is FLOAT:
            calls += [f"{self.pick('AVG', 'MEDIAN', 'STDDEV')}({arg}) {over}", "CUME_DIST() OVER w"]
        return self.rng.choice(calls)
