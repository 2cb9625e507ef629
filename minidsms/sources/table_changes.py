"""A table of SQLite or DuckDB as it changes: its rows, then at each look what differs from the look before.

Such a database tells nobody of its changes. So its files are looked at now and then, and where they have been written
to, the table is read again: rows that were there more often before leave, those that are there more often now enter.

Invariants: what a look finds is read in one go, so that it is a state which the table had, and comes at one instant;
what comes and goes between two looks is not seen.
"""

from __future__ import annotations

import base64
import json
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from minidsms.cql.errors import Error
from minidsms.elements import Schema, Type
from minidsms.sources.blocks import Block
from minidsms.sources.database_source import DatabaseSource
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.source import SIGN_COLUMN

_SETTLED_S, _LEAST_OFTEN_S = 0.1, 1.0
"""Files that were written to more lately may be written to again without a later time, and their writer may not have
come to an end; but where they never rest they are looked at so often.
"""
_BUSY = ("lock", "different configuration", "in use")
"""In the words of both databases: somebody is writing."""
Rows = Counter[bytes]
"""Rows as JSON, and how often each is there."""


class TableFollower:
    """Reads a table and its changes. poll_s: how often to look.  stop_after_s: end when nothing changed for so long.

    Error where the database, the table or a column is not there.  See `FeederGoesOn`.
    """

    def __init__(
        self, path: str, kind: str, table: str | None, schema: Schema, poll_s: float, stop_after_s: float | None
    ) -> None:
        self._path, self._kind, self._table, self._schema = path, kind, table, schema
        self._poll_s, self._stop_after_s = poll_s, stop_after_s
        self._stopped = threading.Event()
        self._before = Rows()
        self._open().close()

    def _open(self) -> DatabaseSource:
        return DatabaseSource(self._path, self._kind, self._table, self._schema)

    def position(self, rows: LineRows, block: Block) -> Any:
        return {"line": block.first_line}

    def go_on(self, position: Any) -> str:
        """See `FeederGoesOn`: what the relation holds is what the table was when it was looked at last."""
        names = self._names()
        self._before = Rows(_row(names, map(_value, row)) for row in position["held"]())
        return f"{self._path} is looked at again: what differs from what the relation holds comes as one change"

    def run(self, source: LiveLines) -> None:
        """Put the rows, then what changes, until stopped."""
        rows, line = source.rows(self._path), 1
        texts = {f.name: 0 if f.type in (Type.INTEGER, Type.FLOAT, Type.BOOLEAN) else "" for f in self._schema}
        rows.learn({**texts, SIGN_COLUMN: 0})
        looked_at: Any = None
        changed_s, looked_s = time.monotonic(), -math.inf
        while not self._stopped.is_set():
            written = self._written()
            is_settled = time.time() - max(at for at, _ in written) > _SETTLED_S
            is_due = is_settled or time.monotonic() - looked_s > _LEAST_OFTEN_S
            now = self._look(source) if written != looked_at and is_due else None
            if now is not None:
                looked_at, looked_s = (written if is_settled else None), time.monotonic()
                data = b"".join([*_lines(self._before - now, -1), *_lines(now - self._before, 1)])
                self._before = now
                if data:
                    changed_s = time.monotonic()
                    if not source.inbox.put(rows, Block(data, line)):
                        return
                    line += data.count(b"\n")
            if self._stop_after_s is not None and time.monotonic() - changed_s >= self._stop_after_s:
                return
            self._stopped.wait(self._poll_s)

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Nothing stays open."""

    def _written(self) -> tuple[tuple[float, int], ...]:
        """When the files of the database were written to, and how long they are. Error where there is none."""
        found = []
        for path in (self._path, f"{self._path}-wal", f"{self._path}.wal"):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            found.append((status.st_mtime_ns / 1e9, status.st_size))
        if not found:
            raise Error(f"{self._path}: the database is gone")
        return tuple(found)

    def _look(self, source: LiveLines) -> Rows | None:
        """The table as it is; None while somebody writes."""
        try:
            opened = self._open()
            try:
                return Rows(line for batch in opened.read() for line in self._shown(batch))
            finally:
                opened.close()
        except Error as error:
            if not any(word in str(error).lower() for word in _BUSY):
                raise
            source.note_waiting(error)
            return None

    def _shown(self, batch: Any) -> Iterable[bytes]:
        """The rows of a batch as JSON, without the brace that ends each."""
        names = self._names()
        columns = [map(_value, batch.column(i).to_pylist()) for i in range(len(names))]
        return (_row(names, row) for row in zip(*columns))

    def _names(self) -> list[str]:
        return [json.dumps(field.name) + ": " for field in self._schema]


def _row(names: list[str], values: Iterable[str]) -> bytes:
    return ("{" + ", ".join(map("".join, zip(names, values)))).encode()


def _lines(rows: Rows, sign: int) -> Iterator[bytes]:
    end = b', "%s": %d}\n' % (SIGN_COLUMN.encode(), sign)
    return (row + end for row in rows.elements())


def _value(value: Any) -> str:
    """A value as JSON."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "null"
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, default=str)
    return json.dumps(base64.b64encode(value).decode() if isinstance(value, bytes) else str(value))
