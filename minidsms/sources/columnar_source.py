"""Parquet and Arrow IPC files: typed columns, read a batch of rows at a time, Parquet ahead of the engine.

Columns are found by case-insensitive name; others are never read. What is read is checked in full first, since an
offset that points elsewhere would be followed. Types are judged by the input manager, value by
value; no row is malformed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.foreign import check_whole
from minidsms.sources.files import LOCAL, Files, OpenFile, cannot_read, open_file, reading
from minidsms.sources.read_ahead import ReadAhead
from minidsms.sources.source import BATCH_ROWS, BaseSource, FileColumn, choose_columns


class ParquetSource(BaseSource):
    """Rows of a Parquet file. See `GoesOn`."""

    def __init__(self, path: str, schema: Schema, relation: bool = False, files: Files = LOCAL) -> None:
        from pyarrow import parquet

        super().__init__(path, schema)
        self.position: Any = None
        self.rejected_before = 0
        self._from = 0
        self._opened = open_file(path, files)
        self.bytes_total = self._opened.size
        self._done = 0.0
        self._ahead: ReadAhead[Any, Any] | None = None
        with reading(path, self.close):
            self._file = parquet.ParquetFile(self._opened.data)
            names = self._file.schema_arrow.names
            self._columns = choose_columns(path, names, schema, relation)

    @property
    def bytes_read(self) -> int:
        """Bytes of the file consumed so far, in proportion to the rows."""
        return int(self.bytes_total * self._done)

    def go_on(self, position: Any) -> str:
        self._from = position["row"]
        there = self._file.metadata.num_rows
        if position["of"] != there:
            raise Error(
                f"{self.path!r} has {there:,} rows, and had {position['of']:,} when it was read up to {self._from:,}\n"
                "help: put that file back; what comes now may be read from another, or pushed"
            )
        return ""

    def _groups(self) -> tuple[list[int], int]:
        """The row groups from the one on in which reading begins, and the row it begins with."""
        metadata, first, group = self._file.metadata, 0, 0
        while group < metadata.num_row_groups and first + metadata.row_group(group).num_rows <= self._from:
            first += metadata.row_group(group).num_rows
            group += 1
        return list(range(group, metadata.num_row_groups)), first

    def close(self) -> None:
        """Give up the file."""
        if self._ahead is not None:
            self._ahead.close()
        self._opened.close()

    def read(self) -> Iterator[Any]:
        """The rows, BATCH_ROWS at a time."""
        total = max(1, self._file.metadata.num_rows)
        groups, rows = self._groups()
        names = [c.name for c in self._columns]
        batches = guarded(
            self.path, self._file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names, use_threads=False)
        )
        if total - rows > 2 * BATCH_ROWS:
            self._ahead = ReadAhead(batches, _as_it_is)
        for batch in batches if self._ahead is None else self._ahead:
            before = min(max(0, self._from - rows), batch.num_rows)
            self.position = {"row": rows + before, "of": self._file.metadata.num_rows}
            rows += batch.num_rows
            self._done = rows / total
            batch = batch.slice(before)
            if batch.num_rows:
                # Columns come back in the file's order.
                by_name = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
                yield checked_batch(self.path, [by_name[c.name] for c in self._columns], self._columns)
        self._done = 1.0
        self.close()


class ArrowSource(BaseSource):
    """Rows of an Arrow IPC file or stream."""

    def __init__(self, path: str, schema: Schema, relation: bool = False, files: Files = LOCAL) -> None:
        from pyarrow import ipc

        super().__init__(path, schema)
        self._opened = _natively(path, files)
        self.bytes_total = self._opened.size
        with reading(path, self.close):
            try:
                self._file: Any = ipc.open_file(self._opened.data)
                self._batches = (self._file.get_batch(i) for i in range(self._file.num_record_batches))
            except pa.ArrowInvalid:
                self._opened.data.seek(0)
                self._file = ipc.open_stream(self._opened.data)
                self._batches = iter(self._file)
            self._columns = choose_columns(path, self._file.schema.names, schema, relation)

    @property
    def bytes_read(self) -> int:
        return self._opened.consumed()

    def close(self) -> None:
        """Give up the file."""
        self._opened.close()

    def read(self) -> Iterator[Any]:
        """The rows, at most BATCH_ROWS at a time."""
        for batch in guarded(self.path, self._batches):
            whole = checked_batch(self.path, [batch.column(c.position) for c in self._columns], self._columns)
            for start in range(0, whole.num_rows, BATCH_ROWS):
                yield whole.slice(start, BATCH_ROWS)
        self.close()


def _natively(path: str, files: Files) -> OpenFile:
    """The file, opened by Arrow itself where it can be: its threads read, and one that still has a file of Python's
    when the interpreter ends would end the process by a signal.
    """
    opened = open_file(path, files)
    if files is not LOCAL or opened.data is not opened.raw:
        return opened
    opened.close()
    try:
        native = pa.OSFile(path)
    except (pa.ArrowException, OSError) as error:
        raise cannot_read(path, error) from None
    return replace(opened, data=native, raw=native)


def _as_it_is(batch: Any) -> Any:
    return batch


def checked_batch(path: str, arrays: list[Any], columns: list[FileColumn]) -> Any:
    """The columns chosen of a batch that others wrote, once all of them are known to be sound."""
    try:
        for array in arrays:
            check_whole(array)
        names = [c.batch_name for c in columns]
        return pa.RecordBatch.from_arrays([_filterable(array) for array in arrays], names=names)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise cannot_read(path, error) from None


def _filterable(array: Any) -> Any:
    """The array as a type from which Arrow can take rows: it cannot from views of texts."""
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def guarded(path: str, batches: Any) -> Iterator[Any]:
    """The batches; a damaged file is an Error that names it."""
    iterator = iter(batches)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return
        except Error:
            raise  # it says what is wrong
        except Exception as error:
            raise cannot_read(path, error) from None
        yield batch
