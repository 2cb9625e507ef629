"""The answers of a query, as the page shows them: of a relation the present rows, of all the newest changes.

Invariant: looking takes nothing: what the application would fetch, it fetches.  docs/visualizer.md.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minidsms.answers.newest import KEPT
from minidsms.cql.errors import Error
from minidsms.elements import Batch, Schema, Type
from minidsms.shell.instants import Instants
from minidsms.shell.showing import in_order
from minidsms.sinks.lines import json_lists
from minidsms.web.wire import is_number

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query

_SHARE = 0.01
"""Of the time, that reading one answer may take."""


_Kept = tuple["Query", int, float, dict[str, Any]]
"""Of a query so many rows until then, by `time.monotonic`, as they are told."""


class Nowhere:
    """The sink of a query that was registered in the page, whose answers nobody else takes."""

    def __init__(self) -> None:
        self.path = "-"
        self.rows = 0

    def open(self, schema: Schema, codec: Any) -> None:
        """Nothing is needed."""

    def write(self, batch: Batch) -> None:
        """Count."""
        self.rows += len(batch)

    def close(self) -> None:
        """Nothing is held."""

    def discard(self) -> None:
        """Nothing is held."""


def query_named(db: Connection, name: str) -> Query:
    """A running query. Error where there is none."""
    query = db.queries.get(name.lower())
    if query is None:
        raise Error(f"no query {name!r} is running")
    return query


class Answers:
    """Reads answers for the page, no query's more often than SHARE of the time allows."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._kept: dict[str, _Kept] = {}

    def answer(self, name: str, rows: int) -> dict[str, Any]:
        """columns, kind, present rows (of a relation) with how many there are, newest changes, each (ts, sign, row); or
        the error that no such query is running: one that a page shows may be dropped at any time.
        """
        try:
            query = query_named(self._db, name)
            kept = self._kept.get(query.name)
            if kept is None or kept[0] is not query or kept[1] != rows or time.monotonic() >= kept[2]:
                kept = self._keep(query, rows)
        except Error as error:
            return {"name": name, "error": str(error)}
        return kept[3]

    def _keep(self, query: Query, rows: int) -> _Kept:
        """Read an answer, and keep it for as long as it may not be read again."""
        began = time.thread_time()
        answer = self._read(query, max(1, min(rows, KEPT)))
        took_s = time.thread_time() - began
        kept = query, rows, time.monotonic() + took_s / _SHARE, answer
        self._kept = {k: v for k, v in self._kept.items() if k.lower() in self._db.queries} | {query.name: kept}
        return kept

    def _read(self, query: Query, n: int) -> dict[str, Any]:
        instants = Instants(self._db)
        with self._db.lock:
            changes = query.look_on(n)
            total, present = query.present(n) if query.kind == "relation" and query.failure is None else (0, [])
        present = present if query.order else sorted(present, key=in_order)
        types = query.schema.types
        times = instants.show_all([change.ts for change in changes])
        failure = query.failure
        return {
            "name": query.name,
            "kind": query.kind,
            "results": query.results,
            "failure": None if failure is None else f"at {instants.show(failure[0])}: {failure[1]}",
            "columns": [{"name": f.name, "type": str(f.type), "is_number": is_number(f.type)} for f in query.schema],
            "total": total,
            "present": [_cells(row, types, instants) for row in present],
            "changes": [[at, c.ts, c.sign, _cells(c.row, types, instants)] for at, c in zip(times, changes)],
            "is_calendar": instants.are_calendar,
            "tick_ns": self._db.tick_ns,
        }

    def exported(self, name: str, format: str) -> bytes:
        """The present rows, or a stream's newest changes, as csv or parquet."""
        import pyarrow as pa

        query = query_named(self._db, name)
        if query.kind == "relation":
            table = query.arrow()
        else:
            with self._db.lock:
                changes = query.look_on(KEPT)
            table = query.codec.table_of_rows([c.row for c in changes])
            table = table.add_column(0, "_ts", pa.array([c.ts for c in changes], pa.int64()))
        written = io.BytesIO()
        if format == "parquet":
            import pyarrow.parquet as parquet

            parquet.write_table(table, written)
        else:
            import pyarrow.csv as csv

            columns = [json_lists(column.combine_chunks()) for column in table.columns]
            csv.write_csv(pa.Table.from_arrays(columns, table.column_names), written)
        return written.getvalue()


def _cells(row: Sequence[Any], types: Sequence[Type], instants: Instants) -> list[Any]:
    return [_cell(value, type_, instants) for value, type_ in zip(row, types)]


def _cell(value: Any, type_: Type, instants: Instants) -> Any:
    if isinstance(value, str):
        return value[:500]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return instants.timestamp(value) if type_ is Type.TIMESTAMP and value is not None else value
