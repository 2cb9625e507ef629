"""Tables of elements to the Parquet files of an archive, and back in order.

Invariant: what `write` returns from lasts; `read` gives the elements of a range by (_ts, _arrival), one file or a few
overlapping ones in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.archive.format import OWN_COLUMNS, Archive, ArchiveFile, Metadata, file_name
from minidsms.archive.lost_files import telling_lost
from minidsms.archive.storage import storage_of
from minidsms.cql.errors import Error
from minidsms.elements import Int64Array, Type
from minidsms.inputs.foreign import check_whole
from minidsms.sources.columnar_source import guarded

GROUP_ROWS = 131_072
"""Rows of a row group: what a filter on time may skip."""

FILE_ROWS = 4_000_000
"""Rows of a file at most."""

_FILES_AT_ONCE = 32
_AT_ONCE = 32_768
"""Values that the Parquet writer encodes between two looks at a page's size."""
_ORDER = [("_ts", "ascending"), ("_arrival", "ascending")]


def write(archive: Archive, table: pa.Table, file_rows: int = FILE_ROWS) -> list[str]:
    """Write elements, in any order, as new files in one commit; returns their paths.

    table: the columns of `Metadata.arrow_schema`. Raises OSError where the disk does not take them.
    """
    from minidsms.archive.writer import Writer

    with Writer(archive) as writer:
        paths = [write_piece(archive, piece) for piece in pieces(archive, table, file_rows)]
        writer.commit("archive", paths)
    return paths


def pieces(archive: Archive, table: pa.Table, file_rows: int = FILE_ROWS) -> list[pa.Table]:
    """Elements, given in any order, as tables that may each become a file: ordered, and of one partition."""
    if not len(table):
        return []
    if not in_order(table):
        table = table.sort_by(_ORDER)
    partition = np.floor_divide(numbers(table, "_ts"), archive.metadata.partition_ticks)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(partition)) + 1, [len(partition)]))
    return [
        table.slice(begin, min(file_rows, stop - begin))
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist())
        for begin in range(start, stop, file_rows)
    ]


def write_piece(archive: Archive, table: pa.Table) -> str:
    """Write one of the `pieces` as a file, to be committed; its path."""
    folder = archive.partition_folder(int(numbers(table, "_ts")[0]) // archive.metadata.partition_ticks)
    storage = storage_of(folder)
    storage.make_folder(folder)
    path = os.path.join(folder, name_of(table))
    storage.write(path, lambda file: write_parquet(archive, file, table))
    return path


def name_of(table: pa.Table) -> str:
    """A name for a file of these ordered elements."""
    ts, arrival = numbers(table, "_ts"), numbers(table, "_arrival")
    return file_name(int(ts[0]), int(ts[-1]), int(arrival.min()), int(arrival.max()))


def write_parquet(archive: Archive, file: IO[bytes], table: pa.Table) -> None:
    """The elements as Parquet. Texts that are coded are written so."""
    from pyarrow import parquet

    metadata = archive.metadata
    texts = [f for f, t in zip(metadata.fields, metadata.schema.types) if t is Type.TEXT]
    schema = metadata.arrow_schema
    for i, type_ in enumerate(table.schema.types):
        if pa.types.is_dictionary(type_):
            schema = schema.set(i, schema.field(i).with_type(type_))
    parquet.write_table(
        table.cast(schema),
        file,
        row_group_size=GROUP_ROWS,
        compression="lz4",
        use_dictionary=texts,
        # Whole numbers by their differences: smaller, and faster to write and to read than plain ones.
        column_encoding={f.name: "DELTA_BINARY_PACKED" for f in schema if pa.types.is_int64(f.type)},
        write_batch_size=_AT_ONCE,
        store_schema=False,
    )


def read(
    archive: Archive,
    from_: int | None = None,
    to: int | None = None,
    fields: Sequence[str] | None = None,
    where: pc.Expression | None = None,
) -> Iterator[pa.Table]:
    """The elements with from_ <= ts <= to in the order of (_ts, _arrival), a row group or so at a time.

    fields: data columns, in the order wanted (default: all); `_ts`, `_arrival` and `_sign` come first.  where: an
    expression over the file's columns; what it rejects is not given, and where statistics tell, not read.  TEXT comes
    as dictionaries of strings.
    """
    return read_files(archive, archive.files(from_, to), fields, within("_ts", from_, to, where))


def within(column: str, low: int | None, high: int | None, where: pc.Expression | None = None) -> pc.Expression | None:
    """The condition that low <= column <= high, and `where`; None where nothing is asked."""
    parts = [] if where is None else [where]
    if low is not None:
        parts.append(pc.field(column) >= low)
    if high is not None:
        parts.append(pc.field(column) <= high)
    whole = None
    for part in parts:
        whole = part if whole is None else whole & part
    return whole


def read_files(
    archive: Archive, files: Sequence[ArchiveFile], fields: Sequence[str] | None = None, where: Any = None
) -> Iterator[pa.Table]:
    """The elements of these files, which are ordered by first ts, in the order of (_ts, _arrival)."""
    columns = [*OWN_COLUMNS, *(archive.metadata.fields if fields is None else fields)]
    # Files that follow one another are read as one, so that the next is fetched before it is needed.
    row: list[str] = []
    for group in overlapping(files):
        if len(group) == 1:
            row.append(group[0].path)
            if len(row) == _FILES_AT_ONCE:
                yield from read_file(archive, row, columns, where)
                row = []
            continue
        if row:
            yield from read_file(archive, row, columns, where)
            row = []
        parts = list(read_file(archive, [file.path for file in group], columns, where))
        if parts:
            table = pa.concat_tables(parts).unify_dictionaries().sort_by(_ORDER)
            for start in range(0, len(table), GROUP_ROWS):
                yield table.slice(start, GROUP_ROWS)
    if row:
        yield from read_file(archive, row, columns, where)


def overlapping(files: Sequence[ArchiveFile]) -> Iterator[list[ArchiveFile]]:
    """The files, given by first ts, in groups that must be read together: no two groups interleave in their order."""
    group: list[ArchiveFile] = []
    last: tuple[int, int] = (0, 0)
    for file in files:
        if group and (file.first_ts, file.first_arrival) > last:
            yield group
            group = []
        end = (file.last_ts, file.last_arrival)
        last = max(last, end) if group else end
        group.append(file)
    if group:
        yield group


def read_file(
    archive: Archive, paths: str | list[str], columns: Sequence[str], where: Any = None
) -> Iterator[pa.Table]:
    """The elements of a file, or of several one after the other, each in its order. Error where one is damaged."""
    metadata = archive.metadata
    if archive.end_arrival is not None:
        where = within("_arrival", None, archive.end_arrival - 1, where)
    if not metadata.has_widened:
        yield from _scanned(archive, paths, metadata.arrow_schema, columns, where)
        return
    for path in [paths] if isinstance(paths, str) else paths:
        there = physical_schema(archive, path)
        if _fits(there, metadata):
            yield from _scanned(archive, path, metadata.arrow_schema, columns, where)
            continue
        # Whole numbers become the nearest FLOAT, as when they are pushed; only then can they be compared.
        for table in _scanned(archive, path, there, there.names, None):
            table = widened(table, metadata)
            table = (table if where is None else table.filter(where)).select(list(columns))
            if len(table):
                yield table


def _scanned(
    archive: Archive, paths: str | list[str], schema: pa.Schema, columns: Sequence[str], where: Any
) -> Iterator[pa.Table]:
    """The rows of files, read under a schema. What a file lacks is NULL."""
    from pyarrow import dataset

    texts = {f.name for f in schema if pa.types.is_string(f.type)} & set(columns)
    # A text that repeats is then decoded once.
    options = dataset.ParquetReadOptions(dictionary_columns=texts)
    coded = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([f.with_type(coded) if f.name in texts else f for f in schema])

    def batches() -> Iterator[Any]:
        inside, system = _for_arrow(paths)
        form = dataset.ParquetFileFormat(read_options=options)
        chosen = where
        if where is not None and "_ts" in columns:
            chosen = where | dataset.field("_ts").is_null()  # rows that no file of the archive has are told below
        with telling_lost(archive, [paths] if isinstance(paths, str) else paths):
            source = dataset.dataset(inside, schema=schema, format=form, filesystem=system)
            for batch in source.scanner(columns=list(columns), filter=chosen, batch_size=GROUP_ROWS).to_batches():
                check_whole(batch)
                yield batch

    for batch in guarded(archive.folder, batches()):
        if batch.num_rows:
            for name in OWN_COLUMNS:
                if name in columns and batch.column(name).null_count:
                    hint = "minidsms archive verify says which"
                    raise Error(f"a file of the archive {archive.folder!r} lacks {name} in some rows\nhelp: {hint}")
            yield pa.Table.from_batches([batch])


def _for_arrow(paths: str | list[str]) -> tuple[str | list[str], Any]:
    """Files of one storage as pyarrow takes them; see `Storage.arrow`."""
    if isinstance(paths, str):
        return storage_of(paths).arrow(paths)
    found = [storage_of(path).arrow(path) for path in paths]
    return [inside for inside, _ in found], found[0][1]


def physical_schema(archive: Archive, path: str) -> pa.Schema:
    """Which of the schemas of an archive a file has, by its footer. Error where it has none of them."""
    from pyarrow import parquet

    try:
        with telling_lost(archive, [path]):
            inside, system = storage_of(path).arrow(path)
            there = parquet.read_schema(inside, filesystem=system)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise Error(f"{path}: it cannot be read: {str(error)[:200]}") from None
    columns = {f.name: f.type for f in there}
    for schema in archive.metadata.arrow_schemas:
        if columns == {f.name: f.type for f in schema}:
            return schema
    raise Error(f"{path}: the columns are {', '.join(there.names)}")


def _fits(schema: pa.Schema, metadata: Metadata) -> bool:
    """Whether the columns that are there have the types of today."""
    now = metadata.arrow_schema
    return all(now.field(f.name).type == f.type for f in schema)


def widened(table: pa.Table, metadata: Metadata) -> pa.Table:
    """Rows of an earlier schema under that of today."""
    arrays = []
    for field in metadata.arrow_schema:
        if field.name not in table.column_names:
            type_ = pa.dictionary(pa.int32(), field.type) if pa.types.is_string(field.type) else field.type
            arrays.append(pa.chunked_array([pa.nulls(len(table), type_)]))
        elif pa.types.is_floating(field.type):
            arrays.append(table.column(field.name).cast(field.type, safe=False))
        else:
            arrays.append(table.column(field.name))
    return pa.table(arrays, names=metadata.arrow_schema.names)


def ranges_below(file: ArchiveFile, end_arrival: int) -> ArchiveFile | None:
    """The ranges of those elements of a file that arrived before; None where there are none."""
    from pyarrow import parquet

    try:
        inside, system = storage_of(file.path).arrow(file.path)
        with parquet.ParquetFile(inside, filesystem=system) as whole:
            table = whole.read(columns=["_ts", "_arrival"])
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise Error(f"{file.path}: it cannot be read: {str(error)[:200]}") from None
    table = table.filter(pc.field("_arrival") < end_arrival)
    if not len(table):
        return None
    ts, arrival = numbers(table, "_ts"), numbers(table, "_arrival")
    ranges = (int(ts.min()), int(ts.max()), int(arrival.min()), int(arrival.max()))
    return ArchiveFile(file.path, *ranges, file.statistics)


def numbers(table: pa.Table, column: str) -> Int64Array:
    """A column of integers without NULLs as an array; Error where a damaged file has some."""
    if table.column(column).null_count:
        raise Error(f"column {column} has NULLs")
    values: Int64Array = table.column(column).to_numpy()
    return values


def in_order(table: pa.Table) -> bool:
    """The elements stand in the order of (_ts, _arrival)."""
    ts, arrival = numbers(table, "_ts"), numbers(table, "_arrival")
    falls = (ts[1:] < ts[:-1]) | ((ts[1:] == ts[:-1]) & (arrival[1:] < arrival[:-1]))
    return not bool(falls.any())
