"""Calls that make, or look into, values of nested types: STRUCT, MAP, a field of one, and functions with lambdas.

Invariant: `parameters` and `named` are those of the lambdas around the expression that is being bound, outermost first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from minidsms.cql import bound, syntax
from minidsms.cql.coercion import agree, coerce, is_empty_list, read_literals, typed
from minidsms.cql.foreign_names import foreign_hint
from minidsms.cql.functions import common_type
from minidsms.cql.scope import did_you_mean, listing
from minidsms.elements import Type
from minidsms.values.types import known_type

if TYPE_CHECKING:
    from minidsms.cql.expression_binder import ExpressionBinder


class NestedBinder:
    """Binds such calls for the binder of an expression.

    parameters: of the lambdas around.  named: what names stand for in their bodies, in lower case.
    """

    def __init__(self, binder: ExpressionBinder) -> None:
        self._binder = binder
        self._session = binder.session
        self.parameters: list[bound.Parameter] = []
        self.named: dict[str, bound.Expr] = {}

    def struct(self, expr: syntax.Call) -> bound.Expr:
        """STRUCT(a := 1, b): the names are those before `:=`, or of the columns; ROW(1, 2): f1 and f2."""
        fields: list[tuple[str, bound.Expr]] = []
        for i, arg in enumerate(expr.args, 1):
            named = arg.name if isinstance(arg, syntax.Pair) else arg
            if isinstance(arg, syntax.Pair) and isinstance(named, syntax.Literal) and isinstance(named.value, str):
                named = syntax.Name(named.value, span=named.span)
            if expr.function.lower() == "row":
                named = syntax.Name(f"f{i}", span=arg.span)
            if not isinstance(named, syntax.Name) or (isinstance(arg, syntax.Pair) and named.qualifier is not None):
                hint = "write STRUCT(a := 1, b := 2)"
                raise self._session.error("a value in STRUCT needs a name", arg.span, "", hint)
            if named.name.lower() in (name.lower() for name, _ in fields):
                raise self._session.error(f'two fields are called "{named.name}"', arg.span)
            value = self._binder.bind(arg.value if isinstance(arg, syntax.Pair) else arg)
            fields.append((named.name, typed(self._session, value)))
        type_ = Type.struct([(name, value.type) for name, value in fields])
        return bound.Call(type_, "struct", tuple(value for _, value in fields), span=expr.span)

    def map(self, expr: syntax.Call) -> bound.Expr:
        """MAP('a' := 1, 'b' := 2)."""
        keys, values = [], []
        for arg in expr.args:
            if not isinstance(arg, syntax.Pair):
                raise self._session.error("MAP takes keys and values", arg.span, "", "write MAP('a' := 1, 'b' := 2)")
            keys.append(self._binder.bind(arg.name))
            values.append(self._binder.bind(arg.value))
        keys = [typed(self._session, key) for key in agree(self._session, keys, "the keys of a MAP differ:")]
        values = [typed(self._session, value) for value in agree(self._session, values, "the values of a MAP differ:")]
        if keys[0].type not in (Type.TEXT, Type.INTEGER):
            raise self._session.error("the keys of a MAP are TEXT or INTEGER", keys[0].span, f"this is {keys[0].type}")
        both = tuple(e for pair in zip(keys, values) for e in pair)
        return bound.Call(Type.map(keys[0].type, values[0].type), "map", both, span=expr.span)

    def field(self, operand: bound.Expr, key: bound.Expr, expr: syntax.Expr) -> bound.Expr:
        """`s.a` and `s['a']` of a STRUCT, `m['a']` of a MAP."""
        if operand.type.kind == "MAP":
            return self._binder.apply("map_extract", [operand, key], expr)
        name = key.value if isinstance(key, bound.Literal) else None
        names = [n for n, _ in operand.type.fields]
        places = [i for i, n in enumerate(names) if isinstance(name, str) and n.lower() == name.lower()]
        if not places:
            hint = did_you_mean(name, names) if isinstance(name, str) else "a field is named by a text: s['a']"
            place = key.span if key.span != (0, 0) else expr.span
            raise self._session.error("this STRUCT has no such field", place, f"it has: {listing(names)}", hint)
        at = bound.Literal(Type.INTEGER, places[0])
        return bound.Call(operand.type.fields[places[0]][1], "struct_extract", (operand, at), span=expr.span)

    def with_lambda(self, key: str, expr: syntax.Call) -> bound.Expr:
        """TRANSFORM(l, x -> ..), FILTER(l, x -> ..) and REDUCE(l, beginning, (s, x) -> ..)."""
        *before, last = expr.args
        listed = self._binder.bind(before[0])
        if listed.type.kind == "MAP":
            return self._of_map(key, listed, expr)
        match last:
            case syntax.Lambda(parameters=(syntax.ELEMENT,), body=syntax.Binary(left=compared)) if is_empty_list(
                listed
            ):
                type_ = known_type(self._binder.bind(compared).type)
                listed = coerce(self._session, listed, type_.list_type)
        if listed.type.element is None:
            is_quantified = isinstance(last, syntax.Lambda) and last.parameters == (syntax.ELEMENT,)
            taking = "ALL and ANY take a list or a query" if is_quantified else f"{expr.function} takes a list"
            raise self._session.error(f"{taking}, not {listed.type}", listed.span, "", foreign_hint(expr.function))
        if key == "list_transform" and len(before) > 1:
            raise self._session.error(f"{expr.function} of a list takes one lambda", before[1].span)
        if not isinstance(last, syntax.Lambda):
            example = "(s, x) -> s + x" if key == "list_reduce" else "x -> x + 1"
            raise self._session.error(f"{expr.function} ends with a lambda", last.span, "", f"for example {example}")
        if key != "list_reduce":
            taken = self._lambda(last, (listed.type.element, Type.INTEGER), 1)
            if key == "list_filter":
                return self._filtered(listed, taken, expr)
            return bound.Call(taken.type.list_type, key, (listed, taken), span=expr.span)
        start = typed(self._session, read_literals(self._session, [listed, self._binder.bind(before[1])])[1])
        taken = self._lambda(last, (start.type, listed.type.element), 2)
        wider = common_type([start.type, taken.type])
        if wider is not None and wider is not start.type:
            start = coerce(self._session, start, wider)
            taken = self._lambda(last, (wider, listed.type.element), 2)
        return self._reduced(listed, start, taken, expr)

    def _filtered(self, listed: bound.Expr, test: bound.Lambda, expr: syntax.Call) -> bound.Expr:
        """FILTER, whose lambda is a condition."""
        body = self._binder.boolean(test.body, "the lambda of FILTER")
        return bound.Call(
            listed.type, "list_filter", (listed, replace(test, type=Type.BOOLEAN, body=body)), span=expr.span
        )

    def _reduced(self, listed: bound.Expr, start: bound.Expr, step: bound.Lambda, expr: syntax.Call) -> bound.Expr:
        """REDUCE, whose step gives what it begins with in the same type."""
        body = coerce(self._session, step.body, start.type)
        return bound.Call(
            start.type, "list_reduce", (listed, start, replace(step, type=body.type, body=body)), span=expr.span
        )

    def _of_map(self, key: str, mapped: bound.Expr, expr: syntax.Call) -> bound.Expr:
        """TRANSFORM(m, (k, v) -> .., (k, v) -> ..), FILTER(m, (k, v) -> ..) and REDUCE(m, beginning, (s, k, v) -> ..):
        those of the list of pairs.
        """
        entries = self._binder.apply("map_entries", [mapped], expr)
        pair = entries.type.element
        assert pair is not None
        wanted = expr.args[1:] if key != "list_reduce" else expr.args[2:]
        taken = [w for w in wanted if isinstance(w, syntax.Lambda)]
        if not len(taken) == len(wanted) == (2 if key == "list_transform" else 1):
            example = "(k, v) -> k, (k, v) -> v + 1" if key == "list_transform" else "(k, v) -> v > 1"
            reason = f"{expr.function} of a MAP ends with lambdas of keys and values"
            raise self._session.error(reason, expr.span, "", f"for example {expr.function}(m, {example})")
        if key == "list_reduce":
            start = typed(self._session, self._binder.bind(expr.args[1]))
            (found,) = self._lambdas_of_pairs(taken, pair, (start.type,))
            return self._reduced(entries, start, found, expr)
        found, *more = self._lambdas_of_pairs(taken, pair)
        if key == "list_filter":
            return self._binder.apply("map_from_entries", [self._filtered(entries, found, expr)], expr)
        made = Type.struct((("key", found.type), ("value", more[0].type)))
        body = bound.Call(made, "struct", (found.body, more[0].body), span=expr.span)
        pairs = bound.Call(made.list_type, key, (entries, replace(found, type=made, body=body)), span=expr.span)
        return self._binder.apply("map_from_entries", [pairs], expr)

    def _lambdas_of_pairs(
        self, lambdas: Sequence[syntax.Lambda], pair: Type, before: tuple[Type, ...] = ()
    ) -> list[bound.Lambda]:
        """Lambdas whose last two parameters are the fields of a pair that they are called with."""
        made = []
        for each in lambdas:
            names = each.parameters
            if len(names) != len(before) + 2 or len({n.lower() for n in names}) < len(names):
                raise self._session.error(f"the lambda takes {len(before) + 2} different parameters here", each.span)
            one = replace(each, parameters=(*names[: len(before)], f"{names[-2]}, {names[-1]}"))
            place = len(self.parameters) + len(before)
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
            raise self._session.error(reason, expr.span)
        first, around = len(self.parameters), dict(self.named)
        own = [bound.Parameter(t, first + i, n) for i, (t, n) in enumerate(zip(types, expr.parameters))]
        self.parameters += own
        self.named |= dict(zip(names, own)) | {n.lower(): e for n, e in (others or {}).items()}
        body = typed(self._session, self._binder.bind(expr.body))
        self.parameters = self.parameters[:first]
        self.named = around
        return bound.Lambda(body.type, body, first, expr.parameters, span=expr.span)
