"""`spark.read.format("minidsms")`: archives, and the changes of queries over them, as Spark reads any other source.

What is read is read in Python workers, in Arrow: some of the archive's files each, or engines that answer slices of
time (`own_slices`). Spark plans a source in a process without a session, so queries are always answered by engines.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from minidsms.archive.files import read_files, within
from minidsms.archive.format import Archive, archives_in
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import Error
from minidsms.cql.times import NotATime, iso_ticks
from minidsms.spark import archives
from minidsms.spark.compiler import logical_plan
from minidsms.spark.engines import Setting, setting_of
from minidsms.spark.frames import SIGN, TS, names
from minidsms.spark.own_slices import WHOLE, Part, answers, parts_of, pasts
from minidsms.spark.partitioning import lookback_of
from minidsms.spark.places import shared
from minidsms.spark.reading import file_slices, quoted, schema_ddl, spark_type_of
from minidsms.spark.running import query_of
from minidsms.spark.slicing import Extent
from minidsms.statements.constant_rows import bind_continuous
from minidsms.values.arrow_types import array_of_words, stored_type

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType

_OPTIONS = ("path", "name", "query", "as_of", "from", "to")
_TO_WRITE = ("path", "name", "kind", "time_unit", "batch", "checkpointlocation")


class ArchiveSource(DataSource):
    """The format `minidsms`. Options to read: path, a folder of archives; name of one of them, or query, CQL over them;
    as_of; from and to, the first instant (not with a query) and the last: ticks, or ISO times. Options to write: path,
    name; kind and time_unit of a new archive; batch, the name of what is written, or of the stream it comes from.
    """

    def _check(self, known: Sequence[str], is_complete: bool) -> str:
        """The folder. Error where an option is wrong, or lacks."""
        wrong = [name for name in self.options if name.lower() not in known]
        if wrong or "path" not in self.options or not is_complete:
            told = f"no option {wrong[0]}" if wrong else "a folder, and either name or query, are wanted"
            raise Error(f"{told}\nhelp: the options of format minidsms are {', '.join(known)}")
        return shared(self.options["path"])

    @functools.cached_property
    def _reader(self) -> _ArchiveReader | _QueryReader:
        options = self.options
        folder = self._check(_OPTIONS, ("name" in options) != ("query" in options))
        when = options.get("as_of")
        as_of = int(when) if when is not None and when.isdigit() else when
        found = archives_in(folder, as_of)
        if "query" in options:
            if "from" in options:
                raise Error("a query is answered from its beginning; leave out from")
            return _QueryReader(found, options["query"], options.get("to"))
        name = options["name"].lower()
        mine = [archive for archive in found if archive.metadata.name.lower() == name]
        if not mine:
            there = ", ".join(archive.metadata.name for archive in found) or "none"
            raise Error(f"{options['path']!r} has no archive {options['name']!r}; there are: {there}")
        return _ArchiveReader(mine[0], options.get("from"), options.get("to"))

    @classmethod
    def name(cls) -> str:
        """As `format` calls it."""
        return "minidsms"

    def schema(self) -> str:
        """The columns as Spark declares them."""
        return self._reader.ddl

    def reader(self, schema: StructType) -> DataSourceReader:
        """What Spark's tasks read with."""
        return self._reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What Spark's tasks write with."""
        from minidsms.spark.archive_writer import ArchiveWriter

        return ArchiveWriter(self._target(schema, overwrite), self.options.get("batch"))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The same for a stream."""
        from minidsms.spark.archive_writer import ArchiveStreamWriter

        if "batch" not in self.options:
            raise Error(
                "a stream that is written needs the option batch, a name that no other checkpoint uses\n"
                "help: by it a batch that comes again after a crash is known"
            )
        return ArchiveStreamWriter(self._target(schema, overwrite), self.options["batch"])

    def _target(self, schema: StructType, overwrite: bool) -> Archive:
        from minidsms.spark.archive_writer import archive_for

        options = self.options
        folder = self._check(_TO_WRITE, "name" in options)
        if overwrite:
            raise Error("an archive is added to, not overwritten\nhelp: mode('append')")
        return archive_for(folder, options["name"], options.get("kind"), options.get("time_unit"), schema)


class _ArchiveReader(DataSourceReader):
    """The elements of an archive: `_ts`, `_arrival`, `_sign` and the data columns, in no order."""

    def __init__(self, archive: Archive, from_: str | None, to: str | None) -> None:
        self._archive = archive
        self._from, self._to = (_instant(text, archive.metadata.tick_ns) for text in (from_, to))
        self.ddl = schema_ddl(archive.metadata.arrow_schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Files that follow one another, in parts of about equal size."""
        return [InputPartition(part) for part in file_slices(self._archive.files(self._from, self._to))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The elements of some files."""
        schema = self._archive.metadata.arrow_schema
        for table in read_files(self._archive, partition.value, where=within(TS, self._from, self._to)):
            yield from table.select(schema.names).cast(schema).to_batches()


class _QueryReader(DataSourceReader):
    """The changes of a query: `_ts`, `_sign` and its columns, in no order."""

    def __init__(self, found: Sequence[Archive], cql: str, to: str | None) -> None:
        catalog = Catalog()
        archives.declare(catalog, found)
        query = bind_continuous(query_of(cql, catalog), catalog, cql)
        schema = query.node.schema
        by_name = {archive.metadata.name.lower(): archive for archive in found}
        self._setting: Setting = setting_of(query, catalog)
        pinned = [by_name[name.lower()].pin() for name, _, _ in self._setting.inputs]
        root = logical_plan(query.node, cql)
        obstacle, lookback = lookback_of(root)
        until, extent = _instant(to, catalog.tick_ns), Extent.of(pinned, None, root)
        self._parts: Sequence[Part] = parts_of(extent, lookback, os.cpu_count() or 1, until)
        if obstacle is not None and self._parts:
            self._parts = [Part(self._parts[0].begin, self._parts[-1].end, WHOLE)]
        self._inputs = pasts(self._setting, pinned, self._parts)
        self._types = schema.types
        self._names = [TS, SIGN, *schema.unique_names((TS, SIGN))]
        types = ["bigint", "tinyint", *(spark_type_of(stored_type(t)) for t in schema.types)]
        self.ddl = ", ".join(f"{quoted(name)} {type_}" for name, type_ in zip(self._names, types))

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of time; one, where the query cannot be cut."""
        return [InputPartition(number) for number in range(len(self._parts))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """An engine's answers in a slice."""
        columns = [(c, type_, stored_type(type_)) for c, type_ in zip(names(len(self._types)), self._types)]
        for table in answers(self._setting, self._inputs, self._parts, partition.value):
            arrays = [table[TS], table[SIGN], *(array_of_words(table[c], *types) for c, *types in columns)]
            yield from pa.table(arrays, names=self._names).to_batches()


def _instant(text: Any, tick_ns: int) -> int | None:
    if text is None or text.lstrip("-").isdigit():
        return None if text is None else int(text)
    try:
        return iso_ticks(text, tick_ns)
    except NotATime as error:
        raise Error(f"{error}\nhelp: give ticks, or a time such as 2013-01-31T12:00:00") from None
