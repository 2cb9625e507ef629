"""Tables of TPC-H in an engine, and answers compared: floats to nine digits, for a sum depends on its order."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import minidsms
from benchmarks.tpch.queries import VIEW
from benchmarks.tpch.tables import DECLARATIONS

_EPOCH = datetime.datetime(1970, 1, 1)


def loaded(db: minidsms.Connection, tables: dict[str, pa.Table]) -> minidsms.Connection:
    """The connection with the tables declared, as relations, and filled."""
    for name, columns in DECLARATIONS.items():
        db.execute(f"CREATE RELATION {name} ({columns})")
    db.execute(VIEW)
    for name, table in tables.items():
        db.push(name, table, ts=1)
    return db


def is_same(a: Sequence[tuple[Any, ...]], b: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two answers hold the same rows; a date is a datetime or ticks of a millisecond."""
    left, right = (sorted((tuple(map(_plain, row)) for row in rows), key=_coarse) for rows in (a, b))
    return len(left) == len(right) and all(map(_is_like, left, right))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // datetime.timedelta(milliseconds=1)
    return float(value) if hasattr(value, "as_tuple") else value  # a Decimal


def _coarse(row: tuple[Any, ...]) -> tuple[str, ...]:
    """An order in which rows that are the same stand at the same place."""
    return tuple(str(v) for v in row if not isinstance(v, float)) + tuple(
        f"{v:.6g}" for v in row if isinstance(v, float)
    )


def _is_like(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(
        math.isclose(x, y, rel_tol=1e-9) if isinstance(x, float) and isinstance(y, float | int) else x == y
        for x, y in zip(a, b)
    )
