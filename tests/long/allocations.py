"""A layer under every array of the engine that lets the n-th allocation find no memory.

numpy asks a handler for the memory of its arrays (NEP 49). This one counts what the engine's own modules ask for, in
the thread that has set it, and gives nothing where it was told to: numpy then raises MemoryError. That is the growth of
stores, synopses, windows and tables of groups, the room of what kernels put out, and every array in between.
`tests.long.allocation_cases` runs cases for n = 1, 2, 3, .. until nothing fails any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Iterator
from ctypes import POINTER, PYFUNCTYPE, c_char, c_size_t, c_uint8, c_void_p
from typing import Any

import numpy._core._multiarray_umath as _numpy_c  # type: ignore[import-not-found]

_SET_HANDLER, _GET_HANDLER, _DEFAULT_HANDLER = 304, 305, 306
"""Places in the table of numpy's C interface."""
_CAPSULE = b"mem_handler"

_MALLOC = PYFUNCTYPE(c_void_p, c_void_p, c_size_t)
_CALLOC = PYFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)
_REALLOC = PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h."""

    _fields_ = [
        ("name", c_char * 127), ("version", c_uint8), ("context", c_void_p), ("malloc", _MALLOC), ("calloc", _CALLOC),
        ("realloc", _REALLOC), ("free", c_void_p),
    ]  # fmt: skip


class Allocations:
    """at: the allocation that fails, from 1; 0 for none.  lasting: so do all after it.

    count: allocations so far.  failed: where those that failed were asked for, innermost last.
    """

    def __init__(self, at: int = 0, lasting: bool = False) -> None:
        self.at = at
        self.count = 0
        self.failed: list[str] = []
        self._lasting = lasting

    def is_due(self, nbytes: int) -> bool:
        """Count an allocation; whether it is to fail."""
        frame: Any = sys._getframe(3)  # behind the handler's two
        while frame is not None and str(frame.f_globals.get("__name__")).startswith("numpy."):
            frame = frame.f_back
        name = "" if frame is None else str(frame.f_globals.get("__name__"))
        if not name.startswith("minidsms.") or name.startswith("minidsms.testing."):
            return False
        self.count += 1
        due = self.at > 0 and (self.count == self.at or (self._lasting and self.count > self.at))
        if due:
            self.failed.append(f"{name}:{frame.f_lineno}, {nbytes} bytes")
        return due


_current: Allocations | None = None


@functools.cache
def _handler() -> tuple[Any, Any]:
    """(the capsule, what it refers to), which live as long as any array that they gave memory to: for ever."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    default = ctypes.cast(_c_function(_DEFAULT_HANDLER), POINTER(ctypes.py_object)).contents.value
    real = ctypes.cast(pointer(default, _CAPSULE), POINTER(_Handler)).contents

    def fails(nbytes: int) -> bool:
        return _current is not None and _current.is_due(nbytes)

    def malloc(context: int, nbytes: int) -> int | None:
        return None if fails(nbytes) else real.malloc(real.context, nbytes)

    def calloc(context: int, n: int, size: int) -> int | None:
        return None if fails(n * size) else real.calloc(real.context, n, size)

    def realloc(context: int, old: int, nbytes: int) -> int | None:
        return None if fails(nbytes) else real.realloc(real.context, old, nbytes)

    ours = _Handler(
        b"minidsms.testing", 1, real.context, _MALLOC(malloc), _CALLOC(calloc), _REALLOC(realloc), real.free
    )
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
    return make(ctypes.addressof(ours), _CAPSULE, None), ours


def _c_function(place: int) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_numpy_c._ARRAY_API, None), POINTER(c_void_p))
    return int(table[place])


@contextlib.contextmanager
def failing(allocations: Allocations) -> Iterator[Allocations]:
    """The layer, in this thread, for as long as the context lasts."""
    global _current
    set_handler = PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_c_function(_SET_HANDLER))
    before = set_handler(_handler()[0])
    _current = allocations
    try:
        yield allocations
    finally:
        _current = None
        set_handler(before)
