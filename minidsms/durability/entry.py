"""What an entry of the log says: a call that changed the connection, and the rows it brought.

    payload   length of the header (uint32), the header (JSON, UTF-8), then, of push and state, an Arrow record batch,
              of texts some, of statement the rows of `history.py`, of synopsis arrays; "pieces" in the header says
              which of it stands in files of its own (`blocks.py`)

The header's "kind" is one of

    statement   cql, script, mark, replaces, history   a statement; script: its number and digest in the file of
                                     `minidsms run`; mark: where the query that it creates begins to write
                                     (`kept_file.py`); replaces: a query of this name ends with it; history: what it
                                     begins with (`history.py`; past, moves: with BACKFILL)
    query       cql, name, script    a query without a statement that names it
    failed      query, ts, reason, results   what the entry before it brought made a query fail at this instant, after
                                     so many answers; is_ahead: in a checkpoint, what comes after it is going to
    undone                           the entry before it, or before its `failed` and `done`, is not to be carried out
    shed        at, rows             of the push before it these rows were shed (load_shedding): bits, in hexadecimal,
                                     from the row `at` on
    done        of, or query, until, ..   the statement, or other change, of this number has been carried out; or
                                     this query ends with the entry before, and its answers until here are where they
                                     go; of a file its mark
    push        to, left, from, ..   elements of a stream, changes of a relation; left: not processed yet (block=False);
                                     from: of a source, which has been read so far with them; script: of an INSERT;
                                     recorded: false where they come from the archive that the input writes
    ended       to, from             a source has been read to its end, and its input has ended
    windows                          what was read has ended: windows with SLIDE show their last
    feed        to, place, ..        a source for a stream or relation (`Connection.feed`)
    script      steps                at the end of a checkpoint: numbers and digests of the file's statements
    replay      to, folder, id, first, last, as_of, begin, end, own   an archive is replayed between two arrivals;
                                     what begins behind another replay of it goes on with that; own: the input writes it
    replayed    ended                those have been, by their inputs and numbers among the sources of these
    source      to, from, ended, replay   at the end of a checkpoint: how far a source has been read
    advance     ts, stream           a heartbeat; stream: null for all
    process, finish                  `Connection.process` (script: of an INSERT that changes nothing); streams
                                     without a source have ended
    taken       query, until         answers before this position of the query's need not be kept
    written     query, until, ..     answers before this position are in the query's file, and it is so long
    passed      to, ts, n            n elements came, up to the instant ts, which matter to nobody any more
    input       name, counters, ..   at the end of a checkpoint: what an input has counted, its greatest instant
    texts       batches              at the beginning of a checkpoint: texts and the codes that stand for them in it;
                                     batches: how many bytes each has, or null of one
    synopsis    query, operator, ..  in a checkpoint: the state of an operator of a query (`kept_state.py`)
    state       query, results, shed at the end of a checkpoint: answers so far, and those that wait; how many elements
                                     of each stream were shed
    archive     to or query, folder, partition, archive   an archive begins under this id (a statement with ARCHIVE has
                                     one, too), or, without a folder, ends; restored: in a checkpoint, it
                                     has what comes until `archived`
    archived    to or query, n       at the end of a checkpoint: so many elements have come since it began
    into        query, place, format, options, mark   a file or topic given to a query
    function, aggregate              name, place ("module:name"), arguments, type, ..
    rules       template, table, name   a query per row of a table (`query_each`); decimals: see `QueryEach`
    rules ended, left taken          name; those queries are closed, by their names (queries); answers of rows that are
                                     gone have been fetched
    call        query, method, ..    a method of a query: set, pause, resume, pin_plan, unpin_plan, close_sink, close
    setting     name, value          a setting that a connection was opened with, or `db.set` has changed

"from" says source (its number among those of the input), at, rows, bad, rejected: `sources.source.ReadUntil`.

The batch is an encapsulated IPC message without its schema, which is the declaration's: `_ts` (int64), `_sign` (int8,
of a relation), then the columns in their order: FLOAT double, BOOLEAN boolean, all that the dictionary codes string (as
CAST to TEXT writes it), all others int64.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.cql.errors import Error
from minidsms.durability.blocks import BlockWriter, Content, Piece
from minidsms.durability.one_row import OneRow
from minidsms.durability.segments import Found, Part
from minidsms.elements import Batch, BoolArray, Column, Int8Array, Int64Array, Schema, Type
from minidsms.inputs.arrays import ColumnReader
from minidsms.values.arrow_types import word_type
from minidsms.values.coded import as_text, value_of
from minidsms.values.dictionary import TextDictionary

_JSON = json.JSONEncoder(separators=(",", ":"))
_LENGTH = struct.Struct("<I")
_MANY_ROWS = 4096
"""So many are written without a copy."""

Fields = dict[str, Any]


def encoded(fields: Fields) -> bytes:
    """An entry's payload, but for its rows."""
    return _sized(_JSON.encode(fields))


def _sized(text: str) -> bytes:
    header = text.encode()
    return _LENGTH.pack(len(header)) + header


def advance(ts: int, stream: str | None) -> bytes:
    """What says that a heartbeat came, as `encoded` has it, which takes longer."""
    return _sized(f'{{"kind":"advance","ts":{ts},"stream":{"null" if stream is None else _JSON.encode(stream)}}}')


def taken(query: str, until: int) -> bytes:
    """Likewise, that answers before this position of a query's have been taken."""
    return _sized(f'{{"kind":"taken","query":{_JSON.encode(query)},"until":{until}}}')


def shed(rows: Int64Array) -> Fields:
    """What says that these rows of the push before, (n,) ascending, were shed."""
    at = int(rows[0])
    bits = np.zeros(int(rows[-1]) - at + 1, np.bool_)
    bits[rows - at] = True
    return {"kind": "shed", "at": at, "rows": np.packbits(bits).tobytes().hex()}


def kept_of(n: int, told: Iterable[Fields]) -> BoolArray:
    """Of n rows of a push those that were not shed, (n,). told: the entries that `shed` made."""
    kept = np.ones(n, np.bool_)
    for each in told:
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(each["rows"]), np.uint8)).astype(np.bool_)
        part = kept[each["at"] : each["at"] + len(bits)]
        part &= ~bits[: len(part)]
    return kept


def in_one(fields: Fields, pieces: Sequence[Piece]) -> bytes:
    """An entry's payload with all that belongs to it, which stands in no block yet."""
    parts: list[Part] = [part for piece in pieces if not isinstance(piece, str) for part in piece]
    return b"".join((encoded(fields), *parts))


def placed(writer: BlockWriter, fields: Fields, pieces: Sequence[Piece]) -> tuple[Part, ...]:
    """An entry's payload, of which what is large stands in blocks. Raises OSError."""
    told, rest = writer.placed(pieces)
    return encoded({**fields, **told}), *rest


def decoded(payload: memoryview, where: str, folder: str = "") -> tuple[Fields, Content]:
    """(fields, what follows them). folder: of the log. Error, naming where, for anything else."""
    try:
        (length,) = _LENGTH.unpack_from(payload)
        fields = json.loads(bytes(payload[_LENGTH.size : _LENGTH.size + length]))
        if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
            raise ValueError("it has no kind")
    except (struct.error, ValueError) as error:
        raise Error(f"{where}: no entry of a log ({str(error)[:200]})") from None
    return fields, Content(fields.pop("pieces", None), payload[_LENGTH.size + length :], folder)


def read(found: Found) -> tuple[Fields, Content]:
    """`decoded` of an entry of a log."""
    return decoded(found.payload, found.where, os.path.dirname(found.segment.path))


class _Pieces:
    """A file that keeps what is written, as it comes."""

    closed = False

    def __init__(self) -> None:
        self._written: list[Part] = []

    def write(self, piece: Part) -> int:
        self._written.append(piece)
        return len(piece)

    def take(self) -> list[Part]:
        """What has been written since it was asked."""
        pieces, self._written = self._written, []
        return pieces


class Rows:
    """Elements of one stream, or changes of one relation, as bytes and back."""

    def __init__(self, schema: Schema, dictionary: TextDictionary, has_signs: bool) -> None:
        self._types = schema.types
        self._dictionary = dictionary
        self.has_signs = has_signs
        self._are_plain = not has_signs and all(t is Type.TEXT or not t.is_coded for t in schema.types)
        own = [("_ts", pa.int64()), *([("_sign", pa.int8())] if has_signs else [])]
        # Positions, not names: a column may be called like one of ours.
        kinds = map(word_type, schema.types)
        columns = [(str(i), kind) for i, kind in enumerate(kinds)]
        self._arrow = pa.schema([*own, *columns])
        self._arrow_names, self._row = self._arrow.names, pa.struct(list(self._arrow))
        self._one = OneRow(self._arrow)
        self._names = schema.names
        self._pieces, self._writing = _Pieces(), threading.Lock()
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def encoded(self, ts: Int64Array, signs: Int8Array | None, columns: Sequence[Column]) -> Sequence[Part]:
        """As an Arrow record batch."""
        arrays = [pa.array(ts)]
        if self.has_signs:
            arrays.append(pa.array(np.ones(len(ts), np.int8) if signs is None else signs))
        arrays += [self._array(c, t) for c, t in zip(columns, self._types)]
        return self.encoded_batch(pa.RecordBatch.from_arrays(arrays, schema=self._arrow))

    def encoded_row(self, ts: int, values: Sequence[Any]) -> Part:
        """One element of stored scalars, None for NULL."""
        shown = [self._text(v, t) if t.is_coded and v is not None else v for v, t in zip(values, self._types)]
        shown.insert(0, ts)
        message = self._one.encoded(shown)
        if message is not None:
            return message
        # One call that makes a structure, in half of the time of one for each column.
        row = pa.array([dict(zip(self._arrow_names, shown))], self._row)
        written = memoryview(pa.RecordBatch.from_struct_array(row).serialize())
        self._one.learn(shown, written)
        return written

    def batch(self, data: memoryview, width: int | None = None) -> pa.RecordBatch:
        """The columns `_ts`, `_sign` of a relation, then its own; the first `width` of them, where it had no more."""
        schema = self._arrow
        if width is not None and width < len(self._types):
            schema = pa.schema(list(schema)[: 1 + self.has_signs + width])
        return pa.ipc.read_record_batch(pa.py_buffer(data), schema)

    def encoded_batch(self, batch: pa.RecordBatch) -> Sequence[Part]:
        """The inverse of `batch`: of a large one its buffers as they are, not a copy."""
        if len(batch) < _MANY_ROWS or not batch.schema.equals(self._arrow):
            return (memoryview(batch.serialize()),)
        with self._writing:
            if self._writer is None:
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._pieces, "w"), self._arrow)
                self._writer.write_batch(batch.slice(0, 0))
                self._pieces.take()  # the schema, and that batch
            self._writer.write_batch(batch)
            return self._pieces.take()

    def decoded(self, data: memoryview) -> tuple[Any, Any, Any]:
        """(ts, signs or None, columns by name), as `push` takes them; of one element (ts, None, a tuple)."""
        row = self._one.decoded(data) if self._are_plain else None
        if row is not None:
            return row[0], None, tuple(row[1:])
        batch = self.batch(data)
        first = 1 + self.has_signs
        if batch.num_rows == 1 and self._are_plain:
            row = [column[0].as_py() for column in batch.columns]
            self._one.learn(row, data)
            return row[0], None, tuple(row[1:])
        return (
            batch.column(0),
            batch.column(1) if self.has_signs else None,
            dict(zip(self._names, batch.columns[first:])),
        )

    def elements(self, data: memoryview, tick_ns: int) -> Batch:
        """What `encoded` was given."""
        batch = self.batch(data)
        reader = ColumnReader(self._dictionary, tick_ns)
        n = batch.num_rows
        columns = [
            Column(np.zeros(n, np.int64), np.zeros(n, np.bool_)) if t is Type.NULL else reader.read(a, t)
            for a, t in zip(batch.columns[1 + self.has_signs :], self._types)
        ]
        signs = batch.column(1).to_numpy() if self.has_signs else None
        is_plain = signs is None or (signs == 1).all()
        return Batch(batch.column(0).to_numpy().copy(), None if is_plain else signs.copy(), columns)  # type: ignore[union-attr]

    def _text(self, code: int, type_: Type) -> str:
        """A coded value as CAST to TEXT writes it."""
        text = self._dictionary.text(code)
        return text if type_ is Type.TEXT or type_.is_nested else as_text(value_of(text, type_), type_)

    def _array(self, column: Column, type_: Type) -> pa.Array:
        if type_ is Type.TEXT or type_.is_nested:
            return self._dictionary.decode_arrow(column)
        if type_.is_coded:
            values = self._dictionary.values(column, type_)
            return pa.array([None if value is None else as_text(value, type_) for value in values], pa.string())
        return pa.array(column.values, mask=None if column.valid is None else ~column.valid)
