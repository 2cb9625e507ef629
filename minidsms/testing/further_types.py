"""Random CQL over further types: DATE, TIME, lists, STRUCT and MAP, types beside each other, CASTs, and written NULLs.

Lists, STRUCTs and MAPs have no order: they are neither sorted nor compared by less. Invariant: as of `further_forms`.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.elements import Type
from minidsms.testing.further_forms import FurtherForms
from minidsms.testing.grammar import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    INTERVAL,
    LIST,
    PRICE,
    STREAMS,
    TEXT,
    TIME,
    TIMESTAMP,
    TOTAL,
    Column,
    Item,
)

STRUCT, MAP = Type.struct([("a", INTEGER), ("b", TEXT)]), Type.map(TEXT, INTEGER)
NEW = (DATE, TIME, LIST, STRUCT, MAP)

BESIDE: dict[Type, tuple[Type, ...]] = {
    INTEGER: (FLOAT, PRICE, TOTAL),
    FLOAT: (INTEGER, PRICE),
    PRICE: (INTEGER, FLOAT, TOTAL),
    TOTAL: (INTEGER, FLOAT, PRICE),
    TIMESTAMP: (DATE, INTEGER),
    DATE: (TIMESTAMP,),
    INTERVAL: (INTEGER,),
}
"""What each type is compared with, besides itself (docs/semantics R4)."""

CAST_FROM: dict[Type, tuple[Type, ...]] = {
    INTEGER: (FLOAT, TEXT, BOOLEAN, TIMESTAMP, INTERVAL, PRICE, TOTAL),
    FLOAT: (INTEGER, TEXT, BOOLEAN, PRICE, TOTAL),
    TEXT: (INTEGER, FLOAT, BOOLEAN, TIMESTAMP, INTERVAL, PRICE, TOTAL, DATE, TIME),
    BOOLEAN: (INTEGER, FLOAT, TEXT, PRICE, TOTAL),
    TIMESTAMP: (INTEGER, TEXT, DATE),
    INTERVAL: (INTEGER,),
    PRICE: (INTEGER, FLOAT, TEXT, BOOLEAN, TOTAL),
    TOTAL: (INTEGER, FLOAT, TEXT, BOOLEAN, PRICE),
    DATE: (TEXT, TIMESTAMP),
    TIME: (TEXT, TIMESTAMP),
}


@dataclass
class FurtherTypes(FurtherForms):
    """Writes queries. needs_order: only types with an order are asked for."""

    needs_order: bool = False

    @property
    def is_typed(self) -> bool:
        """Whether further types may be used."""
        return self.options.types and self.is_wide

    def type(self) -> Type:
        """As of `Grammar`, or one of those of this file."""
        if not self.is_typed or self.chance(0.88):
            return super().type()
        return self.rng.choice((DATE, TIME) if self.needs_order else NEW)

    def item(self, depth: int) -> Item:
        """As of `FurtherForms`, or the stream that has such columns."""
        if not self.is_typed or self.chance(0.92):
            return super().item(depth)
        alias = self.alias()
        return self.named(f"Sf {self.window('k')} AS {alias}", alias, STREAMS["Sf"], True)

    # ------------------------------------------------------------------------------------------------------- values

    def literal(self, type_: Type) -> str:
        """As of `Grammar`; now and then NULL, or a value at an edge of its type."""
        if self.is_typed and self.chance(0.04):
            return f"CAST(NULL AS {type_})"
        if self.is_typed and self.chance(0.1) and type_ in (FLOAT, TEXT):
            return (
                self.pick("CAST('inf' AS FLOAT)", "-0.0", "1e308") if type_ is FLOAT else self.pick("''", "'ä'", "'A'")
            )
        if type_ is DATE:
            return f"DATE '1970-01-0{self.rng.randint(1, 4)}'"
        if type_ is TIME:
            return f"TIME '00:00:0{self.rng.randint(0, 2)}'"
        if type_ is LIST:
            return self.pick("[1]", "[1, NULL]", "[0, 2]", "[2, 1]")
        if type_ is STRUCT:
            return self.pick("STRUCT(a := 1, b := 'a')", "STRUCT(a := 2, b := 'b')")
        if type_ is MAP:
            return self.pick("MAP('a' := 1)", "MAP('b' := 2, 'a' := 0)")
        return super().literal(type_)

    def expression(self, type_: Type, columns: list[Column], depth: int) -> str:
        """As of `Grammar`; of further types, made of them, or cast."""
        if type_ in NEW:
            return self._new(type_, columns, depth)
        if depth <= 0 or not self.is_typed or self.chance(0.75):
            return super().expression(type_, columns, depth)

        def part(t: Type = type_) -> str:
            return self.expression(t, columns, depth - 1)

        if self.chance(0.3):
            source = self.rng.choice(CAST_FROM[type_])
            # A text that is no number fails, which a correlated subquery may do for values that no row has (R4).
            return f"{self.pick('TRY_', *[''] * (source is not TEXT))}CAST({part(source)} AS {type_})"
        own = [f"COALESCE({part()}, {part()})"]
        if type_ is INTEGER:
            own += [f"({part(DATE)} - {part(DATE)})", f"({part(LIST)})[{part()}]", f"({part(MAP)})['a']"]
            own += [f"STRUCT_EXTRACT({part(STRUCT)}, 'a')", f"REDUCE({part(LIST)}, 0, (x, y) -> x + y)"]
            own += [
                f"INSTR({part(TEXT)}, {part(TEXT)})",
                f"CASE {part()} WHEN 1 THEN {part()} WHEN {part()} THEN 7 END",
            ]
        elif type_ is FLOAT:
            own += [f"COALESCE({part(INTEGER)}, {part()})", f"GREATEST({part()}, {part(INTEGER)})", f"SQRT({part()})"]
            own += [f"({part(PRICE)} / {part(INTEGER)})", f"ROUND({part()}, {part(INTEGER)})"]
        elif type_ is TEXT:
            own += [f"CAST({part(self.rng.choice(NEW))} AS TEXT)", f"STRUCT_EXTRACT({part(STRUCT)}, 'b')"]
            own += [f"LPAD({part()}, {part(INTEGER)}, {part()})", f"CONCAT_WS({part()}, {part()}, {part()})"]
            own += [f"SPLIT_PART({part()}, 'a', {part(INTEGER)})", f"({part()} || {part(FLOAT)})"]
        elif type_ is TIMESTAMP:
            own += [f"({part(DATE)} + {part(TIME)})", f"TIMESTAMPADD(MONTH, {part(INTEGER)}, {part()})"]
            own += [f"DATE_TRUNC('day', {part()})", f"({part(DATE)} + {part(INTERVAL)})"]
        elif type_ is INTERVAL:
            own.append(f"({part(TIME)} - {part(TIME)})")
        elif type_ is BOOLEAN:
            own += [f"LIST_CONTAINS({part(LIST)}, {part(INTEGER)})", f"({part(LIST)} IS DISTINCT FROM {part(LIST)})"]
        return self.rng.choice(own)

    def _new(self, type_: Type, columns: list[Column], depth: int) -> str:
        """An expression of a type of this file."""
        fitting = [c.text for c in columns if c.type is type_]
        if depth <= 0 or self.chance(0.4):
            if fitting and self.chance(0.85):
                return self.rng.choice(fitting)
            number = self.expression(INTEGER, columns, 0)
            made = {
                LIST: f"[{number}, {number}]",
                STRUCT: f"STRUCT(a := {number}, b := {self.expression(TEXT, columns, 0)})",
                MAP: f"MAP('a' := {number})",
            }
            return made.get(type_) or self.literal(type_)

        def part(t: Type = type_) -> str:
            return self.expression(t, columns, depth - 1)

        own = [f"COALESCE({part()}, {part()})", f"NULLIF({part()}, {part()})"]
        own.append(f"CASE WHEN {self.predicate(columns, 0, 0)} THEN {part()} ELSE {part()} END")
        if type_ is DATE:
            own += [
                f"({part()} + {part(INTEGER)})",
                f"CAST({part(TIMESTAMP)} AS DATE)",
                f"GREATEST({part()}, {part()})",
            ]
        elif type_ is TIME:
            own += [f"CAST({part(TIMESTAMP)} AS TIME)", f"({part()} + {part(INTERVAL)})"]
        elif type_ is LIST:
            own += [
                f"LIST_CONCAT({part()}, {part()})",
                f"LIST_SORT({part()})",
                f"LIST_APPEND({part()}, {part(INTEGER)})",
            ]
            own += [f"TRANSFORM({part()}, y -> y + {part(INTEGER)})", f"FILTER({part()}, y -> y > {part(INTEGER)})"]
        return self.rng.choice(own)

    # --------------------------------------------------------------------------------------------------- conditions

    def predicate(self, columns: list[Column], depth: int, subqueries: int) -> str:
        """As of `Grammar`, or over types without an order, or over two types beside each other."""
        if not self.is_typed:
            return super().predicate(columns, depth, subqueries)
        ordered = [c for c in columns if not c.type.is_nested]
        if not ordered or self.chance(0.06):
            type_ = self.rng.choice((LIST, STRUCT, MAP))
            left, right = (self.expression(type_, columns, depth) for _ in range(2))
            return f"{left} {self.pick('=', '<>', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM')} {right}"
        if self.chance(0.06):
            return self._beside(columns, depth)
        before, self.needs_order = self.needs_order, True
        found = super().predicate(ordered, depth, subqueries)
        self.needs_order = before
        return found

    def _beside(self, columns: list[Column], depth: int) -> str:
        left = self.rng.choice(tuple(BESIDE))
        right = self.expression(self.rng.choice(BESIDE[left]), columns, depth)
        value, other = self.expression(left, columns, depth), self.expression(left, columns, 0)
        compared = self.pick("=", "<", ">=", "<>", "IS DISTINCT FROM")
        return self.pick(
            f"{value} {compared} {right}",
            f"{value} {self.pick('', 'NOT ')}IN ({right}, {other})",
            f"{value} BETWEEN {right} AND {other}",
        )

    def equality(self, left: list[Column], right: list[Column]) -> str:
        """As of `Grammar`, or on columns of two types."""
        if self.is_typed and self.chance(0.12):
            pairs = [(a, b) for a in left for b in right if b.type in BESIDE.get(a.type, ())]
            if pairs:
                a, b = self.rng.choice(pairs)
                return f"{a.text} {self.pick('=', '=', '=', '<=', '<>')} {b.text}"
            pairs = [(a, b) for a in left for b in right if a.type.is_nested and a.type is b.type]
            if pairs:
                a, b = self.rng.choice(pairs)
                return f"{a.text} {self.pick('=', '<>')} {b.text}"
        left, right = ([c for c in columns if not c.type.is_nested] for columns in (left, right))
        return super().equality(left, right)

    def comparison(self, type_: Type, left: str, right: str) -> str:
        """As of `Grammar`."""
        return f"{left} {self.pick('=', '<>')} {right}" if type_.is_nested else super().comparison(type_, left, right)

    # --------------------------------------------------------------------------------------------------- aggregates

    def global_one(self, type_: Type) -> tuple[str, Type]:
        """As of `Grammar`."""
        return (self.aggregate(type_, [], False, False), type_) if type_ in NEW else super().global_one(type_)

    def aggregate(self, type_: Type, columns: list[Column], one_stream: bool, spread: bool) -> str:
        """As of `Grammar`; of further types, made of aggregates, or over them."""
        if type_ is INTEGER and self.is_typed and self.chance(0.08):
            value = self.expression(self.rng.choice(NEW), columns, 0)
            return f"COUNT({self.pick('', 'DISTINCT ')}{value})"
        if type_ not in NEW:
            return super().aggregate(type_, columns, one_stream, spread)
        number, text = (f"{self.pick('MIN', 'MAX')}({self.expression(t, columns, 0)})" for t in (INTEGER, TEXT))
        value, other = self.expression(type_, columns, 0), self.expression(INTEGER, columns, 0)
        if type_ in (DATE, TIME):
            return self.pick(f"{self.pick('MIN', 'MAX', 'MODE')}({value})", f"ARG_MAX({value}, {other})")
        if type_ is LIST:
            return self.pick(f"[{number}, {number}]", f"LIST({other} ORDER BY {other})", f"LIST(DISTINCT {other})")
        return f"STRUCT(a := {number}, b := {text})" if type_ is STRUCT else f"MAP('a' := {number})"

    # -------------------------------------------------------------------------------------------------------- order

    def sort_keys(self, columns: list[Column]) -> str:
        """As of `Grammar`."""
        before, self.needs_order = self.needs_order, True
        found = super().sort_keys(columns)
        self.needs_order = before
        return found

    def sort_key(self, columns: list[Column]) -> str:
        """As of `FurtherForms`."""
        ordered = [c for c in columns if not c.type.is_nested]
        return super().sort_key(ordered or [Column("ABS(1)", INTEGER)])

    def call_over(self, type_: Type, arg: str, over: str) -> str:
        """As of `FurtherForms`."""
        if not type_.is_nested:
            return super().call_over(type_, arg, over)
        return self.pick(f"{self.pick('LAG', 'LEAD')}({arg}) OVER w", f"NTH_VALUE({arg}, 2) {over}")

    def over(
        self,
        shown: list[str],
        wanted: list[Type],
        columns: list[Column],
        sources: str,
        conditions: list[str],
        operator: str,
    ) -> tuple[str, tuple[Type, ...]]:
        """As of `Grammar`; without OVER where something has no order."""
        ordered = [c for c in columns if not c.type.is_nested]
        if ordered and not any(type_.is_nested for type_ in wanted):
            return super().over(shown, wanted, ordered, sources, conditions, operator)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return self.select(shown, f"{sources}{where}", operator), tuple(wanted)
