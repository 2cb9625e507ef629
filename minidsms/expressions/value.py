"""What an expression gives for every row of a chunk, and the chunk it reads.

Invariants of a `Value`, kept by every function of this package:
  - a row is a value, NULL or failed. NULL and failed rows have `valid` False and value 0; failed ones `failed` True;
  - `values` has shape (n,), or (1,) where all rows are alike (a constant): numpy broadcasts it. `valid` and `failed`
    have the shape of `values` or (1,). The arrays are shared: nobody writes into one it did not make;
  - a FLOAT is never NaN and never -0.0.
docs/semantics R4; docs/design, decision 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, BoolArray, Column, Int64Array, Type, has_true, valid_in_all
from minidsms.machine_code.compile_time import COMPILED
from minidsms.values.dictionary import TextDictionary

KERNELS_FROM = 16_384
"""Rows for which kernels are loaded."""
FEW = 64
"""Up to so many values, Python's own objects cost less than a call of numpy, whose fixed part is a microsecond."""

_ZERO = np.zeros(1)

Columns = Callable[[int], Column]


class Value:
    """The value of one expression for every row of a chunk."""

    __slots__ = ("_bounds", "failed", "valid", "values")

    def __init__(
        self,
        values: Any,
        valid: BoolArray | None = None,
        failed: BoolArray | None = None,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.values = values
        self.valid = valid
        self.failed = failed
        self._bounds = bounds

    @property
    def bounds(self) -> tuple[int, int]:
        """(lo, hi) with lo <= every value <= hi, values under NULL included. Measured at first use, if not derived."""
        if self._bounds is None:
            lo, hi = extent(self.values)
            self._bounds = int(lo), int(hi)
        return self._bounds

    @property
    def has_bounds(self) -> bool:
        """They are known already."""
        return self._bounds is not None

    @property
    def null(self) -> BoolArray:
        """The rows that are NULL (not failed)."""
        if self.valid is None:
            return np.zeros(1, np.bool_)
        return ~self.valid if self.failed is None else ~self.valid & ~self.failed

    def column(self) -> Column:
        """As a column; failed rows are NULL in it."""
        return Column(self.values, self.valid)


class Frame:
    """The rows an expression is evaluated on: n of them, whose columns are read when first asked for.

    A subset keeps the numbers of its rows in the frame it began with: a column is gathered once, however many subsets
    lie between, or from the frame directly above where it has been read there.
    """

    __slots__ = ("_above", "_columns", "_inside", "_rows", "_values", "n")

    def __init__(
        self,
        columns: Columns,
        n: int,
        rows: Int64Array | None = None,
        above: Frame | None = None,
        inside: Int64Array | None = None,
    ) -> None:
        """rows: those of the columns that are in the frame (None: all); inside: the same, as rows of the frame
        above.
        """
        self.n = n
        self._columns = columns
        self._rows = rows
        self._above = above
        self._inside = inside
        self._values: dict[int, Value] = {}

    def column(self, index: int) -> Value:
        """A column's value; one object per frame, so that its bounds are measured once."""
        value = self._values.get(index)
        if value is None:
            above, rows = self._above, self._rows
            read = None if above is None else above._values.get(index)
            if read is not None:
                assert self._inside is not None
                column = read.column().take(self._inside)
            else:
                column = self._columns(index)
                if rows is not None:
                    column = column.take(rows)
            value = Value(column.values, column.valid)
            self._values[index] = value
        return value

    def reader(self) -> Callable[[int], Column | Value]:
        """What gives a column to whoever reads each once."""
        return self._columns if self._rows is None else self.column

    def subset(self, rows: Int64Array) -> Frame:
        """The frame of these rows."""
        return Frame(self._columns, len(rows), rows if self._rows is None else self._rows[rows], self, rows)

    def first(self, count: int) -> Frame:
        """The frame of so many rows at the beginning: where nothing was gathered, without a copy."""
        return self.slice(0, count) if self._rows is None else self.subset(np.arange(count))

    def slice(self, start: int, stop: int) -> Frame:
        """The frame of the rows from start to stop, without a copy."""
        assert self._rows is None, "slices are cut before subsets"
        return Frame(lambda index: self._columns(index).slice(start, stop), stop - start)


Node = Callable[[Frame], Value]
"""A compiled expression."""


def extent(values: AnyArray) -> tuple[Any, Any]:
    """The least and the greatest; zeros where there are none."""
    if len(values) > FEW:
        return values.min(), values.max()
    items: Any = values.tolist() or (0, 0)
    return min(items), max(items)


def both_valid(*values: Value) -> BoolArray | None:
    """The rows where all are valid."""
    return valid_in_all([value.valid for value in values])


def any_failed(*values: Value) -> BoolArray | None:
    """The rows where one has failed."""
    result: BoolArray | None = None
    for value in values:
        if value.failed is not None:
            result = value.failed if result is None else result | value.failed
    return result


def finish(
    values: AnyArray,
    valid: BoolArray | None,
    failed: BoolArray | None,
    *,
    bad: BoolArray | None = None,
    null: BoolArray | None = None,
    bounds: tuple[int, int] | None = None,
) -> Value:
    """A value from a freshly made array, which is written into: rows that are not valid become 0.

    bad: rows that fail now, null: rows that become NULL now; either counts only where the operands were valid.
    """
    if null is not None and has_true(null):
        valid = ~null if valid is None else valid & ~null
    if bad is not None and has_true(bad):
        if valid is not None:
            bad = bad & valid
        failed = bad if failed is None else failed | bad
        valid = ~bad if valid is None else valid & ~bad
    if valid is not None:
        clear(values, valid)
        if bounds is not None:
            bounds = (min(bounds[0], 0), max(bounds[1], 0))
    return Value(values, valid, failed, bounds)


def clear(values: AnyArray, valid: BoolArray) -> None:
    """Write 0 where not valid, by masks of bits: faster than by conditions."""
    if values.dtype == np.bool_:
        np.logical_and(values, valid, out=values)
    else:
        words = values.view(np.int64)
        np.bitwise_and(words, -valid.view(np.int8), out=words)


def finish_float(values: AnyArray, valid: BoolArray | None, failed: BoolArray | None) -> Value:
    """As `finish`, for a fresh float64 array: NaN becomes NULL, -0.0 becomes 0.0."""
    floats: Any = values
    if valid is not None and len(valid) == len(floats) >= KERNELS_FROM:
        has_nan = _clear_floats(floats, valid)
        return finish(floats, valid, failed, null=np.isnan(floats)) if has_nan else Value(floats, valid, failed)
    least = floats.min() if len(floats) > FEW else _least_of_few(floats.tolist())
    if least > 0.0:
        return finish(floats, valid, failed)
    floats += _ZERO
    return finish(floats, valid, failed, null=np.isnan(floats) if least != least else None)


def _least_of_few(floats: list[float]) -> float:
    """NaN where one is or may be, 0 where one is 0, else more: of the least `finish_float` asks nothing else."""
    total = sum(floats)
    if total != total:
        return total
    return 0.0 if 0.0 in floats else 1.0


def _clear_floats(values: np.ndarray[Any, np.dtype[np.float64]], valid: BoolArray) -> bool:
    """0.0 where not valid and for -0.0, at once. Whether a valid one is NaN."""
    with COMPILED.counted():
        from minidsms.kernels import nulls
        from minidsms.kernels.arrays import normal
    return bool(nulls.clear_floats(values, normal(valid)))


def full(array: AnyArray, n: int) -> Any:
    """The array with n rows; a constant is written out (fresh, contiguous)."""
    return array if len(array) == n else np.repeat(array, n)


def take(value: Value, mask_or_rows: AnyArray, n: int) -> Value:
    """The rows of a value of n rows; a constant stays one."""
    values = value.values
    rows: Any = mask_or_rows
    if n == 1 or len(values) != 1:
        values = values[rows]
    valid, failed = value.valid, value.failed
    if valid is not None and (n == 1 or len(valid) != 1):
        valid = valid[rows]
    if failed is not None and (n == 1 or len(failed) != 1):
        failed = failed[rows]
    return Value(values, valid, failed)


def constants(type_: Type, values: Sequence[Any], dictionary: TextDictionary) -> tuple[AnyArray, list[object]]:
    """Values of a type, none of them NULL, as the words of a column, and what keeps the codes of texts from being given
    away.
    """
    if type_.is_coded:
        held = [dictionary.hold(v, type_) for v in values]
        return np.array([h.code for h in held], np.int64), [*held]
    array = np.array(values, type_.dtype)
    return (array + 0.0 if type_ is Type.FLOAT else array), []
