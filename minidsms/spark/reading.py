"""Replay through Spark: it filters, projects and sorts an archive; Arrow tables come back, a slice of time at a time.

Invariant: the driver holds two slices at most, the one that is being replayed and the one that is being fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minidsms.archive.conditions import spark_condition
from minidsms.archive.demand import Condition
from minidsms.archive.files import GROUP_ROWS, overlapping
from minidsms.archive.format import OWN_COLUMNS, Archive, ArchiveFile
from minidsms.archive.replay_source import Span
from minidsms.cql.errors import Error
from minidsms.elements import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLICE_BYTES = 128 << 20
"""Bytes of the files of a slice, about."""

_TYPES = {Type.FLOAT: "double", Type.BOOLEAN: "boolean", Type.TEXT: "string"}


def spark_tables(
    archive: Archive,
    files: Sequence[ArchiveFile],
    span: Span,
    fields: Sequence[str],
    condition: Condition | None,
    condition_fields: Sequence[str],
) -> Iterator[pa.Table]:
    """The elements of a span as tables in order; see `archive.replay_source.Tables`."""
    from pyspark.sql import functions

    from minidsms.spark.session import session

    spark = session()

    def fetch(part: Sequence[ArchiveFile]) -> pa.Table:
        frame = data_frame(spark, archive, part)
        ts, arrival = functions.col("_ts"), functions.col("_arrival")
        wanted = (arrival >= span.first_arrival) & (arrival < span.end_arrival)
        if span.from_ is not None:
            wanted &= ts >= span.from_
        if span.to is not None:
            wanted &= ts <= span.to
        if condition is not None:
            wanted &= spark_condition(condition, condition_fields)
        columns = [quoted(name) for name in (*OWN_COLUMNS, *fields)]
        table: pa.Table = frame.filter(wanted).select(*columns).orderBy("_ts", "_arrival").toArrow()
        return table

    parts = list(_slices(files))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(fetch, parts[0]) if parts else None
        for i in range(len(parts)):
            assert coming is not None
            table = coming.result()
            coming = pool.submit(fetch, parts[i + 1]) if i + 1 < len(parts) else None
            for start in range(0, len(table), GROUP_ROWS):
                yield table.slice(start, GROUP_ROWS)


def data_frame(spark: SparkSession, archive: Archive, files: Sequence[ArchiveFile]) -> DataFrame:
    """Files of an archive as a DataFrame with the columns `_ts`, `_arrival`, `_sign` and the data's, in no order."""
    if any(os.path.basename(f.path).startswith(".") for f in files):
        raise Error(
            f"a compaction of {archive.folder!r} was cut short\nhelp: minidsms archive compact {archive.folder}"
        )
    return spark.read.schema(schema(archive)).parquet(*[f"file://{os.path.abspath(f.path)}" for f in files])


def schema(archive: Archive) -> Any:
    """The columns of an archive's files, as Spark sees them."""
    columns = ["_ts bigint", "_arrival bigint", "_sign tinyint"]
    for name, type_ in zip(archive.metadata.fields, archive.metadata.schema.types):
        columns.append(f"{quoted(name)} {_TYPES.get(type_, 'bigint')}")
    return ", ".join(columns)


def quoted(name: str) -> str:
    """A column's name as Spark reads it literally."""
    return "`" + name.replace("`", "``") + "`"


def _slices(files: Sequence[ArchiveFile]) -> Iterator[list[ArchiveFile]]:
    """Files that follow one another in time, about SLICE_BYTES each; what overlaps stays together."""
    part: list[ArchiveFile] = []
    nbytes = 0
    for group in overlapping(files):
        size = sum(os.path.getsize(f.path) for f in group)
        if part and nbytes + size > SLICE_BYTES:
            yield part
            part, nbytes = [], 0
        part += group
        nbytes += size
    if part:
        yield part
