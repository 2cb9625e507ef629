"""Bulk raw data into an archive, on Spark: many files, out of order and dirty, become elements in event-time order.

The raw columns are read as the declaration's types; rows that cannot be read go to a table of rejects with the reason;
duplicates are removed where asked; what is left is partitioned by time, sorted and numbered. Spark does all of it:
nothing is collected, and no Python runs per row.

Invariant: the archive gets the whole of an ingest or, where it is cut short before its files are complete, nothing;
once they are, the next ingest finishes what was begun.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.archive.atomic import sync_folder
from minidsms.archive.files import FILE_ROWS
from minidsms.archive.format import (
    PARTITION,
    Archive,
    ArchiveFile,
    Metadata,
    create,
    default_partition_ticks,
    file_name,
    folder_name,
    footer_ranges,
)
from minidsms.archive.inspecting import rows_of
from minidsms.archive.locking import Lock
from minidsms.archive.progress import Progress, read_progress, write_progress
from minidsms.cql import syntax
from minidsms.cql.catalog import Catalog, StreamDef
from minidsms.cql.declarations import stream_def
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parser import parse
from minidsms.elements import Type
from minidsms.settings import UNIT_NS
from minidsms.spark.reading import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("csv", "json", "parquet")
_STAGING = ".ingest-"
_PLACE = ("_file", "_block", "_row")
_OWN = ("_corrupt", *_PLACE)
_EMPTY = "\ue000"


@dataclass(frozen=True)
class Ingested:
    """What an ingest did. rows: written.  rejected: in the table of rejects, a folder of Parquet files, None where it
    is empty.  duplicates: left out.
    """

    archive: Archive
    rows: int
    rejected: int
    duplicates: int
    rejects: str | None


def ingest(
    paths: str | Sequence[str],
    folder: str,
    declaration: str,
    format: str,
    distinct: bool | Sequence[str] = False,
    time_unit: str = "ms",
    partition: int | None = None,
    options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> Ingested:
    """Add raw files to the archive of a stream; makes the archive where there is none.

    paths: files, folders or patterns, as Spark takes them.  folder: of archives, on a file system that all of Spark
    sees.  declaration: `CREATE STREAM .. TIMESTAMP BY ..`; columns are found by name.  format: csv, json (an object per
    line) or parquet.  distinct: True leaves out rows that are equal to another; columns leave out all but the earliest
    row for their values.  time_unit, partition: of a new archive.  options: of Spark's reader.

    Raises CqlError for the declaration, Error where something does not fit.
    """
    from minidsms.spark.session import session

    if format not in FORMATS:
        raise Error(f'unknown format "{format}"\nhelp: formats are {", ".join(FORMATS)}')
    if time_unit not in UNIT_NS:
        raise Error(f'no time unit "{time_unit}"; there are: {", ".join(UNIT_NS)}')
    tick_ns = UNIT_NS[time_unit]
    stream = _declared(declaration, tick_ns)
    chosen = _positions(stream, distinct)
    spark = (spark or session()).newSession()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    places = [paths] if isinstance(paths, str) else list(paths)
    ticks = partition or default_partition_ticks(tick_ns)
    metadata = Metadata(stream.name, "stream", time_unit, stream.schema, ticks, stream.timestamp_by, stream.key)
    archive = create(os.path.abspath(folder), metadata)
    lock = Lock(archive.folder)
    try:
        _finish(archive)
        read = _read(spark, places, format, dict(options or {}), stream, tick_ns)
        token = secrets.token_hex(4)
        rejects, rejected = _write_rejects(read, archive, token)
        good = read.where("_reason = ''")
        rows = _write(good, archive, chosen, token)
        duplicates = good.count() - rows if chosen is not None else 0
        return Ingested(archive, rows, rejected, duplicates, rejects)
    finally:
        lock.release()


def _declared(text: str, tick_ns: int) -> StreamDef:
    statements = list(parse(text))
    if len(statements) != 1 or not isinstance(statements[0], syntax.CreateStream):
        raise CqlError("one CREATE STREAM is wanted", text)
    stream = stream_def(statements[0], Catalog(tick_ns=tick_ns), text)
    if stream.timestamp_by is None:
        raise CqlError(
            "nothing says when the rows come", text, statements[0].name_span, "", "TIMESTAMP BY names the column"
        )
    return stream


def _positions(stream: StreamDef, distinct: bool | Sequence[str]) -> list[int] | None:
    """The columns whose values a row must not share with another; None where it may."""
    if distinct is False:
        return None
    if distinct is True:
        return list(range(len(stream.schema)))
    names = [name.lower() for name in stream.schema.names]
    for name in distinct:
        if name.lower() not in names:
            raise Error(f'distinct: {stream.name} has no column "{name}"\nhelp: it has {stream.schema}')
    return [names.index(name.lower()) for name in distinct]


# ------------------------------------------------------------------------------------------------------------ reading


def _read(
    spark: SparkSession, places: list[str], format: str, options: dict[str, str], stream: StreamDef, tick_ns: int
) -> DataFrame:
    """The rows: c0, c1 .. of the declared types, `_ts`, the raw row as `_raw`, where it stood, and `_reason`: why it
    cannot be taken, or ''.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    from minidsms.spark.raw_columns import read_column

    try:
        raw = _raw(spark, places, format, options, stream)
    except AnalysisException as error:
        raise Error(f"cannot read the raw data: {str(error).splitlines()[0][:300]}") from None
    kinds = {f.name.lower(): f for f in raw.schema.fields}
    values: list[Column] = []
    reasons: list[Column] = []
    empty = {Type.TEXT: (), Type.FLOAT: ("", "nan")}
    for column in stream.schema:
        field = kinds.get(column.name.lower())
        if field is None:
            there = ", ".join(f.name for f in raw.schema.fields if f.name not in _OWN)
            raise Error(f'the raw data have no column "{column.name}"\nhelp: they have {there}')
        source = raw[f"`{field.name}`"]
        value = read_column(source, field.dataType, column.type, tick_ns, column.name)
        values.append(value)
        text = source.cast("string")
        is_null = F.lower(F.trim(text)).isin(*empty.get(column.type, ("",)))
        what = F.concat(F.lit(f"{column.name}: "), F.substring(text, 1, 80), F.lit(f" is no {column.type}"))
        reasons.append(F.when(source.isNotNull() & value.isNull() & ~is_null, what))
    assert stream.timestamp_by is not None
    ts = values[stream.timestamp_by]
    first = F.when(raw["_corrupt"].isNotNull(), F.lit(f"the row is no {format} of these columns"))
    missing = F.when(ts.isNull(), F.lit("the timestamp is NULL"))
    shown = [raw[f"`{f.name}`"] for f in raw.schema.fields if f.name not in _OWN]
    return raw.select(
        *[v.alias(f"c{i}") for i, v in enumerate(values)],
        ts.alias("_ts"),
        F.coalesce("_corrupt", F.to_json(F.struct(*shown))).alias("_raw"),
        F.coalesce(first, *reasons, missing, F.lit("")).alias("_reason"),
        *_PLACE,
    )


def _raw(spark: SparkSession, places: list[str], format: str, options: dict[str, str], stream: StreamDef) -> DataFrame:
    """The files as Spark reads them, texts where the format has no types; `_corrupt`, the text of a row that cannot be
    taken apart, or NULL; and where each row stood.
    """
    from pyspark.sql import functions as F

    place = [
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_block_start").alias("_block"),
        F.monotonically_increasing_id().alias("_row"),
    ]
    nothing = F.lit(None).cast("string").alias("_corrupt")
    if format == "parquet":
        return spark.read.options(**options).parquet(*places).select("*", nothing, *place)
    if format == "json":
        lines = spark.read.options(**options).text(places).select("value", *place).where(F.trim("value") != "")
        # Keys count whatever their case, and every value as a text.
        spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
        parsed = F.transform_keys(F.from_json("value", "map<string,string>"), lambda key, value: F.lower(key))
        lines = lines.withColumn("_map", parsed)
        values = [F.col("_map")[F.lit(name.lower())].alias(name) for name in stream.schema.names]
        corrupt = F.when(F.col("_map").isNull(), F.col("value")).alias("_corrupt")
        return lines.select(*values, corrupt, *_PLACE)
    # Rows that have more or fewer fields are told; quotes are doubled; what stands in the header counts.
    options = {"header": "true", "escape": '"', "enforceSchema": "false", "columnPruning": "false", **options}
    names = spark.read.options(**options).csv(places).columns
    texts = ", ".join(f"{quoted(name)} string" for name in (*names, "_corrupt"))
    reader = spark.read.options(mode="PERMISSIVE", columnNameOfCorruptRecord="_corrupt", emptyValue=_EMPTY, **options)
    # An empty text in quotes is one, and an empty field is NULL.
    read = [F.when(F.col(quoted(n)) == _EMPTY, F.lit("")).otherwise(F.col(quoted(n))).alias(n) for n in names]
    return reader.schema(texts).csv(places).select(*read, "_corrupt", *place)


def _write_rejects(read: DataFrame, archive: Archive, token: str) -> tuple[str | None, int]:
    """The rows that cannot be taken: `_raw`, `_reason`, `_file`; where they are and how many."""
    table = os.path.join(os.path.dirname(archive.folder), folder_name(archive.metadata.name) + ".rejects")
    place = os.path.join(table, f"ingest={token}")
    read.where("_reason <> ''").select("_raw", "_reason", "_file").write.parquet(f"file://{place}")
    rejected = sum(rows_of(os.path.join(place, n)) for n in os.listdir(place) if n.endswith(".parquet"))
    if rejected:
        return table, rejected
    shutil.rmtree(place)
    if not os.listdir(table):
        os.rmdir(table)
    return None, 0


# ------------------------------------------------------------------------------------------------------------ writing


def _write(good: DataFrame, archive: Archive, distinct: list[int] | None, token: str) -> int:
    """Order, number and write the rows, then move their files into the archive; how many rows."""
    from pyspark.sql import functions as F

    metadata = archive.metadata
    columns = [f"c{i}" for i in range(len(metadata.schema))]
    rows = good
    if distinct is not None:
        # The earliest of those that share the values; of equal instants, the first in the files.
        earliest = F.min(F.struct("_ts", *_PLACE, *columns)).alias("_kept")
        keys = [F.col(f"c{i}").alias(f"_k{i}") for i in distinct]
        rows = rows.groupBy(*keys).agg(earliest).select("_kept.*")
    ticks = F.lit(metadata.partition_ticks).cast("bigint")
    number = F.call_function("div", F.col("_ts") - F.pmod(F.col("_ts"), ticks), ticks)
    order = ["_part", "_ts", *_PLACE]
    rows = rows.withColumn("_part", number).repartitionByRange(*order).sortWithinPartitions(*order)
    first = max([f.last_arrival + 1 for f in archive.files()], default=0)
    arrival = F.monotonically_increasing_id() + F.lit(first).cast("bigint")
    data = [F.col(c).alias(f) for c, f in zip(columns, metadata.fields)]
    written = rows.select(
        "_part", F.col("_ts"), arrival.alias("_arrival"), F.lit(1).cast("tinyint").alias("_sign"), *data
    )
    staging = os.path.join(archive.folder, _STAGING + token)
    written.write.option("maxRecordsPerFile", FILE_ROWS).partitionBy("_part").parquet(f"file://{staging}")
    return _finish(archive)


def _finish(archive: Archive) -> int:
    """Move the files of ingests that are complete into the archive, and remove those that are not; the rows moved."""
    rows, last = 0, -1
    for entry in [e for e in os.scandir(archive.folder) if e.name.startswith(_STAGING)]:
        if os.path.exists(os.path.join(entry.path, "_SUCCESS")):
            for partition in [p for p in os.scandir(entry.path) if p.name.startswith(PARTITION)]:
                folder = os.path.join(archive.folder, partition.name)
                os.makedirs(folder, exist_ok=True)
                for name in sorted(n for n in os.listdir(partition.path) if n.endswith(".parquet")):
                    file = footer_ranges(os.path.join(partition.path, name))
                    rows += rows_of(file.path)
                    last = max(last, file.last_arrival)
                    os.rename(file.path, os.path.join(folder, _name(file)))
                sync_folder(folder)
            sync_folder(archive.folder)
        shutil.rmtree(entry.path)
    told = read_progress(archive.folder)
    if told is not None and told.arrivals <= last:
        write_progress(archive.folder, Progress(last + 1, None))
    return rows


def _name(file: ArchiveFile) -> str:
    return file_name(file.first_ts, file.last_ts, file.first_arrival, file.last_arrival)
