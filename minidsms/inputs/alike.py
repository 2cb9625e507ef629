"""Which values of a nested Arrow array are the same, told by its buffers: each different one is then read once.

Invariant: values of one number are equal to the last bit; equal values may have different numbers, as maps have that
are written in different orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from minidsms.elements import Int64Array

_LARGEST_KEY = 2**62
_LONG = 16
"""Lists of so many elements are compared as bytes, shorter ones element by element."""


class Unknown(Exception):
    """An Arrow type whose values are not compared here."""


def different(array: Any) -> tuple[Int64Array, Int64Array]:
    """(the first row of each different value, in the order of these rows; for each row which of them it is).

    Raises Unknown.  O(n + elements) but for maps and lists of many lengths, which are sorted by them.
    """
    encoded = pa.array(_numbers(array)).dictionary_encode()
    which = _indices(encoded)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return first, which


def _indices(encoded: Any) -> Int64Array:
    return cast(Int64Array, encoded.indices.cast(pa.int64()).to_numpy())


def _numbers(array: Any) -> Int64Array:
    """A number for each value; NULL is a value, too."""
    kind, types = array.type, pa.types
    if types.is_null(kind):
        return np.zeros(len(array), np.int64)
    if types.is_dictionary(kind):
        found = array.indices.cast(pa.int64()).fill_null(-1)
        return cast(Int64Array, found.to_numpy())
    if types.is_struct(kind):
        parts = [_numbers(array.field(i)) for i in range(kind.num_fields)]
        if array.null_count:
            parts.append(array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64))
        return _together(parts, len(array))
    if types.is_map(kind):
        return _of_lists(array, [array.keys, array.items])
    if types.is_list(kind) or types.is_large_list(kind):
        return _of_lists(array, [array.values])
    if types.is_nested(kind):
        raise Unknown
    try:
        return _indices(array.dictionary_encode(null_encoding="encode"))
    except pa.ArrowNotImplementedError:
        raise Unknown from None


def _together(columns: Sequence[Int64Array], n: int) -> Int64Array:
    """A number for each combination of numbers."""
    key, size = np.zeros(n, np.int64), 1
    for column in columns if n else ():
        least, span = _span(column)
        if size * span > _LARGEST_KEY:
            key, column = (_indices(pa.array(c).dictionary_encode()) for c in (key, column))
            size = _span(key)[1]
            least, span = _span(column)
        key = key * span + (column - least)
        size *= span
    return key


def _span(column: Int64Array) -> tuple[int, int]:
    least = int(column.min())
    return least, int(column.max()) - least + 1


def _of_lists(array: Any, children: Sequence[Any]) -> Int64Array:
    """Lists of one length are compared with each other."""
    offsets = array.offsets.cast(pa.int64()).to_numpy()
    begin, end = int(offsets[0]), int(offsets[-1])
    inside = _together([_numbers(child.slice(begin, end - begin)) for child in children], end - begin)
    starts, lengths = offsets[:-1] - begin, np.diff(offsets)
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, -1)
    found = np.empty(len(array), np.int64)
    order = np.argsort(lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(lengths[order])) + 1
    given = 0
    for rows in np.split(order, cuts) if len(order) else ():
        length = int(lengths[rows[0]])
        numbers = _of_length(inside, starts[rows], length)
        found[rows] = numbers + given
        given += int(numbers.max()) + 1
    return found


def _of_length(inside: Int64Array, starts: Int64Array, length: int) -> Int64Array:
    """A number, from 0, for each list of so many numbers that begins at a start."""
    if length <= 0:
        return np.zeros(len(starts), np.int64)
    if length >= _LONG:
        seen: dict[bytes, int] = {}
        each = (inside[start : start + length].tobytes() for start in starts.tolist())
        return np.array([seen.setdefault(words, len(seen)) for words in each], np.int64)
    key = _together([inside[starts + place] for place in range(length)], len(starts))
    return _indices(pa.array(key).dictionary_encode())
