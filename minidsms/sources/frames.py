"""Tables of pyarrow, polars and pandas as sources, whole or one after the other from an iterable.

Columns are found by case-insensitive name, as in a Parquet file; nothing is copied that the engine need not copy, and
an iterable is asked for its next table when the one before has been read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from minidsms.cql.catalog import SourceDef
from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.inputs.foreign import raised
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.sources.columnar_source import checked_batch, guarded
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.opening import open_definition, open_source
from minidsms.sources.options import Options
from minidsms.sources.source import BATCH_ROWS, BaseSource, Pace, Source, choose_columns

_GENERATOR = "generator://"
_ROWS = "a table as a dict is {column: [value, ..], ..}; single rows are pushed: db.push(name, rows)"


class FrameSource(BaseSource):
    """Rows of one table, or of the tables that an iterable gives. name: as errors say it."""

    def __init__(self, frames: Any, schema: Schema, relation: bool = False, name: str = "the table") -> None:
        super().__init__(name, schema)
        self._relation = relation
        self._frames: Any = [frames] if is_frame(frames) else frames
        # The size of an Arrow table is known; of what others and iterables still have there is no fraction to tell.
        # It is that of its buffers: `nbytes` follows offsets, and those of an array without rows are not validated.
        is_arrow = isinstance(frames, pa.Table | pa.RecordBatch)
        self.bytes_total = frames.get_total_buffer_size() if is_arrow else 0
        self._rows_total = max(1, frames.num_rows) if is_arrow else 1
        self.bytes_read = 0
        if is_frame(frames):
            choose_columns(self.path, self._reader(frames).schema.names, schema, relation)

    def close(self) -> None:
        """Forget the tables."""
        self._frames = []

    def read(self) -> Iterator[Any]:
        """The rows, at most BATCH_ROWS at a time."""
        rows = 0
        for frame in self._given():
            if not is_frame(frame):
                kinds = "tables of pyarrow, polars or pandas, or dicts of columns"
                raise Error(f"{self.path}: an iterable source gives {kinds}, not {type(frame).__name__}\nhelp: {_ROWS}")
            reader = self._reader(frame)
            columns = choose_columns(self.path, reader.schema.names, self.schema, self._relation)
            for batch in guarded(self.path, reader):
                whole = checked_batch(self.path, [batch.column(c.position) for c in columns], columns)
                for start in range(0, whole.num_rows, BATCH_ROWS):
                    part = whole.slice(start, BATCH_ROWS)
                    rows += part.num_rows
                    self.bytes_read = self.bytes_total * rows // self._rows_total
                    yield part
        self.close()

    def _given(self) -> Iterator[Any]:
        """The tables; an exception of what gives them is an Error."""
        try:
            yield from self._frames
        except Exception as error:
            raise Error(f"{self.path} cannot be read further: {raised(error)}") from error

    def _reader(self, frame: Any) -> Any:
        """The table's batches, whatever it is."""
        try:
            if isinstance(frame, Mapping):
                frame = pa.table(dict(frame))
            elif type(frame).__module__.partition(".")[0] == "pandas":
                # Without the index, which is no column here.
                frame = pa.Table.from_pandas(frame, preserve_index=False)
            return pa.RecordBatchReader.from_stream(frame)
        except Exception as error:
            hint = f"\nhelp: {_ROWS}" if isinstance(frame, Mapping) else ""
            raise Error(f"{self.path} cannot be read as a table: {raised(error)}{hint}") from error


def is_generator(source: Any) -> bool:
    """An address of a generator, which is part of the engine."""
    return isinstance(source, str) and source.lower().startswith(_GENERATOR)


def is_frame(data: Any) -> bool:
    """A table: of pyarrow, polars, pandas, or a dict of columns."""
    return isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__")


def open_anything(
    source: Any, format: str | None, target: StreamInput | RelationInput, options: Mapping[str, Any]
) -> Source | LiveLines:
    """The source that `Connection.feed` was given."""
    relation = isinstance(target, RelationInput)
    if is_generator(source):
        return _generator(source, format, target, options)
    if isinstance(source, str | os.PathLike):
        return open_source(os.fspath(source), format, target.schema, relation, options)
    name = f"the source of {target.definition.name}"
    if not is_frame(source) and not isinstance(source, Iterable):
        raise Error(f"{name} is a path, a table or an iterable of tables, not {type(source).__name__}")
    if format is not None:
        raise Error(f"{name}: a table has no format\nhelp: leave format out")
    given = Options(options, "a table")
    frames = FrameSource(source, target.schema, relation, name)
    frames.pace = Pace(given.number("speed", None, 0), None)
    given.done()
    return frames


def _generator(
    address: str, format: str | None, target: StreamInput | RelationInput, options: Mapping[str, Any]
) -> Source | LiveLines:
    """generator://name/stream with the arguments as options, as FROM GENERATOR name('stream', ..)."""
    if format is not None:
        raise Error(f"{address}: a generator has no format\nhelp: leave format out")
    name, _, stream = address[len(_GENERATOR) :].partition("/")
    arguments = tuple((key, value) for key, value in options.items() if key != "speed")
    pace = tuple((key, value) for key, value in options.items() if key == "speed")
    definition = SourceDef(name, None, pace, True, ((stream,) if stream else ()) + arguments)
    return open_definition(definition, target.schema, isinstance(target, RelationInput), target.converter.tick_ns)
