"""Reading columns by address: many columns of a store are one table to a kernel, not two arrays each.

numba takes a tenth of a microsecond to look at an array it is handed, and has to be told at compile time how many there
are; a slice of one element should pay neither. A table of addresses is made by the owner of the arrays
(`synopses.stream_store.StreamStore.places`), lives as long as they do and is made anew when one of them is replaced.

Invariant: whoever reads by address checks nothing, so an index is always one of the array's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

VALUES, VALID, WIDTH, PLACE_WORDS = range(4)
"""Columns of a table of places, a row per column: address of the values; of their bytes of validity, 0 where none is
NULL; bytes a value takes, 8 or 1."""


def _load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The element at an index behind an address, of the type that the signature returns."""
    element = ir.IntType(signature.return_type.bitwidth)
    start = builder.inttoptr(arguments[0], element.as_pointer())
    return builder.load(builder.gep(start, [arguments[1]]))


def _word_at(typingctx: Any, address: Any, index: Any) -> Any:
    return types.int64(types.int64, types.int64), _load


def _byte_at(typingctx: Any, address: Any, index: Any) -> Any:
    return types.int8(types.int64, types.int64), _load


word_at: Any = intrinsic(_word_at)
"""(address, index) -> the index-th int64 behind the address."""
byte_at: Any = intrinsic(_byte_at)
"""(address, index) -> the index-th int8 behind the address."""
