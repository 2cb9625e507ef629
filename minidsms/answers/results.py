"""Answers on their way out: from coded columns to Python rows and Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, cast

import numpy as np
import pyarrow as pa

from minidsms.answers.rows import Change, Row, change_type, row_type
from minidsms.elements import Batch, Column, Schema, Type, columns_of_words, row_words
from minidsms.values.arrow_types import array_of_texts, array_of_words, arrow_type, decimals_of_codes
from minidsms.values.coded import as_text, has_shape, shown
from minidsms.values.dictionary import TextDictionary

_ARROW_UNITS = {1_000_000_000: "s", 1_000_000: "ms", 1_000: "us", 1: "ns"}

_new_row = cast("Callable[[type[Row], Sequence[Any]], Row]", tuple.__new__)
_new_change = cast("Callable[[type[Change], Sequence[Any]], Change]", tuple.__new__)

_LARGE = 4_096
"""Elements of a batch that is a chunk of its own in an Arrow table; smaller ones are copied together."""


_FEW = 16
"""Elements that are a table by one call of Arrow: each of its arrays would cost more than all of them."""


def _chunks(batches: Sequence[Batch]) -> list[Batch]:
    """The same elements in fewer batches."""
    runs: list[list[Batch]] = []
    size = _LARGE
    for batch in batches:
        if max(size, len(batch)) >= _LARGE:
            runs.append([])
            size = 0
        runs[-1].append(batch)
        size += len(batch)
    return [Batch.concat(run) for run in runs]


class ResultCodec:
    """Decodes batches of one schema.

    tick_ns: nanoseconds in a tick. has_times: instants are those of a calendar, and tables have them as timestamps.
    """

    def __init__(self, schema: Schema, dictionary: TextDictionary, tick_ns: int, has_times: bool = False) -> None:
        self.schema = schema
        self.has_times = has_times
        self._dictionary = dictionary
        self._tick_ns = tick_ns
        self.change: type[Change] = change_type(tick_ns) if has_times else Change
        self.unit = _ARROW_UNITS.get(tick_ns)
        """Arrow's name of a tick; None where it has none."""

    def of(self, schema: Schema) -> ResultCodec:
        """The same for another schema."""
        return ResultCodec(schema, self._dictionary, self._tick_ns, self.has_times)

    def rows(self, batch: Batch) -> list[Row]:
        """The rows as tuples of None, bool, int, float, str, Decimal, date, time, list and dict; instants and durations
        are ticks.
        """
        return list(self._each_row(batch))

    def changes(self, batch: Batch) -> Iterable[Change]:
        """The elements, in their order."""
        # `Change(..)` would be a function of Python for each.
        signs = repeat(1, len(batch)) if batch.sign is None else batch.sign.tolist()
        return map(_new_change, repeat(self.change), zip(batch.ts.tolist(), signs, self._each_row(batch)))

    def _each_row(self, batch: Batch) -> Iterable[Row]:
        if not len(self.schema):
            return repeat(_new_row(self._row, ()), len(batch))
        columns = []
        for i, type_ in enumerate(self._to_decode):
            column = batch.column(i)
            is_plain = type_ is None and column.valid is None
            columns.append(column.values.tolist() if is_plain else self._values(column, self.schema.types[i]))
        return map(_new_row, repeat(self._row), zip(*columns))

    @cached_property
    def _to_decode(self) -> list[Type | None]:
        """The types of the columns, None where a value is its word."""
        return [type_ if type_.is_coded or has_shape(type_) else None for type_ in self.schema.types]

    def values(self, batch: Batch) -> list[list[Any]]:
        """Instants, signs, and the values of each column as `minidsms.values.coded` has them."""
        columns = [self._dictionary.values(batch.column(i), t) for i, t in enumerate(self.schema.types)]
        return [batch.ts.tolist(), [1] * len(batch) if batch.sign is None else batch.sign.tolist(), *columns]

    @cached_property
    def _row(self) -> type[Row]:
        """Names the values of a row."""
        times = [i for i, type_ in enumerate(self.schema.types) if type_ is Type.TIMESTAMP]
        return row_type(self.schema.names, times, self._tick_ns)

    def _values(self, column: Column, type_: Type) -> list[Any]:
        values = self._dictionary.values(column, type_)
        return [shown(v, type_) for v in values] if has_shape(type_) else values

    def table(self, batches: Sequence[Batch]) -> pa.Table:
        """The elements as an Arrow table: _ts, _sign, then the columns (a repeated name gets a number)."""
        if 0 < sum(map(len, batches)) <= _FEW and self._structure is not None:
            names = [field.name for field in self._structure]
            rows = [dict(zip(names, row)) for batch in batches for row in zip(*self.values(batch))]
            return pa.Table.from_struct_array(pa.array(rows, self._structure))
        names = ["_ts", "_sign"]
        for name in self.schema.names:
            unique, n = name, 2
            while unique in names:
                unique, n = f"{name}_{n}", n + 1
            names.append(unique)
        chunks = _chunks(batches) or [Batch.empty(self.schema)]
        instants = Type.TIMESTAMP if self.has_times else Type.INTEGER
        columns = [[self._array(Column(batch.ts), instants) for batch in chunks]]
        columns += [[pa.array(batch.signs) for batch in chunks]]
        columns += [[self._array(batch.column(i), t) for batch in chunks] for i, t in enumerate(self.schema.types)]
        return pa.Table.from_arrays([pa.chunked_array(column) for column in columns], names=names)

    @cached_property
    def _structure(self) -> pa.StructType | None:
        """The columns of a table as one; None where Arrow does not take their values as `values` has them."""
        are_plain = all(t.is_basic and t is not Type.NULL for t in self.schema.types)
        return pa.struct(list(self.table(()).schema)) if are_plain else None

    def table_of_rows(self, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """What `rows` has given, as a table of the columns."""
        none = self.table([]).drop_columns(["_ts", "_sign"])
        given = zip(self.schema.types, zip(*rows) if rows else [()] * len(self.schema), none.schema)
        arrays = [
            pa.nulls(len(values)) if type_ is Type.NULL else pa.array(values, arrow_type(type_, None)).cast(field.type)
            for type_, values, field in given
        ]
        return pa.Table.from_arrays(arrays, names=none.column_names)

    def _array(self, column: Column, type_: Type) -> pa.Array:
        if type_ is Type.TEXT:
            return self._dictionary.decode_arrow(column)
        mask = None if column.valid is None else ~column.valid
        wanted = arrow_type(type_, self.unit)
        if type_ is Type.NULL:
            return pa.nulls(len(column))
        if type_.kind == "DECIMAL" and (decimals := decimals_of_codes(column, type_)) is not None:
            return decimals
        if type_.is_coded:
            codes, inverse = np.unique(self._dictionary.clean(column), return_inverse=True)
            distinct = array_of_texts(self._dictionary.decode(Column(codes)), type_, wanted)
            return distinct.take(pa.array(inverse.reshape(-1)))
        return array_of_words(pa.array(column.values, mask=mask), type_, wanted)

    def texts(self, column: Column, type_: Type) -> pa.Array:
        """The values of a coded column, or of DATE or TIME, as CAST to TEXT writes them: an Arrow string array."""
        if type_ is Type.TEXT or type_.is_nested:
            return self._dictionary.decode_arrow(column)
        values = self._dictionary.values(column, type_)
        return pa.array([None if v is None else as_text(v, type_) for v in values], pa.string())

    def net(self, batches: Sequence[Batch]) -> Batch:
        """The rows that all these changes leave, as insertions (ts of no meaning)."""
        batch = Batch.concat(batches)
        signs = batch.signs.astype(np.int64)
        if not len(self.schema):
            return Batch(np.zeros(int(signs.sum()), np.int64), None, [])
        words = np.ascontiguousarray(row_words(batch.columns))
        _, first, inverse = np.unique(
            words.view(np.dtype((np.void, words.shape[1] * 8))).ravel(), return_index=True, return_inverse=True
        )
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, inverse.ravel(), signs)
        kept = np.repeat(first, np.maximum(counts, 0))
        columns = columns_of_words(words[kept], self.schema)
        return Batch(np.zeros(len(kept), np.int64), None, columns)
