"""`frame.write.format("minidsms")` and `writeStream`: elements, with the columns `_ts` and `_sign`, into an archive.

Tasks stage what they are given; the commit, in one process, numbers it, sorts it into the archive's partitions, and
adds all of it in one commit of the archive's log. For raw data, without instants and signs, there is `ingest`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from minidsms.archive.files import pieces, write_piece
from minidsms.archive.format import Archive, Metadata, archives_in, create, default_partition_ticks
from minidsms.archive.progress import Progress
from minidsms.archive.storage import storage_of
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.elements import Field, Schema, Type
from minidsms.settings import length_of_tick
from minidsms.spark.frames import SIGN, TS
from minidsms.values.arrow_types import stored_type

_STAGING = "_write-"
_OWN = (TS, "_arrival", SIGN)
_TYPES: dict[type[T.DataType], Type] = {
    T.DateType: Type.DATE,
    T.LongType: Type.INTEGER,
    T.IntegerType: Type.INTEGER,
    T.ShortType: Type.INTEGER,
    T.ByteType: Type.INTEGER,
    T.DoubleType: Type.FLOAT,
    T.FloatType: Type.FLOAT,
    T.BooleanType: Type.BOOLEAN,
    T.StringType: Type.TEXT,
}


def archive_for(folder: str, name: str, kind: str | None, time_unit: str | None, schema: T.StructType) -> Archive:
    """The archive that frames of these columns are written into; made where it is not there.

    kind, time_unit: of a new one; None: a stream, in milliseconds.  Error where archive and frame do not fit.
    """
    there = next((a.metadata for a in _archives(folder) if a.metadata.name.lower() == name.lower()), None)
    kind = kind or ("stream" if there is None else there.kind)
    time_unit = time_unit or ("ms" if there is None else there.time_unit)
    if kind not in ("stream", "relation"):
        raise Error(f"kind is stream or relation, not {kind!r}")
    tick_ns = length_of_tick(time_unit)
    types = {field.name: _type(field.dataType) for field in schema.fields}
    wanted = (TS, SIGN) if kind == "relation" else (TS,)
    missing = next((name for name in wanted if name not in types), None)
    if missing is not None:
        raise Error(f"an archive of a {kind} takes a column {missing}\nhelp: raw data go into archives by ingest")
    columns: dict[str, Type] = {}
    for column in [column for column in types if column not in _OWN]:
        if (type_ := types[column]) is None:
            shown = schema[column].dataType.simpleString()
            raise Error(f"column {column} is {shown}\nhelp: cast it, instants to ticks")
        columns[column] = type_
    if there is None:
        declared = Schema(tuple(Field(column, type_) for column, type_ in columns.items()))
        return create(folder, Metadata(name, kind, time_unit, declared, default_partition_ticks(tick_ns)))
    # Columns that the archive has keep their places; new ones follow.
    known = {column: columns[column] for column in there.schema.names if column in columns}
    if len(known) < len(there.schema):
        raise Error(f"the frame lacks a column of the archive\nhelp: it has {there.schema}")
    known |= columns
    for field in there.schema:
        comes = known[field.name]
        # Ticks come as whole numbers, which may be FLOAT, too.
        if stored_type(comes) == stored_type(field.type) or (comes, field.type) == (Type.INTEGER, Type.FLOAT):
            known[field.name] = field.type
    declared = Schema(tuple(Field(column, type_) for column, type_ in known.items()))
    ticks = there.partition_ticks
    return create(folder, Metadata(there.name, kind, time_unit, declared, ticks, there.timestamp_by, there.key))


def _type(kind: T.DataType) -> Type | None:
    """The type that a column of a frame has in an archive; None where it has none."""
    inside: list[Type | None] = []
    match kind:
        case T.DecimalType():
            return Type.decimal(kind.precision, kind.scale)
        case T.ArrayType():
            inside = [_type(kind.elementType)]
        case T.MapType():
            inside = [_type(kind.keyType), _type(kind.valueType)]
        case T.StructType():
            inside = [_type(field.dataType) for field in kind.fields]
        case _:
            return _TYPES.get(type(kind))
    known = [type_ for type_ in inside if type_ is not None]
    if len(known) < len(inside) or not known:
        return None
    if isinstance(kind, T.StructType):
        return Type.struct(list(zip(kind.names, known)))
    if isinstance(kind, T.MapType):
        return Type.map(*known) if known[0] in (Type.TEXT, Type.INTEGER) else None
    return known[0].list_type


def _archives(folder: str) -> list[Archive]:
    return archives_in(folder) if storage_of(folder).exists(folder) else []


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task has written; None where it was given nothing."""

    path: str | None


class Staging:
    """Where tasks put what they are given, and how it becomes a commit of the archive's log."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._folder = os.path.join(archive.folder, _STAGING + secrets.token_hex(8))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of a task."""
        batches = list(iterator)
        if not sum(map(len, batches)):
            return Staged(None)
        storage = storage_of(self._folder)
        storage.make_folder(self._folder)
        path = os.path.join(self._folder, f"{secrets.token_hex(8)}.parquet")
        table = elements(self._archive, pa.Table.from_batches(batches))
        storage.write(path, lambda file: parquet.write_table(table, file))
        return Staged(path)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: str) -> None:
        """Add what tasks have staged, unless a batch of this name has been added."""
        staged = [message.path for message in messages if isinstance(message, Staged) and message.path is not None]
        with Writer(self._archive) as writer:
            if batch not in writer.snapshot.batches:
                self._add(writer, staged, batch)
        for folder in {os.path.dirname(path) for path in staged}:
            storage_of(folder).remove_tree(folder)

    def _add(self, writer: Writer, staged: Sequence[str], batch: str) -> None:
        paths: list[str] = []
        end = writer.snapshot.arrivals
        try:
            for path in staged:
                inside, system = storage_of(path).arrow(path)
                with parquet.ParquetFile(inside, filesystem=system) as file:
                    table = file.read().sort_by(TS)
                arrival = pa.array(np.arange(end, end + len(table), dtype=np.int64))
                end += len(table)
                table = table.set_column(1, "_arrival", arrival).cast(self._archive.metadata.arrow_schema)
                paths += [write_piece(self._archive, piece) for piece in pieces(self._archive, table)]
            writer.commit("write", paths, batch=batch)
        except BaseException:
            writer.discard(paths)
            raise
        told = self._archive.progress
        if told is not None and told.arrivals < end:
            self._archive.tell_progress(Progress(end, None))

    def discard(self) -> None:
        """Leave nothing of what has been staged."""
        storage_of(self._folder).remove_tree(self._folder)


class ArchiveWriter(DataSourceArrowWriter):
    """Of a DataFrame. batch: its name, or None."""

    def __init__(self, archive: Archive, batch: str | None) -> None:
        self._staging = Staging(archive)
        self._batch = batch or secrets.token_hex(8)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task."""
        return self._staging.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Add what all tasks have staged."""
        self._staging.commit(messages, self._batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave nothing."""
        self._staging.discard()


class ArchiveStreamWriter(DataSourceStreamArrowWriter):
    """Of a streaming DataFrame: a batch that comes again is known by its number, below the name of the stream."""

    def __init__(self, archive: Archive, stream: str) -> None:
        self._staging = Staging(archive)
        self._stream = stream

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task."""
        return self._staging.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Add what all tasks have staged of a batch, unless it has been."""
        self._staging.commit(messages, f"{self._stream} {batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Leave nothing."""
        self._staging.discard()


def elements(archive: Archive, table: pa.Table) -> pa.Table:
    """Rows of a frame under the columns of an archive; arrivals are to come. Error where a row is no element."""
    metadata = archive.metadata
    ones = pa.array(np.ones(len(table), np.int8))
    signs = table[SIGN].cast(pa.int8()) if SIGN in table.column_names else ones
    if table[TS].null_count:
        raise Error(f"{TS} is NULL in a row")
    least = -1 if metadata.kind == "relation" else 1
    if not pc.all(pc.is_in(signs, pa.array([least, 1], pa.int8()))).as_py():
        raise Error(f"{SIGN} of a {metadata.kind} is {'1 or -1' if least < 0 else '1'}")
    arrays: list[Any] = [table[TS].cast(pa.int64()), pa.array(np.zeros(len(table), np.int64)), signs]
    for name, type_ in zip(metadata.schema.names, metadata.arrow_schema.types[3:]):
        column = table[name].cast(type_, safe=not pa.types.is_floating(type_))
        if pa.types.is_floating(type_):  # no archive has NaN or -0.0 (docs/semantics R4)
            column = pc.add(pc.if_else(pc.is_nan(column), pa.scalar(None, type_), column), 0.0)
        arrays.append(column)
    return pa.table(arrays, names=metadata.arrow_schema.names)
