"""Reading columns by address: many columns of a store are one table to a kernel, not two arrays each.

A kernel has to be told at compile time how many arrays it is handed, and looks at each. A table of addresses is made by
the owner of the arrays (`synopses.stream_store.StreamStore.places`), lives as long as they do and is made anew when one
of them is replaced; `machine_code.intrinsics` reads behind them.

Invariant: whoever reads by address checks nothing, so an index is always one of the array's.
"""

from __future__ import annotations

from typing import Any

from minidsms.machine_code import Int64Table, helper, kernel, word_at
from minidsms.machine_code.environment import DATA, DIMENSIONS, DTYPE, DTYPE_SIZE, FLAGS, TUPLE_ITEMS

VALUES, VALID, WIDTH, PLACE_WORDS = range(4)
"""Columns of a table of places, a row per column: address of the values; of their bytes of validity, 0 where none is
NULL; bytes a value takes, 8 or 1."""

ITEMS = TUPLE_ITEMS >> 3
"""Where the first item of a tuple stands, in words behind the address of the tuple."""
_ADDRESS, _LENGTHS, _LAID_OUT = DATA >> 3, DIMENSIONS >> 3, FLAGS >> 3
_TYPE, _WIDTH = DTYPE >> 3, DTYPE_SIZE >> 3
_CONTIGUOUS = 0x101


@helper
def _is_whole(array: int) -> Any:
    """Nothing lies between the values of an array, and none across two words."""
    return word_at(array, _LAID_OUT) & _CONTIGUOUS == _CONTIGUOUS


@helper
def _width(array: int) -> Any:
    return word_at(word_at(array, _TYPE), _WIDTH)


@helper
def length_of(array: int) -> Any:
    """How many values an array has."""
    return word_at(word_at(array, _LENGTHS), 0)


@helper
def address_of(array: int, n: int, width: int) -> Any:
    """Where the n values of an array stand, by the addresses of Python's objects; 0 where they are not whole, or not so
    many, or of another width.
    """
    has_all = length_of(array) == n and _is_whole(array)
    return word_at(array, _ADDRESS) if has_all and _width(array) == width else 0


@kernel
def write_places(arrays: int, table: Int64Table) -> bool:
    """Write a table of places. arrays: the address of a tuple of arrays, of a column its values, then its validity or
    an empty array where no value is NULL.  Returns False where one of them is not whole.
    """
    for c in range(len(table)):
        values, valid = word_at(arrays, ITEMS + 2 * c), word_at(arrays, ITEMS + 2 * c + 1)
        if not (_is_whole(values) and _is_whole(valid)):
            return False
        table[c, VALUES], table[c, WIDTH] = word_at(values, _ADDRESS), _width(values)
        table[c, VALID] = 0 if length_of(valid) == 0 else word_at(valid, _ADDRESS)
    return True
