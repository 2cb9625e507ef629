"""minidsms: continuous queries in CQL over data streams, inside the application's process."""

from __future__ import annotations

from minidsms.connection import Connection, connect
from minidsms.cql.errors import (
    ClosedError,
    CqlError,
    DataError,
    Error,
    LateElementError,
    MemoryLimitError,
    QueryError,
)
from minidsms.query import Change, Query

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
    "connect",
]
