"""Archives as Spark reads them: only the files, and of these only the columns, that a query needs.

docs/archives.md says what an archive is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.archive.conditions import needed_by
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.cql.bound import Node
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.errors import Error
from minidsms.spark.batches import words
from minidsms.spark.frames import TS, long
from minidsms.spark.offload import History
from minidsms.spark.reading import data_frame, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def declare(catalog: Catalog, archives: Sequence[Archive]) -> None:
    """Make the archives' streams and relations known. Error where their time units differ."""
    catalog.is_of_archives = True
    for archive in archives:
        metadata = archive.metadata
        if metadata.tick_ns != archives[0].metadata.tick_ns:
            first = archives[0].metadata
            raise Error(
                f"the archives have different time units: {first.name} {first.time_unit}, "
                f"{metadata.name} {metadata.time_unit}"
            )
        catalog.tick_ns = metadata.tick_ns
        key = metadata.name.lower()
        if metadata.kind == "stream":
            by = metadata.timestamp_by
            catalog.streams[key] = StreamDef(metadata.name, metadata.schema, timestamp_by=by, key=metadata.key)
        else:
            catalog.relations[key] = RelationDef(metadata.name, metadata.schema, key=metadata.key)


def history(spark: SparkSession, archives: Sequence[Archive], until: int | None, root: Node) -> History:
    """The elements up to `until` (None: all) of archives, less those in files that the plan does not need."""
    files = [archive.files(None, until) for archive in archives]
    first = min((f.first_ts for found in files for f in found), default=0)
    last = max((f.last_ts for found in files for f in found), default=first - 1) if until is None else until
    frames = {
        archive.metadata.name.lower(): _read(spark, archive, needed_by(archive, root, until), last)
        for archive in archives
    }
    return History(frames, min(first, last + 1), last)


def _read(spark: SparkSession, archive: Archive, files: Sequence[ArchiveFile], until: int) -> DataFrame:
    """The elements of files: `_ts`, `_arrival`, `_sign`, c0, c1 .."""
    frame = data_frame(spark, archive, files)
    own = [F.col("_ts"), F.col("_arrival"), F.col("_sign")]
    metadata = archive.metadata
    columns = enumerate(zip(metadata.fields, metadata.schema.types))
    data = [words(F.col(quoted(field)), type_).alias(f"c{i}") for i, (field, type_) in columns]
    return frame.select(*own, *data).where(F.col(TS) <= long(until))
