"""What `push` is given to columns of elements: the first station of the input manager.

Invariant: conversion changes nothing but the text dictionary, whose unused codes the next sweep takes back; so a call
that fails here has changed no input. An error names the stream, the column, the row (from 0) and a way out.
docs/design, "Public API"; docs/semantics R4.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from minidsms.counted import counted
from minidsms.cql.errors import DataError, Error, quoted
from minidsms.elements import Column, Int64Array, Schema, Type
from minidsms.inputs.arrays import ColumnReader
from minidsms.inputs.foreign import raised
from minidsms.inputs.values import ValueRefused, decimal_value, show, timestamp_value, value_reader
from minidsms.values.coded import shown as shown_value
from minidsms.values.dictionary import TextDictionary

FIRST_INSTANT = -(2**62)
LAST_INSTANT = 2**62
OUTSIDE = "an instant is an integer of ticks with -2**62 < ts < 2**62 (docs/semantics T1)"
"""Elements lie strictly between them, so that an instant plus a window or minus a slack stays within int64."""

_SCALAR = str | bytes | bytearray
_SINGLE = frozenset((int, float, str, bool, type(None), Decimal, datetime))
"""Types of what a dict of one row has as values, and no column is."""


class Converter:
    """Reads data for one stream or relation.

    owner: how errors call it, `stream Pos`.
    """

    def __init__(self, owner: str, schema: Schema, dictionary: TextDictionary, tick_ns: int) -> None:
        self.owner = owner
        self.schema = schema
        self.dictionary = dictionary
        self.tick_ns = tick_ns
        self._columns = ColumnReader(dictionary, tick_ns)
        self._readers = [self._reader(t) for t in schema.types]
        self._texts = tuple(i for i, t in enumerate(schema.types) if t.is_coded and t.kind != "DECIMAL")
        self._names = schema.names
        self._positions = {name.lower(): i for i, name in enumerate(schema.names)}

    # ---------------------------------------------------------------------------------------------------- rows

    def _reader(self, type_: Type) -> Callable[[Any], Any]:
        """As `value_reader`, but of a DECIMAL the code."""
        if type_.kind != "DECIMAL":
            return value_reader(type_, self.tick_ns)
        code_of = self.dictionary.code_of

        def read(value: Any) -> int | None:
            found = decimal_value(value, type_)
            return None if found is None else code_of(found, type_)

        return read

    def row(self, values: tuple[Any, ...]) -> list[Any]:
        """One row as stored scalars (TEXT as codes), None for NULL: the short way for a push of one tuple."""
        readers = self._readers
        if len(values) != len(readers):
            self._refuse_width(len(values), None)
        stored: list[Any] = []
        try:
            for reader, value in zip(readers, values):
                stored.append(reader(value))
        except ValueRefused as refused:
            refused.row = 0
            self._refuse(refused, self.schema[len(stored)].name)
        except Exception as error:
            raise self.raised(error) from error
        for i in self._texts:
            text = stored[i]
            if text is not None:
                try:
                    stored[i] = self.dictionary.code(text)
                except DataError:
                    self._refuse(ValueRefused(f"{show(text)} is not valid Unicode", 0), self.schema[i].name)
        return stored

    def one_row(self, data: Any) -> tuple[Any, ...] | None:
        """The values of a single row, for `row`: of a tuple, of a dict of single values, or of either in a list; None
        where `data` is anything else.
        """
        if isinstance(data, tuple):
            return data
        is_listed = type(data) is list and len(data) == 1
        row = data[0] if is_listed else data
        if type(row) is dict and (is_listed or _SINGLE.issuperset(map(type, row.values()))):
            try:
                if tuple(row) == self._names:
                    return tuple(row.values())
                keys = self._named(list(row), list(row), 0 if is_listed else None)
                return tuple([row[key if is_listed else key[0]] for key in keys])
            except Error:
                raise
            except Exception as error:
                raise self.raised(error) from error
        return row if is_listed and type(row) is tuple and len(row) == len(self._names) else None

    def columns(self, data: Any) -> tuple[int, list[Column]]:
        """(rows, columns) of any data `push` takes; DataError for what does not fit, and for what it raises itself."""
        try:
            row = self.one_row(data)
            if row is not None:
                return 1, [_column_of_one(value, t) for value, t in zip(self.row(row), self.schema.types)]
            return self._columns_of(self._parts(data))
        except Error:
            raise
        except Exception as error:
            raise self.raised(error) from error

    def _columns_of(self, parts: Sequence[Any]) -> tuple[int, list[Column]]:
        converted: list[Column] = []
        for field, part in zip(self.schema, parts):
            try:
                converted.append(self._columns.read(part, field.type))
            except ValueRefused as refused:
                self._refuse(refused, field.name)
            if len(converted[-1]) != len(converted[0]):
                raise self.error(
                    f'column "{field.name}" has {counted(len(converted[-1]), "value")}, '
                    f'column "{self.schema[0].name}" has {len(converted[0])}'
                )
        return (len(converted[0]) if converted else 0), converted

    def _parts(self, data: Any) -> Sequence[Any]:
        """One container per column of the schema, in its order."""
        if isinstance(data, list):
            return self._transpose(data)
        if isinstance(data, Mapping):
            return self._named(list(data.keys()), list(data.values()))
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return self._of_table(data)
        if isinstance(data, np.ndarray) and data.dtype.names is not None and data.ndim == 1:
            return self._named(list(data.dtype.names), [data[name] for name in data.dtype.names])
        raise self.error(f"cannot read rows from {show(data)}", _as_rows(data))

    def _of_table(self, data: Any) -> Sequence[Any]:
        try:
            table = data if isinstance(data, pa.Table | pa.RecordBatch) else pa.table(data)
            kept = [i for i, name in enumerate(table.schema.names) if not name.startswith("__index_level_")]
            return self._named([table.schema.names[i] for i in kept], [table.column(i) for i in kept])
        except Error:
            raise
        except Exception as error:
            hint = "a single column has no name: give {name: column}"
            if hasattr(data, "columns"):
                hint = "let each column hold values of one type that Arrow knows"
            raise self.error(
                f"{type(data).__name__} cannot be read as an Arrow table: {raised(error)}", hint
            ) from error

    def _transpose(self, rows: list[Any]) -> Sequence[Any]:
        k = len(self.schema)
        kinds = set(map(type, rows))
        if kinds == {tuple} or all(isinstance(row, tuple | list) for row in rows):
            widths = set(map(len, rows))
            if widths - {k}:
                at = next(i for i, row in enumerate(rows) if len(row) != k)
                self._refuse_width(len(rows[at]), at)
            return [list(map(operator.itemgetter(i), rows)) for i in range(k)]
        if kinds == {dict} or all(isinstance(row, Mapping) for row in rows):
            return self._transpose_named(rows, kinds == {dict})
        wanted: type | Any = Mapping if isinstance(rows[0], Mapping) else tuple | list
        at, row = next((i, row) for i, row in enumerate(rows) if not isinstance(row, wanted))
        hint = f"a row is a tuple of {k} ({', '.join(self.schema.names[:30])}), or all rows are dicts"
        if len(rows) == k and not any(isinstance(value, tuple | list | Mapping) for value in rows):
            hint = "a row alone is a tuple: push(name, tuple(row))"
        if _is_of_dataclass(row):
            hint = "give the rows as dicts: push(name, [dataclasses.asdict(row) for row in rows])"
        raise self.error(f"row {at} does not read like the others: {show(row)}", hint)

    def _transpose_named(self, rows: list[Mapping[Any, Any]], are_dicts: bool) -> Sequence[Any]:
        if are_dicts and len(set(map(len, rows))) == 1:
            given = list(rows[0])
            named = self._named(given, given, 0)
            try:  # as many keys, and all of these: no others
                return [list(map(operator.itemgetter(key), rows)) for key in named]
            except KeyError:
                pass
        parts: list[list[Any]] = [[] for _ in self.schema]
        order: dict[tuple[Any, ...], list[Any]] = {}
        for at, row in enumerate(rows):
            names = tuple(row)
            keys = order.get(names)
            if keys is None:
                keys = order[names] = list(self._named(list(names), list(names), at))
            for part, key in zip(parts, keys):
                part.append(row[key])
        return parts

    def _named(self, names: list[Any], parts: list[Any], row: int | None = None) -> list[Any]:
        """The parts in the schema's order; a name that is missing, unknown or there twice is refused."""
        found: list[Any] = [None] * len(self.schema)
        seen: dict[int, Any] = {}
        where = "" if row is None else f"row {row}: "
        for name, part in zip(names, parts):
            position = self._positions.get(name.lower()) if isinstance(name, str) else None
            if position is None:
                near = difflib.get_close_matches(str(name).lower(), self._positions, 1)
                hint = f'did you mean "{self.schema[self._positions[near[0]]].name}"?' if near else self._has()
                raise self.error(f"{where}unknown column {quoted(name) if isinstance(name, str) else show(name)}", hint)
            if position in seen:
                twice = f"{quoted(seen[position])}, {quoted(name)}"
                raise self.error(f'{where}column "{self.schema[position].name}" is given twice: {twice}')
            seen[position] = name
            found[position] = part
        for position, field in enumerate(self.schema):
            if position not in seen:
                raise self.error(f'{where}column "{field.name}" is missing', f"{self._has()}; NULL is written None")
        if row is None and self._are_values(found):
            return [[part] for part in found]
        return found

    def _are_values(self, parts: list[Any]) -> bool:
        """What a dict has for the columns is one row: something in it is no column, and what may be one is nested."""
        is_value = [isinstance(part, _SCALAR | dict) or _is_scalar(part) for part in parts]
        may_be_one = zip(parts, is_value, self.schema)
        return any(is_value) and all(
            is_sure or (isinstance(part, list | tuple) and field.type.is_nested) for part, is_sure, field in may_be_one
        )

    # ------------------------------------------------------------------------------------------------- instants

    def instant(self, ts: Any) -> int:
        """One instant in ticks: an int, a datetime, datetime64 or an ISO text."""
        if type(ts) is not int:
            try:
                value = timestamp_value(ts, self.tick_ns)
            except ValueRefused as refused:
                self._refuse(refused, "ts")
            except Exception as error:
                raise self.raised(error) from error
            if value is None:
                raise self.error("the timestamp is NULL", "every element needs an instant")
            ts = value
        if not FIRST_INSTANT < ts < LAST_INSTANT:
            raise self.error(f"the timestamp {ts} is out of range", OUTSIDE)
        return int(ts)

    def instants(self, ts: Any, n: int) -> Int64Array:
        """n instants: one for all, or a sequence or array of n."""
        return self.ordered_instants(ts, n)[0]

    def ordered_instants(self, ts: Any, n: int) -> tuple[Int64Array, bool]:
        """`instants`, and whether they ascend."""
        if is_one(ts):
            instants: Int64Array = np.empty(n, np.int64)
            instants.fill(self.instant(ts))
            return instants, True
        try:
            column = self._columns.read(ts, Type.TIMESTAMP)
        except ValueRefused as refused:
            refused.hint = refused.hint or OUTSIDE
            self._refuse(refused, "ts")
        except Exception as error:
            raise self.raised(error) from error
        if len(column) != n:
            raise self.error(
                f"{counted(len(column), 'timestamp')} for {counted(n, 'row')}",
                "give ts one int for all rows, or one per row",
            )
        return self.checked_instants(column)

    def checked_instants(self, column: Column) -> tuple[Int64Array, bool]:
        """The instants in a column, and whether they ascend; NULL and what is out of range is refused."""
        if column.valid is not None and not column.valid.all():
            row = int(np.argmin(column.valid))
            raise self.error(f"row {row}: the timestamp is NULL", "every element needs an instant")
        ts: Int64Array = column.values  # type: ignore[assignment]
        if not len(ts):
            return ts, True
        ascends = is_ascending(ts)
        least, greatest = (ts.item(0), ts.item(-1)) if ascends else (np.minimum.reduce(ts), np.maximum.reduce(ts))
        if not FIRST_INSTANT < least <= greatest < LAST_INSTANT:
            row = int(np.argmax((ts <= FIRST_INSTANT) | (ts >= LAST_INSTANT)))
            raise self.error(
                f"row {row}: the timestamp {int(ts[row])} is out of range",
                OUTSIDE,
            )
        return ts, ascends

    # --------------------------------------------------------------------------------------------------- errors

    def error(self, reason: str, hint: str = "", kind: type[DataError] = DataError) -> DataError:
        """An error about this input, with a way out."""
        return kind(f"{self.owner}: {reason}" + (f"\nhelp: {hint}" if hint else ""))

    def raised(self, error: Exception) -> DataError:
        """The error for an exception that the data's own methods have raised. MemoryError comes out as it is."""
        if isinstance(error, MemoryError):
            raise error
        return self.error(f"the data cannot be read: {raised(error)}")

    def _refuse(self, refused: ValueRefused, column: str) -> NoReturn:
        row = "" if refused.row is None else f"row {refused.row}, "
        raise self.error(f'{row}column "{column}": {refused.reason}', refused.hint) from refused.__cause__

    def _refuse_width(self, width: int, row: int | None) -> NoReturn:
        where = "the row" if row is None else f"row {row}"
        raise self.error(f"{where} has {counted(width, 'value')}, not {len(self.schema)}", self._has())

    def _has(self) -> str:
        shown = ", ".join(itertools.islice(self.schema.names, 30))
        return f"{self.owner} has: {shown}{', ..' if len(self.schema) > 30 else ''}"

    def rows(self, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
        """Columns back to rows of Python values, for what an error or a rejected row shows."""
        shown: list[list[Any]] = []
        for column, type_ in zip(columns, self.schema.types):
            shown.append([shown_value(v, type_) for v in self.dictionary.values(column, type_)])
        return list(zip(*shown))


def _column_of_one(value: Any, type_: Type) -> Column:
    """A column of one stored scalar, None for NULL."""
    if value is None:
        return Column.nulls(1, type_)
    return Column(np.array((value,), type_.dtype))


def is_one(ts: Any) -> bool:
    """One instant, not a column of them."""
    return isinstance(ts, int | str) or _is_scalar(ts)


def _is_scalar(value: Any) -> bool:
    """A single value, as far as its shape tells; a column has a length or gives an array."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    if isinstance(value, np.generic):
        return True
    return not hasattr(value, "__len__") and not hasattr(value, "__iter__") and not hasattr(value, "__arrow_c_array__")


def is_ascending(ts: Int64Array) -> bool:
    """No instant is below the one before it."""
    return bool(np.logical_and.reduce(ts[1:] >= ts[:-1]))


def _is_of_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _as_rows(data: Any) -> str:
    """How to push what is none of the forms that are read."""
    if isinstance(data, Iterator | Set):
        return "give its rows as a list: push(name, list(rows))"
    if hasattr(data, "collect"):
        return "give what it comes to: push(name, frame.collect())"
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return "give its rows as tuples: push(name, list(map(tuple, array.tolist())))"
    if _is_of_dataclass(data):
        return "give a row as a dict: push(name, dataclasses.asdict(row))"
    labels = getattr(data, "index", ()) if hasattr(data, "to_dict") else ()  # of a row of a pandas table
    if len(labels) and all(isinstance(label, str) for label in labels):
        return "give a row as a dict: push(name, row.to_dict()), or the whole table at once"
    if isinstance(data, str | bytes) and data[:1] in ("{", "[", b"{", b"["):
        return "read it first: push(name, json.loads(text))"
    if getattr(data, "ndim", 0) == 1 and data.dtype != object:
        return "name its column: push(name, {'v': values})"
    return "give a tuple, a list of tuples, a dict of columns, or an Arrow, polars or pandas table"
