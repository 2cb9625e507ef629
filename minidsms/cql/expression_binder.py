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
from typing import NamedTuple, assert_never

from minidsms.aggregates import AGGREGATES, OF_DIFFERENT
from minidsms.aggregates import SYNONYMS as AGGREGATE_SYNONYMS
from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.aggregate_calls import AggregateCallBinder
from minidsms.cql.aggregates import Groups, has_aggregates, is_aggregate
from minidsms.cql.coercion import agree, coerce, coerce_columns, mismatch, read_literals, typed
from minidsms.cql.errors import CqlError
from minidsms.cql.foreign_names import foreign_hint
from minidsms.cql.foreign_windows import NAMES as WINDOW_NAMES
from minidsms.cql.foreign_windows import window_here
from minidsms.cql.functions import CALLED, FUNCTIONS, INT64_MAX, INT64_MIN, SYNONYMS, can_cast, common_type
from minidsms.cql.lengths import PartOfLength, bucket_of_months, parts_of_length
from minidsms.cql.long_number import LongNumber
from minidsms.cql.over import Overs
from minidsms.cql.rewriting import connective, seen_from_inside
from minidsms.cql.scope import Ambiguous, Scope, ambiguous, did_you_mean, listing
from minidsms.cql.session import Piece, Session, parts
from minidsms.cql.times import UNIT_NS, NotATime, duration_ticks
from minidsms.cql.words import MONTHS
from minidsms.cql.written_out import aggregate_written_out, over_written_out, written_out
from minidsms.elements import Type
from minidsms.functions import LIBRARY
from minidsms.functions.calendar import DAYS_AND_MORE, PARTS, TAKE_A_UNIT, UNITS
from minidsms.functions.function import Function
from minidsms.functions.written import OTHER_COUNTS, Written
from minidsms.inputs.values import ValueRefused, inner_reader
from minidsms.values.types import known_type

_BEHIND_GROUPS = ("HAVING", "QUALIFY", "ORDER BY")
"""Clauses where a column without a value in a group gives way to a name of the select list."""
_BY_TICKS = ("avg", "median", "quantile_cont", "percentile_cont", "stddev", "stddev_pop")
_BY_TEXT = ("any_value", "arg_min", "arg_max")
_BY_PATTERN = ("format_timestamp", "parse_timestamp", "from_char")
_LENGTHS = "write EXTRACT(EPOCH FROM x), its seconds, or x / INTERVAL '1' MINUTE, how many whole minutes it has"
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
        self._parameters: list[bound.Parameter] = []  # of the lambdas around
        self._named_parameters: dict[str, bound.Expr] = {}

    def condition(self, expr: syntax.Expr) -> bound.Expr:
        """A condition: BOOLEAN."""
        return self._boolean(self.value(expr), self.context.clause)

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
                checked = [self._boolean(self.bind(o), op.upper()) for o in operands]
                return connective(op, checked, expr.span)
            case syntax.Unary(op="not", operand=operand):
                return self._not(self._boolean(self.bind(operand), "NOT"), expr)
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
                found = self.apply("is distinct from", [self.bind(left), self.bind(right)], expr)
            case syntax.Between(operand=operand, low=low, high=high, negated=negated):
                middle = self.bind(operand)
                lower = self.apply(">=", [middle, self.bind(low)], expr)
                upper = self.apply("<=", [middle, self.bind(high)], expr)
                found = connective("and", [lower, upper], expr.span)
            case syntax.Like(negated=negated):
                found = self._like(expr)
            case syntax.InList(operand=operand, items=items, negated=negated):
                found = self._in_list(operand, items, expr)
            case syntax.InQuery(negated=negated):
                found = self._in_query(expr)
            case syntax.Exists(query=query):
                return bound.Exists(Type.BOOLEAN, self._subquery(query).node, span=expr.span)
            case syntax.ScalarQuery(query=query):
                node = self._one_column(query)
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
                    "a row of several values may only stand before IN, = or <>",
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
        if of.lower() in self._named_parameters:
            parameter = replace(self._named_parameters[of.lower()], span=name.span)
            return parameter if name.qualifier is None else self._member(parameter, name)
        is_named = name.qualifier is None and name.name.lower() in self.context.named
        found = self._find(self.context, name)
        if is_named and found is not None and (name.span in self._items or self._gives_way(found)):
            return replace(self._named(name), span=name.span)
        if found is not None:
            return replace(found, span=name.span)
        if name.qualifier is not None and self._has_struct(name.qualifier, name.name):
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
                    hint="a subquery may use the enclosing query's columns in its own WHERE only",
                )
            if context.groups is not None:
                found = context.groups.to_row(replace(found, span=name.span))
            return seen_from_inside(replace(found, span=name.span), level)
        if is_named:
            return replace(self._named(name), span=name.span)
        raise self._unknown_column(name)

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
            binder = ExpressionBinder(self.session, replace(context, named=dict(before)), self.bind_relation)
            binder._depth, binder._meant = self._depth, self._meant
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
            if of.lower() in self._named_parameters:
                reason = f'"{name.name}" stands for what has "{of}" in it, and the lambda has a parameter of that name'
                raise self.session.error(reason, name.span, "", "call the parameter otherwise")
        self.session.expanded[id(name)] = meant

    def _check_of_row(self, name: syntax.Name, meant: syntax.Expr) -> None:
        """WHERE looks at each row before there are groups and OVER."""
        for what, clause, is_there in (
            ("an aggregate", "HAVING", has_aggregates(meant, self.session.catalog)),
            ("a call with OVER", "QUALIFY", any(isinstance(part, syntax.Over) for part in parts(meant, syntax.Query))),
        ):
            if is_there:
                hint = f"put the condition in {clause}"
                raise self.session.error(f'WHERE does not know "{name.name}", {what}', name.span, "", hint)

    def is_struct(self, name: str) -> bool:
        """Whether the name is that of a STRUCT in this query's row, and of no table."""
        found = self._find(self.context, syntax.Name(name)) if self.context.scope.table(name) is None else None
        return found is not None and found.type.kind == "STRUCT"

    def _has_struct(self, name: str, field: str) -> bool:
        """Whether a column of this query's row or an enclosing one's is a STRUCT, and not a table's name is meant."""
        context: Context | None = self.context
        while context is not None:
            found = self._find(context, syntax.Name(name))
            if found is not None:
                has_field = field.lower() in (n.lower() for n, _ in found.type.fields)
                return found.type.kind == "STRUCT" and (has_field or context.scope.table(name) is None)
            context = context.outer
        return False

    def _member(self, struct: bound.Expr, name: syntax.Name) -> bound.Expr:
        """`s.a`, where s is no table."""
        if struct.type.kind != "STRUCT":
            raise self.session.error(f"{struct.type} has no fields", name.span)
        return self._field(struct, bound.Literal(Type.TEXT, name.name), name)

    def _unknown_column(self, name: syntax.Name) -> CqlError:
        error = self.context.scope.unknown(name.name, name.qualifier, self.session.text, name.span)
        hint = foreign_hint(name.name)
        if name.qualifier is not None:
            return CqlError(error.reason, self.session.text, name.span, error.note, error.hint or hint)
        if name.name.lower() in self.context.aliases:
            hint = "an expression knows the names that the select list gives before it, each once"
            if self.context.clause.startswith("the aggregate"):
                hint = f"the select list gives this name after {self.context.clause}: repeat the expression"
        hint = hint or error.hint or f"a text stands in quotes: '{name.name[:40]}'"
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
            raise self.session.error(str(problem), expr.span) from None
        return bound.Literal(Type.INTERVAL, length, span=expr.span)

    # ------------------------------------------------------------------------------------------------ operators

    def apply(self, function: str, args: Sequence[bound.Expr], expr: syntax.Syntax) -> bound.Expr:
        """A built-in on bound arguments, which are converted to what it takes."""
        if function == "||" and any(a.type.element is not None for a in args):
            lists = [a.type.element is not None for a in args]
            function = "list_concat" if all(lists) else "list_append" if lists[0] else "list_prepend"
        elif function == "||" and any(a.type is Type.TEXT for a in args):
            args = [self._as_text(a) for a in args]
        described = FUNCTIONS[function]
        args = self._read_times(described, args)
        if function in ("+", "-") and any(a.type is Type.TIME for a in args):
            return self._with_times(function, args, expr)
        if function in ("*", "/") and _scales_interval(function, args):
            counts = [self._count_of(a) if a.type is Type.INTERVAL else a for a in args]
            return self._as_interval(self.apply(function, counts, expr), expr)
        signature = described.resolve([a.type for a in args])
        if signature is None:
            raise self._wrong_types(described, args, expr)
        converted = tuple(
            a if want is a.type else coerce(self.session, a, want) for a, want in zip(args, signature.args)
        )
        return bound.Call(signature.result, function, converted, span=expr.span)

    def _with_times(self, op: str, args: Sequence[bound.Expr], expr: syntax.Syntax) -> bound.Expr:
        """A TIME beside an INTERVAL is another TIME of the day; TIME - TIME is an INTERVAL, DATE + TIME a TIMESTAMP."""
        left, right = args
        if not {left.type, right.type} <= {Type.TIME, Type.INTERVAL, Type.DATE, Type.TIMESTAMP}:
            raise self._wrong_types(FUNCTIONS[op], args, expr)
        spans = [bound.Cast(Type.INTERVAL, a, span=a.span) if a.type is Type.TIME else a for a in args]
        if left.type is right.type:
            if op == "+":
                raise self._wrong_types(FUNCTIONS[op], args, expr)
            return self.apply(op, spans, expr)
        found = self.apply(op, spans, expr)
        return bound.Cast(Type.TIME, found, span=expr.span) if Type.INTERVAL in (left.type, right.type) else found

    def _read_times(self, function: Function, args: Sequence[bound.Expr]) -> Sequence[bound.Expr]:
        """Texts that are written where a TIMESTAMP is wanted are ISO times."""
        if function.name not in LIBRARY:
            return args if function.name == "round" else read_literals(self.session, args)
        if function.resolve([a.type for a in args]) is not None:
            return args
        times = [
            i
            for i, a in enumerate(args)
            if i not in function.literals and isinstance(a, bound.Literal) and a.type is Type.TEXT
        ]
        if function.resolve([Type.TIMESTAMP if i in times else a.type for i, a in enumerate(args)]) is None:
            return args
        return [coerce(self.session, a, Type.TIMESTAMP) if i in times else a for i, a in enumerate(args)]

    def _wrong_types(self, function: Function, args: Sequence[bound.Expr], expr: syntax.Syntax) -> CqlError:
        if function.takes == FUNCTIONS["="].takes:
            listed = next((a for a in args if a.type.is_nested), None)
            if listed is not None and common_type([a.type for a in args]) is not None:
                name = function.name if not function.name[0].isalpha() else function.name.upper()
                reason = f"{'lists' if listed.type.element else f'{listed.type.kind}s'} have no order, for {name}"
                raise self.session.error(reason, listed.span, f"this is {listed.type}")
            collects = function.name in ("coalesce", "least", "greatest", "nullif")
            verb = f"{function.name.upper()} cannot bring together" if collects else "cannot compare"
            return mismatch(self.session, args, verb)
        given = listing(str(a.type) for a in args)
        place = expr.span if expr.span != (0, 0) else args[0].span
        hint = self._conversion(function, args)
        if function.name == "+" and all(a.type is Type.TEXT for a in args):
            hint = "texts are put together with ||"
        elif function.name == "list_contains" and args[0].type is Type.TEXT:
            hint = (
                "what stands behind IN is a list or in parentheses: x IN ('a', 'b'); part of a text is CONTAINS(t, 'a')"
            )
        elif function.name == "element_at" and [a.type for a in args] == [Type.TEXT] * 2:
            hint = "a member of JSON is j -> 'a', or as text j ->> 'a'"
        elif function.name == "element_at" and args[0].type is Type.BOOLEAN:
            hint = "write REGEXP_EXTRACT(text, 'pattern', 1), the first group of the match"
        elif function.name == "substring" and [a.type for a in args[:2]] == [Type.TEXT] * 2:
            hint = f"write REGEXP_EXTRACT({', '.join(self.session.snippet(a.span) for a in args[:2])}, 1)"
        elif function.name == "trunc" and args[0].type in (Type.TIMESTAMP, Type.DATE):
            hint = "write DATE_TRUNC('hour', t)"
        elif function.name == "length" and args[0].type.is_nested:
            hint = "CARDINALITY counts the elements of a list, and the keys of a MAP"
        elif function.takes == "BOOLEAN":
            hint = "compare it with something, as in x <> 0"
        elif function.name in PARTS.values() and args[0].type is Type.INTERVAL:
            hint = _LENGTHS
            if function.name in UNIT_NS:
                hint = f"write x / INTERVAL '1' {function.name.upper()}, an INTEGER"
        name = function.name if not function.name[0].isalpha() else function.name.upper()
        return self.session.error(f"{name} takes {function.takes}, not {given}", place, "", hint)

    def _conversion(self, function: Function, args: Sequence[bound.Expr]) -> str:
        """What makes of one argument, or of all texts, what the function takes."""
        wants_text = "TEXT" in function.takes
        odd = [i for i, a in enumerate(args) if (a.type is Type.TEXT) != wants_text and a.type is not Type.NULL]
        beside = sorted({a.type for a in args} & {Type.INTEGER, Type.FLOAT, Type.TIMESTAMP}, key=str)
        for changed in (*((i,) for i in odd), tuple(odd)):
            for target in (
                [Type.TEXT] if wants_text else [*beside, Type.FLOAT, Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL]
            ):
                signature = function.resolve([target if i in changed else a.type for i, a in enumerate(args)])
                if signature is None or any(signature.args[i] is not target for i in changed):
                    continue
                first = args[changed[0]]
                written = self.session.snippet(first.span) or ".."
                if can_cast(first.type, target):
                    return f"convert it: CAST({written} AS {target})"
                if isinstance(first, bound.Literal):
                    return f"write {target} {written}"
        return ""

    def _boolean(self, expr: bound.Expr, where: str) -> bound.Expr:
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
            rows = self._values(left), self._values(right)
            if len(rows[0]) > 1 or len(rows[1]) > 1 or isinstance(left, syntax.Row) or isinstance(right, syntax.Row):
                equal = self._equal_rows(rows[0], rows[1], expr)
                return equal if op == "=" else self._not(equal, expr)
            return self.apply(op, [rows[0][0], rows[1][0]], expr)
        if op in ("+", "-"):
            for instant, length in ((left, right), (right, left))[: 2 if op == "+" else 1]:
                parts_of_it = parts_of_length(length, -1 if op == "-" else 1)
                if any(part.months is not None for part in parts_of_it):
                    return self._moved(self.bind(instant), parts_of_it, expr)
        return self.apply(op, [self.bind(left), self.bind(right)], expr)

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
        if len(left) != len(right):
            raise self.session.error(f"a row of {len(left)} cannot equal a row of {len(right)}", expr.span)
        return connective("and", [self.apply("=", pair, expr) for pair in zip(left, right)], expr.span)

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
        if isinstance(operand, bound.Literal) and isinstance(operand.value, str) and not target.is_basic:
            found = inner_reader(target, self.session.catalog.tick_ns)
            if not target.is_nested:
                try:
                    return bound.Literal(target, found(operand.value), span=expr.span)
                except ValueRefused:
                    pass  # it fails where it is evaluated
        if not can_cast(operand.type, target):
            is_count = operand.type is Type.INTERVAL and target.kind in ("FLOAT", "DECIMAL")
            hint = _LENGTHS if is_count else ""
            raise self.session.error(f"{operand.type} cannot be cast to {target}", expr.span, "", hint)
        return bound.Cast(target, operand, span=expr.span)

    def _case(self, expr: syntax.Case) -> bound.Expr:
        operand = None if expr.operand is None else self.bind(expr.operand)
        conditions, results = [], []
        for when, then in expr.whens:
            if operand is None:
                conditions.append(self._boolean(self.bind(when), "WHEN"))
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
            return self.bind(written_out(described, expr))
        if key == "time_bucket" and len(expr.args) == 2:
            width = parts_of_length(expr.args[0])
            if width and all(part.is_months for part in width):
                months = sum(part.months or 0 for part in width)
                if months < 1 or months.denominator != 1:
                    raise self.session.error("the width of a bucket is one month and more", expr.args[0].span)
                return self.bind(bucket_of_months(int(months), expr))
        if key in ("struct", "map"):
            return self._struct(expr) if key == "struct" else self._map(expr)
        if key in ("list_transform", "list_filter", "list_reduce"):
            return self._with_lambda(key, expr)
        return self._called(key, described, [self.bind(arg) for arg in self._with_unit(key, expr.args)], expr)

    def _called(self, key: str, described: Function, args: list[bound.Expr], expr: syntax.Call) -> bound.Expr:
        """A function that `scalar.Call` knows, or what it is written with, over its arguments."""
        if key in ("element_at", "struct_extract", "json_extract") and args[0].type.fields:
            return self._field(args[0], args[1], expr)
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

    def _struct(self, expr: syntax.Call) -> bound.Expr:
        """STRUCT(a := 1, b): the names are those before `:=`, or of the columns; ROW(1, 2): f1 and f2."""
        fields: list[tuple[str, bound.Expr]] = []
        for i, arg in enumerate(expr.args, 1):
            named = arg.name if isinstance(arg, syntax.Pair) else arg
            if expr.function.lower() == "row":
                named = syntax.Name(f"f{i}", span=arg.span)
            if not isinstance(named, syntax.Name) or (isinstance(arg, syntax.Pair) and named.qualifier is not None):
                raise self.session.error("a value in STRUCT needs a name", arg.span, "", "write STRUCT(a := 1, b := 2)")
            if named.name.lower() in (name.lower() for name, _ in fields):
                raise self.session.error(f'two fields are called "{named.name}"', arg.span)
            value = self.bind(arg.value if isinstance(arg, syntax.Pair) else arg)
            fields.append((named.name, typed(self.session, value)))
        type_ = Type.struct([(name, value.type) for name, value in fields])
        return bound.Call(type_, "struct", tuple(value for _, value in fields), span=expr.span)

    def _map(self, expr: syntax.Call) -> bound.Expr:
        """MAP('a' := 1, 'b' := 2)."""
        keys, values = [], []
        for arg in expr.args:
            if not isinstance(arg, syntax.Pair):
                raise self.session.error("MAP takes keys and values", arg.span, "", "write MAP('a' := 1, 'b' := 2)")
            keys.append(self.bind(arg.name))
            values.append(self.bind(arg.value))
        keys = [typed(self.session, key) for key in agree(self.session, keys, "the keys of a MAP differ:")]
        values = [typed(self.session, value) for value in agree(self.session, values, "the values of a MAP differ:")]
        if keys[0].type not in (Type.TEXT, Type.INTEGER):
            raise self.session.error("the keys of a MAP are TEXT or INTEGER", keys[0].span, f"this is {keys[0].type}")
        both = tuple(e for pair in zip(keys, values) for e in pair)
        return bound.Call(Type.map(keys[0].type, values[0].type), "map", both, span=expr.span)

    def _field(self, operand: bound.Expr, key: bound.Expr, expr: syntax.Expr) -> bound.Expr:
        """`s.a` and `s['a']` of a STRUCT, `m['a']` of a MAP."""
        if operand.type.kind == "MAP":
            return self.apply("map_extract", [operand, key], expr)
        name = key.value if isinstance(key, bound.Literal) else None
        names = [n for n, _ in operand.type.fields]
        places = [i for i, n in enumerate(names) if isinstance(name, str) and n.lower() == name.lower()]
        if not places:
            hint = did_you_mean(name, names) if isinstance(name, str) else "a field is named by a text: s['a']"
            place = key.span if key.span != (0, 0) else expr.span
            raise self.session.error("this STRUCT has no such field", place, f"it has: {listing(names)}", hint)
        at = bound.Literal(Type.INTEGER, places[0])
        return bound.Call(operand.type.fields[places[0]][1], "struct_extract", (operand, at), span=expr.span)

    def _with_lambda(self, key: str, expr: syntax.Call) -> bound.Expr:
        """TRANSFORM(l, x -> ..), FILTER(l, x -> ..) and REDUCE(l, beginning, (s, x) -> ..)."""
        *before, last = expr.args
        listed = self.bind(before[0])
        if listed.type.kind == "MAP":
            return self._of_map(key, listed, expr)
        if listed.type.element is None:
            is_quantified = isinstance(last, syntax.Lambda) and last.parameters == (syntax.ELEMENT,)
            taking = "ALL and ANY take a list or a query" if is_quantified else f"{expr.function} takes a list"
            raise self.session.error(f"{taking}, not {listed.type}", listed.span, "", foreign_hint(expr.function))
        if key == "list_transform" and len(before) > 1:
            raise self.session.error(f"{expr.function} of a list takes one lambda", before[1].span)
        if not isinstance(last, syntax.Lambda):
            example = "(s, x) -> s + x" if key == "list_reduce" else "x -> x + 1"
            raise self.session.error(f"{expr.function} ends with a lambda", last.span, "", f"for example {example}")
        if key != "list_reduce":
            taken = self._lambda(last, (listed.type.element, Type.INTEGER), 1)
            if key == "list_filter":
                body = self._boolean(taken.body, "the lambda of FILTER")
                return bound.Call(
                    listed.type, key, (listed, replace(taken, type=Type.BOOLEAN, body=body)), span=expr.span
                )
            return bound.Call(taken.type.list_type, key, (listed, taken), span=expr.span)
        start = typed(self.session, self.bind(before[1]))
        taken = self._lambda(last, (start.type, listed.type.element), 2)
        wider = common_type([start.type, taken.type])
        if wider is not None and wider is not start.type:
            start = coerce(self.session, start, wider)
            taken = self._lambda(last, (wider, listed.type.element), 2)
        body = coerce(self.session, taken.body, start.type)
        return bound.Call(start.type, key, (listed, start, replace(taken, type=body.type, body=body)), span=expr.span)

    def _of_map(self, key: str, mapped: bound.Expr, expr: syntax.Call) -> bound.Expr:
        """TRANSFORM(m, (k, v) -> .., (k, v) -> ..), FILTER(m, (k, v) -> ..) and REDUCE(m, beginning, (s, k, v) -> ..):
        those of the list of pairs.
        """
        entries = self.apply("map_entries", [mapped], expr)
        pair = entries.type.element
        assert pair is not None
        wanted = expr.args[1:] if key != "list_reduce" else expr.args[2:]
        taken = [w for w in wanted if isinstance(w, syntax.Lambda)]
        if not len(taken) == len(wanted) == (2 if key == "list_transform" else 1):
            example = "(k, v) -> k, (k, v) -> v + 1" if key == "list_transform" else "(k, v) -> v > 1"
            reason = f"{expr.function} of a MAP ends with lambdas of keys and values"
            raise self.session.error(reason, expr.span, "", f"for example {expr.function}(m, {example})")
        if key == "list_reduce":
            start = typed(self.session, self.bind(expr.args[1]))
            (found,) = self._lambdas_of_pairs(taken, pair, (start.type,))
            body = coerce(self.session, found.body, start.type)
            return bound.Call(
                start.type, key, (entries, start, replace(found, type=body.type, body=body)), span=expr.span
            )
        found, *more = self._lambdas_of_pairs(taken, pair)
        if key == "list_filter":
            found = replace(found, type=Type.BOOLEAN, body=self._boolean(found.body, "the lambda of FILTER"))
            kept = bound.Call(entries.type, key, (entries, found), span=expr.span)
            return self.apply("map_from_entries", [kept], expr)
        made = Type.struct((("key", found.type), ("value", more[0].type)))
        body = bound.Call(made, "struct", (found.body, more[0].body), span=expr.span)
        pairs = bound.Call(made.list_type, key, (entries, replace(found, type=made, body=body)), span=expr.span)
        return self.apply("map_from_entries", [pairs], expr)

    def _lambdas_of_pairs(
        self, lambdas: Sequence[syntax.Lambda], pair: Type, before: tuple[Type, ...] = ()
    ) -> list[bound.Lambda]:
        """Lambdas whose last two parameters are the fields of a pair that they are called with."""
        made = []
        for each in lambdas:
            names = each.parameters
            if len(names) != len(before) + 2 or len({n.lower() for n in names}) < len(names):
                raise self.session.error(f"the lambda takes {len(before) + 2} different parameters here", each.span)
            one = replace(each, parameters=(*names[: len(before)], f"{names[-2]}, {names[-1]}"))
            place = len(self._parameters) + len(before)
            fields = [
                bound.Call(t, "struct_extract", (bound.Parameter(pair, place, ""), bound.Literal(Type.INTEGER, i)))
                for i, (_, t) in enumerate(pair.fields)
            ]
            made.append(self._lambda(one, (*before, pair), len(before) + 1, dict(zip(names[-2:], fields))))
        return made

    def _lambda(
        self,
        expr: syntax.Lambda,
        types: Sequence[Type],
        least: int,
        others: Mapping[str, bound.Expr] | None = None,
    ) -> bound.Lambda:
        """A lambda that is called with values of these types; the last ones it need not take. others: what further
        names stand for in it.
        """
        names = [n.lower() for n in expr.parameters]
        if not least <= len(names) <= len(types) or len(set(names)) < len(names):
            wanted = str(least) if least == len(types) else f"{least} or {len(types)}"
            reason = f"the lambda takes {wanted} different parameter{'s' * (wanted != '1')} here"
            raise self.session.error(reason, expr.span)
        first, around = len(self._parameters), dict(self._named_parameters)
        own = [bound.Parameter(t, first + i, n) for i, (t, n) in enumerate(zip(types, expr.parameters))]
        self._parameters += own
        self._named_parameters |= dict(zip(names, own)) | {n.lower(): e for n, e in (others or {}).items()}
        body = typed(self.session, self.bind(expr.body))
        self._parameters = self._parameters[:first]
        self._named_parameters = around
        return bound.Lambda(body.type, body, first, expr.parameters, span=expr.span)

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
        return part if isinstance(part, str) and part.lower() in ("decade", "century", "millennium") else None

    def _date_part(self, args: Sequence[bound.Expr], expr: syntax.Call) -> bound.Expr:
        part, instant = args
        name = part.value if isinstance(part, bound.Literal) else None
        if not isinstance(name, str) or name.lower() not in PARTS:
            raise self.session.error(f"a part of a TIMESTAMP is one of {', '.join(PARTS)}", part.span)
        if isinstance(instant, bound.Literal) and instant.type is Type.TEXT:
            instant = coerce(self.session, instant, Type.TIMESTAMP)
        if instant.type is Type.TIME:
            if name.lower() not in ("hour", "minute", "second", "millisecond", "microsecond"):
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
        if self._parameters:
            raise self.session.error(f"{what} may not stand in a lambda", expr.span)

    def _aggregate(self, expr: syntax.Call, key: str) -> bound.Expr:
        written = None if key in self.session.catalog.aggregates else aggregate_written_out(key, expr)
        if written is not None:
            return self.bind(written)
        self._refuse_in_lambda("an aggregate", expr)
        groups, clause = self.context.groups, self.context.clause
        if groups is None:
            hint = "put the condition in HAVING" if clause == "WHERE" else ""
            raise self.session.error(f"the aggregate {expr.function} may not stand in {clause}", expr.span, "", hint)
        expr = _of_different(expr, key)
        inside = replace(
            self.context, clause=f"the aggregate {expr.function}", groups=None, overs=None, correlated=False, named={}
        )
        binder = ExpressionBinder(self.session, inside, self.bind_relation)
        binder._depth = self._depth
        order = [binder.bind(sort.expr) for sort in expr.order]
        stars = [a for a in expr.args if isinstance(a, syntax.Star)]
        if stars and (key != "count" or len(expr.args) != 1 or expr.distinct or order):
            raise self.session.error("* is counted with COUNT(*) only", stars[0].span)
        user = self.session.catalog.aggregates.get(key)
        args = [] if stars else [binder.bind(arg) for arg in expr.args]
        name = expr.function.lower()
        if user is not None:
            if expr.distinct or order or expr.nulls:
                raise self.session.error("a user aggregate takes arguments only", expr.span, "no DISTINCT, no order")
            converted = self._user_args(user.name, user.arg_types, args, expr)
            call = bound.AggregateCall(key, None, user.type, user=True, args=converted, span=expr.span)
            return groups.add(call, name)
        if stars:
            return groups.add(bound.AggregateCall("count", None, Type.INTEGER, span=expr.span), name)
        calls = AggregateCallBinder(self.session, expr, AGGREGATE_SYNONYMS.get(key, key))
        of_what = order if expr.within else args
        meant = _stand_in(expr, of_what)
        if meant is not None:
            values = [_cast_through(of_what[0], meant.through), *of_what[1:]]
            args, order = (args, values) if expr.within else (values, order)
            return self._from_stand_in(groups.add(calls.bind(args, order), name), meant.result, expr)
        return groups.add(calls.bind(args, order), name)

    def _count_of(self, interval: bound.Expr) -> bound.Expr:
        """The ticks of an INTERVAL."""
        return bound.Cast(Type.INTEGER, interval, span=interval.span)

    def _as_interval(self, number: bound.Expr, expr: syntax.Syntax) -> bound.Expr:
        """A number of ticks as INTERVAL, rounded to whole ones."""
        return self._from_stand_in(number, Type.INTERVAL, expr)

    def _from_stand_in(self, found: bound.Expr, result: Type, expr: syntax.Syntax) -> bound.Expr:
        """What an aggregate gives of stand-ins, as the type of its own; ticks are rounded to whole ones."""
        if result in (Type.INTERVAL, Type.TIMESTAMP):
            found = bound.Cast(Type.INTEGER, self.apply("round", [found], expr), span=expr.span)
        return bound.Cast(result, found, span=expr.span)

    def _over(self, expr: syntax.Over) -> bound.Expr:
        self._refuse_in_lambda("OVER", expr)
        overs = self.context.overs
        written = aggregate_written_out(expr.call.function.lower(), expr.call)
        if written is not None:
            return self.bind(over_written_out(written, expr))
        expr = replace(expr, call=_of_different(expr.call, expr.call.function.lower()))
        if expr.window is not None:
            hint = "FROM .. WINDOW w AS (PARTITION BY k ORDER BY ts)"
            raise self.session.error(f'there is no window "{expr.window}"', expr.span, "", hint)
        if overs is None:
            hint = "a condition on it stands behind QUALIFY: SELECT .. FROM .. QUALIFY ROW_NUMBER() OVER (..) < 4"
            if self.context.clause.endswith(" OVER") or self.context.clause.startswith("the aggregate"):
                call = self.session.snippet(expr.span)
                hint = f"give it a name in a query in FROM: FROM (SELECT *, {call} AS x FROM ..)"
            raise self.session.error(f"OVER may not stand in {self.context.clause}", expr.span, "", hint)
        inside = replace(self.context, clause=f"{expr.call.function} with OVER", overs=None)
        binder = ExpressionBinder(self.session, inside, self.bind_relation)
        binder._depth = self._depth
        stars = [arg for arg in expr.call.args if isinstance(arg, syntax.Star)]
        if stars and (expr.call.function.lower() != "count" or len(expr.call.args) != 1 or expr.call.distinct):
            raise self.session.error("* is counted with COUNT(*) only", stars[0].span)
        args = [] if stars else [binder.value(arg) for arg in expr.call.args]
        partition = [binder.value(key) for key in expr.partition]
        order = [binder.value(key.expr) for key in expr.order]
        within = [binder.value(key.expr) for key in expr.call.order] if expr.call.within else []
        of_what = within or args
        user = self.session.catalog.aggregates.get(expr.call.function.lower())
        if user is not None:
            args = list(self._user_args(user.name, user.arg_types, args, expr.call))
        elif (meant := _stand_in(expr.call, of_what)) is not None:
            values = [_cast_through(of_what[0], meant.through), *of_what[1:]]
            args, within = (args, values) if within else (values, within)
            return self._from_stand_in(overs.add(expr, args, partition, order, within), meant.result, expr)
        return overs.add(expr, args, partition, order, within)

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


class _StandIn(NamedTuple):
    """The types that an aggregate's first value is cast through, and the type of what it gives of them."""

    through: tuple[Type, ...]
    result: Type


_TICKS_OF = {Type.INTERVAL: (Type.INTEGER,), Type.TIMESTAMP: (Type.INTEGER,), Type.DATE: (Type.TIMESTAMP, Type.INTEGER)}


def _stand_in(call: syntax.Call, values: Sequence[bound.Expr]) -> _StandIn | None:
    """Means and the like of times are computed from their ticks, choices among nested values from their texts."""
    key = AGGREGATE_SYNONYMS.get(call.function.lower(), call.function.lower())
    type_ = values[0].type if values else Type.NULL
    if key in _BY_TICKS and type_ in _TICKS_OF:
        is_length = type_ is Type.INTERVAL or key.startswith("stddev")
        return _StandIn(_TICKS_OF[type_], Type.INTERVAL if is_length else Type.TIMESTAMP)
    if key in _BY_TEXT and type_.is_nested and len(call.args) < 3:
        return _StandIn((Type.TEXT,), type_)
    return None


def _cast_through(value: bound.Expr, types: Sequence[Type]) -> bound.Expr:
    for type_ in types:
        value = bound.Cast(type_, value, span=value.span)
    return value


def _of_different(call: syntax.Call, key: str) -> syntax.Call:
    """What is called by a name that means DISTINCT with that word, and COUNT of several different values with one."""
    if key in OF_DIFFERENT:
        call = replace(call, distinct=True)
    if AGGREGATE_SYNONYMS.get(key, key) == "count" and call.distinct and len(call.args) > 1:
        call = replace(call, args=(_together(call.args),))
    return call


def _together(args: Sequence[syntax.Expr]) -> syntax.Expr:
    """Several values as one list; NULL where one of them is, for such rows are not counted."""
    span = (args[0].span[0], args[-1].span[1])
    texts = tuple(syntax.Cast(arg, Type.TEXT, span=arg.span) for arg in args)
    present = tuple(syntax.IsNull(arg, True, span=arg.span) for arg in args)
    listed = syntax.Call("LIST_VALUE", texts, span=span)
    return syntax.Case(None, ((syntax.Logical("and", present, span=span), listed),), span=span)


def _moves_days(function: str, args: Sequence[bound.Expr]) -> bool:
    """Whether whole days are added to a DATE, or its month's last is asked for: the result is another one."""
    if function not in ("timestampadd", "last_day") or args[-1].type is not Type.DATE:
        return False
    unit = args[0].value if isinstance(args[0], bound.Literal) else None
    return function == "last_day" or (isinstance(unit, str) and unit.lower() in DAYS_AND_MORE)
