"""Parquet and Arrow IPC files: typed columns `_ts`, `_sign`, then the query's.

Batches are gathered into groups of rows of a fixed size, so that the file does not depend on how they came.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import partial
from typing import Any

import pyarrow as pa

from minidsms.answers.results import ResultCodec
from minidsms.cql.errors import Error
from minidsms.elements import Batch, Schema
from minidsms.process.background import Background
from minidsms.sinks.destination import Destination, cannot_write
from minidsms.sinks.sink import Asked

GROUP_ROWS = 131_072


class ColumnarSink:
    """Writes a Parquet or an Arrow IPC file. format: "parquet" or "arrow"."""

    def __init__(self, path: str, format: str) -> None:
        self.path = path
        self.rows = 0
        self.asked: Asked = None
        self.bytes = 0
        self.notes: deque[str] = deque()
        self.format = format
        self._destination: Destination | None = None
        self._codec: ResultCodec | None = None
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._waiting_rows = 0
        self._background = Background()

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Begin the file."""
        self._codec = codec
        self.begin(codec.table(()).schema)

    def begin(self, arrow_schema: Any) -> None:
        """Begin the file, for tables of an Arrow schema."""
        self._destination = Destination(self.path)
        self.notes = self._destination.notes
        try:
            if self.format == "arrow":
                self._writer = pa.ipc.new_file(self._destination.file, arrow_schema)
            else:
                from pyarrow import parquet

                self._writer = parquet.ParquetWriter(self._destination.file, arrow_schema)
        except (OSError, pa.ArrowException) as error:
            self.discard()
            raise cannot_write(self.path, error) from None

    def write(self, batch: Batch) -> None:
        """Take the elements; whole groups of rows are written."""
        assert self._codec is not None
        if len(batch):
            # Decoded now: the dictionary may reclaim the codes of what has been delivered.
            self.add(self._codec.table((batch,)))

    def add(self, table: Any) -> None:
        """Take the rows of a table; whole groups of rows are written."""
        self._waiting.append(table)
        self._waiting_rows += len(table)
        self.rows += len(table)
        if self._waiting_rows >= GROUP_ROWS:
            table = pa.concat_tables(self._waiting)
            whole = len(table) // GROUP_ROWS * GROUP_ROWS
            for start in range(0, whole, GROUP_ROWS):
                group = table.slice(start, GROUP_ROWS)
                self._background.do(partial(self._write, group), GROUP_ROWS)
            self._waiting, self._waiting_rows = [table.slice(whole)], len(table) - whole

    def _write(self, table: Any) -> None:
        try:
            self._writer.write_table(table.combine_chunks())
        except (OSError, pa.ArrowException) as error:
            raise cannot_write(self.path, error) from None

    def close(self) -> None:
        """Write what waits and put the file in its place."""
        destination = self._destination
        if destination is None:
            return
        try:
            self._background.finish()
            if self._waiting_rows:
                self._write(pa.concat_tables(self._waiting))
            self._writer.close()
            self.bytes = destination.file.tell()
        except (OSError, pa.ArrowException) as error:
            self.discard()
            raise cannot_write(self.path, error) from None
        except Error:
            self.discard()
            raise
        self._destination = None
        destination.publish()

    def discard(self) -> None:
        """Leave no file behind."""
        destination, self._destination = self._destination, None
        self._waiting, self._waiting_rows = [], 0
        if destination is not None:
            self._background.close()
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                if self._writer is not None:
                    self._writer.close()  # else it does so when nothing is there to be written to
            destination.discard()
