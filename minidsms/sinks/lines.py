"""Rows as lines of text, column by column: each piece of a line is an Arrow string array, and Arrow joins them.

Values: INTEGER in decimal, FLOAT as the shortest text that reads back equal, BOOLEAN true or false, TIMESTAMP as ISO
time in UTC where the connection's tick has an Arrow unit, else as ticks; INTERVAL as ticks. How NULL is written is the
format's matter.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema
from minidsms.process.background import Background
from minidsms.sinks.destination import Destination
from minidsms.sinks.instant_texts import far_as_texts, offset_text
from minidsms.sinks.sink import Asked

ROWS_AT_ONCE = 65_536
"""Rows whose text is made before any is written."""


Data = bytes
"""For `LineSink`, in which `bytes` is a count."""


class LineFormat(Protocol):
    """How the elements of one query become text."""

    def header(self) -> bytes:
        """What stands before the first row."""

    def decode(self, batch: Batch) -> Any:
        """What `text` needs of the elements: nothing in it is a code of the dictionary, which moves on."""

    def text(self, decoded: Any) -> bytes:
        """The elements, each ended by a newline. In any thread."""


def lines_of(format: LineFormat, batch: Batch) -> bytes:
    """The lines of elements, at once."""
    return format.text(format.decode(batch))


class Output(Protocol):
    """What bytes go to: a `Destination`, or the standard output."""

    def write(self, data: bytes, /) -> Any: ...

    def publish(self) -> None: ...

    def discard(self) -> None: ...


@runtime_checkable
class Greeter(Protocol):
    """An output that others join later: each of them is told the header first."""

    def greet(self, header: bytes, /) -> None: ...


class LineSink:
    """A sink of lines in a format.

    makes_format: makes the lines.  makes_output: opens the output when the sink is opened; by default a file that
    appears whole at the path, which is written by a thread.  header: whether a format that has a header writes it.
    bytes: written so far.
    """

    def __init__(
        self,
        path: str,
        format: Callable[[Schema, ResultCodec], LineFormat],
        output: Callable[[str], Output] = Destination,
        header: bool = True,
    ) -> None:
        self.path = path
        self.rows = 0
        self.asked: Asked = None
        self._bytes = 0
        self.notes: deque[str] = deque(maxlen=100)
        self._header = header
        self.makes_format = format
        self.makes_output = output
        self._output: Output | None = None
        self._format: LineFormat | None = None
        self._background: Background | None = None

    def go_on(self, output: Output, rows: int, nbytes: int) -> None:
        """Write to this when it is opened, behind what it holds already."""
        self.makes_output = lambda path: output
        self._header = nbytes == 0
        self.rows, self._bytes = rows, nbytes

    @property
    def bytes(self) -> int:
        """Bytes written."""
        if self._background is not None:
            self._background.settle()
        return self._bytes

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Open the output and write the header."""
        self._format = self.makes_format(schema, codec)
        self._output = self.makes_output(self.path)
        self.notes = getattr(self._output, "notes", self.notes)
        self.path = getattr(self._output, "shown", self.path)
        header = self._format.header() if self._header else b""
        try:
            if isinstance(self._output, Greeter):
                self._output.greet(header)
            else:
                self._send(self._output, header)
        except BaseException:
            self.discard()
            raise
        if isinstance(self._output, Destination) and self._output.is_hidden:
            self._background = Background()

    def write(self, batch: Batch) -> None:
        """Append the elements."""
        assert self._output is not None and self._format is not None
        for start in range(0, len(batch), ROWS_AT_ONCE):
            part = batch.slice(start, min(start + ROWS_AT_ONCE, len(batch)))
            work = partial(self._send_decoded, self._output, self._format, self._format.decode(part))
            if self._background is None:
                work()
            else:
                self._background.do(work, len(part))
            self.rows += len(part)

    def _send_decoded(self, output: Output, format: LineFormat, decoded: Any) -> None:
        self._send(output, format.text(decoded))

    def _send(self, output: Output, data: Data) -> None:
        output.write(data)
        self._bytes += len(data)

    def close(self) -> None:
        """Put the file in its place."""
        output, self._output = self._output, None
        if output is None:
            return
        if self._background is not None:
            try:
                self._background.finish()
            except BaseException:
                output.discard()
                raise
        output.publish()

    def discard(self) -> None:
        """Leave no file behind."""
        output, self._output = self._output, None
        if output is not None:
            if self._background is not None:
                self._background.close()
            output.discard()


def plain_columns(table: Any) -> Iterator[Any]:
    """The table's columns as single arrays; INTERVAL as ticks, instants as texts where Arrow would write others."""
    for column in table.columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0)
        if pa.types.is_timestamp(array.type):
            array = far_as_texts(array)
        yield array.cast(pa.int64()) if pa.types.is_duration(array.type) else array


def json_lists(array: Any) -> Any:
    """A column of what is nested as JSON texts, with instants as texts and durations in ticks; any other as it is."""
    if not pa.types.is_nested(array.type):
        return array
    values = [_with_objects(v, array.type) for v in array.cast(_with_ticks(array.type)).to_pylist()]
    texts = [None if v is None else json.dumps(v, ensure_ascii=False, default=str) for v in values]
    return pa.array(texts, pa.large_string())


def _with_ticks(kind: Any) -> Any:
    """An Arrow type with int64 for durations and instants."""
    if pa.types.is_list(kind):
        return pa.list_(_with_ticks(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _with_ticks(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_ticks(kind.item_type))
    return pa.int64() if pa.types.is_duration(kind) or pa.types.is_timestamp(kind) else kind


def _with_objects(value: Any, kind: Any) -> Any:
    """A value with dicts for maps, which Arrow gives as pairs, and texts for instants, which come in ticks."""
    if value is not None and pa.types.is_timestamp(kind):
        return offset_text(value, kind.unit)
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_list(kind):
        return [_with_objects(v, kind.value_type) for v in value]
    if pa.types.is_map(kind):
        return {key: _with_objects(v, kind.item_type) for key, v in value}
    return {field.name: _with_objects(value[field.name], field.type) for field in kind}


def is_text(array: Any) -> bool:
    """A TEXT column, rather than one whose values need no quotes."""
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def written(array: Any) -> Any:
    """An array's values as large strings, NULL staying NULL."""
    return pc.cast(array, pa.large_string())


def replace_where(texts: Any, mask: Any, replace: Callable[[str], str]) -> Any:
    """The texts with those under the mask replaced, each distinct one once."""
    if not pc.any(mask).as_py():
        return texts
    mask = pc.fill_null(mask, False)
    chosen = texts.filter(mask).dictionary_encode()
    replaced = pa.array([replace(text) for text in chosen.dictionary.to_pylist()], texts.type)
    return pc.replace_with_mask(texts, mask, replaced.take(chosen.indices))


def join(pieces: Sequence[Any], separator: str, null: str | None = None) -> Any:
    """The pieces of each row as one text, (n,) large strings. null: what stands for NULL; None makes the whole NULL.

    pieces: (n,) large string arrays, or str for what is equal in all rows; at least one is an array.
    """
    typed = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in (*pieces, separator)]
    if null is None:
        return pc.binary_join_element_wise(*typed)
    return pc.binary_join_element_wise(*typed, null_handling="replace", null_replacement=null)


def joined(pieces: Sequence[Any], separator: str, null: str = "") -> bytes:
    """The same as the bytes of all rows, one after the other."""
    rows = join(pieces, separator, null)
    _, offsets, data = rows.buffers()
    if data is None:
        return b""
    first, last = _offset(offsets, rows.offset), _offset(offsets, rows.offset + len(rows))
    return bytes(memoryview(data)[first:last])


def _offset(offsets: Any, index: int) -> int:
    return int.from_bytes(memoryview(offsets)[8 * index : 8 * index + 8], "little", signed=True)
