"""What a query was fed and what it answered: the values the definition, the engine and the oracles are compared in."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from minidsms.cql.catalog import AggregateDef, FunctionDef

Value = bool | int | float | str | Decimal | datetime.date | datetime.time | tuple[Any, ...] | None
Row = tuple[Value, ...]

Change = tuple[int, int, Row]
"""(ts, sign, row)."""


class Failure(Exception):
    """The query has no answer from instant `ts` on. `changes` are its answers before, which stand."""

    def __init__(self, ts: int, reason: str, changes: Sequence[Change] = ()) -> None:
        super().__init__(f"at instant {ts}: {reason}")
        self.ts = ts
        self.reason = reason
        self.changes = list(changes)


@dataclass
class History:
    """What has been fed: per stream (ts, row) in arrival order, per relation (ts, sign, row); names in lower case."""

    streams: dict[str, list[tuple[int, Row]]] = field(default_factory=dict)
    relations: dict[str, list[Change]] = field(default_factory=dict)
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateDef] = field(default_factory=dict)
    tick_ns: int = 1_000_000


def net_changes(tau: int, before: Iterable[Row], after: Iterable[Row]) -> list[Change]:
    """The changes that turn one bag into the other."""
    old, new = Counter(before), Counter(after)
    return [(tau, -1, r) for r in (old - new).elements()] + [(tau, +1, r) for r in (new - old).elements()]


def value_order(row: Row) -> tuple[tuple[bool, Value], ...]:
    """Column by column, NULL first."""
    return tuple((value is not None, _plain(value)) for value in row)


def _plain(value: Value) -> Value:
    """A list is ordered as its text."""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, tuple) else value
