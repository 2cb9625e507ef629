"""A table of SQLite, DuckDB or PostgreSQL as a bounded source: its rows as they are when it is read.

Columns are found by case-insensitive name; others are never read. The database is read, and never written.

Invariant: nothing but the table is read, whatever its name says.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from minidsms.cql.errors import Error, shown
from minidsms.cql.masking import masked
from minidsms.elements import Schema, Type
from minidsms.extras import library
from minidsms.sources import postgres
from minidsms.sources.files import open_file, reading
from minidsms.sources.source import BATCH_ROWS, BaseSource, choose_columns
from minidsms.sources.text_columns import arrow_type

DATABASES = ("sqlite", "duckdb")


class DatabaseSource(BaseSource):
    """The rows of a table. kind: one of DATABASES, or "postgresql".  table: None where there is one alone."""

    def __init__(
        self,
        path: str,
        kind: str,
        table: str | None,
        schema: Schema,
        relation: bool = False,
        allow_remote: bool = False,
    ) -> None:
        super().__init__(masked(path), schema)
        self.bytes_total = self.bytes_read = 0
        if kind == "postgresql":
            self._database = postgres.connected(path, allow_remote)
        else:
            open_file(path).close()  # what is not there is told as of any file
            self.bytes_total = os.path.getsize(path)
            self._database = _sqlite(path) if kind == "sqlite" else _duckdb(path)
        with reading(self.path, self.close):
            if kind == "postgresql":
                self._table = postgres.identifier(*postgres.table_named(self._database, self.path, table))
            else:
                self._table = postgres.identifier(_chosen(path, table, self._tables(kind)))
            names = [row[0] for row in self._rows(f"SELECT * FROM {self._table} LIMIT 0").description]
            self._columns = choose_columns(self.path, names, schema, relation)
        self._is_remote = kind == "postgresql"

    def read(self) -> Iterator[Any]:
        """The rows, BATCH_ROWS at a time."""
        types = [*self.schema.types, *[None] * (len(self._columns) - len(self.schema))]
        with reading(self.path):
            found = self._found(types)
            while rows := found.fetchmany(BATCH_ROWS):
                columns = zip(zip(*rows), types, self._columns)
                arrays = [self._array(values, type_, column.name) for values, type_, column in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=[column.batch_name for column in self._columns])
        self.bytes_read = self.bytes_total
        self.close()

    def close(self) -> None:
        """Give up the database."""
        self._database.close()

    def _found(self, types: Sequence[Type | None]) -> Any:
        """A cursor over the rows. PostgreSQL has more types than texts, which it writes as such, and keeps the rows."""
        names = [postgres.identifier(column.name) for column in self._columns]
        if not self._is_remote:
            return self._rows(f"SELECT {', '.join(names)} FROM {self._table}")
        listed = (f"{name}::text" if type_ is Type.TEXT else name for name, type_ in zip(names, types))
        self._rows("BEGIN READ ONLY")
        found = self._database.cursor("minidsms")
        found.execute(f"SELECT {', '.join(listed)} FROM {self._table}")
        return found

    def _rows(self, query: str) -> Any:
        return self._database.execute(query)

    def _tables(self, kind: str) -> list[str]:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        if kind == "duckdb":
            query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"
        return sorted(row[0] for row in self._rows(query).fetchall())

    def _array(self, values: tuple[Any, ...], type_: Type | None, name: str) -> Any:
        """A column as Arrow has it; instants may be times, texts or numbers."""
        is_free = type_ is None or type_ is Type.TIMESTAMP or not type_.is_basic
        try:
            if type_ is Type.BOOLEAN:
                values = tuple(bool(v) if v in (0, 1) else v for v in values)
            if type_ is Type.FLOAT:
                values = tuple(None if v is None else float(v) for v in values)
            return pa.array(values, None if is_free else arrow_type(type_ or Type.TEXT))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            reason = str(error).split("\n")[0]
            raise Error(f"{self.path}: table {self._table}, column {shown(name)}: {reason}") from None


def _sqlite(path: str) -> Any:
    from urllib.request import pathname2url

    return sqlite3.connect(f"file:{pathname2url(os.path.abspath(path))}?mode=ro", uri=True, check_same_thread=False)


def _duckdb(path: str) -> Any:
    duckdb = library("duckdb", "a database of DuckDB", "duckdb")
    with reading(path):
        # A name of a table may else be that of a file.
        return duckdb.connect(path, read_only=True, config={"enable_external_access": "false"})


def _chosen(path: str, table: str | None, tables: list[str]) -> str:
    if table is None and len(tables) == 1:
        return tables[0]
    found = next((name for name in tables if table is not None and name.lower() == table.lower()), None)
    if found is None:
        there = f"there are: {', '.join(tables[:30])}" if tables else "it has no table"
        reason = f"no table {shown(table)}" if table is not None else "it is not said which table is meant"
        raise Error(f"{path}: {reason}\nhelp: WITH (table = 'name'); {there}")
    return found
