"""A part of an archive as a source: record batches in the order of event time, with only what is needed in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from minidsms.archive.conditions import arrow_condition, needed
from minidsms.archive.demand import Condition, Demand
from minidsms.archive.files import numbers, read_file, read_files, within
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN, BaseSource


@dataclass(frozen=True)
class Span:
    """Which elements: from_ <= ts <= to (None: no bound) and first_arrival <= arrival < end_arrival."""

    from_: int | None
    to: int | None
    first_arrival: int
    end_arrival: int


Tables = Callable[[Archive, Sequence[ArchiveFile], Span, Sequence[str], Condition | None, Sequence[str]], Iterator[Any]]
"""Gives the elements of a span as tables in order: `local_tables`, or Spark's. Arguments: the archive, the files that
may hold them, the span, the fields wanted, the condition on rows, and the fields its columns mean.
"""


def local_tables(
    archive: Archive,
    files: Sequence[ArchiveFile],
    span: Span,
    fields: Sequence[str],
    condition: Condition | None,
    condition_fields: Sequence[str],
) -> Iterator[pa.Table]:
    """Through pyarrow."""
    where = None if condition is None else arrow_condition(condition, condition_fields)
    if any(f.first_arrival < span.first_arrival or f.last_arrival >= span.end_arrival for f in files):
        where = within("_arrival", span.first_arrival, span.end_arrival - 1, where)
    if any(span.from_ is not None and f.first_ts < span.from_ for f in files):
        where = within("_ts", span.from_, None, where)
    if any(span.to is not None and f.last_ts > span.to for f in files):
        where = within("_ts", None, span.to, where)
    return read_files(archive, files, fields, where)


class ReplaySource(BaseSource):
    """A span of an archive, as a source of an input with this schema.

    Columns that are not demanded are NULL, but for the one that the input is timed by, which is `_ts`.

    last_ts: once read, the greatest ts of the span, with the rows left out.
    position: of the table that was read last, the ts and arrival of its first element; see `sources.source.GoesOn`.
    """

    rejected_before = 0

    def __init__(
        self,
        archive: Archive,
        schema: Schema,
        span: Span,
        demand: Demand,
        tables: Tables,
        timestamp_by: int | None = None,
    ) -> None:
        super().__init__(archive.folder, schema)
        self.is_stream = archive.metadata.kind == "stream"
        self.last_ts: int | None = None
        self.position: dict[str, int] | None = None
        self._begins: tuple[int, int] | None = None
        self._archive = archive
        self._span = span
        self._demand = demand
        self._tables = tables
        self._timestamp_by = timestamp_by
        self._files = [
            f
            for f in archive.files(span.from_, span.to)
            if f.last_arrival >= span.first_arrival and f.first_arrival < span.end_arrival
        ]
        self._first = min((f.first_ts for f in self._files), default=0)
        self.bytes_total = max((f.last_ts for f in self._files), default=self._first) - self._first + 1
        self._reached = self._first

    @property
    def bytes_read(self) -> int:
        """How much of the time of the span has been read."""
        return self._reached - self._first

    def first_ts(self) -> int | None:
        """The least instant that may come, None where nothing comes."""
        if not self._files:
            return None
        return self._first if self._span.from_ is None else max(self._first, self._span.from_)

    def go_on(self, position: Any) -> str:
        """See `GoesOn`: begin with an element. Error, when it is read, where the archive has it no more."""
        self._begins = position["ts"], position["arrival"]
        self._first = self._reached = max(self._first, position["ts"])
        return ""

    def close(self) -> None:
        """Nothing is held open between batches."""

    def read(self) -> Iterator[pa.RecordBatch]:
        """The elements: the schema's columns, `_ts`, and for a relation `_sign`."""
        if not self._files and self._begins is None:
            return
        metadata = self._archive.metadata
        by_name = {n.lower(): f for n, f in zip(metadata.schema.names, metadata.fields)}
        fields = [by_name[name.lower()] for name in self.schema.names]
        wanted = [fields[i] for i in sorted(self._demand.columns)]
        own = [TS_COLUMN] if self.is_stream else [TS_COLUMN, SIGN_COLUMN]
        names = [*self.schema.names, *own]
        condition = self._demand.condition
        files, span = needed(self._files, condition, fields), self._span
        if self._begins is not None:
            files = [file for file in files if file.last_ts >= self._begins[0]]
            span = replace(span, from_=self._begins[0])
        for table in self._tables(self._archive, files, span, wanted, condition, fields):
            table = self._behind(table)
            n = len(table)
            if not n:
                continue
            whole = table.combine_chunks()
            self.position = {name: table.column(f"_{name}")[0].as_py() for name in ("ts", "arrival")}
            arrays = [_only(whole, f) if i in self._demand.columns else pa.nulls(n) for i, f in enumerate(fields)]
            if self._timestamp_by is not None and self._timestamp_by not in self._demand.columns:
                arrays[self._timestamp_by] = _only(whole, TS_COLUMN)
            arrays += [_only(whole, name) for name in own]
            self._reached = arrays[len(fields)][n - 1].as_py()
            yield pa.RecordBatch.from_arrays(arrays, names=names)
        if self._begins is not None:
            raise self._shorter()
        self.last_ts = self._last_ts()

    def _behind(self, table: pa.Table) -> pa.Table:
        """What is to be read of a table. Error where the first of it is not the element to begin with."""
        if self._begins is None:
            return table
        ts, arrival = self._begins
        before = int(((numbers(table, "_ts") == ts) & (numbers(table, "_arrival") < arrival)).sum())
        table = table.slice(before)
        if len(table):
            if (table.column("_ts")[0].as_py(), table.column("_arrival")[0].as_py()) != self._begins:
                raise self._shorter()
            self._begins = None
        return table

    def _shorter(self) -> Error:
        return Error(
            f"the archive {self.path!r} lacks elements that were being replayed when the process ended\n"
            "help: give it back the files that it had then"
        )

    def _last_ts(self) -> int | None:
        """The greatest ts of the span, whether its rows are needed or not."""
        span = self._span
        greatest: int | None = None
        for file in sorted(self._files, key=lambda f: f.last_ts, reverse=True):
            if greatest is not None and file.last_ts <= greatest:
                break
            is_whole = (
                (span.to is None or file.last_ts <= span.to)
                and span.first_arrival <= file.first_arrival
                and file.last_arrival < span.end_arrival
            )
            if is_whole:
                greatest = file.last_ts if greatest is None else max(greatest, file.last_ts)
                continue
            where = within("_arrival", span.first_arrival, span.end_arrival - 1, within("_ts", span.from_, span.to))
            tables = list(read_file(self._archive, file.path, [TS_COLUMN], where))
            for table in tables:
                last = int(numbers(table, TS_COLUMN).max())
                greatest = last if greatest is None else max(greatest, last)
        return greatest


class GivenSource(BaseSource):
    """Elements that an archive has held, as a source of an input. read: gives them as `ReplaySource.read` does.

    last_ts: the greatest ts of the archive, with the rows left out.
    """

    bytes_total = bytes_read = 0

    def __init__(self, path: str, schema: Schema, read: Callable[[], Iterator[pa.RecordBatch]], last_ts: int | None):
        super().__init__(path, schema)
        self.read = read
        self.last_ts = last_ts

    def close(self) -> None:
        """Nothing is held open."""


def _only(table: pa.Table, name: str) -> pa.Array:
    """A column that is in one piece."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
