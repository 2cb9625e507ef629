"""What one stream, relation or query hands to the archiver: elements as they are accepted, with their arrival numbers.

The engine's part is short: values are copied, texts looked up, and the rest is left to the archiver's thread.
Invariant: an element is recorded before the progress it brings can be seen, so that a progress read first and elements
taken after it never claim more than they hold.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from minidsms.archive.format import Archive
from minidsms.archive.storage import is_same
from minidsms.cql.errors import Error
from minidsms.elements import Batch, Column, Int8Array, Int64Array, Type
from minidsms.values.arrow_types import array_of_words, decimals_of_codes, stored_type, word_type
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.archive.archiver import Archiver


@dataclass
class Chunk:
    """Elements of one call, in the engine's arrays: the archiver's thread makes a table of them."""

    first: int
    ts: Int64Array
    sign: Int8Array | None
    columns: list[Any]

    def __len__(self) -> int:
        return len(self.ts)


@dataclass
class Waiting:
    """Elements that have not been written, in the order of their arrival.

    chunks: tables are what an attempt to write has left.  rows: single ones, (ts, arrival, sign, values..), that came
    after all chunks; they become one before the next chunk comes.
    """

    chunks: list[Chunk | pa.Table] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0
    nbytes: int = 0


class Recorder:
    """Takes the elements of one archive.

    progress: gives the greatest closed instant of what is archived, None for a base relation, or when that is gone.
    is_suspended: what comes is in the archive already, being replayed from it.  must_resume: it must be replayed before
    anything else comes. It holds no connection, which may end before the archiver has written.
    """

    def __init__(
        self,
        archiver: Archiver,
        archive: Archive,
        dictionary: TextDictionary,
        progress: Callable[[], int | None],
    ) -> None:
        self.archive = archive
        self.is_suspended = False
        self.must_resume = False
        self.waiting = Waiting()
        self._archiver = archiver
        self._progress = progress
        self._closed: int | None = None
        self._dictionary = weakref.proxy(dictionary)
        self._schema = archive.metadata.arrow_schema
        self._types = archive.metadata.schema.types
        self._text = archive.metadata.schema.coded
        self._width = 24 + sum(16 if t.is_coded else 8 for t in self._types)

    def closed(self) -> int | None:
        """The greatest closed instant that is known of what is archived; None for a base relation."""
        told = self._progress()
        if told is not None:
            self._closed = told
        return self._closed

    def kept_behind(self, n: int) -> Mapping[str, int]:
        """What a commit of its next n elements is to say of it (`log.Commit.kept`)."""
        return {}

    def note_committed(self, n: int) -> None:
        """So many of its elements have been committed."""

    def check_resumed(self) -> None:
        """Error where a relation's archive holds an earlier run's changes, which have not been replayed yet."""
        if self.must_resume and not self.is_suspended:
            raise Error(
                f"the archive {self.archive.folder!r} holds the changes of an earlier run\n"
                "help: db.replay(..) it first, so that the relation goes on from there; or name another folder"
            )

    def add(self, ts: Int64Array, sign: Int8Array | None, columns: Sequence[Column]) -> None:
        """Record elements in the order of their arrival, copied: others may change the arrays, or want their memory."""
        n = len(ts)
        if not n or self.is_suspended:
            return
        copy = self._archiver.buffers.copy
        taken = [self._taken(column, type_) for column, type_ in zip(columns, self._types)]
        self._archiver.take(self, Chunk(0, copy(ts), None if sign is None else copy(sign), taken), n * self._width)

    def add_batch(self, batch: Batch) -> None:
        """Record a query's results."""
        self.add(batch.ts, batch.sign, batch.columns)

    def add_row(self, ts: int, values: Sequence[Any]) -> None:
        """Record one element of stored scalars, None for NULL: `add` without arrays, for single pushes."""
        if self.is_suspended:
            return
        if self._text:
            values = list(values)
            for i in self._text:
                values[i] = None if values[i] is None else self._dictionary.text(values[i])
        self._archiver.take_row(self, ts, values, self._width)

    def _taken(self, column: Column, type_: Type) -> pa.Array:
        copy = self._archiver.buffers.copy
        if type_.kind == "DECIMAL" and (decimals := decimals_of_codes(column, type_)) is not None:
            return decimals
        if type_.is_coded:
            return self._dictionary.dictionary_arrow(column, copy)
        if type_ is Type.NULL:
            return pa.nulls(len(column), pa.int64())
        if column.valid is None or type_ is Type.BOOLEAN:
            return pa.array(copy(column.values), mask=None if column.valid is None else ~column.valid)
        values = pa.array(copy(column.values))
        bits = np.packbits(column.valid, bitorder="little")
        return pa.Array.from_buffers(values.type, len(column), [pa.py_buffer(bits), values.buffers()[1]])

    def table(self, chunks: Sequence[Chunk | pa.Table]) -> pa.Table:
        """What waited as a table of the archive's columns, as far as can be over the same memory; TEXT may be coded."""
        pieces = [c.columns if isinstance(c, pa.Table) else self._arrays(c) for c in chunks]
        columns = [_chunks(arrays) for arrays in zip(*pieces)]
        coded = [_coded(column) if pa.types.is_string(t) else None for column, t in zip(columns, self._schema.types)]
        schema = self._schema
        for i, column in enumerate(coded):
            if column is not None:
                columns[i] = column
                schema = schema.set(i, schema.field(i).with_type(column[0].type))
        tables = [pa.Table.from_arrays(list(arrays), names=schema.names).cast(schema) for arrays in zip(*columns)]
        return pa.concat_tables(tables)

    def _arrays(self, chunk: Chunk) -> list[Any]:
        n = len(chunk)
        arrival = np.arange(chunk.first, chunk.first + n, dtype=np.int64)
        sign = np.ones(n, np.int8) if chunk.sign is None else chunk.sign
        columns = self._stored(chunk.columns)
        return [pa.array(chunk.ts), pa.array(arrival), pa.array(sign), *columns]

    def _stored(self, columns: Sequence[Any]) -> list[Any]:
        return [array_of_words(c, t, stored_type(t)) for c, t in zip(columns, self._types)]

    def table_of_rows(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """Single rows, (ts, arrival, sign, values..), as a table."""
        columns = list(zip(*rows))
        own = [pa.array(values, type_) for values, type_ in zip(columns[:3], self._schema.types)]
        data = self._stored([pa.array(values, word_type(t)) for values, t in zip(columns[3:], self._types)])
        return pa.Table.from_arrays([*own, *data], names=self._schema.names)


def is_written_to(recorder: Recorder | None, place: str) -> bool:
    """Whether the archive in this folder is a recorder's. Error where the recorder's is lost."""
    return recorder is not None and is_same(recorder.archive.folder, place)


def _chunks(parts: Sequence[Any]) -> list[Any]:
    """Arrays one after the other."""
    return [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else (part,))]


def _coded(chunks: Sequence[Any]) -> list[Any] | None:
    """Texts that are coded by one small dictionary, as Parquet takes them without looking at each: NULL is in no
    dictionary there. None for others: Parquet writes the whole dictionary with every row group.
    """
    if not all(pa.types.is_dictionary(c.type) for c in chunks):
        return None
    dictionary = chunks[0].dictionary
    if len(dictionary) * _SMALL > sum(map(len, chunks)):
        return None
    if not all(c.dictionary is dictionary or c.dictionary.equals(dictionary) for c in chunks):
        return None
    shift = int(len(dictionary) > 0 and not dictionary[0].is_valid)  # NULL has the least code
    texts = dictionary.slice(shift)
    found = []
    for chunk in chunks:
        codes = chunk.indices.to_numpy(zero_copy_only=False) - shift
        indices = pa.array(codes.astype(np.int32), mask=codes < 0 if shift else None)
        found.append(pa.DictionaryArray.from_arrays(indices, texts))
    return found


_SMALL = 64
"""A dictionary is small where so many times more rows refer to it."""
