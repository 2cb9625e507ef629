"""Rows of JSON lines: one object per line; columns, and fields of a STRUCT, by case-insensitive name, others ignored, a
missing one NULL.

A block is parsed by Arrow into typed columns; a block that does not parse is read line by line, and the lines that
cannot be read are counted and kept. Which spelling a name has, the first object says; whether a TIMESTAMP is ticks or
an ISO text, its first value that is not NULL. An object or array in a column of TEXT is kept as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from minidsms.elements import INT64_MAX, INT64_MIN, Schema, Type
from minidsms.inputs.rejected import RejectedRows
from minidsms.inputs.values import EXACT_JSON, ValueRefused, inner_reader, of_fields, value_reader
from minidsms.sources.blocks import Block, Reject, lines, reject
from minidsms.sources.few_lines import is_few
from minidsms.sources.json_members import nested_text
from minidsms.sources.plain_rows import PlainRows
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN
from minidsms.sources.text_columns import arrow_type, read_iso_times

_LINE = re.compile(rb"\S[^\n]*")
_TIMES, _FAR_TIMES = pa.timestamp("ns"), pa.timestamp("us")
_IN_NANOSECONDS, _IN_MICROSECONDS = value_reader(Type.TIMESTAMP, 1), value_reader(Type.TIMESTAMP, 1000)
_FEW = 64
"""So many lines are read one by one where one of them cannot be read."""
_BARE_NULL = re.compile(rb"(?:\A|[}\n\r])\s*null")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?(\s*\[)\s*(?:\{|\Z)")
ARRAY_HELP = "a file has one JSON object on each line; jq -c '.[]' FILE writes those of an array so"


def line_of_array(data: bytes) -> int | None:
    """The line in which an array of objects begins; None where the file does not begin with one. Of an array, objects
    whose lines end in no comma would be all that can be read.
    """
    found = _ARRAY.match(data)
    return None if found is None else data.count(b"\n", 0, found.end(1)) + 1


def crashes_arrow(data: bytes) -> bool:
    """A null stands where an object should: with an error behind it, Arrow's reader (26.0) breaks off the process.

    A text that looks like it counts, too: then the block is read line by line, with the same result.
    """
    return b"null" in data and _BARE_NULL.search(data) is not None


class JsonRows:
    """Reads blocks of one file or connection. path: as errors name it.  rejected: where malformed lines go.
    See `text_file.Rows`.
    """

    def __init__(self, path: str, schema: Schema, rejected: RejectedRows, relation: bool = False) -> None:
        self.path = path
        self.schema = schema
        self.rejected = rejected
        self._relation = relation
        self._names = list(schema.names)
        """As they are spelled in the lines."""
        self._ticks: dict[str, bool] = {}
        """Of each TIMESTAMP that has had a value: whether its values are ticks."""
        self._first: dict[str, Any] | None = None
        """Of the first object but `{}`: its names, and an empty text for a text, None for NULL, 0 for anything else."""
        self._batch_names = list(schema.names)
        self._types = list(schema.types)
        self._is_basic = all(type_.is_basic for type_ in self._types)
        """Arrow reads a block at once."""

    def read(self, block: Block) -> Any:
        """The rows of a block as a record batch, or as PlainRows; lines that cannot be read are counted and kept."""
        if self._first is not None and self._is_basic and is_few(block):  # Arrow's reader costs more than they do
            few, rejects = self._one_by_one(block)
            if not rejects and few.num_rows and self._with_times(few):
                return few
        batch, rejects = self.parse(block)
        for each in rejects:
            self.rejected.add(*each)
        return batch

    @property
    def is_settled(self) -> bool:
        """The blocks so far have told all about the columns: `parse` depends on nothing but its block now."""
        return self._first is not None and self._ticks.keys() >= set(self._times())

    @property
    def learned(self) -> Any:
        ticks = {name: 0 if are_ticks else "" for name, are_ticks in self._ticks.items()}
        return None if self._first is None else self._first | ticks

    def learn(self, learned: Any) -> None:
        """Go on with what another reader of the same lines has `learned`."""
        if learned:
            self._learn(learned)

    def parse(self, block: Block) -> tuple[Any, list[Reject]]:
        """The rows of a block as a record batch, and the lines that cannot be read."""
        if self._first is None:
            self.learn(next((each for _, text in lines(block) if (each := _object(_decoded(text)))), None))
        if not self._is_basic or self._begins_nested(block):
            return self._salvage(block)
        parts = list(self._parts(block))
        batches = [batch for batch, _ in parts if batch.num_rows] or [parts[0][0]]
        try:
            return self._together(batches), [each for _, rejects in parts for each in rejects]
        except pa.ArrowInvalid:  # instants that nanoseconds do not reach beside others that need them
            return self._salvage(block)

    def _begins_nested(self, block: Block) -> bool:
        """The first line has an object or array in a column of TEXT, as the others have then: Arrow reads none."""
        names = [name for name, type_ in zip(self._names, self._types) if type_ is Type.TEXT]
        line = next((text for _, text in lines(block)), b"") if names else b""
        found = _object(_decoded(line)) or {}
        return any(_is_nested(found.get(name)) for name in names)

    def _parts(self, block: Block) -> Iterator[tuple[Any, list[Reject]]]:
        """A block in one, or its halves where a line keeps Arrow from reading it, and so on to a few lines."""
        try:
            yield self._parse(block), []
            return
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeError):
            pass
        data = block.data
        middle = data.find(b"\n", len(data) // 2) + 1
        if data.count(b"\n") <= _FEW or middle in (0, len(data)):
            yield self._salvage(block)
            return
        yield from self._parts(Block(data[:middle], block.first_line))
        yield from self._parts(Block(data[middle:], block.first_line + data.count(b"\n", 0, middle)))

    def _together(self, batches: list[Any]) -> Any:
        """One batch of several, whose times may be of different units."""
        if len(batches) == 1:
            return batches[0]
        columns = []
        for i in range(len(self._types)):
            arrays = [batch.column(i) for batch in batches]
            if any(array.type != arrays[0].type for array in arrays):
                arrays = [array.cast(pa.timestamp("ns", "UTC")) for array in arrays]
            columns.append(pa.concat_arrays(arrays))
        return self._batch(columns)

    def _learn(self, first: dict[str, Any]) -> None:
        """Names and kinds of time, from the first line that is an object."""
        spelling = {name.lower(): name for name in reversed(first)}
        self._names = [spelling.get(name.lower(), name) for name in self.schema.names]
        own = {name.lower() for name in self.schema.names}
        if self._relation:
            for plain, name in (("ts", TS_COLUMN), ("sign", SIGN_COLUMN)):
                key = name if name in spelling else plain
                if key in spelling and key not in own:
                    self._names.append(spelling[key])
                    self._batch_names.append(name)
                    value = first[spelling[key]]
                    self._types.append(
                        Type.TIMESTAMP if name == TS_COLUMN else Type.TEXT if isinstance(value, str) else Type.INTEGER
                    )
        there = {name: first[name] for name in self._names if name in first}
        kinds = {name: "" if isinstance(v, str) else None if v is None else 0 for name, v in there.items()}
        self._ticks = {name: kinds[name] == 0 for name in self._times() if kinds.get(name) is not None}
        self._first = kinds

    def _times(self) -> list[str]:
        """The names of what is a TIMESTAMP."""
        return [name for name, type_ in zip(self._names, self._types) if type_ is Type.TIMESTAMP]

    def _parse(self, block: Block) -> Any:
        """The quick way: typed by Arrow."""
        if not block.data.strip():
            return self._batch([pa.nulls(0, arrow_type(t)) for t in self._types])
        fields = []
        for name, type_ in zip(self._names, self._types):
            are_ticks = type_ is Type.TIMESTAMP and self._ticks.get(name, True)
            fields.append((name, pa.int64() if are_ticks else arrow_type(type_)))
        if crashes_arrow(block.data):
            raise pa.ArrowInvalid("null where an object should stand")
        if not block.data.isascii():
            block.data.decode()  # Arrow does not look at what is ignored
        table = arrow_json.read_json(
            pa.BufferReader(block.data),
            read_options=arrow_json.ReadOptions(block_size=len(block.data) + 1, use_threads=False),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore", newlines_in_values=False
            ),
        ).combine_chunks()
        if table.num_rows != block.data.count(b"\n") and table.num_rows != len(_LINE.findall(block.data)):
            # Arrow also takes objects over several lines, or several in one; where a block is cut must not decide.
            raise pa.ArrowInvalid("not one object per line")
        columns, ticks = [], {}
        for name, type_ in zip(self._names, self._types):
            column = table.column(name).combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            if type_ is Type.FLOAT and pc.any(pc.is_inf(column)).as_py():
                raise pa.ArrowInvalid("digits beyond the range of FLOAT")  # or an exponent, which is no error
            if type_ is Type.TIMESTAMP and not self._ticks.get(name, True):
                column = read_iso_times(column)
            elif type_ is Type.TIMESTAMP and column.null_count < len(column):
                ticks[name] = True
            columns.append(column)
        self._ticks |= ticks  # now that no line of the block has been refused
        return self._batch(columns)

    def _salvage(self, block: Block) -> tuple[Any, list[Reject]]:
        """The careful way: line by line."""
        rows, rejects = self._one_by_one(block)
        return rows.arrow(), rejects

    def _one_by_one(self, block: Block) -> tuple[PlainRows, list[Reject]]:
        rejects: list[Reject] = []
        # times in what is nested, as far as others
        readers = [(value_reader if type_.is_basic else inner_reader)(type_, 1000) for type_ in self._types]
        kept: list[list[Any]] = [[] for _ in self._types]
        for line, data in lines(block):
            text = _decoded(data)
            found = _object(text, exact=not self._is_basic)
            if found is None:
                rejects.append(reject(self.path, line, data, no_object(text)))
                continue
            row = []
            try:
                for name, reader, type_ in zip(self._names, readers, self._types):
                    value = of_fields(found.get(name), type_) if type_.is_nested else found.get(name)
                    is_text = isinstance(value, str)
                    has_time = type_ is Type.TIMESTAMP and value is not None
                    if has_time and self._ticks.setdefault(name, not is_text) == is_text:
                        raise ValueRefused("ticks and ISO times in one column")
                    if type_ is Type.TEXT and _is_nested(value):
                        value = nested_text(text, name)
                    if isinstance(value, str) and not value.isascii():
                        value.encode()
                    read = _nanoseconds(value) if has_time and is_text else reader(value)
                    # What is not basic goes on as text, and is read like any other.
                    row.append(read if type_.is_basic or read is None else _spelt(value, read))
            except UnicodeEncodeError:
                rejects.append(reject(self.path, line, data, f'"{self._batch_names[len(row)]}": not valid Unicode'))
                continue
            except ValueRefused as refused:
                rejects.append(reject(self.path, line, data, f'"{self._batch_names[len(row)]}": {refused.reason}'))
                continue
            for column, value in zip(kept, row):
                column.append(value)
        kinds = []
        for i, (name, type_) in enumerate(zip(self._names, self._types)):
            if type_ is not Type.TIMESTAMP or self._ticks.get(name, True):
                kinds.append(arrow_type(Type.INTEGER if type_ is Type.TIMESTAMP else type_))
            elif all(value is None or INT64_MIN < value <= INT64_MAX for value in kept[i]):
                kinds.append(_TIMES)
            else:
                kept[i] = [None if value is None else value // 1000 for value in kept[i]]
                kinds.append(_FAR_TIMES)
        return PlainRows(self._batch_names, kept, kinds), rejects

    def _with_times(self, rows: PlainRows) -> bool:
        """Let times be such, not numbers of nanoseconds. False where these do not reach one."""
        if _FAR_TIMES in rows.kinds:
            return False
        for column, kind in zip(rows.columns, rows.kinds):
            if kind == _TIMES:
                column[:] = [None if value is None else np.datetime64(value, "ns") for value in column]
        return True

    def _batch(self, columns: list[Any]) -> Any:
        return pa.RecordBatch.from_arrays(columns, names=self._batch_names)


def _nanoseconds(value: Any) -> int | None:
    """An ISO time in nanoseconds since 1970; beyond 64 bits in whole microseconds. Raises ValueRefused."""
    try:
        return _IN_NANOSECONDS(value)  # type: ignore[no-any-return]
    except ValueRefused:
        return int(_IN_MICROSECONDS(value)) * 1000


def _spelt(value: Any, read: Any) -> str:
    """The text by which a value that is not basic goes on; of a DECIMAL its digits, for a number may be 0e9999."""
    if isinstance(value, str):
        return value
    return f"{read:f}" if isinstance(read, Decimal) else _json(value)


def _json(value: Any) -> str:
    """JSON of a value that JSON was read to, with every digit of its numbers."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)}: {_json(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _decoded(line: bytes) -> str:
    """A line in one of JSON's encodings, with half characters as they are; empty where it is in none."""
    try:
        return line.decode(json.detect_encoding(line), "surrogatepass")
    except UnicodeDecodeError:
        return ""


def no_object(text: str) -> str:
    """Why a line is refused."""
    has_comma = text.rstrip().endswith(",") and _object(text.rstrip()[:-1]) is not None
    return (
        "no JSON object, for a comma stands behind it; sed 's/,$//' FILE writes none" if has_comma else "no JSON object"
    )


def _object(text: str, exact: bool = False) -> dict[str, Any] | None:
    """A line as a JSON object, or None. exact: numbers with a point are Decimals."""
    try:
        value = EXACT_JSON.decode(text) if exact else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
