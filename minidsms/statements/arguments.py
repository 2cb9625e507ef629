"""What a call of the API is given by name: checked, and refused with a word on what it should have been."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from typing import Any

from minidsms.cql.errors import CqlError, Error
from minidsms.elements import Type

_OF_PYTHON = {
    **{int: "INTEGER", float: "FLOAT", bool: "BOOLEAN", str: "TEXT", datetime.datetime: "TIMESTAMP"},
    **{datetime.timedelta: "INTERVAL", datetime.date: "DATE", datetime.time: "TIME"},
}


def name_of(name: Any) -> str:
    """A name that is a text."""
    if not isinstance(name, str):
        raise Error(f"a name is a text, not {type(name).__name__}")
    return name


def query_name_of(name: Any) -> str:
    """The name of a query; values of parameters are given behind it."""
    if isinstance(name, list | tuple | dict):
        raise Error(f"the second argument is the query's name, not {name!r:.60}; for values write params=..")
    return name_of(name)


def text_of(cql: Any) -> str:
    """CQL that is a text."""
    if not isinstance(cql, str):
        raise Error(f"CQL is a text, not {type(cql).__name__}")
    return cql


def path_of(path: Any) -> str:
    """The path of a file or folder, or an address: a text or a `pathlib.Path`."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(path, str):
        raise Error(f"a path or address is a text or a pathlib.Path, not {type(path).__name__}")
    return path


def types_of(arg_types: Any) -> tuple[Type, ...]:
    """The types of a user function's arguments."""
    if isinstance(arg_types, str) or not isinstance(arg_types, Iterable):
        raise Error(f"argument types are given as a list, such as ['INTEGER'], not as {arg_types!r}")
    return tuple(type_of(t) for t in arg_types)


def type_of(type_: str | Type) -> Type:
    """A type by its CQL name."""
    if isinstance(type_, Type):
        return type_
    if not isinstance(type_, str):
        name = _OF_PYTHON.get(type_, "INTEGER") if isinstance(type_, type) else "INTEGER"
        raise Error(f"a type is given by its name, such as {name!r}, not as {type_!r}")
    from minidsms.cql.parser import parse_type

    try:
        return parse_type(type_)
    except CqlError:
        names = ", ".join(map(str, Type.SCALARS))
        raise Error(f"unknown type {type_!r}; there are: {names}") from None
