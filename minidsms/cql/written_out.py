"""Calls of functions and aggregates that are others in other words, written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from minidsms.aggregates import AGGREGATES
from minidsms.cql import syntax
from minidsms.cql.parser import parse_query
from minidsms.functions.written import Written


def written_out(function: Written, call: syntax.Call) -> syntax.Expr:
    """The function's expression with the arguments of the call; what stands in it stands where the call does."""
    parameters, body = next(b for b in function.bodies if len(b[0]) == len(call.args))
    return with_arguments(read_expression(body), dict(zip(parameters, call.args)), call.span)


def with_arguments(body: syntax.Expr, arguments: Mapping[str, syntax.Expr], span: tuple[int, int]) -> syntax.Expr:
    """An expression with arguments in the places of its names; what else is in it stands at the span."""
    written: syntax.Expr = _replaced(body, arguments, span)
    return written


def aggregate_written_out(key: str, call: syntax.Call) -> syntax.Expr | None:
    """An aggregate of ksqlDB, PostgreSQL or Trino as one of ours; None for any other."""
    match key, call.args:
        case "earliest_by_offset" | "latest_by_offset", (*values, syntax.Literal(bool() as ignores)):
            return _at_offset(key, replace(call, args=tuple(values)), ignores)
        case "earliest_by_offset" | "latest_by_offset", _:
            return _at_offset(key, call, True)
        case "approx_percentile", (_, _) if not call.within:  # of Trino
            return replace(call, function="QUANTILE_DISC")
        case "json_agg" | "jsonb_agg", _:
            return syntax.Call("TO_JSON", (replace(call, function="ARRAY_AGG"),), span=call.span)
        case "json_object_agg" | "jsonb_object_agg", (_, _):
            lists = tuple(replace(call, function="ARRAY_AGG", args=(arg,)) for arg in call.args)
            return syntax.Call("TO_JSON", (syntax.Call("MAP_FROM_LISTS", lists, span=call.span),), span=call.span)
    return None


def over_written_out(written: syntax.Expr, over: syntax.Over) -> syntax.Expr:
    """The same of the rows of a frame, given such an aggregate written out and its call with OVER."""
    if not isinstance(written, syntax.Call):
        return written
    if written.function.lower() in AGGREGATES:
        return replace(over, call=written)
    return replace(written, args=tuple(over_written_out(arg, over) for arg in written.args))


def _at_offset(key: str, call: syntax.Call, ignores_nulls: bool) -> syntax.Call:
    function = "FIRST" if key == "earliest_by_offset" else "LAST"
    return replace(call, function=function, nulls="ignore" if ignores_nulls else call.nulls)


@cache
def read_expression(body: str) -> syntax.Expr:
    """An expression of our own."""
    query = parse_query(f"SELECT {body} FROM S")
    assert isinstance(query, syntax.Select)
    return query.items[0].expr


def _replaced(node: Any, arguments: Mapping[str, syntax.Expr], span: tuple[int, int]) -> Any:
    if isinstance(node, tuple):
        return tuple(_replaced(part, arguments, span) for part in node)
    if isinstance(node, syntax.Name) and node.name in arguments:
        return arguments[node.name]
    if not isinstance(node, syntax.Syntax):
        return node
    parts = {f.name: _replaced(getattr(node, f.name), arguments, span) for f in fields(node) if f.name != "span"}
    return replace(node, **parts, span=span)
