"""Functions and aggregates written in Python, as `create_function` and `create_aggregate` declare them: checked here.

Invariant: a name stands for one thing; built-in functions keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minidsms.cql.catalog import AggregateDef, Catalog, FunctionDef
from minidsms.cql.errors import Error
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
) -> None:
    """Declare a function; Error where the name is taken or it cannot be called."""
    key = _new_name(catalog, name)
    if not callable(fn):
        raise Error(f"function {name}: {fn!r} cannot be called")
    args = types_of(arg_types)
    catalog.functions[key] = FunctionDef(name, fn, args, type_of(type), vectorized, fixed)


def define_aggregate(
    catalog: Catalog, name: str, cls: Callable[[], Any], arg_types: Sequence[str | Type], type: str | Type
) -> None:
    """Declare an aggregate; Error where the name is taken or the class lacks a method."""
    key = _new_name(catalog, name)
    for method in ("add", "remove", "result"):
        if not callable(getattr(cls, method, None)):
            raise Error(f"aggregate {name}: {cls!r} has no method {method}; it needs add, remove and result")
    args = types_of(arg_types)
    catalog.aggregates[key] = AggregateDef(name, cls, args, type_of(type))


def _new_name(catalog: Catalog, name: str) -> str:
    from minidsms.cql.functions import FUNCTIONS

    if not name_of(name).isidentifier():
        raise Error(f"{name!r} is no name for a function: use letters, digits and _")
    key = name.lower()
    if key in FUNCTIONS:
        raise Error(f'"{name}" is a built-in function; choose another name')
    if key in catalog.functions or key in catalog.aggregates:
        raise Error(f'there is a function "{name}" already')
    return key
