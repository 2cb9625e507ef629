"""minidsms: continuous queries in CQL over data streams, inside the application's process.

A name is loaded when it is first used: the shell shows its prompt before the engine behind it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minidsms.connection import Connection, connect
    from minidsms.cql.errors import (
        ClosedError,
        CqlError,
        DataError,
        Error,
        LateElementError,
        MemoryLimitError,
        QueryError,
        QueueFullError,
    )
    from minidsms.query import Change, Query
    from minidsms.shell.file_schema import declaration

__version__ = "0.1.0"

__all__ = [
    "Change",
    "ClosedError",
    "Connection",
    "CqlError",
    "DataError",
    "Error",
    "LateElementError",
    "MemoryLimitError",
    "Query",
    "QueryError",
    "QueueFullError",
    "connect",
    "declaration",
]

_HOMES = {
    "Change": "query",
    "Query": "query",
    "Connection": "connection",
    "connect": "connection",
    "declaration": "shell.file_schema",
}


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from minidsms.process.collecting import Uncollected

    with Uncollected():
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'cql.errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
