"""What a query has answered so far, as `tests.long.beside_duckdb` and what it runs compare it with DuckDB's rows."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import minidsms

Row = tuple[Any, ...]
Answer = Counter[Row]

_DIGITS = 6
"""Of FLOAT, compared: DuckDB sums as rows come. Where a value may end in a 5 behind them, it is no use."""
_EPOCH, _TICK = datetime.datetime(1970, 1, 1), datetime.timedelta(milliseconds=1)


def _plain(value: Any) -> Any:
    """A value as both sides have it: instants and durations as ticks, floats to a few digits, without NaN,
    lists as tuples.
    """
    match value:
        case float():
            return None if math.isnan(value) else round(value, _DIGITS)
        case datetime.datetime():
            return (value - _EPOCH) // _TICK
        case datetime.timedelta():
            return value // _TICK
        case list():
            return tuple(map(_plain, value))
        case _:
            return value


def plain(row: Sequence[Any]) -> Row:
    return tuple(map(_plain, row))


class Asked:
    """A query that runs, and ISTREAM or DSTREAM of it; what they have answered so far. sign: of the changes that the
    latter gives, or 0.  number: among those of a connection.
    """

    def __init__(self, db: minidsms.Connection, text: str, sign: int, number: int = 0) -> None:
        self._names = f"asked{number}", f"stream{number}"
        is_relation = db.query(text, name=self._names[0]).kind == "relation"
        self._sign = sign if is_relation else 0
        if self._sign:
            db.query(f"{'ISTREAM' if sign > 0 else 'DSTREAM'} ({text})", name=self._names[1])
        self._net: Answer = Counter()
        self._unlike: Answer = Counter()
        """By instant and row, changes less what the stream has given."""

    def fetch(self, db: minidsms.Connection) -> Answer:
        """The rows that are there by now, or all that a stream has given."""
        for change in db.queries[self._names[0]].fetch():
            row = plain(change.row)
            self._net[row] += change.sign
            if change.sign == self._sign:
                self._unlike[change.ts, row] += 1
        if self._sign:
            for change in db.queries[self._names[1]].fetch():
                self._unlike[change.ts, plain(change.row)] -= 1
        return Counter({row: n for row, n in self._net.items() if n})

    @property
    def difference(self) -> Answer:
        """Between the changes of the query and what the stream has given."""
        return Counter({row: n for row, n in self._unlike.items() if n})
