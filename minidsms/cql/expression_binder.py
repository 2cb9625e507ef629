"""Expressions: from names and literals to a typed tree over positions (docs/semantics R1, R2, R4).

Invariant: every expression that leaves here has its final type, every argument the type its function takes, and every
failure to get there is a CqlError at the place that caused it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, assert_never

from minidsms.aggregates import AGGREGATES
from minidsms.aggregates import SYNONYMS as AGGREGATE_SYNONYMS
from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.aggregate_calls import AggregateCallBinder
from minidsms.cql.aggregates import Groups, has_aggregates, is_aggregate
from minidsms.cql.coercion import agree, coerce, coerce_columns, empty_list, is_empty_list, read_literals, typed
from minidsms.cql.defaults import event_windows
from minidsms.cql.errors import CqlError
from minidsms.cql.foreign_names import foreign_hint
from minidsms.cql.foreign_windows import NAMES as WINDOW_NAMES
from minidsms.cql.foreign_windows import window_here
from minidsms.cql.functions import CALLED, FUNCTIONS, SYNONYMS, can_cast, common_type
from minidsms.cql.lengths import PartOfLength, bucket_of_months, parts_of_length
from minidsms.cql.long_number import LongNumber
from minidsms.cql.nested import NestedBinder
from minidsms.cql.over import Overs
from minidsms.cql.printer import print_name, print_text
from minidsms.cql.rewriting import connective, outer_columns, seen_from_inside
from minidsms.cql.scope import Ambiguous, Scope, ambiguous, did_you_mean, listing
from minidsms.cql.session import Piece, Session, parts
from minidsms.cql.stand_ins import of_different, stood_in
from minidsms.cql.times import NotATime, duration_ticks
from minidsms.cql.words import MONTHS
from minidsms.cql.written_out import aggregate_written_out, over_written_out, written_out
from minidsms.cql.wrong_types import LENGTHS, naming_call, wrong_types
from minidsms.elements import INT64_MAX, INT64_MIN, Schema, Type
from minidsms.functions import LIBRARY
from minidsms.functions.calendar import DAYS_AND_MORE, PARTS, TAKE_A_UNIT, UNITS
from minidsms.functions.function import Function
from minidsms.functions.written import OTHER_COUNTS, Written
from minidsms.inputs.values import ValueRefused, inner_reader
from minidsms.values.types import known_type

_BEHIND_GROUPS = ("HAVING", "QUALIFY", "ORDER BY")
"""Clauses where a column without a value in a group gives way to a name of the select list."""
_WRITTEN_PARTS = ("decade", "century", "millennium")
"""Parts of a TIMESTAMP that are functions in other words."""
_BY_PATTERN = ("format_timestamp", "parse_timestamp", "from_char")
MAX_DEPTH = 220
"""How deep an expression may nest; the parser's cap on written nesting lies below it."""


_MOST_PARTS = 10_000
"""Of the expressions that names of select lists stand for, in a query: each may double what the one before it is."""


@dataclass(frozen=True)
class Context:
    """Where an expression stands.

    clause: in words, for messages.  outer: where in the enclosing query this query stands.  correlated: the outer row
    may be used from here.  groups: set where aggregates may stand.  overs: set where OVER may.  aliases: the names the
    block's select list gives, in lower case, and what they stand for.  named: those of them that may be used from here.
    is_of_set: those are of the select list as it is written, which that of one set of GROUPING SETS is not.
    """

    scope: Scope
    clause: str
    outer: Context | None = None
    correlated: bool = False
    groups: Groups | None = None
    aliases: Mapping[str, syntax.Expr] = field(default_factory=dict)
    overs: Overs | None = None
    named: Mapping[str, syntax.Expr] = field(default_factory=dict)
    is_of_set: bool = False


_Predicate = (
    syntax.Predicate
    | syntax.Exists
    | syntax.ScalarQuery
    | syntax.LiteralList
    | syntax.Pair
    | syntax.Lambda
    | syntax.Row
    | syntax.Star
)


class ExpressionBinder:
    """Binds the expressions of one clause. `bind_relation` binds a subquery to a relation."""

    def __init__(
        self, session: Session, context: Context, bind_relation: Callable[[syntax.Query, Context], Piece]
    ) -> None:
        self.session = session
        self.context = context
        self.bind_relation = bind_relation
        self._depth = 0
        self._meant: dict[str, tuple[bound.Expr, int]] = {}
        """What names of the select list stand for, and of how many parts that is."""
        self._items: set[syntax.Span] = set()
        """Where names stand for what the select list gives them, and not for columns."""
        self._nested = NestedBinder(self)

    def condition(self, expr: syntax.Expr) -> bound.Expr:
        """A condition: BOOLEAN."""
        return self.boolean(self.value(expr), self.context.clause)

    def value(self, expr: syntax.Expr) -> bound.Expr:
        """An expression over the clause's row: over the groups' row where the block is grouped."""
        found, groups = self.bind(expr), self.context.groups
        if groups is None:
            return found
        if self.context.clause in _BEHIND_GROUPS and (columns := groups.without_value(found)):
            self._items = {column.span for column in columns} - {(0, 0)}
            found = self.bind(expr)
        return groups.to_row(found)

    def bind(self, expr: syntax.Expr) -> bound.Expr:
        """An expression over the row of FROM (aggregates stand as negative positions)."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.session.error("the expression nests too deeply", expr.span, "", "split it with a subquery")
        found = self._bind(expr)
        self._depth -= 1
        return found

    def _bind(self, expr: syntax.Expr) -> bound.Expr:
        match expr:
            case syntax.Name():
                return self._column(expr)
            case syntax.Literal(value=value):
                return self._literal(value, expr)
            case syntax.Interval(duration=duration):
                return self._interval(duration, expr)
            case syntax.Binary(op=op, left=left, right=right):
                return self._binary(op, left, right, expr)
            case syntax.Logical(op=op, operands=operands):
                checked = [self.boolean(self.bind(o), op.upper()) for o in operands]
                return connective(op, checked, expr.span)
            case syntax.Unary(op="not", operand=operand):
                return self._not(self.boolean(self.bind(operand), "NOT"), expr)
            case syntax.Unary(operand=operand):
                return self._negative(self.bind(operand), expr)
            case syntax.Call():
                return self._call(expr)
            case syntax.Over():
                return self._over(expr)
            case syntax.TypedText(operand=operand, type=target):
                return replace(coerce(self.session, self.bind(operand), target), span=expr.span)
            case syntax.Cast(operand=operand, type=target, or_null=or_null):
                found = self._cast(self.bind(operand), target, expr)
                return replace(found, or_null=True) if or_null and isinstance(found, bound.Cast) else found
            case syntax.Case():
                return self._case(expr)
            case syntax.GroupingSets() | syntax.EveryKey():
                raise AssertionError("GROUP BY binds its keys itself")
            case _:
                return self._predicate(expr)

    def _predicate(self, expr: _Predicate) -> bound.Expr:
        match expr:
            case syntax.IsNull(operand=operand, negated=negated):
                found = self.apply("is null", [self.bind(operand)], expr)
            case syntax.IsDistinctFrom(left=left, right=right, negated=negated):
                pairs = self._pairs(self._items_of(left), self._items_of(right), expr)
                found = connective("or", [self.apply("is distinct from", pair, expr) for pair in pairs], expr.span)
            case syntax.Between(operand=operand, low=low, high=high, negated=negated):
                if expr.column is not None:
                    self._check_no_column(expr.column)
                middle = self._items_of(operand)
                lower = self._ordered(">=", middle, self._items_of(low), expr)
                upper = self._ordered("<=", middle, self._items_of(high), expr)
                found = connective("and", [lower, upper], expr.span)
            case syntax.Like(negated=negated):
                found = self._like(expr)
            case syntax.InList(operand=operand, items=items, negated=negated):
                found = self._in_list(operand, items, expr)
            case syntax.InQuery(negated=negated):
                found = self._in_query(expr)
            case syntax.Exists(query=query):
                return bound.Exists(Type.BOOLEAN, self._subquery(query).node, span=expr.span)
            case syntax.ScalarQuery(query=query, is_list=is_list):
                node = self._one_column(query)
                if is_list:
                    return self._list_of(node, expr)
                return bound.ScalarQuery(node.schema[0].type, node, span=expr.span)
            case syntax.Quantified(op=op, quantifier=quantifier, operand=operand, query=query):
                args, node = self._beside_query([self.bind(operand)], self._one_column(query), expr)
                self.apply(op, [args[0], args[0]], expr)  # is refused for types that have no order
                return bound.Quantified(Type.BOOLEAN, op, quantifier, args[0], node, span=expr.span)
            case syntax.LiteralList(values=values):
                return self._literal_list(values, expr)
            case syntax.Pair() | syntax.Lambda():
                what = (
                    '":=" stands in STRUCT and MAP'
                    if isinstance(expr, syntax.Pair)
                    else "a lambda is the last argument of TRANSFORM, FILTER or REDUCE"
                )
                raise self.session.error(what, expr.span)
            case syntax.Row():
                raise self.session.error(
                    "a row of several values may only stand before IN and in comparisons",
                    expr.span,
                    "",
                    "leave the parentheses out"
                    if self.context.clause.startswith(("the select list", "the aggregate"))
                    else "compare column by column",
                )
            case syntax.Star():
                raise self.session.error(
                    "* may only stand alone in a select list, or in COUNT(*)", expr.span, "", "name the columns"
                )
            case _:
                assert_never(expr)
        return self._not(found, expr) if negated else found

    # --------------------------------------------------------------------------------------------------- leaves

    def _column(self, name: syntax.Name) -> bound.Expr:
        """The column in this query's row, or in an enclosing query's where that is allowed."""
        of = name.name if name.qualifier is None else name.qualifier
        if of.lower() in self._nested.named:
            parameter = replace(self._nested.named[of.lower()], span=name.span)
            return parameter if name.qualifier is None else self._member(parameter, name)
        is_named = name.qualifier is None and name.name.lower() in self.context.named
        found = self._find(self.context, name)
        if is_named and found is not None and (name.span in self._items or self._gives_way(found)):
            return replace(self._named(name), span=name.span)
        if found is not None:
            return replace(found, span=name.span)
        if name.qualifier is not None and self._has_struct(name.qualifier, name):
            return self._member(self._column(syntax.Name(name.qualifier, span=name.span)), name)
        context, level, allowed = self.context, 0, True
        while context.outer is not None:
            allowed = allowed and context.correlated
            context, level = context.outer, level + 1
            found = self._find(context, name)
            if found is None:
                continue
            if not allowed:
                raise self.session.error(
                    f'"{name.name}" belongs to an enclosing query and may not be used here',
                    name.span,
                    hint="under a window, ISTREAM and WITH it sees no row of the enclosing query",
                )
            if context.groups is not None:
                found = context.groups.to_row(replace(found, span=name.span))
            return seen_from_inside(replace(found, span=name.span), level)
        if is_named:
            return replace(self._named(name), span=name.span)
        raise self._unknown_column(name)

    def _check_no_column(self, span: syntax.Span) -> None:
        """`x BETWEEN symmetric - 1 AND 3` is refused where there is a column of that name."""
        try:
            self._column(syntax.Name("symmetric", span=span))
        except CqlError:
            return
        hint = "write `symmetric` - 1 for the column, and SYMMETRIC (-1) for bounds in any order"
        raise self.session.error("SYMMETRIC before a sign may be the column of that name", span, "", hint)

    def _gives_way(self, column: bound.Expr) -> bool:
        """Whether the column cannot have a value here, whatever it stands in."""
        groups = self.context.groups
        return groups is not None and self.context.clause in _BEHIND_GROUPS and groups.is_in_no_key(column)

    def _named(self, name: syntax.Name) -> bound.Expr:
        """What the select list gives the name, where only the names before it are known."""
        alias, context, counted = name.name.lower(), self.context, self.session.counted
        if context.clause == "WHERE":
            self._check_of_row(name, context.named[alias])
        if alias not in self._meant:
            before = itertools.takewhile(lambda named: named[0] != alias, context.named.items())
            binder = self._inner(named=dict(before))
            binder._meant = self._meant
            found = binder.bind(context.named[alias])  # which knows no parameters of lambdas around the name
            self._meant[alias] = found, sum(1 for _ in bound.walk(found))
        found, size = self._meant[alias]
        counted["parts"] += size
        if counted["parts"] > _MOST_PARTS:
            hint = "compute it in FROM (SELECT ..)"
            raise self.session.error(f"names stand for more than {_MOST_PARTS:,} parts", name.span, "", hint)
        if context.is_of_set:
            self._write_out(name, context.named[alias])
        return found

    def _write_out(self, name: syntax.Name, meant: syntax.Expr) -> None:
        """In the expanded query the name is what it stands for: the select list there gives it to another."""
        meant = self.session.expand(meant)
        for part in parts(meant, syntax.Query):
            of = part.qualifier or part.name if isinstance(part, syntax.Name) else ""
            if of.lower() in self._nested.named:
                reason = f'"{name.name}" stands for what has "{of}" in it, and the lambda has a parameter of that name'
                raise self.session.error(reason, name.span, "", "call the parameter otherwise")
        self.session.expanded[id(name)] = meant

    def _check_of_row(self, name: syntax.Name, meant: syntax.Expr) -> None:
        """WHERE looks at each row before there are groups and OVER."""
        for what, clause, is_there in (
            ("a call with OVER", "QUALIFY", any(isinstance(part, syntax.Over) for part in parts(meant, syntax.Query))),
            ("an aggregate", "HAVING", has_aggregates(meant, self.session.catalog)),
        ):
            if is_there:
                hint = f"put the condition in {clause}"
                raise self.session.error(f'WHERE does not know "{name.name}", {what}', name.span, "", hint)

    def is_struct(self, name: str) -> bool:
        """Whether the name is that of a STRUCT in this query's row, and of no table."""
        found = self._find(self.context, syntax.Name(name)) if self.context.scope.table(name) is None else None
        return found is not None and found.type.kind == "STRUCT"

    def _has_struct(self, struct: str, member: syntax.Name) -> bool:
        """Whether a column of this query's row or an enclosing one's is a STRUCT, and not a table's name is meant."""
        context: Context | None = self.context
        while context is not None:
            if self._find(context, member) is not None:
                return False
            found = self._find(context, syntax.Name(struct, span=member.span))
            if found is not None:
                has_field = member.name.lower() in (n.lower() for n, _ in found.type.fields)
                return found.type.kind == "STRUCT" and (has_field or context.scope.table(struct) is None)
            context = context.outer
        return False

    def _member(self, struct: bound.Expr, name: syntax.Name) -> bound.Expr:
        """`s.a`, where s is no table."""
        if struct.type.kind != "STRUCT":
            raise self.session.error(f"{struct.type} has no fields", name.span)
        return self._nested.field(struct, bound.Literal(Type.TEXT, name.name), name)

    def _unknown_column(self, name: syntax.Name) -> CqlError:
        is_first = self.context.clause == "UNNEST" and not self.context.scope.tables  # in FROM
        is_given = name.qualifier is None and name.name.lower() in self.context.aliases
        scope, outer = self.context.scope, self.context.outer
        if scope.is_without_from and not (is_first or is_given):
            if outer is None or not self.context.correlated:
                return needs_from(self.session, name)
            scope = outer.scope
        error = scope.unknown(name.name, name.qualifier, self.session.text, name.span)
        hint = foreign_hint(name.name)
        if name.qualifier is not None:
            return CqlError(error.reason, self.session.text, name.span, error.note, error.hint or hint)
        if name.name.lower() in self.context.aliases:
            hint = "an expression knows the names that the select list gives before it, each once"
            if self.context.clause.startswith("the aggregate"):
                hint = f"the select list gives this name after {self.context.clause}: repeat the expression"
        hint = hint or error.hint or f"a text stands in quotes: '{name.name[:40]}'"
        if self.context.clause == "HAVING" and not (error.hint or foreign_hint(name.name)) and not is_given:
            hint += (
                f"; a column of the select list has the name that AS gives it: COUNT(*) AS {print_name(name.name[:40])}"
            )
        return CqlError(error.reason, self.session.text, name.span, error.note, hint)

    def _find(self, context: Context, name: syntax.Name) -> bound.Expr | None:
        try:
            return context.scope.find(name.name, name.qualifier)
        except Ambiguous as problem:
            raise ambiguous(name.name, problem.tables, self.session.text, name.span) from None

    def _literal(self, value: bool | int | float | str | None, expr: syntax.Expr) -> bound.Expr:
        self.session.count("literals", 1, expr.span)
        if value is None:
            return bound.Literal(Type.NULL, None, span=expr.span)
        if isinstance(value, bool):
            return bound.Literal(Type.BOOLEAN, value, span=expr.span)
        if isinstance(value, int):
            if not INT64_MIN <= value <= INT64_MAX:
                raise self.session.error(
                    "the number does not fit INTEGER", expr.span, "", "write it with a decimal point"
                )
            return bound.Literal(Type.INTEGER, value, span=expr.span)
        if isinstance(value, float):
            # Adding zero turns -0.0 into 0.0; a NaN is NULL (R4).
            exact = value.exact if isinstance(value, LongNumber) else None
            return bound.Literal(Type.FLOAT, None if math.isnan(value) else value + 0.0, exact, span=expr.span)
        return bound.Literal(Type.TEXT, value, span=expr.span)

    def _literal_list(self, values: Sequence[int | float | str], expr: syntax.Expr) -> bound.Expr:
        """Many constants in their common type: TEXT, INTEGER, or FLOAT where one is."""
        self.session.count("literals", len(values), expr.span)
        if isinstance(values[0], str):
            return bound.LiteralList(Type.TEXT, tuple(values), span=expr.span)
        if float in set(map(type, values)):
            return bound.LiteralList(Type.FLOAT, tuple(float(v) + 0.0 for v in values), span=expr.span)
        return bound.LiteralList(Type.INTEGER, tuple(values), span=expr.span)

    def _interval(self, duration: syntax.Duration, expr: syntax.Expr) -> bound.Expr:
        if duration.unit in MONTHS:
            hint = f"it is added to or taken from a TIMESTAMP or DATE: t + INTERVAL '{duration.number}' {duration.unit}"
            raise self.session.error(f"a {duration.unit} has no fixed length", expr.span, "", hint)
        try:
            length = duration_ticks(duration.number, duration.unit, self.session.catalog.tick_ns)
        except NotATime as problem:
            raise self.session.error(str(problem), expr.span, hint=problem.hint) from None
        return bound.Literal(Type.INTERVAL, length, span=expr.span)

    # ------------------------------------------------------------------------------------------------ operators

    def apply(self, function: str, args: Sequence[bound.Expr], expr: syntax.Syntax) -> bound.Expr:
        """A built-in on bound arguments, which are converted to what it takes."""
        if function == "||" and any(a.type.element is not None for a in args):
            lists = [a.type.element is not None for a in args]
            function = "list_concat" if all(lists) else "list_append" if lists[0] else "list_prepend"
        elif function == "||" and any(a.type is Type.TEXT for a in args):
            args = [self._as_text(a) for a in args]
        elif function == "length" and args[0].type.is_nested:
            function = "cardinality"
        described = FUNCTIONS[function]
        args = self._read_times(described, args)
        if function in ("+", "-") and any(a.type is Type.TIME for a in args):
            return self._with_times(function, args, expr)
        if function in ("*", "/") and _scales_interval(function, args):
            ticks = [bound.Cast(Type.INTEGER, a, span=a.span) if a.type is Type.INTERVAL else a for a in args]
            return self._from_stand_in(self.apply(function, ticks, expr), Type.INTERVAL, expr)
        signature = described.resolve([a.type for a in args])
        if signature is None:
            raise wrong_types(self.session, described, args, expr)
        converted = tuple(
            a if want is a.type else coerce(self.session, a, want) for a, want in zip(args, signature.args)
        )
        return bound.Call(signature.result, function, converted, span=expr.span)

    def _with_times(self, op: str, args: Sequence[bound.Expr], expr: syntax.Syntax) -> bound.Expr:
        """A TIME beside an INTERVAL is another TIME of the day; TIME - TIME is an INTERVAL, DATE + TIME a TIMESTAMP."""
        left, right = args
        if not {left.type, right.type} <= {Type.TIME, Type.INTERVAL, Type.DATE, Type.TIMESTAMP}:
            raise wrong_types(self.session, FUNCTIONS[op], args, expr)
        spans = [bound.Cast(Type.INTERVAL, a, span=a.span) if a.type is Type.TIME else a for a in args]
        if left.type is right.type:
            if op == "+":
                raise wrong_types(self.session, FUNCTIONS[op], args, expr)
            return self.apply(op, spans, expr)
        found = self.apply(op, spans, expr)
        return bound.Cast(Type.TIME, found, span=expr.span) if Type.INTERVAL in (left.type, right.type) else found

    def _read_times(self, function: Function, args: Sequence[bound.Expr]) -> Sequence[bound.Expr]:
        """Texts that are written where a TIMESTAMP is wanted are ISO times."""
        if function.name not in LIBRARY:
            return args if function.name == "round" else read_literals(self.session, args)
        if function.resolve([a.type for a in args]) is not None:
            return args
        if any(map(is_empty_list, args)):
            return self._with_empty_lists(function, args)
        times = [
            i
            for i, a in enumerate(args)
            if i not in function.literals and isinstance(a, bound.Literal) and a.type is Type.TEXT
        ]
        if function.resolve([Type.TIMESTAMP if i in times else a.type for i, a in enumerate(args)]) is None:
            return args
        return [coerce(self.session, a, Type.TIMESTAMP) if i in times else a for i, a in enumerate(args)]

    def _with_empty_lists(self, function: Function, args: Sequence[bound.Expr]) -> Sequence[bound.Expr]:
        """`[]` is of the type of a list beside it, or a list of what stands beside it, whichever the function takes."""
        others = [a.type for a in args if not is_empty_list(a)]
        for type_ in (*(t for t in others if t.element is not None), *(t.list_type for t in others)):
            if function.resolve([type_ if is_empty_list(a) else a.type for a in args]) is not None:
                return [coerce(self.session, a, type_) if is_empty_list(a) else a for a in args]
        return args

    def boolean(self, expr: bound.Expr, where: str) -> bound.Expr:
        """The expression as a condition. where: it stands, in words."""
        if expr.type not in (Type.BOOLEAN, Type.NULL):
            raise self.session.error(
                f"{where} needs a condition, and this is {expr.type}",
                expr.span,
                "",
                f"compare it, as in x {'<> 0' if common_type((expr.type, Type.INTEGER)) else 'IS NOT NULL'}",
            )
        return coerce(self.session, expr, Type.BOOLEAN)

    def _not(self, expr: bound.Expr, place: syntax.Syntax) -> bound.Expr:
        return bound.Call(Type.BOOLEAN, "not", (expr,), span=place.span)

    def _negative(self, operand: bound.Expr, expr: syntax.Expr) -> bound.Expr:
        if isinstance(operand, bound.Literal) and isinstance(operand.value, int | float):
            # -(-2**63) does not fit; it is left to fail where it is evaluated.
            if operand.type in (Type.INTEGER, Type.INTERVAL) and operand.value != INT64_MIN:
                return replace(operand, value=-operand.value, span=expr.span)
            if operand.type is Type.FLOAT:
                exact = None if operand.exact is None else operand.exact.copy_negate()
                return replace(operand, value=-operand.value + 0.0, exact=exact, span=expr.span)
        return self.apply("neg", [operand], expr)

    def _binary(self, op: str, left: syntax.Expr, right: syntax.Expr, expr: syntax.Expr) -> bound.Expr:
        if op in ("=", "<>"):
            self._check_row_of_query(op, left, right)
            rows = self._values(left), self._values(right)
            if len(rows[0]) > 1 or len(rows[1]) > 1 or isinstance(left, syntax.Row) or isinstance(right, syntax.Row):
                equal = self._equal_rows(rows[0], rows[1], expr)
                return equal if op == "=" else self._not(equal, expr)
            return self.apply(op, [rows[0][0], rows[1][0]], expr)
        if isinstance(left, syntax.Row) and op in ("<", "<=", ">", ">="):
            return self._ordered(op, self._items_of(left), self._items_of(right), expr)
        if op in ("+", "-"):
            for instant, length in ((left, right), (right, left))[: 2 if op == "+" else 1]:
                parts_of_it = parts_of_length(length, -1 if op == "-" else 1)
                if any(part.months is not None for part in parts_of_it):
                    return self._moved(self.bind(instant), parts_of_it, expr)
        return self.apply(op, [self.bind(left), self.bind(right)], expr)

    def _check_row_of_query(self, op: str, left: syntax.Expr, right: syntax.Expr) -> None:
        """Error where a row of several values is compared with a subquery, which gives one."""
        for row, query in ((left, right), (right, left)):
            if isinstance(row, syntax.Row) and len(row.items) > 1 and isinstance(query, syntax.ScalarQuery):
                written = self.session.snippet(row.span) or "(a, b)", self.session.snippet(query.span) or "(SELECT ..)"
                hint = f"write {written[0]} {'IN' if op == '=' else 'NOT IN'} {written[1]}"
                raise self.session.error("a subquery is one value, and this is a row", query.span, "", hint)

    def _moved(self, instant: bound.Expr, length: Sequence[PartOfLength], expr: syntax.Expr) -> bound.Expr:
        """An instant that moves by whole months first, all at once, and then by the rest."""
        if isinstance(instant, bound.Literal) and instant.type in (Type.TEXT, Type.NULL):
            instant = coerce(self.session, instant, Type.TIMESTAMP)
        if instant.type not in (Type.TIMESTAMP, Type.DATE):
            raise self.session.error(f"months are added to a TIMESTAMP or DATE, not {instant.type}", expr.span)
        counts: list[bound.Expr] = []
        total = 0
        for part in length:
            if part.months is None:
                continue
            if part.months.denominator != 1:
                raise self.session.error("this is no whole number of months", part.span, "", "add days for the rest")
            if part.is_months:
                total += int(part.months)
                continue
            count: bound.Expr = bound.Literal(Type.INTEGER, int(part.months), span=part.span)
            for factor in part.factors:
                count = self.apply("*", [count, self.bind(factor)], expr)
            if count.type is not Type.INTEGER:
                hint = f"CAST({self.session.snippet(part.factors[0].span) or '..'} AS INTEGER)"
                raise self.session.error("months are whole numbers", part.span, f"this is {count.type}", hint)
            counts.append(count)
        if total or not counts:
            counts.append(bound.Literal(Type.INTEGER, total, span=expr.span))
        months = reduce(lambda a, b: self.apply("+", [a, b], expr), counts)
        moved = self.apply("timestampadd", [bound.Literal(Type.TEXT, "month"), months, instant], expr)
        for part in length:
            if part.months is None:
                moved = self.apply("-" if part.sign < 0 else "+", [moved, self.bind(part.expr)], expr)
        return moved

    def _equal_rows(self, left: Sequence[bound.Expr], right: Sequence[bound.Expr], expr: syntax.Expr) -> bound.Expr:
        return connective("and", [self.apply("=", pair, expr) for pair in self._pairs(left, right, expr)], expr.span)

    def _ordered(
        self, op: str, left: Sequence[bound.Expr], right: Sequence[bound.Expr], expr: syntax.Expr
    ) -> bound.Expr:
        """Whether a row stands before another, or behind it: by the first of their values that are not equal."""
        *before, last = self._pairs(left, right, expr)
        found = self.apply(op, last, expr)
        for pair in reversed(before):
            rest = connective("and", [self.apply("=", pair, expr), found], expr.span)
            found = connective("or", [self.apply(op[0], pair, expr), rest], expr.span)
        return found

    def _pairs(
        self, left: Sequence[bound.Expr], right: Sequence[bound.Expr], expr: syntax.Expr
    ) -> list[tuple[bound.Expr, bound.Expr]]:
        if len(left) != len(right):
            raise self.session.error(f"a row of {len(left)} is compared with a row of {len(right)}", expr.span)
        return list(zip(left, right))

    def _items_of(self, expr: syntax.Expr) -> list[bound.Expr]:
        """The values of a Row, or of a plain expression."""
        return [self.bind(item) for item in (expr.items if isinstance(expr, syntax.Row) else (expr,))]

    def _values(self, expr: syntax.Expr) -> list[bound.Expr]:
        """The values of a Row, of a name that stands for a whole row, or of a plain expression."""
        if isinstance(expr, syntax.Row):
            return [self.bind(item) for item in expr.items]
        if isinstance(expr, syntax.Star) and expr.qualifier is not None:
            expr = syntax.Name(expr.qualifier, span=expr.span)
        if isinstance(expr, syntax.Name) and expr.qualifier is None:
            scope = self.context.scope
            if scope.table(expr.name) is not None and self._find(self.context, expr) is None:
                return [replace(column.expr, span=expr.span) for _, column in scope.star(expr.name)]
        return [self.bind(expr)]

    def _cast(self, operand: bound.Expr, target: Type, expr: syntax.Expr) -> bound.Expr:
        is_number = operand.type in (Type.INTEGER, Type.FLOAT) and target is Type.FLOAT
        if isinstance(operand, bound.Literal) and (operand.value is None or is_number):
            return coerce(self.session, replace(operand, is_cast=is_number, span=expr.span), target)
        if operand.type is target:
            return replace(operand, span=expr.span)
        if target.element is not None and is_empty_list(operand):
            return empty_list(target, expr.span)
        if isinstance(operand, bound.Literal) and isinstance(operand.value, str) and not target.is_basic:
            found = inner_reader(target, self.session.catalog.tick_ns)
            if not target.is_nested:
                try:
                    return bound.Literal(target, found(operand.value), span=expr.span)
                except ValueRefused:
                    pass  # it fails where it is evaluated
        if not can_cast(operand.type, target):
            is_count = operand.type is Type.INTERVAL and target.kind in ("FLOAT", "DECIMAL")
            hint = LENGTHS if is_count else ""
            raise self.session.error(f"{operand.type} cannot be cast to {target}", expr.span, "", hint)
        return bound.Cast(target, operand, span=expr.span)

    def _case(self, expr: syntax.Case) -> bound.Expr:
        operand = None if expr.operand is None else self.bind(expr.operand)
        conditions, results = [], []
        for when, then in expr.whens:
            if operand is None:
                conditions.append(self.boolean(self.bind(when), "WHEN"))
            else:
                conditions.append(self.apply("=", [operand, self.bind(when)], when))
            results.append(self.bind(then))
        if expr.otherwise is None:
            results.append(bound.Literal(Type.NULL, None, span=expr.span))
        else:
            results.append(self.bind(expr.otherwise))
        results = agree(self.session, results, "the branches of CASE differ:")
        whens = tuple(zip(conditions, results[:-1]))
        return bound.Case(results[-1].type, whens, results[-1], span=expr.span)

    def _like(self, expr: syntax.Like) -> bound.Expr:
        args = [self.bind(expr.operand), self.bind(expr.pattern)]
        if expr.escape is not None:
            escape = self.bind(expr.escape)
            if isinstance(escape, bound.Literal) and isinstance(escape.value, str) and len(escape.value) != 1:
                raise self.session.error("ESCAPE takes one character", expr.escape.span)
            args.append(escape)
        if expr.ignores_case:
            args = [self.apply("lower", [arg], expr) for arg in args]
        return self.apply("like", args, expr)

    def _in_list(self, operand: syntax.Expr, items: Sequence[syntax.Expr], expr: syntax.Expr) -> bound.Expr:
        values = self._values(operand)
        if len(values) == 1:
            return self.apply("in", [values[0], *(self.bind(item) for item in items)], expr)
        equalities = [self._equal_rows(values, self._values(item), expr) for item in items]
        return connective("or", equalities, expr.span)

    # ------------------------------------------------------------------------------------------------ functions

    def _call(self, expr: syntax.Call) -> bound.Expr:
        key = expr.function.lower()
        if is_aggregate(key, self.session.catalog):
            return self._aggregate(expr, key)
        for word, is_there in (("DISTINCT", expr.distinct), ("ORDER BY", expr.order), ("NULLS", expr.nulls)):
            if is_there:
                raise self.session.error(f"{expr.function} is no aggregate and takes no {word}", expr.span)
        user = self.session.catalog.functions.get(key)
        if user is not None:
            args = [self.bind(arg) for arg in expr.args]
            converted = self._user_args(user.name, user.arg_types, args, expr)
            return bound.UserCall(user.type, key, converted, user.fixed, span=expr.span)
        key = "from_char" if key == "to_timestamp" and len(expr.args) == 2 else SYNONYMS.get(key, key)
        described = CALLED.get(key)
        if described is None:
            raise self._unknown_function(expr)
        described = OTHER_COUNTS.get((key, len(expr.args)), described)
        if key not in _BY_PATTERN or len(expr.args) != 3:
            self._check_count(expr, described)
        if key == "date_part" and (part := self._written_part(expr.args)) is not None:
            return self.bind(replace(expr, function=part, args=expr.args[1:]))
        if isinstance(described, Written):
            with naming_call(self.session, described, expr):
                return self.bind(written_out(described, expr))
        if key == "time_bucket" and len(expr.args) == 2:
            width = parts_of_length(expr.args[0])
            if width and all(part.is_months for part in width):
                months = sum(part.months or 0 for part in width)
                if months < 1 or months.denominator != 1:
                    raise self.session.error("the width of a bucket is one month and more", expr.args[0].span)
                return self.bind(bucket_of_months(int(months), expr))
        if key in ("struct", "map"):
            return self._nested.struct(expr) if key == "struct" else self._nested.map(expr)
        if key in ("list_transform", "list_filter", "list_reduce"):
            return self._nested.with_lambda(key, expr)
        return self._called(key, described, [self.bind(arg) for arg in self._with_unit(key, expr.args)], expr)

    def _called(self, key: str, described: Function, args: list[bound.Expr], expr: syntax.Call) -> bound.Expr:
        """A function that `scalar.Call` knows, or what it is written with, over its arguments."""
        if key in ("element_at", "struct_extract", "json_extract") and args[0].type.fields:
            return self._nested.field(args[0], args[1], expr)
        if key == "date_part":
            return self._date_part(args, expr)
        if key in _BY_PATTERN:
            if args[1].type in (Type.TEXT, Type.NULL):  # else the call is refused for it
                self._check_literals(described, args[:2], expr)
            return self._by_pattern(key, args, expr)
        if key == "to_json":
            written = bound.Cast(Type.TEXT, self.apply("list_value", args, expr), span=expr.span)
            found = self.apply("json_extract", [written, bound.Literal(Type.TEXT, "$[0]")], expr)
            return self.apply("nullif", [found, bound.Literal(Type.TEXT, "null")], expr)
        if _moves_days(key, args):
            return bound.Cast(Type.DATE, self.apply(key, args, expr), span=expr.span)
        if key == "list_value" and not args:
            return empty_list(Type.INTEGER.list_type, expr.span)
        if key == "list_value":
            args = agree(self.session, args, "a list holds values of one type, not")
        if key == "concat_ws":
            return self._concat_with(args, expr)
        if key == "sign" and (args[0].type is Type.INTERVAL or args[0].type.kind == "DECIMAL"):
            zero = bound.Literal(Type.INTEGER, 0)
            signs = [bound.Cast(Type.INTEGER, self.apply(op, [args[0], zero], expr)) for op in (">", "<")]
            return self.apply("-", signs, expr)
        if key == "mod":
            return self.apply("%", args, expr)
        if key == "concat":
            return self._concat(args, expr)
        if key in ("coalesce", "least", "greatest") and len(args) == 1:
            return replace(args[0], span=expr.span)
        args = [
            coerce(self.session, a, Type.TIMESTAMP)
            if described.takes == "TIMESTAMP" and isinstance(a, bound.Literal) and a.type is Type.TEXT
            else a
            for a in args
        ]
        found = self.apply(key, args, expr)  # first: it refuses literals of another type
        self._check_literals(described, args, expr)
        return found

    def _by_pattern(self, key: str, args: list[bound.Expr], expr: syntax.Call) -> bound.Expr:
        """A time as text or from it, by a pattern, perhaps on the wall clock of a zone."""
        utc = bound.Literal(Type.TEXT, "UTC")
        if args[0].type is Type.TIME:
            args[0] = self.apply("+", [bound.Literal(Type.DATE, 0), args[0]], expr)
        if len(args) == 3:
            self._check_literals(CALLED["convert_tz"], [args[0], utc, args[2]], expr)
        if key == "format_timestamp":
            moved = self.apply("convert_tz", [args[0], utc, args[2]], expr) if len(args) == 3 else args[0]
            return self.apply(key, [moved, args[1]], expr)
        found = self.apply(key, args[:2], expr)
        if len(args) == 3:
            found = self.apply("convert_tz", [found, args[2], utc], expr)
        kind = {"parse_date": Type.DATE, "to_date": Type.DATE, "parse_time": Type.TIME}.get(expr.function.lower())
        return found if kind is None else bound.Cast(kind, found, span=expr.span)

    def _check_literals(self, function: Function, args: Sequence[bound.Expr], expr: syntax.Call) -> None:
        """Patterns, units and time zones are literals: what is wrong with one is said when the query is read."""
        for i, check in function.literals.items():
            if i >= len(args):
                continue
            arg, place = args[i], args[i].span if args[i].span != (0, 0) else expr.span
            if not isinstance(arg, bound.Literal) or arg.value is None:
                raise self.session.error(f"argument {i + 1} of {expr.function} must be a literal", place)
            problem = check(arg.value)
            if problem is not None:
                raise self.session.error(f"{expr.function}: {problem}", place)

    def _with_unit(self, key: str, args: Sequence[syntax.Expr]) -> Sequence[syntax.Expr]:
        """A unit of time may stand bare, and in the plural: TIMESTAMPADD(MONTHS, 1, t)."""
        match args:
            case [syntax.Name(qualifier=None, name=str(word)) | syntax.Literal(value=str(word)), *_] if (
                key in TAKE_A_UNIT
            ):
                unit = word.lower()
            case _:
                return args
        unit = unit if unit in PARTS or unit in UNITS else unit.removesuffix("s")
        return [syntax.Literal(unit, span=args[0].span), *args[1:]]

    def _written_part(self, args: Sequence[syntax.Expr]) -> str | None:
        """The function that gives a part of a TIMESTAMP, where it is one in other words: DECADE."""
        part = args[0].value if isinstance(args[0], syntax.Literal) else getattr(args[0], "name", None)
        return part if isinstance(part, str) and part.lower() in _WRITTEN_PARTS else None

    def _date_part(self, args: Sequence[bound.Expr], expr: syntax.Call) -> bound.Expr:
        part, instant = args
        name = part.value if isinstance(part, bound.Literal) else None
        if not isinstance(name, str) or name.lower() not in PARTS:
            parts = ", ".join((*PARTS, *_WRITTEN_PARTS))
            raise self.session.error(f"a part of a TIMESTAMP is one of {parts}", part.span)
        if isinstance(instant, bound.Literal) and instant.type is Type.TEXT:
            instant = coerce(self.session, instant, Type.TIMESTAMP)
        if instant.type is Type.TIME:
            if PARTS[name.lower()] not in ("hour", "minute", "second", "millisecond", "microsecond"):
                raise self.session.error(f"a TIME has no {name.lower()}", part.span)
            instant = bound.Cast(Type.TIMESTAMP, instant, span=instant.span)
        return self.apply(PARTS[name.lower()], [instant], expr)

    def _concat_with(self, args: Sequence[bound.Expr], expr: syntax.Expr) -> bound.Expr:
        """CONCAT_WS passes over NULLs: an argument stands behind a separator or not at all; the first of these goes."""
        separator, empty = coerce(self.session, args[0], Type.TEXT), bound.Literal(Type.TEXT, "", span=expr.span)
        joined: bound.Expr = empty
        for arg in args[1:]:
            part = self.apply("||", [separator, self._as_text(arg)], expr)
            joined = self.apply("||", [joined, self.apply("coalesce", [part, empty], expr)], expr)
        after = self.apply("+", [self.apply("length", [separator], expr), bound.Literal(Type.INTEGER, 1)], expr)
        return self.apply("substring", [joined, after], expr)

    def _concat(self, args: Sequence[bound.Expr], expr: syntax.Expr) -> bound.Expr:
        joined = self._as_text(args[0])
        for arg in args[1:]:
            joined = self.apply("||", [joined, self._as_text(arg)], expr)
        return joined

    def _as_text(self, expr: bound.Expr) -> bound.Expr:
        if expr.type in (Type.TEXT, Type.NULL):
            return coerce(self.session, expr, Type.TEXT)
        return bound.Cast(Type.TEXT, expr, span=expr.span)

    def _check_count(self, expr: syntax.Call, function: Function) -> None:
        count = len(expr.args)
        if count < function.least or (function.most is not None and count > function.most):
            if function.most is None:
                wants = f"at least {function.least}"
            elif function.least == function.most:
                wants = str(function.least)
            else:
                wants = f"{function.least} to {function.most}"
            raise self.session.error(
                f"{expr.function} takes {wants} argument{'' if wants == '1' else 's'}, not {count}", expr.span
            )

    def _unknown_function(self, expr: syntax.Call) -> CqlError:
        catalog = self.session.catalog
        known = [*CALLED, *sorted(AGGREGATES)]
        known += [*catalog.functions, *catalog.aggregates]
        window = window_here(self.session.text, expr.span[0]) if expr.function.lower() in WINDOW_NAMES else ""
        hint = f"the window stands behind the stream: {window}" if window else foreign_hint(expr.function)
        hint = hint or did_you_mean(expr.function, known) or "declare it with create_function"
        place = (expr.span[0], expr.span[0] + len(expr.function)) if expr.span != (0, 0) else expr.span
        return self.session.error(f'unknown function "{expr.function}"', place, "", hint)

    def _user_args(
        self, name: str, types: Sequence[Type], args: Sequence[bound.Expr], expr: syntax.Expr
    ) -> tuple[bound.Expr, ...]:
        if len(args) != len(types):
            wanted = listing(str(t) for t in types)
            raise self.session.error(f"{name} takes ({wanted}), {len(types)} in all, not {len(args)}", expr.span)
        return tuple(coerce(self.session, a, t) for a, t in zip(args, types))

    def _refuse_in_lambda(self, what: str, expr: syntax.Syntax) -> None:
        if self._nested.parameters:
            raise self.session.error(f"{what} may not stand in a lambda", expr.span)

    def _aggregate(self, expr: syntax.Call, key: str) -> bound.Expr:
        written = None if key in self.session.catalog.aggregates else aggregate_written_out(key, expr)
        if written is not None:
            return self.bind(written)
        self._refuse_in_lambda("an aggregate", expr)
        groups, clause = self.context.groups, self.context.clause
        if groups is None:
            hint = "put the condition in HAVING" if clause == "WHERE" else ""
            if hint and self.context.correlated:
                hint += "; what is of the enclosing query's rows is named in a query in its FROM"
            raise self.session.error(f"the aggregate {expr.function} may not stand in {clause}", expr.span, "", hint)
        expr = of_different(expr, key)
        of = f"the aggregate {expr.function}"
        binder = self._inner(clause=of, groups=None, overs=None, named={})
        order = [binder.bind(sort.expr) for sort in expr.order]
        counts_rows = self._counts_rows(expr, bool(order))
        user = self.session.catalog.aggregates.get(key)
        args = [] if counts_rows else [binder.bind(arg) for arg in expr.args]
        self._check_level([*args, *order], expr)
        name = expr.function.lower()
        if user is not None:
            if expr.distinct or order or expr.nulls:
                raise self.session.error("a user aggregate takes arguments only", expr.span, "no DISTINCT, no order")
            converted = self._user_args(user.name, user.arg_types, args, expr)
            call = bound.AggregateCall(key, None, user.type, user=True, args=converted, span=expr.span)
            return groups.add(call, name)
        if counts_rows:
            return groups.add(bound.AggregateCall("count", None, Type.INTEGER, span=expr.span), name)
        calls = AggregateCallBinder(self.session, expr, AGGREGATE_SYNONYMS.get(key, key))
        args, order, result = stood_in(expr, args, order)
        found = groups.add(calls.bind(args, order), name)
        return found if result is None else self._from_stand_in(found, result, expr)

    def _check_level(self, args: Sequence[bound.Expr], expr: syntax.Call) -> None:
        """An aggregate of an enclosing query's columns alone is that query's by the standard."""
        inside = [e for arg in args for e in bound.walk(arg)]
        is_own = any(outer_columns(query, 1) for arg in args for query in bound.subqueries(arg))
        is_own = is_own or any(isinstance(e, bound.ColumnRef) for e in inside)
        if not is_own and any(isinstance(e, bound.OuterRef) for e in inside):
            reason = f"{expr.function} is of columns of the enclosing query alone"
            raise self.session.error(reason, expr.span, "", "compute it there, or of this query's rows")

    def _inner(self, **changed: Any) -> ExpressionBinder:
        """For what stands inside of what is being bound, in a context that differs so."""
        binder = ExpressionBinder(self.session, replace(self.context, **changed), self.bind_relation)
        binder._depth = self._depth
        return binder

    def _counts_rows(self, call: syntax.Call, is_ordered: bool) -> bool:
        """Whether it is COUNT(*). CqlError where * stands in another call."""
        stars = [arg for arg in call.args if isinstance(arg, syntax.Star)]
        if stars and (call.function.lower() != "count" or len(call.args) != 1 or call.distinct or is_ordered):
            raise self.session.error("* is counted with COUNT(*) only", stars[0].span)
        return bool(stars)

    def _from_stand_in(self, found: bound.Expr, result: Type, expr: syntax.Syntax) -> bound.Expr:
        """What an aggregate gives of stand-ins, as the type of its own, FLOAT for DECIMALs; ticks are rounded."""
        if result in (Type.INTERVAL, Type.TIMESTAMP):
            found = bound.Cast(Type.INTEGER, self.apply("round", [found], expr), span=expr.span)
        if result.kind == "DECIMAL":
            return self.apply("/", [found, bound.Literal(Type.FLOAT, 10.0**result.scale)], expr)
        return bound.Cast(result, found, span=expr.span)

    def _over(self, expr: syntax.Over) -> bound.Expr:
        self._refuse_in_lambda("OVER", expr)
        overs = self.context.overs
        written = aggregate_written_out(expr.call.function.lower(), expr.call)
        if written is not None:
            return self.bind(over_written_out(written, expr))
        expr = replace(expr, call=of_different(expr.call, expr.call.function.lower()))
        if expr.window is not None:
            hint = "FROM .. WINDOW w AS (PARTITION BY k ORDER BY ts)"
            raise self.session.error(f'there is no window "{expr.window}"', expr.span, "", hint)
        if overs is None:
            hint = "a condition on it stands behind QUALIFY: SELECT .. FROM .. QUALIFY ROW_NUMBER() OVER (..) < 4"
            if self.context.clause.endswith(" OVER") or self.context.clause.startswith("the aggregate"):
                call = self.session.snippet(expr.span)
                hint = f"give it a name in a query in FROM: FROM (SELECT *, {call} AS x FROM ..)"
            raise self.session.error(f"OVER may not stand in {self.context.clause}", expr.span, "", hint)
        binder = self._inner(clause=f"{expr.call.function} with OVER", overs=None)
        args = [] if self._counts_rows(expr.call, False) else [binder.value(arg) for arg in expr.call.args]
        partition = [binder.value(key) for key in expr.partition]
        order = [binder.value(key.expr) for key in expr.order]
        within = [binder.value(key.expr) for key in expr.call.order] if expr.call.within else []
        user = self.session.catalog.aggregates.get(expr.call.function.lower())
        if user is not None:
            args, result = list(self._user_args(user.name, user.arg_types, args, expr.call)), None
        else:
            args, within, result = stood_in(expr.call, args, within)
        found = overs.add(expr, args, partition, order, within)
        return found if result is None else self._from_stand_in(found, result, expr)

    # ----------------------------------------------------------------------------------------------- subqueries

    def _subquery(self, query: syntax.Query) -> Piece:
        self._refuse_in_lambda("a subquery", query)
        piece = self.bind_relation(query, self.context)
        self.session.expanded[id(query)] = piece.tree
        return piece

    def _one_column(self, query: syntax.Query) -> bound.Node:
        node = self._subquery(query).node
        if len(node.schema) != 1:
            names = listing(node.schema.names)
            raise self.session.error(
                f"the subquery must give one column, not {len(node.schema)}", query.span, f"it gives: {names}"
            )
        return node

    def _list_of(self, node: bound.Node, expr: syntax.ScalarQuery) -> bound.Expr:
        """ARRAY(query): what ARRAY_AGG(x ORDER BY x) gives of its column x, and of no rows an empty list."""
        value = typed(self.session, bound.column_refs(node.schema)[0])
        written = syntax.Call("ARRAY_AGG", (expr,), order=(syntax.SortKey(expr),), span=expr.span)
        call = AggregateCallBinder(self.session, written, "array_agg").bind([value], [value])
        schema = Schema.of(("array_agg", call.type))
        listed = bound.ScalarQuery(call.type, bound.Aggregate(schema, node, (), (call,), True, event_windows(node)))
        return bound.Call(call.type, "coalesce", (listed, empty_list(call.type, expr.span)), span=expr.span)

    def _in_query(self, expr: syntax.InQuery) -> bound.Expr:
        values = self._values(expr.operand)
        node = self._subquery(expr.query).node
        if len(values) != len(node.schema):
            raise self.session.error(
                f"IN compares {counted(len(values), 'value')} with {counted(len(node.schema), 'column')}",
                expr.query.span,
                f"the subquery gives: {listing(node.schema.names)}",
            )
        args, node = self._beside_query(values, node, expr)
        return bound.InQuery(Type.BOOLEAN, tuple(args), node, span=expr.span)

    def _beside_query(
        self, values: Sequence[bound.Expr], node: bound.Node, expr: syntax.Expr
    ) -> tuple[list[bound.Expr], bound.Node]:
        """The values and the subquery's columns in their common types."""
        args, types = [], []
        for value, column in zip(values, node.schema):
            if column.type is Type.TIMESTAMP:
                value = read_literals(self.session, [value, bound.Literal(Type.TIMESTAMP, None)])[0]
            common = common_type((value.type, column.type))
            if common is None:
                raise self.session.error(
                    f"cannot compare {value.type} with the subquery's column {column.name}, which is {column.type}",
                    value.span if value.span != (0, 0) else expr.span,
                    f"this is {value.type}",
                    f"convert one of them: CAST({self.session.snippet(value.span) or '..'} AS {column.type})",
                )
            common = known_type(common)
            args.append(coerce(self.session, value, common))
            types.append(common)
        return args, coerce_columns(self.session, node, types, expr.span)


def _scales_interval(op: str, args: Sequence[bound.Expr]) -> bool:
    """Whether an INTERVAL is multiplied with, or divided by, a number that may have a fraction."""
    is_interval = [a.type is Type.INTERVAL for a in args]
    has_fraction = [a.type is Type.FLOAT or a.type.kind == "DECIMAL" for a in args]
    return (is_interval[0] and has_fraction[1]) or (op == "*" and has_fraction[0] and is_interval[1])


def _moves_days(function: str, args: Sequence[bound.Expr]) -> bool:
    """Whether whole days are added to a DATE, or its month's last is asked for: the result is another one."""
    if function not in ("timestampadd", "last_day") or args[-1].type is not Type.DATE:
        return False
    unit = args[0].value if isinstance(args[0], bound.Literal) else None
    return function == "last_day" or (isinstance(unit, str) and unit.lower() in DAYS_AND_MORE)


def needs_from(session: Session, part: syntax.Syntax) -> CqlError:
    """The error for a column, or `*`, where there is no FROM."""
    shown = session.snippet(part.span)
    of = print_name(part.qualifier) if isinstance(part, syntax.Name) and part.qualifier else "S"
    hint = f"name what it is of: SELECT {shown} FROM {of}"
    if isinstance(part, syntax.Name) and part.qualifier is None:
        hint = foreign_hint(part.name) or hint
        if shown.startswith('"'):
            hint = f"double quotes enclose names; a text stands in single quotes: {print_text(part.name[:40])}"
    return session.error("a column needs FROM", part.span, "", hint)
