"""Random CQL with further blocks: keys that are expressions, combined sets of keys, OVER over groups and with FILTER,
QUALIFY of groups, joins by USING, and subqueries in every clause.

Invariant: as of `further_forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from minidsms.elements import Type
from minidsms.testing.further_subqueries import FurtherSubqueries
from minidsms.testing.grammar import BOOLEAN, FLOAT, INTEGER, LIST, STREAMS, TEXT, Column, Item

_SHARE = 0.2
"""The part of blocks that have a form of this file."""


@dataclass
class FurtherBlocks(FurtherSubqueries):
    """Writes queries."""

    def block(
        self, depth: int, types: Sequence[Type] | None, spread: bool, operator: str = ""
    ) -> tuple[str, tuple[Type, ...]]:
        """As of `FurtherForms`, or with a form of this file."""
        if not self.is_typed or self.chance(1 - _SHARE):
            return super().block(depth, types, spread, operator)
        sources, conditions, items = self._by_name() if self.chance(0.15) else self.sources(depth)
        columns = [c for item in items for c in item.columns]
        if self.chance(0.3):
            conditions.append(self.predicate(columns, 1, depth if self.options.subqueries else 0))
        wanted = list(types) if types is not None else [self.type() for _ in range(self.rng.randint(1, 3))]
        forms: list[Callable[[list[Type], list[Column]], tuple[list[str], str]]]
        forms = [self._of_expressions, self._combined_sets, self._chosen, self._in_cases, self._by_subquery]
        forms += [self._having_subquery, self._elements]
        if self.options.overs:
            forms += [self._over_groups, self._best_groups, self._best_rows, self._of_frames]
        if self.options.limits and not operator and self.are_sorted(wanted):
            forms.append(self._first_groups)
        shown, tail = self.rng.choice(forms)(wanted, columns)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        distinct = "DISTINCT " if not operator and " LIMIT " not in tail and self.chance(0.15) else ""
        return self.select(shown, f"{sources}{where}{tail}", operator, distinct), tuple(wanted)

    def _by_name(self) -> tuple[str, list[str], list[Item]]:
        """Streams joined by USING, whose column has no table before it."""
        names = [self.rng.choice(("Sa", "Sb", "Sc")) for _ in range(self.rng.choice((2, 2, 3)))]
        items = [self.named(f"{name} {self.window('k')} AS {(a := self.alias())}", a, STREAMS[name]) for name in names]
        joined = "".join(f" {self.pick('', 'LEFT ', 'RIGHT ', 'FULL ')}JOIN {i.text} USING (k)" for i in items[1:])
        return f"{items[0].text}{joined}", [], [Item("", (Column("k", INTEGER),) * 3, False), *items]

    def _keys(self, columns: list[Column], most: int = 2) -> list[Column]:
        return self.rng.sample(columns, min(len(columns), self.rng.randint(1, most)))

    def _of_keys(self, wanted: list[Type], keys: list[Column], columns: list[Column]) -> list[str]:
        return [self.grouped(t, keys, columns, False, False) for t in wanted]

    @staticmethod
    def _by(keys: list[Column]) -> str:
        return f" GROUP BY {', '.join(k.text for k in keys)}"

    # ------------------------------------------------------------------------------------------------------- groups

    def _of_expressions(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Keys that are expressions."""
        types = [self.rng.choice(wanted) if self.chance(0.6) else self.type() for _ in range(self.rng.randint(1, 2))]
        made = [Column(self.expression(t, columns, 2), t) for t in types]
        keys = [key for key in made if any(c.text in key.text for c in columns)] or self._keys(columns)
        having = f" HAVING {self.predicate(keys, 1, 0)}" if self.chance(0.3) else ""
        return self._of_keys(wanted, keys, columns), f"{self._by(keys)}{having}"

    def _combined_sets(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Elements of GROUP BY beside each other and inside each other."""
        keys = self.rng.sample(columns, min(len(columns), 2))
        first, last = keys[0].text, keys[-1].text
        by = self.pick(
            f"{first}, ROLLUP ({last})",
            f"ROLLUP (({first}, {last}))",
            f"GROUPING SETS (ROLLUP ({first}, {last}), {last}, ())",
            f"CUBE ({first}), ROLLUP ({last})",
        )
        shown = self._of_keys(wanted, keys, columns)
        if INTEGER in wanted and self.chance(0.4):
            shown[wanted.index(INTEGER)] = f"GROUPING({first}, {last})"
        having = f" HAVING GROUPING({last}) = {self.rng.randint(0, 1)}" if self.chance(0.25) else ""
        return shown, f" GROUP BY {by}{having}"

    def _chosen(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Values of groups beside each other."""
        keys = self._keys(columns, 1)
        shown = []
        for one, other in zip(self._of_keys(wanted, keys, columns), self._of_keys(wanted, keys, columns)):
            left, right = (self.aggregate(INTEGER, columns, False, False) for _ in range(2))
            compared = self.comparison(INTEGER, left, right)
            shown.append(self.pick(f"COALESCE({one}, {other})", f"CASE WHEN {compared} THEN {one} END"))
        return shown, self._by(keys)

    def _by_subquery(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """A subquery as a key."""
        shown = [self.aggregate(t, columns, False, False) if t is not BOOLEAN else "COUNT(*) > 1" for t in wanted]
        return shown, f" GROUP BY {self.value(self.rng.choice((INTEGER, TEXT)), columns)}"

    def _having_subquery(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        keys = self._keys(columns, 1)
        return self._of_keys(wanted, keys, columns), f"{self._by(keys)} HAVING {self.subquery(keys)}"

    def _first_groups(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        keys = self._keys(columns)
        order = self.pick("COUNT(*) DESC", "COUNT(*)", self.sort_key(keys))
        end = self.pick("LIMIT 2", "LIMIT 1 OFFSET 1")
        return self._of_keys(wanted, keys, columns), f"{self._by(keys)} ORDER BY {order} {end}"

    # --------------------------------------------------------------------------------------------------------- OVER

    def _ranked(self, columns: list[Column]) -> tuple[str, str]:
        """PARTITION BY and ORDER BY of groups."""
        partition = f"PARTITION BY {self.rng.choice(columns).text} " if self.chance(0.5) else ""
        key = next((c.text for c in columns if not c.type.is_nested), "1")
        return partition, f"ORDER BY {self.pick(key, 'COUNT(*)', f'COUNT(*) DESC, {key}')}"

    def _over_groups(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """OVER whose rows are groups."""
        keys = self._keys(columns)
        shown, i = self._of_keys(wanted, keys, columns), self.rng.randrange(len(wanted))
        partition, order = self._ranked(keys)
        frame = self.pick("", " ROWS 1 PRECEDING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING")
        over = f"OVER ({partition}{order}{frame})"
        calls = [f"LAG({shown[i]}) OVER ({partition}{order})", f"FIRST_VALUE({shown[i]}) {over}"]
        if wanted[i] is INTEGER:
            calls += [f"SUM(COUNT(*)) {over}", f"SUM({shown[i]}) {over}", f"COUNT(*) - MAX(COUNT(*)) {over}"]
        shown[i] = self.rng.choice(calls)
        having = f" HAVING COUNT(*) {self.pick('> 1', '= 1', '<> 2')}" if self.chance(0.3) else ""
        return shown, f"{self._by(keys)}{having}"

    def _best_groups(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Groups that are chosen by their rank."""
        keys = self._keys(columns)
        rank = f"{self.pick('ROW_NUMBER', 'RANK', 'DENSE_RANK')}() OVER ({' '.join(self._ranked(keys))})"
        return self._of_keys(
            wanted, keys, columns
        ), f"{self._by(keys)} QUALIFY {rank} {self.pick('= 1', '<= 2', '> 1')}"

    def _best_rows(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Rows that are chosen by a sum beside what else they hold."""
        partition = f"PARTITION BY {self.rng.choice(columns).text} " if self.chance(0.6) else ""
        value, other = (self.expression(INTEGER, columns, 0) for _ in range(2))
        total = f"SUM({value}) OVER ({partition}ORDER BY {self.sort_key(columns)})"
        condition = (
            f"{total} {self.pick('>', '<=', '=')} {other} {self.pick('AND', 'OR')} {self.predicate(columns, 0, 0)}"
        )
        return [self.expression(t, columns, 1) for t in wanted], f" QUALIFY {condition}"

    def _of_frames(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """Aggregates of those rows of a frame that pass a condition; windows of their own, by expressions."""
        return [self._of_frame(t, self.expression(t, columns, 1), columns) for t in wanted], ""

    def _of_frame(self, type_: Type, value: str, columns: list[Column]) -> str:
        partition = f"PARTITION BY {self.expression(self.type(), columns, 1)} " if self.chance(0.5) else ""
        order = f"ORDER BY {self.sort_key(columns)}"
        frame = self.pick("", " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", " ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING")
        over = f"OVER ({partition}{order}{frame})"
        if type_ is LIST:
            return f"{self.pick('ARRAY_AGG', 'LIST')}({self.expression(INTEGER, columns, 0)}) {over}"
        if type_.is_nested:
            return f"LEAD({value}, 1, {self.literal(type_)}) OVER ({partition}{order})"
        calls = [f"MIN({value})", f"MAX({value})", f"MODE({value})", f"ANY_VALUE({value})"]
        if type_ is INTEGER:
            calls += [f"SUM({self.pick('', 'DISTINCT ')}{value})", "COUNT(*)", f"BIT_AND({value})"]
        if type_ is FLOAT:
            calls += [f"AVG({value})", f"MEDIAN({value})", f"QUANTILE_CONT({value}, 0.3)"]
        condition = f" FILTER (WHERE {self.predicate(columns, 0, 0)})" if self.chance(0.6) else ""
        return f"{self.rng.choice(calls)}{condition} {over}"

    # -------------------------------------------------------------------------------------------------- select list

    def _in_cases(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """A subquery that is asked in a CASE only."""
        shown, i = [self.expression(t, columns, 1) for t in wanted], self.rng.randrange(len(wanted))
        value = self.expression(wanted[i], columns, 0)
        asked = value if wanted[i].is_nested else self.value(wanted[i], columns)
        shown[i] = self.pick(
            f"CASE WHEN {self.subquery(columns)} THEN {value} ELSE {asked} END",
            f"CASE WHEN {self.predicate(columns, 1, 0)} THEN {asked} END",
            f"COALESCE({asked}, {value})",
            f"NULLIF({value}, {asked})",
        )
        return shown, ""

    def _elements(self, wanted: list[Type], columns: list[Column]) -> tuple[list[str], str]:
        """UNNEST in the select list."""
        shown = [self.expression(t, columns, 1) for t in wanted]
        if INTEGER in wanted:
            shown[wanted.index(INTEGER)] = f"UNNEST({self.expression(LIST, columns, 1)})"
        return shown, ""
