"""A few rows of a live source as Python's values: arrays of Arrow would cost more to make and read than to push them.

Invariant: `arrow` gives the batch that reading many lines would have given, up to the types of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


class PlainRows:
    """columns: a list of values a column, None for NULL; of instants int ticks, datetimes or datetime64.

    names, kinds: of the columns; the Arrow types that they would have.
    """

    __slots__ = ("columns", "kinds", "names", "num_rows")

    def __init__(self, names: Sequence[str], columns: list[list[Any]], kinds: Sequence[pa.DataType]) -> None:
        self.names, self.columns, self.kinds = names, columns, kinds
        self.num_rows = len(columns[0])

    def slice(self, start: int, length: int | None = None) -> PlainRows:
        """Some of the rows, as of a record batch."""
        if not start and (length is None or length >= self.num_rows):
            return self
        stop = None if length is None else start + length
        return PlainRows(self.names, [column[start:stop] for column in self.columns], self.kinds)

    def arrow(self) -> Any:
        """The rows as a record batch."""
        arrays = [pa.array(values, kind) for values, kind in zip(self.columns, self.kinds)]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))
