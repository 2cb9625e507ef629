"""From a definition to object code, by numba's compiler: the only place that loads it.

The compiled function gets an entry of our own (`entry`) instead of numba's wrappers, all else in the object is made
internal to it, and nothing counts references: kernels make no arrays.
"""

from __future__ import annotations

import sys
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import compiler, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np import numpy_support

from minidsms.machine_code import binding, environment, store
from minidsms.machine_code.definition import definition_of
from minidsms.machine_code.entry import Variant, write_entry
from minidsms.machine_code.intrinsics import Intrinsic
from minidsms.machine_code.records import ArgumentType, Bundle, RecordArray, Signature
from minidsms.machine_code.store import ObjectCode

if TYPE_CHECKING:
    from minidsms.machine_code.definition import Definition

_OPTIONS = {"nogil": True, "_nrt": False}


def compile_and_keep(definition: Definition) -> ObjectCode | None:
    """Object code with the kernel's entry as its only symbol; kept for the next process.

    None where numba, of another version than these, has no longer, or not yet, what is used of its inside.
    """
    try:
        from minidsms.machine_code.pipeline import remembered

        with global_compiler_lock, remembered():
            code = _object_code(definition)
    except (AttributeError, ImportError, TypeError):
        return None
    store.write(definition.name, environment.mark(definition.digest), code)
    return code


def plain(definition: Definition) -> Callable[..., Any]:
    """The kernel as numba itself compiles and calls it, kept nowhere."""
    announce()
    function = _closed(definition, compiler.Compiler)
    compiled: Callable[..., Any] = numba.njit([*map(_written, definition.signatures)], nogil=True)(function)
    taken, _ = sigutils.normalize_signature(_written(definition.signatures[0]))
    return lambda *given: compiled(*map(_as_numba_takes, given, taken))


def _as_numba_takes(given: Any, type_: Any) -> Any:
    """An argument for numba's own entry: of bundles its own classes, of records numpy's, over the same memory."""
    if isinstance(type_, numba.types.BaseNamedTuple):
        bundle: Any = type_
        return bundle.instance_class(*map(_as_numba_takes, given, bundle.types))
    if isinstance(type_, numba.types.Record):
        return np.frombuffer(given, numpy_support.as_dtype(type_))[0]
    return given


@cache
def announce() -> None:
    """Say once, to whoever sits at a terminal or a notebook, what the wait is for."""
    with suppress(AttributeError, OSError, ValueError):  # no standard error, or one that is closed
        if sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel."):
            line = "minidsms: compiling kernels (first run on this machine, up to a minute) .."
            print(line, file=sys.stderr, flush=True)


def _object_code(definition: Definition) -> ObjectCode:
    from minidsms.machine_code.pipeline import KernelCompiler, PartCompiler

    typing_context, target_context = cpu_target.typing_context, cpu_target.target_context
    typing_context.refresh()
    target_context.refresh()
    function = _closed(definition, PartCompiler)
    codegen = target_context.codegen()
    library = codegen.create_library(definition.name)
    variants = []
    for signature in definition.signatures:
        arguments, result = sigutils.normalize_signature(_written(signature))
        flags: Any = compiler.Flags()
        cpu_target.options.parse_as_flags(flags, _OPTIONS)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.enable_pyobject = flags.force_pyobject = False
        made = compiler.compile_extra(
            typing_context, target_context, function, arguments, result, flags, {}, library, KernelCompiler
        )
        variants.append(Variant(made.fndesc, arguments, result))
    symbol = binding.symbol(definition)
    entry = library.create_ir_module("entry")
    write_entry(entry, target_context, symbol, definition.function.__name__, variants)
    library.add_ir_module(entry)
    module = _finished(library, symbol)
    things = (*module.functions, *module.global_variables)
    foreign = [thing.name for thing in things if thing.is_declaration and not thing.name.startswith("llvm.")]
    return ObjectCode(tuple(foreign), bytes(codegen._tm.emit_object(module)))


def _finished(library: Any, symbol: str) -> Any:
    """What numba's libraries do at their end (`CPUCodeLibrary.finalize`), but for handing the code to numba's engine,
    and with all but the entry internal: its name is the only one that other objects see, the rest may be inlined away.
    """
    from minidsms.machine_code.parts import linked

    module = library._final_module
    for other in linked(library):
        module.link_in(other, preserve=True)
    for thing in (*module.functions, *module.global_variables):
        if not thing.is_declaration and thing.name != symbol and thing.linkage != llvm.Linkage.private:
            thing.linkage = llvm.Linkage.internal
    library._optimize_final_module()
    module.verify()
    return module


def _closed(definition: Definition, pipeline: Any) -> FunctionType:
    """The function over a namespace in which the kernels and helpers it calls are numba's. pipeline: their compiler."""
    function = definition.function
    namespace = dict(function.__globals__)
    for name, value in definition.globals().items():
        callee = definition_of(value)
        if callee is not None:
            namespace[name] = _callee(callee, pipeline)
        elif isinstance(value, Intrinsic):
            namespace[name] = _intrinsic(value)
    closed = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    closed.__module__, closed.__qualname__ = function.__module__, function.__qualname__
    return closed


def _written(signature: str | Signature) -> Any:
    """The signature as numba takes it."""
    if isinstance(signature, str):
        return signature
    return _type(signature.result)(*map(_type, signature.arguments))


@cache
def _type(described: ArgumentType) -> Any:
    """numba's type."""
    if isinstance(described, RecordArray):
        row = numpy_support.from_dtype(np.dtype([(name, np.int64) for name in described.fields], align=True))
        return numba.types.Array(row, described.dimensions, "C") if described.dimensions else row
    if isinstance(described, Bundle):
        fields = [name for name, _ in described.fields]
        taken = [_type(its) for _, its in described.fields]
        return numba.types.BaseTuple.from_types(taken, namedtuple(described.name, fields))
    return sigutils.normalize_signature(f"{described}()")[1]


@cache
def _intrinsic(value: Intrinsic) -> Any:
    return value.compiled()


@cache
def _callee(definition: Definition, pipeline: Any) -> Any:
    """A function that kernels call, as numba calls it."""
    options: dict[str, Any] = dict(_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    options |= {"pipeline_class": pipeline, "forceinline": definition.inline}
    decorate = (
        numba.njit([*map(_written, definition.signatures)], **options)
        if definition.signatures
        else numba.njit(**options)
    )
    return decorate(_closed(definition, pipeline))
