"""Functions and aggregates written in Python, as `create_function` and `create_aggregate` declare them: checked here.

Invariant: a name stands for one thing; built-in functions keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minidsms.cql import syntax
from minidsms.cql.catalog import AggregateDef, Catalog, FunctionDef
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parser import parse_query
from minidsms.elements import Type
from minidsms.statements.arguments import name_of, type_of, types_of


def define_function(
    catalog: Catalog,
    name: str,
    fn: Callable[..., Any],
    arg_types: Sequence[str | Type],
    type: str | Type,
    vectorized: bool,
    fixed: bool,
    hides: bool = False,
) -> None:
    """Declare a function; Error where the name is taken or it cannot be called.

    hides: it may have a name that is built in, as one of a folder that was made before the name was.
    """
    key = _new_name(catalog, name, hides)
    if not callable(fn):
        raise Error(f"function {name}: {fn!r} cannot be called")
    args = types_of(arg_types)
    catalog.functions[key] = FunctionDef(name, fn, args, type_of(type), vectorized, fixed)


def define_aggregate(
    catalog: Catalog,
    name: str,
    cls: Callable[[], Any],
    arg_types: Sequence[str | Type],
    type: str | Type,
    hides: bool = False,
) -> None:
    """Declare an aggregate; Error where the name is taken or the class lacks a method.  hides: as above."""
    key = _new_name(catalog, name, hides)
    for method in ("add", "remove", "result"):
        if not callable(getattr(cls, method, None)):
            raise Error(f"aggregate {name}: {cls!r} has no method {method}; it needs add, remove and result")
    args = types_of(arg_types)
    catalog.aggregates[key] = AggregateDef(name, cls, args, type_of(type))


def _new_name(catalog: Catalog, name: str, hides: bool) -> str:
    if not name_of(name).isidentifier():
        raise Error(f"{name!r} is no name for a function: use letters, digits and _")
    key = name.lower()
    if key in catalog.functions or key in catalog.aggregates:
        raise Error(f'there is a function "{name}" already')
    if not hides and _is_built_in(key):
        raise Error(f'"{name}" is a built-in function; choose another name')
    if not hides and not _is_called(key):
        raise Error(f'"{name}" is a word of CQL; choose another name')
    return key


_WRITTEN_AS_CALLS = ("cube", "extract", "grouping", "rollup", "unnest", "values")


def _is_built_in(key: str) -> bool:
    from minidsms import aggregates
    from minidsms.aggregates import over
    from minidsms.cql.functions import CALLED, FUNCTIONS, SYNONYMS

    scalar, together = (CALLED, FUNCTIONS, SYNONYMS), (aggregates.AGGREGATES, aggregates.SYNONYMS, over.FUNCTIONS)
    return any(key in names for names in (*scalar, *together, _WRITTEN_AS_CALLS))


def _is_called(key: str) -> bool:
    """Whether CQL reads the name in front of parentheses as a function's: not CASE, CAST, DISTINCT, ANY, .."""
    try:
        query = parse_query(f"SELECT {key}(a) AS f FROM S WHERE 1 = {key}(a)")
    except CqlError:
        return False
    match query:
        case syntax.Select(items=[syntax.SelectItem(expr=syntax.Call(function=f))], where=syntax.Binary(right=right)):
            return f.lower() == key and isinstance(right, syntax.Call)
    return False
