"""From object code to something Python calls, without the compiler.

LLVM's linker lays the code out in memory; its entry, which reads numpy's arrays in place (`entry`), becomes a
built-in function. What is not kept waits for its first call to be compiled.

Invariant: where arrays do not lie in memory as entries read them, nothing is bound: the plain compiler serves.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np

from minidsms.machine_code import environment, store
from minidsms.machine_code.compile_time import COMPILED
from minidsms.machine_code.records import Record
from minidsms.machine_code.store import ObjectCode
from minidsms.process.forking import keep_whole

if TYPE_CHECKING:
    from minidsms.machine_code.definition import Definition

_METH_FASTCALL = 0x80
_PYTHON_API = (
    "PyBool_FromLong",
    "PyErr_Format",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyObject_IsTrue",
    "Py_IncRef",
)
"""What entries call of Python."""

_lock = threading.RLock()
keep_whole(_lock)
_waiting: list[_Waiting] = []


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    ]


class _Waiting:
    """A kernel whose code is not kept: compiled, or found compiled meanwhile, at its first call."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.bound: Callable[..., Any] | None = None
        self.__doc__ = definition.function.__doc__
        self.__name__ = definition.function.__name__

    def __call__(self, *arguments: object) -> object:
        if self.bound is None:
            with _lock, COMPILED.counted():
                self.bound = self.bound or self._compiled()
        return self.bound(*arguments)

    def _compiled(self) -> Callable[..., Any]:
        from minidsms.machine_code import ahead, compiling

        definition = self.definition
        if not environment.is_supported():
            return compiling.plain(definition)
        ahead.start(waiting.definition for waiting in _waiting if waiting is not self and waiting.bound is None)
        compiling.announce()  # before the lock: another process may be compiling the same, and then this one waits
        with store.alone(definition.name):
            bound = _kept(definition)
            if bound is None:
                code = compiling.compile_and_keep(definition)
                bound = None if code is None else _linked(definition, code)
        return bound or compiling.plain(definition)


def bind(definition: Definition) -> Callable[..., Any]:
    """A built-in function where the kernel's code is kept, else what becomes one at its first call."""
    with _lock, COMPILED.counted():
        bound = kept(definition)
        if bound is None:
            bound = _Waiting(definition)
            _waiting.append(bound)
        return bound


def kept(definition: Definition) -> Callable[..., Any] | None:
    """A built-in function where the kernel's code is kept."""
    with _lock:
        return _kept(definition) if environment.is_supported() else None


def _kept(definition: Definition) -> Callable[..., Any] | None:
    code = store.read(definition.name, environment.mark(definition.digest))
    return None if code is None else _linked(definition, code)


def _linked(definition: Definition, code: ObjectCode) -> Callable[..., Any] | None:
    """The entry as a function; None where it refers to what this process does not have: the loader would end it."""
    engine = _engine()
    if not all(is_defined(name) for name in code.symbols):
        return None
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    address = engine.get_function_address(symbol(definition))
    doc = definition.function.__doc__
    method = _Method(
        definition.function.__name__.encode(), address, _METH_FASTCALL, doc.encode() if doc is not None else None
    )
    _keep(method)
    made = ctypes.pythonapi.PyCFunction_NewEx
    made.restype = ctypes.py_object
    made.argtypes = [ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.py_object]
    bound: Callable[..., Any] = made(ctypes.byref(method), None, definition.function.__module__)
    return bound


def _keep(pointed_at: object) -> None:
    """Let go of it never: built-in functions amid cycles outlive every module as Python ends, and point at their
    descriptions, which ctypes made, and at the code of LLVM's engine.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pointed_at))


def symbol(definition: Definition) -> str:
    """The name of a kernel's entry, unlike that of any other code in a process."""
    return f"minidsms.{definition.name}.{definition.digest}"


@cache
def symbols() -> frozenset[str]:
    """What entries and functions refer to of Python and of C, made known to LLVM's loader.

    To be called when there is a loader, of ours or of numba's: it is what finds the names of C.
    """
    addresses = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON_API}
    for known in (np.ndarray, TypeError, RuntimeError):
        addresses[f"minidsms.{known.__name__}"] = id(known)
    addresses["minidsms.record"] = id(type(Record))
    addresses["minidsms.None"] = id(None)
    # numba's name for what C has: without numba nobody else defines it.
    addresses["numba_ldexp"] = llvm.address_of_symbol("ldexp") or 0
    for name, address in addresses.items():
        if address:
            llvm.add_symbol(name, address)
    return frozenset(name for name, address in addresses.items() if address)


def is_defined(name: str) -> bool:
    """Whether a process has this symbol, numba loaded or not."""
    if name in symbols():
        return True
    return not name.startswith(("numba_", "NRT_")) and bool(llvm.address_of_symbol(name))


@cache
def _engine() -> llvm.ExecutionEngine:
    """LLVM's loader of object files."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.create_target_machine(jit=True))
    _keep(engine)
    symbols()
    return engine
