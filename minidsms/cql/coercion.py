"""Making types meet: literals are rewritten, everything else gets a Cast (docs/semantics R4).

Invariant: `coerce` returns an expression of exactly the wanted type, or raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from minidsms.cql import bound
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import can_cast, common_type
from minidsms.cql.session import Session
from minidsms.cql.times import NotATime, iso_ticks
from minidsms.elements import Field, Schema, Type
from minidsms.inputs.values import ValueRefused, value_reader
from minidsms.values.coded import fitted
from minidsms.values.types import MOST_DIGITS, known_type

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def coerce(session: Session, expr: bound.Expr, target: Type) -> bound.Expr:
    """The expression as the type, where the implicit conversions reach it; a bare NULL becomes any type."""
    if expr.type is target:
        return expr
    if isinstance(expr, bound.LiteralList):
        return _coerce_list(session, expr, target)
    if target.element is not None and is_empty_list(expr):
        return empty_list(target, expr.span)
    if isinstance(expr, bound.Literal):
        if expr.value is None:
            return replace(expr, type=target)
        if expr.type is Type.INTEGER and target is Type.FLOAT:
            return replace(expr, type=target, value=float(expr.value))
        if expr.type is Type.INTEGER and target in (Type.TIMESTAMP, Type.INTERVAL):
            return replace(expr, type=target)
        if isinstance(expr.value, str) and target in _READ:
            return replace(expr, type=target, value=_read(session, expr.value, target, expr.span))
        if target.kind == "DECIMAL" and isinstance(expr.value, Decimal | int):
            value = fitted(Decimal(expr.value), target)
            if value == expr.value:
                return replace(expr, type=target, value=value)
    if common_type((expr.type, target)) is target:
        return bound.Cast(target, expr, span=expr.span)
    raise _cannot_stand(session, expr, target)


def typed(session: Session, expr: bound.Expr) -> bound.Expr:
    """The expression; a bare NULL as an INTEGER."""
    return coerce(session, expr, known_type(expr.type))


def empty_list(type_: Type, span: tuple[int, int]) -> bound.Expr:
    """`[]` as a list of this type."""
    one = bound.Call(type_, "list_value", (bound.Literal(type_.element or Type.INTEGER, None),))
    return bound.Call(type_, "list_slice", (one, bound.Literal(Type.INTEGER, 2)), span=span)


def is_empty_list(expr: bound.Expr) -> bool:
    """Whether it is `[]`, which is of INTEGER as long as nothing beside it says otherwise."""
    return expr.type.element is not None and replace(expr, span=(0, 0)) == empty_list(expr.type, (0, 0))


def _coerce_list(session: Session, expr: bound.LiteralList, target: Type) -> bound.Expr:
    """As `coerce`, for all literals of a list."""
    if expr.type is Type.INTEGER and target is Type.FLOAT:
        return replace(expr, type=target, values=tuple(map(float, expr.values)))
    if expr.type is Type.INTEGER and target in (Type.TIMESTAMP, Type.INTERVAL):
        return replace(expr, type=target)
    if (expr.type is Type.TEXT and target in _READ) or target.kind == "DECIMAL":
        one = bound.Literal(expr.type, None, span=expr.span)
        read = [coerce(session, exact_number(replace(one, value=v)), target) for v in expr.values]
        if all(isinstance(r, bound.Literal) for r in read):
            return replace(expr, type=target, values=tuple(r.value for r in read if isinstance(r, bound.Literal)))  # type: ignore[misc]
    raise _cannot_stand(session, expr, target)


def _cannot_stand(session: Session, expr: bound.Expr, target: Type) -> CqlError:
    return session.error(
        f"{expr.type} cannot stand where {target} is wanted",
        expr.span,
        f"this is {expr.type}",
        f"convert it: CAST({session.snippet(expr.span) or '..'} AS {target})",
    )


_READ = (Type.TIMESTAMP, Type.DATE, Type.TIME)


def _read(session: Session, text: str, target: Type, span: tuple[int, int]) -> int:
    """A text as TIMESTAMP, DATE or TIME."""
    try:
        if target is Type.TIMESTAMP:
            return iso_ticks(text, session.catalog.tick_ns)
        return int(value_reader(target, session.catalog.tick_ns)(text))
    except NotATime as problem:
        raise session.error(str(problem), span, "", problem.hint or "write it as '2024-05-01 12:30:00'") from None
    except ValueRefused as problem:
        raise session.error(f"'{text}' cannot be read as {target}", span, "", problem.hint) from None


def read_literals(session: Session, exprs: Sequence[bound.Expr]) -> list[bound.Expr]:
    """The expressions; beside a TIMESTAMP, DATE or TIME text literals are read as such, beside a DECIMAL numbers are
    DECIMAL with the digits that are written, and beside another list `[]` is one of its type.
    """
    listed = next((e.type for e in exprs if e.type.element is not None and not is_empty_list(e)), None)
    if listed is not None:
        return [coerce(session, e, listed) if is_empty_list(e) else e for e in exprs]
    time = next((t for t in _READ if any(e.type is t for e in exprs)), None)
    if time is not None:
        is_text = [isinstance(e, bound.Literal | bound.LiteralList) and e.type is Type.TEXT for e in exprs]
        return [coerce(session, e, time) if reads else e for e, reads in zip(exprs, is_text)]
    if any(e.type.kind == "DECIMAL" for e in exprs):
        return [exact_number(e) if isinstance(e, bound.Literal) else e for e in exprs]
    return list(exprs)


def exact_number(literal: bound.Literal) -> bound.Literal:
    """A number as DECIMAL, if it is one of at most 38 digits, or its FLOAT is."""
    value = literal.value
    is_number = literal.type in (Type.INTEGER, Type.FLOAT) and not literal.is_cast
    if not is_number or value is None or value in (math.inf, -math.inf):
        return literal
    for exact in (literal.exact or Decimal(repr(value)), Decimal(repr(value))):
        scale = max(-int(exact.as_tuple().exponent), 0)
        digits = max(exact.adjusted() + 1 + scale, scale, 1)
        if digits <= MOST_DIGITS:
            type_ = Type.decimal(digits, scale)
            return replace(literal, type=type_, value=fitted(exact, type_), exact=None)
    return literal


def agree(session: Session, exprs: Sequence[bound.Expr], what: str) -> list[bound.Expr]:
    """The expressions in their common type; an error about `what` where there is none."""
    read = read_literals(session, exprs)
    common = common_type([e.type for e in read])
    if common is None:
        raise mismatch(session, read, what)
    return [coerce(session, e, common) for e in read]


def mismatch(session: Session, exprs: Sequence[bound.Expr], what: str) -> CqlError:
    """The error for values that have no common type, at the first that differs."""
    first = exprs[0]
    odd = next((e for e in exprs if common_type((first.type, e.type)) is None), exprs[-1])
    return session.error(
        f"{what} {first.type} and {odd.type}",
        odd.span if odd.span != (0, 0) else first.span,
        f"this is {odd.type}",
        unquoted(first, odd)
        or unquoted(odd, first)
        or next(
            (
                f"convert one of them: CAST({session.snippet(this.span) or '..'} AS {other.type})"
                for this, other in ((odd, first), (first, odd))
                if can_cast(this.type, other.type)
            ),
            "",
        ),
    )


def unquoted(number: bound.Expr, text: bound.Expr) -> str:
    """The hint for a number that is written in quotes beside another one; "" where it is none."""
    if not isinstance(text, bound.Literal) or text.type is not Type.TEXT or text.is_cast:
        return ""
    is_one = number.type in (Type.INTEGER, Type.FLOAT) and _NUMBER.fullmatch(str(text.value))
    return f"a number stands without quotes: {text.value}" if is_one else ""


def unfit(session: Session, expr: bound.Expr, target: Type) -> CqlError:
    """The error for a value that a column of the type does not take."""
    found = session.snippet(expr.span) or ".."
    hint = unquoted(bound.Literal(target, None), expr)
    if target is Type.TEXT and isinstance(expr, bound.Literal) and expr.type in (Type.INTEGER, Type.FLOAT):
        hint = f"a text stands in quotes: '{found}'"
    elif can_cast(expr.type, target) and not (expr.type is Type.TEXT and target is not Type.BOOLEAN):
        hint = f"convert it: CAST({found} AS {target})"
    return session.error(f"{expr.type} cannot stand where {target} is wanted", expr.span, f"this is {expr.type}", hint)


def coerce_columns(session: Session, node: bound.Node, types: Sequence[Type], span: tuple[int, int]) -> bound.Node:
    """The relation with its columns as these types."""
    if all(have is want for have, want in zip(node.schema.types, types)):
        return node
    if isinstance(node, bound.Project):
        exprs, below = list(node.exprs), node.input
    else:
        exprs = [bound.ColumnRef(f.type, i, f.name, span=span) for i, f in enumerate(node.schema)]
        below = node
    cast = tuple(coerce(session, e, want) for e, want in zip(exprs, types))
    schema = Schema(tuple(Field(f.name, e.type) for f, e in zip(node.schema, cast)))
    return bound.Project(schema, below, cast)
