"""What machine code depends on besides its function: versions, processor, and how arrays lie in memory."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

_DECIDING = ("compiling.py", "entry.py", "environment.py", "intrinsics.py", "parts.py", "pipeline.py", "records.py")
"""The files here that decide what code is made."""

DATA, DIMENSIONS_COUNT, DIMENSIONS, STRIDES, DTYPE, FLAGS = 16, 24, 32, 40, 56, 64
"""Where numpy's arrays (PyArrayObject) have their fields, in bytes; the same since numpy 1.7."""
DTYPE_BYTE_ORDER, DTYPE_NUMBER, DTYPE_SIZE = 26, 28, 40
"""And their element types (PyArray_Descr)."""
RECORD, RECORD_SIZE = 16, 40
"""Where those of ctypes (CDataObject) have the address of their memory, and its size."""
OBJECT_TYPE, TUPLE_LENGTH, TUPLE_ITEMS, TYPE_FLAGS = 8, 16, 24, 168
"""And Python's objects, tuples and types. A type is an object, too."""
IS_TUPLE = 1 << 26
"""Of a type's flags: it is `tuple`, or derived from it (Py_TPFLAGS_TUPLE_SUBCLASS)."""


@cache
def is_supported() -> bool:
    """Whether arrays, their types and tuples lie in memory as entries read them: looked up in one of each."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    array = np.zeros((2, 3), np.int64)
    at, dtype = id(array), id(array.dtype)
    two = (array, dtype)
    word = ctypes.c_int64()
    flags = 0x1 | 0x4 | 0x100 | 0x400  # C-contiguous, its own data, aligned, writable
    return (
        _word(at + OBJECT_TYPE) == id(np.ndarray)
        and _word(at + DATA) == array.ctypes.data
        and _int(at + DIMENSIONS_COUNT) == 2
        and (_word(_word(at + DIMENSIONS)), _word(_word(at + DIMENSIONS) + 8)) == (2, 3)
        and (_word(_word(at + STRIDES)), _word(_word(at + STRIDES) + 8)) == (24, 8)
        and _word(at + DTYPE) == dtype
        and _int(at + FLAGS) == flags
        and _int(dtype + DTYPE_NUMBER) == array.dtype.num
        and ctypes.string_at(dtype + DTYPE_BYTE_ORDER, 1) == b"="
        and _word(dtype + DTYPE_SIZE) == 8
        and _word(id(tuple) + TYPE_FLAGS) == tuple.__flags__
        and tuple.__flags__ & IS_TUPLE != 0
        and _word(id(two) + TUPLE_LENGTH) == 2
        and _word(id(two) + TUPLE_ITEMS) == at
        and _word(id(word) + RECORD) == ctypes.addressof(word)
        and _word(id(word) + RECORD_SIZE) == 8
    )


def mark(digest: str) -> str:
    """The digest of a function's code together with that of where it runs."""
    return f"{digest}-{_machine()}"


@cache
def _machine() -> str:
    """Of versions, processor, numba's settings, and the files here that decide what code is made."""
    numba = importlib.util.find_spec("numba")
    version = Path(numba.origin or "").parent / "_version.py" if numba is not None else None
    here = Path(__file__).parent
    parts = [
        sys.version,
        np.__version__,
        llvmlite.__version__,
        version.read_text(encoding="utf-8") if version is not None and version.exists() else "",
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        *(
            f"{name}={value}"
            for name, value in sorted(os.environ.items())
            if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR"
        ),
        *((here / name).read_text(encoding="utf-8") for name in _DECIDING),
    ]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _word(address: int) -> int:
    return ctypes.c_ssize_t.from_address(address).value


def _int(address: int) -> int:
    return ctypes.c_int.from_address(address).value
