"""Replay through Spark: it filters, projects and sorts an archive; Arrow tables come back, a slice of time at a time.

Invariant: the driver holds two slices at most, the one that is being replayed and the one that is being fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from minidsms.archive.conditions import spark_condition
from minidsms.archive.demand import Condition
from minidsms.archive.files import GROUP_ROWS, overlapping, physical_schema, read_files
from minidsms.archive.format import OWN_COLUMNS, Archive, ArchiveFile
from minidsms.archive.lost_files import gone, lost
from minidsms.archive.replay_source import Span
from minidsms.archive.storage import is_address, storage_of
from minidsms.cql.errors import Error
from minidsms.spark.places import shared
from minidsms.spark.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_THERE = re.compile("FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException")
_RAISED = re.compile(r"minidsms\.cql\.errors\.Error: (.*(?:\nhelp: .*)?)")

SLICE_BYTES = 128 << 20
"""Bytes of the files of a slice, about."""

_TYPES = {
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "int64": "bigint",
    "int8": "tinyint",
    "date32[day]": "date",
}


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
        with reading([replace(archive, pinned=tuple(files))]):
            table: pa.Table = frame.filter(wanted).select(*columns).orderBy("_ts", "_arrival").toArrow()
        return table

    parts = list(file_slices(files))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(fetch, parts[0]) if parts else None
        for i in range(len(parts)):
            assert coming is not None
            table = coming.result()
            coming = pool.submit(fetch, parts[i + 1]) if i + 1 < len(parts) else None
            for start in range(0, len(table), GROUP_ROWS):
                yield table.slice(start, GROUP_ROWS)


@contextmanager
def reading(archives: Sequence[Archive]) -> Iterator[None]:
    """Spark reads pinned archives; an Error as the engine's where it does not find a file, or a task tells of one."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        told = _RAISED.search(text)
        if told is not None:
            raise Error(told[1]) from None
        lacking = [a for a in archives if gone(a)] if _NOT_THERE.search(text) else []
        if lacking:
            raise lost(lacking[0], [], text) from None
        raise


def data_frame(spark: SparkSession, archive: Archive, files: Sequence[ArchiveFile]) -> DataFrame:
    """Files of an archive as a DataFrame with the columns `_ts`, `_arrival`, `_sign` and the data's, in no order."""
    if any(os.path.basename(f.path).startswith(".") for f in files):
        raise Error(
            f"a compaction of {archive.folder!r} was cut short\nhelp: minidsms archive compact {archive.folder}"
        )
    if is_address(archive.folder):
        return _read_in_tasks(spark, archive, files)
    metadata = archive.metadata
    now = metadata.arrow_schema
    by_schema: dict[pa.Schema, list[str]] = {}
    for file in files:
        there = physical_schema(archive, file.path) if metadata.has_widened else now
        by_schema.setdefault(there, []).append(f"file://{os.path.abspath(file.path)}")
    frames = [_of_schema(spark, there, now, paths) for there, paths in by_schema.items()]
    frame = reduce(lambda a, b: a.unionAll(b), frames) if frames else spark.createDataFrame([], schema_ddl(now))
    return frame if archive.end_arrival is None else frame.where(f"_arrival < {archive.end_arrival}")


def _read_in_tasks(spark: SparkSession, archive: Archive, files: Sequence[ArchiveFile]) -> DataFrame:
    """Files at an address, which Spark's own readers may not know: tasks read them as this process does."""
    shared(archive.folder)
    check_workers(spark)
    parts = list(file_slices(files))
    schema = archive.metadata.arrow_schema

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for table in read_files(archive, parts[number]):
                    yield from table.select(schema.names).cast(schema).to_batches()

    numbers = spark.range(0, len(parts), 1, max(len(parts), 1))
    return numbers.mapInArrow(read, schema_ddl(schema))


def _of_schema(spark: SparkSession, there: pa.Schema, now: pa.Schema, paths: Sequence[str]) -> DataFrame:
    """Files of an earlier schema under the columns of today: what they lack is NULL, and whole numbers may be FLOAT."""
    from pyspark.sql import functions

    missing = pa.schema([f for f in now if f.name not in there.names])
    reader = spark.read.option("ignoreMissingFiles", False).schema(schema_ddl(pa.unify_schemas([there, missing])))
    frame = reader.parquet(*paths)
    if there == now:
        return frame
    return frame.select(*[functions.col(quoted(f.name)).cast(spark_type_of(f.type)).alias(f.name) for f in now])


def schema_ddl(schema: pa.Schema) -> str:
    """The columns of files as Spark declares them."""
    return ", ".join(f"{quoted(f.name)} {spark_type_of(f.type)}" for f in schema)


def spark_type_of(type_: pa.DataType) -> str:
    """The Spark type of a column of files."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_map(type_):
        return f"map<{spark_type_of(type_.key_type)}, {spark_type_of(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{quoted(f.name)}: {spark_type_of(f.type)}' for f in type_)}>"
    return f"array<{spark_type_of(type_.value_type)}>" if pa.types.is_list(type_) else _TYPES[str(type_)]


def quoted(name: str) -> str:
    """The name as CQL and Spark read any word literally."""
    return "`" + name.replace("`", "``") + "`"


def file_slices(files: Sequence[ArchiveFile]) -> Iterator[list[ArchiveFile]]:
    """Files that follow one another in time, about SLICE_BYTES each; what overlaps stays together."""
    part: list[ArchiveFile] = []
    nbytes = 0
    for group in overlapping(files):
        size = sum(storage_of(group[0].path).sizes([f.path for f in group]))
        if part and nbytes + size > SLICE_BYTES:
            yield part
            part, nbytes = [], 0
        part += group
        nbytes += size
    if part:
        yield part
