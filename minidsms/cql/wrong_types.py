"""Calls of functions whose arguments have types that they do not take: what is wrong, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from minidsms.cql import bound, syntax
from minidsms.cql.coercion import mismatch, unquoted
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import FUNCTIONS, can_cast, common_type
from minidsms.cql.scope import listing
from minidsms.cql.session import Session
from minidsms.cql.times import UNIT_NS
from minidsms.elements import Type
from minidsms.functions.calendar import PARTS
from minidsms.functions.function import Function

LENGTHS = "write EXTRACT(EPOCH FROM x), its seconds, or x / INTERVAL '1' MINUTE, how many whole minutes it has"

_OF_INSTANTS = {
    "timestamptostring": "a TIMESTAMP is written by FORMAT_TIMESTAMP(t, pattern)",
    "datetostring": "a DATE is written by FORMAT_DATE(d, pattern)",
    "from_unixtime": "a TIMESTAMP is one already",
}
"""Functions that elsewhere take what is an INTEGER there, and a TIMESTAMP or DATE here."""


def wrong_types(session: Session, function: Function, args: Sequence[bound.Expr], place: syntax.Syntax) -> CqlError:
    """Why the function cannot take the arguments. place: of the call."""
    name = function.name if not function.name[0].isalpha() else function.name.upper()
    if function.takes == FUNCTIONS["="].takes:
        listed = next((a for a in args if a.type.is_nested), None)
        if listed is not None and common_type([a.type for a in args]) is not None:
            reason = f"{'lists' if listed.type.element else f'{listed.type.kind}s'} have no order, for {name}"
            raise session.error(reason, listed.span, f"this is {listed.type}")
        collects = function.name in ("coalesce", "least", "greatest", "nullif")
        verb = f"{function.name.upper()} cannot bring together" if collects else "cannot compare"
        return mismatch(session, args, verb)
    given = listing(str(a.type) for a in args)
    span = place.span if place.span != (0, 0) else args[0].span
    hint = _conversion(session, function, args)
    if function.name == "+" and all(a.type is Type.TEXT for a in args):
        hint = "texts are put together with ||"
    elif function.name == "list_contains" and args[0].type is Type.TEXT:
        hint = "what stands behind IN is a list or in parentheses: x IN ('a', 'b'); part of a text is CONTAINS(t, 'a')"
    elif function.name == "element_at" and [a.type for a in args] == [Type.TEXT] * 2:
        hint = "a member of JSON is j -> 'a', or as text j ->> 'a'"
    elif function.name == "element_at" and args[0].type is Type.BOOLEAN:
        hint = "write REGEXP_EXTRACT(text, 'pattern', 1), the first group of the match"
    elif function.name == "substring" and [a.type for a in args[:2]] == [Type.TEXT] * 2:
        hint = f"write REGEXP_EXTRACT({', '.join(session.snippet(a.span) for a in args[:2])}, 1)"
    elif function.name == "generate_series" and any(a.type in (Type.TIMESTAMP, Type.DATE) for a in args):
        hint = "write LIST_TRANSFORM(GENERATE_SERIES(0, 23), i -> TIMESTAMP '2024-05-01' + i * INTERVAL '1 hour')"
    elif function.name == "to_timestamp" and args[0].type is Type.TEXT:
        hint = f"write CAST({session.snippet(args[0].span) or 't'} AS TIMESTAMP), or TO_TIMESTAMP(text, pattern)"
    elif function.name == "trunc" and args[0].type in (Type.TIMESTAMP, Type.DATE):
        hint = "write DATE_TRUNC('hour', t)"
    elif function.takes == "BOOLEAN":
        hint = "compare it with something, as in x <> 0"
    elif function.name in PARTS.values() and args[0].type is Type.INTERVAL:
        hint = LENGTHS
        if function.name in UNIT_NS:
            hint = f"write x / INTERVAL '1' {function.name.upper()}, an INTEGER"
    return session.error(f"{name} takes {function.takes}, not {given}", span, "", hint)


@contextmanager
def naming_call(session: Session, function: Function, call: syntax.Call) -> Iterator[None]:
    """What cannot be taken by a function that this one is in other words is said of this one."""
    try:
        yield
    except CqlError as error:
        if error.span == call.span and " takes " in error.reason:
            reason = f"{function.name.upper()} takes {function.takes}"
            hint = error.hint or _OF_INSTANTS.get(function.name, "")
            raise session.error(reason, call.span, "", hint) from None
        raise


def _conversion(session: Session, function: Function, args: Sequence[bound.Expr]) -> str:
    """What makes of one argument, or of all texts, what the function takes."""
    wants_text = "TEXT" in function.takes
    odd = [i for i, a in enumerate(args) if (a.type is Type.TEXT) != wants_text and a.type is not Type.NULL]
    beside = sorted({a.type for a in args} & {Type.INTEGER, Type.FLOAT, Type.TIMESTAMP}, key=str)
    for changed in (*((i,) for i in odd), tuple(odd)):
        for target in [Type.TEXT] if wants_text else [*beside, Type.FLOAT, Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL]:
            signature = function.resolve([target if i in changed else a.type for i, a in enumerate(args)])
            if signature is None or any(signature.args[i] is not target for i in changed):
                continue
            first = args[changed[0]]
            written = session.snippet(first.span) or ".."
            if plain := unquoted(bound.Literal(target, None), first):
                return plain
            if can_cast(first.type, target):
                return f"convert it: CAST({written} AS {target})"
            if isinstance(first, bound.Literal):
                return f"write {target} {written}"
    return ""
