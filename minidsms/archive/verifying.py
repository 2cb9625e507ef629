"""Verification: does every file of an archive keep what the format promises?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.archive.files import in_order, numbers, overlapping, physical_schema, read, read_file
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.archive.storage import below
from minidsms.cql.errors import Error
from minidsms.elements import BoolArray, Int64Array, Type


def verify(archive: Archive, progress: Callable[[float], None] | None = None) -> Iterator[str]:
    """What is wrong, a sentence each; nothing for a sound archive. Every file is read.

    Checked of a file: it can be read and has the columns; its rows are in order, in its partition and within the ranges
    of its name; signs and floats are what they may be. Of the archive: no arrival twice; a relation's deletions cancel
    rows that are there.
    """
    files = archive.files()
    is_readable = True
    for i, file in enumerate(files):
        for reason in _of_file(archive, file):
            is_readable = False
            yield f"{below(archive.folder, file.path)}: {reason}"
        if progress is not None:
            progress((i + 1) / len(files))
    if not is_readable:
        return
    for group in overlapping(files):
        arrivals = np.concatenate([_column(archive, f, "_arrival") for f in group])
        if len(np.unique(arrivals)) < len(arrivals):
            yield f"{below(archive.folder, group[0].path)}: an arrival stands twice"
    if archive.metadata.kind == "relation":
        yield from _of_relation(archive)


def _of_file(archive: Archive, file: ArchiveFile) -> Iterator[str]:
    metadata = archive.metadata
    try:
        physical_schema(archive, file.path)
    except Error as error:
        yield str(error).removeprefix(f"{file.path}: ")
        return
    try:
        tables = list(read_file(archive, file.path, metadata.arrow_schema.names))
        if not tables:
            return
        table = pa.concat_tables(tables)
        ts, arrival = numbers(table, "_ts"), numbers(table, "_arrival")
    except (Error, OSError, pa.ArrowException, UnicodeDecodeError) as error:
        yield f"it cannot be read: {str(error)[:200]}"
        return
    if not in_order(table):
        yield "the rows are not in the order of (_ts, _arrival)"
    if not (file.first_ts <= ts.min() and ts.max() <= file.last_ts):
        yield "a ts lies outside the range in the file's name"
    if not (file.first_arrival <= arrival.min() and arrival.max() <= file.last_arrival):
        yield "an arrival lies outside the range in the file's name"
    if len(np.unique(ts // metadata.partition_ticks)) > 1 or os.path.dirname(file.path) != archive.partition_folder(
        int(ts[0]) // metadata.partition_ticks
    ):
        yield "a ts does not belong to the partition"
    sign = table.column("_sign").to_numpy()
    if not (np.abs(sign) == 1).all() or (metadata.kind == "stream" and (sign != 1).any()):
        yield "a sign is neither +1 nor -1" if metadata.kind == "relation" else "a sign is not +1"
    for field, type_ in zip(metadata.fields, metadata.schema.types):
        if type_ is Type.FLOAT and bool(_is_no_float(table.column(field)).any()):
            yield f"column {field}: a FLOAT is NaN or -0.0"


def _is_no_float(column: pa.ChunkedArray) -> BoolArray:
    values = column.drop_null().to_numpy()
    return np.asarray(np.isnan(values) | ((values == 0) & np.signbit(values)), np.bool_)


def _column(archive: Archive, file: ArchiveFile, name: str) -> Int64Array:
    tables = list(read_file(archive, file.path, [name]))
    return numbers(pa.concat_tables(tables), name) if tables else np.zeros(0, np.int64)


def _of_relation(archive: Archive) -> Iterator[str]:
    """Every deletion cancels a row: the sum of the signs of equal rows never falls below zero."""
    tables = list(read(archive))
    if not tables:
        return
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    codes = np.stack([_codes(table.column(f)) for f in archive.metadata.fields], axis=1)
    _, row = np.unique(codes, axis=0, return_inverse=True)
    row = row.reshape(-1)
    order = np.argsort(row, kind="stable")
    sums = np.cumsum(table.column("_sign").to_numpy()[order].astype(np.int64))
    starts = np.flatnonzero(np.diff(row[order], prepend=-1))
    before = np.where(starts > 0, sums[starts - 1], 0)
    within = sums - np.repeat(before, np.diff(np.append(starts, len(sums))))
    if (within < 0).any():
        at = int(order[within < 0].min())
        yield f"the deletion with arrival {table.column('_arrival')[at].as_py()} cancels no row"


def _codes(column: pa.ChunkedArray) -> Int64Array:
    """A number for each value, equal for equal ones; NULL is -1."""
    chunk = column.combine_chunks()
    if pa.types.is_nested(chunk.type):  # Arrow has no codes for these
        chunk = pa.array([None if value is None else repr(value) for value in chunk.to_pylist()], pa.string())
    if not pa.types.is_dictionary(chunk.type):
        chunk = pc.dictionary_encode(chunk)
    return np.asarray(chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
