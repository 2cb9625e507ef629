"""Bulk raw data into an archive, on Spark: files and tables, out of order and dirty, become elements in order of time.

The raw columns are read as the declaration's types; rows that cannot be read go to a table of rejects with the reason;
duplicates are removed where asked; what is left is partitioned by time, sorted and numbered. Spark does all of it:
nothing is collected, no Python runs per row but for some values of JSON, and the raw files are parsed once.

Invariant: an ingest is one commit of the archive's log, with its rejects and the names of the files it has read; so an
ingest that is cut short leaves nothing, and one that is repeated adds nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyarrow import parquet

from minidsms.archive.atomic import sync_file, sync_folder
from minidsms.archive.files import FILE_ROWS, pieces, write_piece
from minidsms.archive.format import (
    Archive,
    Metadata,
    create,
    default_partition_ticks,
    file_name,
    folder_name,
    footer_ranges,
)
from minidsms.archive.inspecting import rows_of
from minidsms.archive.log import Origin
from minidsms.archive.progress import Progress
from minidsms.archive.storage import is_address, storage_of
from minidsms.archive.writer import Writer
from minidsms.counted import counted
from minidsms.cql import syntax
from minidsms.cql.catalog import Catalog, StreamDef
from minidsms.cql.declarations import stream_def
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.masking import HIDDEN
from minidsms.cql.parser import parse
from minidsms.elements import Type
from minidsms.settings import length_of_tick
from minidsms.spark.places import shared
from minidsms.spark.progress import described, watched
from minidsms.spark.raw_files import RawFiles, address, known_files, new_files
from minidsms.spark.reading import data_frame, quoted, spark_type_of
from minidsms.spark.workers import check_workers
from minidsms.values.arrow_types import stored_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("csv", "json", "parquet")
"""Files of these are taken one by one; everything else that Spark reads is taken as a whole."""

_STAGING = "_ingest-"
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception): .+$", re.MULTILINE)
_PLACE = ("_file", "_block", "_row")
_OWN = ("_corrupt", *_PLACE)
_EMPTY = "\ue000"
_SPELT = r"^(?:[\[{]|-?\d+\.\d+(?:E-?\d+)?$)"
"""What Spark may have written, of JSON."""
_FILE_BYTES = 256 << 20
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Keys of JSON count whatever their case.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # What has been read is kept until it is written; to compress it took a fifth of an ingest's processor time.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
"""Of an ingest's own session; all else is as the program has set it."""


@dataclass(frozen=True)
class Ingested:
    """What an ingest did. rows: written.  rejected: in the table of rejects, a folder of Parquet files, None where it
    is empty.  duplicates: left out.  seen: files left out, because an earlier ingest has read them.  origins: what came
    from where.
    """

    archive: Archive
    rows: int
    rejected: int
    duplicates: int
    rejects: str | None
    seen: int = 0
    origins: tuple[Origin, ...] = ()

    def __str__(self) -> str:
        parts = [counted(self.rows, "row")]
        if self.rejected:
            parts.append(f"{self.rejected:,} rejected (in {self.rejects})")
        if self.duplicates:
            parts.append(f"{counted(self.duplicates, 'duplicate')} left out")
        if self.seen:
            parts.append(f"{counted(self.seen, 'file')} read before")
        return f"{self.archive.metadata.name}: {', '.join(parts)}"


def ingest(
    source: str | Sequence[str] | DataFrame,
    folder: str,
    declaration: str,
    format: str | None = None,
    distinct: bool | Sequence[str] = False,
    time_unit: str = "ms",
    partition: int | None = None,
    options: Mapping[str, str] | None = None,
    spark: SparkSession | Callable[[], SparkSession] | None = None,
    batch: str | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Ingested:
    """Add raw data to the archive of a stream; makes the archive where there is none.

    A file that an earlier ingest has read, and that has not changed since, is left out.

    source: files, folders or patterns, as Spark takes them; the name of a table; a DataFrame; kafka://host:port/topic,
    whose messages are json, and of which those are read that no earlier ingest has.  folder: of archives, on
    a file system that all of Spark sees.  declaration: `CREATE STREAM .. TIMESTAMP BY ..`; columns are found by name.
    format: csv, json (an object per line) or parquet; table; or any other that Spark reads as a whole, as jdbc or orc;
    none with a DataFrame.  distinct: True leaves out rows that are equal to another, also to one of the archive;
    columns leave out all but the earliest row for their values, and all where the archive has such a row.  time_unit,
    partition: of a new archive.  options: of Spark's reader.  spark: a session, or what begins one: it is begun where
    there is something to read.  batch: a name; a batch of a name that has been ingested
    is left out as a whole.  progress: called now and then with the fraction of Spark's tasks that are done.

    Raises CqlError for the declaration, Error where something does not fit.
    """
    from minidsms.spark.session import session, with_settings

    is_frame = not isinstance(source, str | Sequence)
    if is_frame == (format is not None):
        told = "a DataFrame has no format" if is_frame else "which format do the raw data have?"
        raise Error(f"{told}\nhelp: formats are {', '.join(FORMATS)}, table, or another that Spark reads as a whole")
    tick_ns = length_of_tick(time_unit)
    stream = _declared(declaration, tick_ns)
    chosen = _positions(stream, distinct)
    ticks = partition or default_partition_ticks(tick_ns)
    metadata = Metadata(stream.name, "stream", time_unit, stream.schema, ticks, stream.timestamp_by, stream.key)
    archive = create(shared(folder), metadata)
    with Writer(archive) as writer:
        _recover(writer)
        places: Any = [source] if isinstance(source, str) else source
        if is_frame:
            spark = cast("SparkSession", places.sparkSession)
        else:
            if spark is None or callable(spark):
                known = _known(places, format, options or {}, batch, writer)
                if known is not None:
                    return Ingested(archive, 0, 0, 0, None, known)
                spark = (spark or session)()
            spark = with_settings(spark, _SETTINGS)
        with _told(), described(spark, f"ingest {stream.name}"), watched(spark, progress):
            if format in FORMATS:
                topics = [place for place in places if place.startswith("kafka://")]
                if topics and (len(places) > 1 or format != "json"):
                    raise Error(f"{topics[0]}: a topic is ingested alone, and its messages are json")
                if topics:
                    found, messages = _messages(spark, topics[0], dict(options or {}), writer.snapshot.inputs)
                else:
                    found = new_files(spark, list(places), format, dict(options or {}), writer.snapshot.inputs)
                if batch in writer.snapshot.batches or not found.files:
                    return Ingested(archive, 0, 0, 0, None, found.seen)
                if topics:
                    raw = [_of_json(spark, messages, stream)]
                else:
                    raw = [_raw(spark, files, format, found.options, stream) for files in found.by_form]
            else:
                if batch in writer.snapshot.batches:
                    return Ingested(archive, 0, 0, 0, None)
                found = None
                raw = [_whole(spark, source, format, dict(options or {}), stream)]
            read = _read(raw, format or "DataFrame", stream, tick_ns)
            return _take(spark, writer, read, found, chosen, batch or secrets.token_hex(8))


def _known(
    places: Any, format: str | None, options: Mapping[str, str], batch: str | None, writer: Writer
) -> int | None:
    """How many files have been read before, where Spark need not be begun to know that there is nothing else."""
    there = writer.snapshot
    if format in FORMATS:
        return known_files(places, options, there.inputs)
    return 0 if batch in there.batches else None


@contextmanager
def _told() -> Iterator[None]:
    """What Spark says of raw data, in one line."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        java = getattr(error, "java_exception", None)
        text = str(error if java is None else java.getMessage()).strip()
        # Of what Python raised in a task, behind what Spark says of the task.
        raised = _RAISED.findall(text) if "Traceback (most recent call last)" in text else []
        first = raised[-1] if raised else next(iter(text.splitlines()), type(error).__name__)
        raise Error(f"cannot read the raw data: {first[:300]}") from None


def _take(
    spark: SparkSession,
    writer: Writer,
    read: DataFrame,
    found: RawFiles | None,
    distinct: list[int] | None,
    batch: str,
) -> Ingested:
    """Commit what has been read. found: the files, where it comes from some."""
    from pyspark.sql import functions as F

    archive = writer.archive
    read = read.persist()
    try:
        wrong_rows = F.count_if(F.col("_reason") != "")
        by_file = read.groupBy("_file").agg(F.count("*"), wrong_rows).collect()
        counted = {address(row[0]): (row[1], row[2]) for row in by_file}
        identities = dict.fromkeys(counted) | dict({} if found is None else found.identities)
        origins = tuple(Origin(name or file, *counted.get(file, (0, 0))) for file, name in identities.items())
        rejected = sum(origin.rejected for origin in origins)
        good = sum(origin.rows for origin in origins) - rejected
        token = token_of(batch)
        if rejected:
            wrong = read.where("_reason <> ''").select("_raw", "_reason", _without_password("_file"))
            _write_rejects(wrong, os.path.join(rejects_of(archive), _STAGING + token))
        staging = os.path.join(archive.folder, _STAGING + token)
        taken = None
        if good:
            taken = _numbered(_without_duplicates(spark, read.where("_reason = ''"), writer, distinct), writer)
        if is_address(archive.folder):
            check_workers(spark)
            rows = _commit(writer, [] if taken is None else _written_in_tasks(taken, archive), batch, origins)
        else:
            os.makedirs(staging)
            if taken is not None:
                own = taken.write.option("maxRecordsPerFile", FILE_ROWS).mode("overwrite")
                own.partitionBy("_part").parquet(f"file://{staging}")
            rows = commit(writer, staging, batch, origins)
    finally:
        read.unpersist()
    rejects = rejects_of(archive) if rejected else None
    return Ingested(archive, rows, rejected, good - rows, rejects, 0 if found is None else found.seen, origins)


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


def _read(raw: Sequence[DataFrame], format: str, stream: StreamDef, tick_ns: int) -> DataFrame:
    """The rows of frames as `_raw` gives them: c0, c1 .. of the declared types, `_ts`, where each stood, `_reason`:
    why it cannot be taken, or '', and then `_raw`, the raw row.

    A column that only some have is NULL in the others.
    """
    there = {f.name.lower(): f.name for frame in raw for f in frame.schema.fields if f.name not in _OWN}
    for column in stream.schema:
        if column.name.lower() not in there:
            raise Error(f'the raw data have no column "{column.name}"\nhelp: they have {", ".join(there.values())}')
    return reduce(lambda a, b: a.unionByName(b), [_typed(frame, format, stream, tick_ns) for frame in raw])


def _typed(raw: DataFrame, format: str, stream: StreamDef, tick_ns: int) -> DataFrame:
    """The rows of files of one form: see `_read`."""
    from pyspark.sql import functions as F

    from minidsms.spark.raw_columns import read_column

    kinds = {f.name.lower(): f for f in raw.schema.fields}
    values: list[Column] = []
    reasons: list[Column] = []
    empty = {Type.TEXT: (), Type.FLOAT: ("", "nan")}
    for column in stream.schema:
        field = kinds.get(column.name.lower())
        if field is None:
            values.append(F.lit(None).cast(spark_type_of(stored_type(column.type))))
            continue
        source = F.col(quoted(field.name))
        value = read_column(source, field.dataType, column.type, tick_ns, column.name)
        values.append(value)
        text = source.cast("string")
        is_null = F.lower(F.trim(text)).isin(*empty.get(column.type, ("",)))
        what = F.concat(F.lit(f"{column.name}: "), F.substring(text, 1, 80), F.lit(f" cannot be read as {column.type}"))
        reasons.append(F.when(source.isNotNull() & value.isNull() & ~is_null, what))
    assert stream.timestamp_by is not None
    ts = values[stream.timestamp_by]
    first = F.when(raw["_corrupt"].isNotNull(), F.lit(f"the row is no {format} of these columns"))
    missing = F.when(ts.isNull(), F.lit("the timestamp is NULL"))
    reason = F.coalesce(first, *reasons, missing, F.lit(""))
    shown = [F.col(quoted(f.name)) for f in raw.schema.fields if f.name not in _OWN]
    return raw.select(
        *[v.alias(f"c{i}") for i, v in enumerate(values)],
        ts.alias("_ts"),
        F.when(reason != "", F.coalesce("_corrupt", F.to_json(F.struct(*shown)))).alias("_raw"),
        reason.alias("_reason"),
        *_PLACE,
    )


def _raw(
    spark: SparkSession, files: Sequence[str], format: str, options: Mapping[str, str], stream: StreamDef
) -> DataFrame:
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
    places = list(files)
    if format == "parquet":
        return spark.read.options(**options).parquet(*places).select("*", nothing, *place)
    if format == "json":
        return _of_json(spark, spark.read.options(**options).text(places).select("value", *place), stream)
    own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt", "emptyValue": _EMPTY}
    wrong = next((name for name in options if name.lower() in map(str.lower, own)), None)
    if wrong is not None:
        raise Error(f"option {wrong} cannot be given: rows that are none are told, with the reason")
    # Rows that have more or fewer fields are told; quotes are doubled; what stands in the header counts.
    options = {"header": "true", "escape": '"', "enforceSchema": "false", "columnPruning": "false", **options}
    names = spark.read.options(**options).csv(places).columns
    texts = ", ".join(f"{quoted(name)} string" for name in (*names, "_corrupt"))
    reader = spark.read.options(**own, **options)
    # An empty text in quotes is one, and an empty field is NULL.
    read = [F.when(F.col(quoted(n)) == _EMPTY, F.lit("")).otherwise(F.col(quoted(n))).alias(n) for n in names]
    return reader.schema(texts).csv(places).select(*read, "_corrupt", *place)


def _messages(
    spark: SparkSession, place: str, options: Mapping[str, str], seen: Set[str]
) -> tuple[RawFiles, DataFrame]:
    """New messages of a Kafka topic: which these are, and their texts with where each stands."""
    from pyspark.sql import functions as F

    from minidsms.spark import register
    from minidsms.spark.kafka import new_messages

    register(spark)
    found, messages = new_messages(spark, place, options, seen)
    at = F.concat(F.lit(f"{place}/"), F.col("partition").cast("string")).alias("_file")
    text = F.coalesce(F.col("value").cast("string"), F.lit("null")).alias("value")  # a tombstone is no object
    return found, messages.select(text, at, F.col("offset").alias("_block"), F.col("offset").alias("_row"))


def _of_json(spark: SparkSession, lines: DataFrame, stream: StreamDef) -> DataFrame:
    """Lines, `value` and where each stands, as `_raw` gives them."""
    from pyspark.sql import functions as F

    # Keys count whatever their case, and every value as a text, as it is written: Spark spells FLOATs and lists anew.
    parsed = F.transform_keys(F.from_json("value", "map<string,string>"), lambda key, value: F.lower(key))
    lines = lines.where(F.trim("value") != "").withColumn("_map", parsed)
    values = {name.lower(): F.col("_map")[F.lit(name.lower())] for name in stream.schema.names}
    wrong = F.col("_map").isNull()
    names = [c.name.lower() for c in stream.schema if c.type is Type.TEXT or not c.type.is_basic]
    if names:
        from minidsms.spark.batches import written_texts

        is_spelt = reduce(lambda a, b: a | b, [values[name].rlike(_SPELT) for name in names])
        lines = lines.withColumn("_written", written_texts(F.when(is_spelt, F.col("value")), names))
        values |= {name: F.coalesce(F.col("_written")[i], values[name]) for i, name in enumerate(names)}
        wrong |= F.coalesce(F.array_contains("_written", ""), F.lit(False))
    corrupt = F.when(wrong, F.col("value")).alias("_corrupt")
    columns = [values[name.lower()].alias(name) for name in stream.schema.names]
    return lines.select(*columns, corrupt, *_PLACE)


def _whole(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, format: str | None, options: Any, stream: StreamDef
) -> DataFrame:
    """What Spark reads as a whole, in the columns of `_raw`: a DataFrame, a table, a query of a database."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    times = {column.name.lower() for column in stream.schema if column.type is Type.TIMESTAMP}
    if format is None:
        frame, name = cast("DataFrame", source), "DataFrame"
    elif format == "table":
        frame, name = spark.read.table(str(source)), str(source)
    else:
        # What JDBC reads is named by its options.
        frame = spark.read.format(format).options(**options).load(source or None)  # type: ignore[arg-type]
        name = f"{format} {options.get('dbtable') or options.get('query') or source}"
    for field in frame.schema.fields:
        is_of_session = isinstance(field.dataType, T.StringType | T.TimestampNTZType | T.DateType)
        if is_of_session and field.name.lower() in times and spark.conf.get("spark.sql.session.timeZone") != "UTC":
            hint = "cast it to a timestamp before, or set spark.sql.session.timeZone to UTC"
            raise Error(
                f"column {field.name} is {field.dataType.simpleString()}, which names no time zone\nhelp: {hint}"
            )
    own = [
        F.lit(None).cast("string").alias("_corrupt"),
        F.lit(name).alias("_file"),
        F.lit(0).cast("bigint").alias("_block"),
        F.monotonically_increasing_id().alias("_row"),
    ]
    return frame.select(*[quoted(c) for c in frame.columns if c not in _OWN], *own)


# ------------------------------------------------------------------------------------------------------------ writing


def _without_duplicates(spark: SparkSession, good: DataFrame, writer: Writer, distinct: list[int] | None) -> DataFrame:
    """The rows less those that share their values in the columns `distinct` with an earlier one."""
    from pyspark.sql import functions as F

    if distinct is None:
        return good
    columns = [f"c{i}" for i in range(len(writer.archive.metadata.schema))]
    # Of equal instants, the first in the files.
    earliest = F.min(F.struct("_ts", *_PLACE, *columns)).alias("_kept")
    keys = [F.col(f"c{i}").alias(f"_k{i}") for i in distinct]
    rows = good.groupBy(*keys).agg(earliest).select("_kept.*")
    files = writer.archive.files()
    if not files:
        return rows
    fields = writer.archive.metadata.fields
    there = data_frame(spark, writer.archive, files).select(
        *[F.col(quoted(fields[i])).alias(f"_k{i}") for i in distinct]
    )
    return rows.join(there, [rows[f"c{i}"].eqNullSafe(there[f"_k{i}"]) for i in distinct], "left_anti")


def _numbered(rows: DataFrame, writer: Writer) -> DataFrame:
    """The rows in order, under the columns of the archive's files; `_part` is the partition."""
    from pyspark.sql import functions as F

    metadata = writer.archive.metadata
    ticks = F.lit(metadata.partition_ticks).cast("bigint")
    number = F.call_function("div", F.col("_ts") - F.pmod(F.col("_ts"), ticks), ticks)
    order = ["_part", "_ts", *_PLACE]
    rows = rows.withColumn("_part", number).repartitionByRange(*order).sortWithinPartitions(*order)
    arrival = F.monotonically_increasing_id() + F.lit(writer.snapshot.arrivals).cast("bigint")
    data = [F.col(f"c{i}").alias(f) for i, f in enumerate(metadata.fields)]
    return rows.select("_part", F.col("_ts"), arrival.alias("_arrival"), F.lit(1).cast("tinyint").alias("_sign"), *data)


def _written_in_tasks(rows: DataFrame, archive: Archive) -> list[tuple[str, int]]:
    """Write numbered rows as files of an archive at an address, which Spark's own writers may not know; the files, not
    committed yet, and how many rows each has. What tasks that are repeated leave over, the next writer removes.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in _gathered(batches):
            for piece in pieces(archive, table.drop_columns(["_part"])):
                yield pa.record_batch([[write_piece(archive, piece)], [len(piece)]], ["path", "n"])

    return [(row[0], row[1]) for row in rows.mapInArrow(write, "path string, n bigint").collect()]


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches as tables that are worth a file."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= FILE_ROWS or sum(b.nbytes for b in held) >= _FILE_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if sum(map(len, held)):
        yield pa.Table.from_batches(held)


def _without_password(column: str) -> Column:
    """Addresses of files; see `cql.masking`."""
    from pyspark.sql import functions as F

    return F.regexp_replace(column, "(://[^/:@]*):[^/@]*@", f"$1:{HIDDEN}@").alias(column)


def _write_rejects(wrong: DataFrame, staging: str) -> None:
    """Stage the table of rejects."""
    if not is_address(staging):
        wrong.write.parquet(f"file://{staging}")
        return

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in _gathered(batches):
            path = f"{staging}/{secrets.token_hex(8)}.parquet"
            storage = storage_of(path)
            storage.make_folder(staging)
            storage.write(path, partial(parquet.write_table, table))
            yield pa.record_batch([[len(table)]], ["n"])

    wrong.mapInArrow(write, "n bigint").collect()


def commit(writer: Writer, staging: str, batch: str, origins: Sequence[Origin]) -> int:
    """Move the files of a staging folder, `_part=N` within, into the archive and commit them; how many rows.

    Rejects that have been staged appear with them.
    """
    archive = writer.archive
    files: list[tuple[str, int]] = []
    for partition in [p for p in os.scandir(staging) if p.name.startswith("_part=")]:
        folder = archive.partition_folder(int(partition.name.removeprefix("_part=")))
        os.makedirs(folder, exist_ok=True)
        for name in sorted(n for n in os.listdir(partition.path) if n.endswith(".parquet")):
            file = footer_ranges(os.path.join(partition.path, name))
            name = file_name(file.first_ts, file.last_ts, file.first_arrival, file.last_arrival)
            files.append((os.path.join(folder, name), rows_of(file.path)))
            sync_file(file.path)
            os.rename(file.path, files[-1][0])
        sync_folder(folder)
    sync_folder(archive.folder)
    return _commit(writer, files, batch, origins)


def _commit(writer: Writer, files: Sequence[tuple[str, int]], batch: str, origins: Sequence[Origin]) -> int:
    """Commit files, of so many rows each, and let their rejects appear; how many rows."""
    writer.commit("ingest", [path for path, _ in files], batch=batch, origins=origins)
    _recover(writer)
    archive, end = writer.archive, writer.snapshot.arrivals
    told = archive.progress
    if files and told is not None and told.arrivals < end:
        archive.tell_progress(Progress(end, None))
    return sum(n for _, n in files)


def _recover(writer: Writer) -> None:
    """Let the rejects of ingests that have been committed appear, and remove what others have staged."""
    committed = {token_of(batch) for batch in writer.snapshot.batches}
    folder, table = writer.archive.folder, rejects_of(writer.archive)
    storage = storage_of(folder)
    staged = [e.name for e in (storage.entries(table) if storage.exists(table) else []) if e.name.startswith(_STAGING)]
    left = [f"{table}/{name}" for name in staged if name.removeprefix(_STAGING) not in committed]
    left += [f"{folder}/{entry.name}" for entry in storage.entries(folder) if entry.name.startswith(_STAGING)]
    if left and not storage.locks:
        writer.commit("begin")  # whoever staged it can commit it no more
    for each in left:
        storage.remove_tree(each)
    for name in staged:
        if name.removeprefix(_STAGING) in committed:
            storage.move_tree(f"{table}/{name}", f"{table}/ingest={name.removeprefix(_STAGING)}")


def token_of(batch: str) -> str:
    """What stands for a batch in the names of folders."""
    return hashlib.sha256(batch.encode()).hexdigest()[:16]


def rejects_of(archive: Archive) -> str:
    """The folder of an archive's table of rejects."""
    return os.path.join(os.path.dirname(archive.folder), folder_name(archive.metadata.name) + ".rejects")
