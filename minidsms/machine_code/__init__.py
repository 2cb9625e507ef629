"""Functions over arrays as machine code: compiled once on a machine, kept, and bound to the next process in no time.

`@kernel` makes a function of arrays and numbers callable at the speed of the machine, with the signature that its
annotations give; `@helper` marks what kernels call among themselves. numba compiles them, but only numba's compiler is
used: what it makes is kept as an object file of our own with an entry that Python calls directly (`entry`), so that a
process which finds its kernels kept never loads the compiler.

Invariant: code is bound only if it was compiled from the very instructions and constants that the function and its
helpers have now, by these versions and for this processor (`fingerprint`).  docs/design, point 9.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.machine_code.definition import helper, kernel
from minidsms.machine_code.intrinsics import (
    bits_set,
    byte_at,
    first_bit,
    floats_behind,
    multiply_add,
    truths_behind,
    word_at,
    words_behind,
)
from minidsms.machine_code.records import (
    Bools,
    BoolTable,
    Float64s,
    Float64Table,
    Grid,
    Int8s,
    Int8Table,
    Int16s,
    Int32s,
    Int32Table,
    Int64Cube,
    Int64s,
    Int64Table,
    Record,
    Rows,
    Uint8s,
    Uint8Table,
    Uint64s,
    Uint64Table,
    grid_of,
    record_in,
    rows_from,
    rows_of,
    words_of,
)

__all__ = [
    "BoolTable",
    "Bools",
    "Float64Table",
    "Float64s",
    "Grid",
    "Int8Table",
    "Int8s",
    "Int16s",
    "Int32Table",
    "Int32s",
    "Int64Cube",
    "Int64Table",
    "Int64s",
    "Record",
    "Rows",
    "Uint8Table",
    "Uint8s",
    "Uint64Table",
    "Uint64s",
    "bits_set",
    "byte_at",
    "first_bit",
    "float64",
    "floats_behind",
    "grid_of",
    "helper",
    "int16",
    "int32",
    "int64",
    "kernel",
    "multiply_add",
    "record_in",
    "rows_from",
    "rows_of",
    "truths_behind",
    "uint8",
    "uint64",
    "word_at",
    "words_behind",
    "words_of",
]

int16: Any = np.int16
int32: Any = np.int32
int64: Any = np.int64
float64: Any = np.float64
uint64: Any = np.uint64
uint8: Any = np.uint8
"""Conversions inside of kernels, which take Python's numbers there as well."""
