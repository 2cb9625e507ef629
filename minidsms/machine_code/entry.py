"""The entry of a kernel: what Python calls, in LLVM's language.

A built-in function of arguments in an array (METH_FASTCALL). It looks at every array and record before anything runs:
a numpy array, of the element type, the dimensions and the order that the signature names, aligned and writable; a
record of that size. Then it reads data, shape and strides where numpy has them, lets go of the interpreter's lock, and
calls the compiled function. No reference is counted: the caller holds the arguments, and kernels make no arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.np import numpy_support

from minidsms.machine_code import environment

types: Any = numba.types
_BYTE, _INT, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_DOUBLE = ir.DoubleType()
_POINTER = ir.PointerType(_BYTE)
_NEEDED = 0x1 | 0x100 | 0x400
"""numpy's flags: C-contiguous, aligned, writable."""
_SWAPPED = ord(">" if sys.byteorder == "little" else "<")


@dataclass(frozen=True)
class Variant:
    """A compiled function: numba's description of it, and its types."""

    descriptor: Any
    arguments: Sequence[Any]
    result: Any


def write_entry(module: ir.Module, context: Any, symbol: str, name: str, variants: Sequence[Variant]) -> None:
    """Define the entry in the module: the first variant whose arrays are those given runs; TypeError where none is."""
    signature = ir.FunctionType(_POINTER, [_POINTER, ir.PointerType(_POINTER), _WORD])
    function = ir.Function(module, signature, symbol)
    builder = ir.IRBuilder(function.append_basic_block("start"))
    _, arguments, count = function.args
    write = _Entry(module, context, builder, name)
    expected = len(variants[0].arguments)
    with builder.if_then(builder.icmp_signed("!=", count, _WORD(expected)), likely=False):
        write.refuse(f"{name}() takes {expected} arguments (%zd given)", count)
    given = [builder.load(builder.gep(arguments, [_WORD(i)])) for i in range(expected)]
    last = variants[-1]
    for variant in variants:
        following = builder.append_basic_block("following")
        for place, (type_, value) in enumerate(zip(variant.arguments, given, strict=True)):
            write.check(type_, value, place, None if variant is last else following)
        write.call(variant, given)
        builder.position_at_end(following)
    builder.unreachable()


class _Entry:
    """Writes the pieces of one entry where its builder stands."""

    def __init__(self, module: ir.Module, context: Any, builder: ir.IRBuilder, name: str) -> None:
        self._module = module
        self._context = context
        self._builder = builder
        self._name = name

    def refuse(self, message: str, *values: ir.Value, error: str = "minidsms.TypeError") -> None:
        """Return to Python with an error."""
        builder = self._builder
        form = cgutils.global_constant(self._module, "message", cgutils.make_bytearray(message.encode() + b"\0"))
        arguments = [self._address(error), builder.bitcast(form, _POINTER), *values]
        raised = self._python("PyErr_Format", _POINTER, [_POINTER, _POINTER], var_arg=True)
        builder.call(raised, arguments)
        builder.ret(ir.Constant(_POINTER, None))

    def check(self, type_: Any, value: ir.Value, place: int, otherwise: ir.Block | None) -> None:
        """Go on if the value is of the type as far as memory matters, else to the block or out with an error."""
        if isinstance(type_, types.BaseTuple):
            self._go_on_if(self._is_tuple(value), type_, place, otherwise)
            self._go_on_if(self._is_long(value, len(type_.types)), type_, place, otherwise)
            for i, item in enumerate(type_.types):
                self.check(item, self._item(value, i), place, otherwise)
        elif isinstance(type_, types.Array):
            self._go_on_if(self._is(value, "minidsms.ndarray"), type_, place, otherwise)
            self._go_on_if(self._is_like(value, type_), type_, place, otherwise)
        elif isinstance(type_, types.Record):
            kind = self._field(value, environment.OBJECT_TYPE, _POINTER)
            self._go_on_if(self._is(kind, "minidsms.record"), type_, place, otherwise)
            size = self._field(value, environment.RECORD_SIZE, _WORD)
            self._go_on_if(self._builder.icmp_signed("==", size, _WORD(type_.size)), type_, place, otherwise)

    def call(self, variant: Variant, given: Sequence[ir.Value]) -> None:
        """Convert the arguments, run the function without the interpreter's lock, and return its result."""
        builder, context = self._builder, self._context
        values = [self._native(type_, value) for type_, value in zip(variant.arguments, given, strict=True)]
        function = context.declare_function(self._module, variant.descriptor)
        thread = builder.call(self._python("PyEval_SaveThread", _POINTER, []), [])
        status, result = context.call_conv.call_function(builder, function, variant.result, variant.arguments, values)
        builder.call(self._python("PyEval_RestoreThread", ir.VoidType(), [_POINTER]), [thread])
        with builder.if_then(status.is_error, likely=False):
            self.refuse(f"{self._name}() broke off", error="minidsms.RuntimeError")
        builder.ret(self._object(variant.result, result))

    def _native(self, type_: Any, value: ir.Value) -> ir.Value:
        """The value as compiled functions take it."""
        builder, context = self._builder, self._context
        if isinstance(type_, types.Array):
            return self._array(type_, value)
        if isinstance(type_, types.Record):
            return builder.bitcast(self._field(value, environment.RECORD, _POINTER), context.get_value_type(type_))
        if isinstance(type_, types.BaseTuple):
            items = [self._native(item, self._item(value, i)) for i, item in enumerate(type_.types)]
            return context.make_tuple(builder, type_, items)
        if isinstance(type_, types.Boolean):
            truth = builder.call(self._python("PyObject_IsTrue", _INT, [_POINTER]), [value])
            self._leave_if(builder.icmp_signed("<", truth, _INT(0)))
            return builder.icmp_signed("!=", truth, _INT(0))
        if isinstance(type_, types.Float):
            number = builder.call(self._python("PyFloat_AsDouble", _DOUBLE, [_POINTER]), [value])
            self._leave_if_error(builder.fcmp_ordered("==", number, _DOUBLE(-1.0)))
            return number
        if type_ == types.int64:
            number = builder.call(self._python("PyLong_AsLongLong", _WORD, [_POINTER]), [value])
            self._leave_if_error(builder.icmp_signed("==", number, _WORD(-1)))
            return number
        raise TypeError(f"a kernel cannot be called with a {type_}")

    def _object(self, type_: Any, value: ir.Value) -> ir.Value:
        """A result as Python has it."""
        builder = self._builder
        if type_ == types.void:
            none = self._address("minidsms.None")
            builder.call(self._python("Py_IncRef", ir.VoidType(), [_POINTER]), [none])
            return none
        if isinstance(type_, types.Boolean):
            wide = builder.zext(value, _WORD)
            return builder.call(self._python("PyBool_FromLong", _POINTER, [_WORD]), [wide])
        if isinstance(type_, types.Float):
            return builder.call(self._python("PyFloat_FromDouble", _POINTER, [_DOUBLE]), [value])
        if type_ == types.int64:
            return builder.call(self._python("PyLong_FromLongLong", _POINTER, [_WORD]), [value])
        raise TypeError(f"a kernel cannot return a {type_}")

    def _array(self, type_: Any, value: ir.Value) -> ir.Value:
        """numba's description of an array in memory that somebody else holds."""
        builder, context = self._builder, self._context
        array = context.make_array(type_)(context, builder)
        item = context.get_constant(types.intp, numpy_support.as_dtype(type_.dtype).itemsize)
        lengths = self._words(value, environment.DIMENSIONS, type_.ndim)
        count = context.get_constant(types.intp, 1)
        for length in lengths:
            count = builder.mul(count, length)
        array.data = builder.bitcast(self._field(value, environment.DATA, _POINTER), array.data.type)
        array.shape = cgutils.pack_array(builder, lengths, _WORD)
        array.strides = cgutils.pack_array(builder, self._words(value, environment.STRIDES, type_.ndim), _WORD)
        array.itemsize, array.nitems = item, count
        array.meminfo, array.parent = (ir.Constant(field.type, None) for field in (array.meminfo, array.parent))
        return array._getvalue()

    def _words(self, value: ir.Value, offset: int, count: int) -> list[ir.Value]:
        words = self._field(value, offset, ir.PointerType(_WORD))
        return [self._builder.load(self._builder.gep(words, [_WORD(i)])) for i in range(count)]

    def _is(self, value: ir.Value, symbol: str) -> ir.Value:
        """Whether the value's type is the one at the symbol."""
        return self._same(self._field(value, environment.OBJECT_TYPE, _POINTER), self._address(symbol))

    def _is_tuple(self, value: ir.Value) -> ir.Value:
        """Whether it is a tuple, or a NamedTuple."""
        flags = self._field(self._field(value, environment.OBJECT_TYPE, _POINTER), environment.TYPE_FLAGS, _WORD)
        return self._builder.icmp_signed("!=", self._builder.and_(flags, _WORD(environment.IS_TUPLE)), _WORD(0))

    def _is_long(self, value: ir.Value, length: int) -> ir.Value:
        """Whether a tuple has so many items."""
        return self._builder.icmp_signed("==", self._field(value, environment.TUPLE_LENGTH, _WORD), _WORD(length))

    def _item(self, value: ir.Value, place: int) -> ir.Value:
        return self._field(value, environment.TUPLE_ITEMS + 8 * place, _POINTER)

    def _is_like(self, value: ir.Value, type_: Any) -> ir.Value:
        """Whether an array has the element type, in this machine's order of bytes, the dimensions and the order."""
        builder = self._builder
        dtype = self._field(value, environment.DTYPE, _POINTER)
        number = self._field(dtype, environment.DTYPE_NUMBER, _INT)
        known = cgutils.false_bit
        element = numpy_support.as_dtype(type_.dtype)
        for one in _numbers(element):
            known = builder.or_(known, builder.icmp_signed("==", number, _INT(one)))
        if element.names is not None:
            size = self._field(dtype, environment.DTYPE_SIZE, _WORD)
            known = builder.and_(known, builder.icmp_signed("==", size, _WORD(element.itemsize)))
        order = self._field(dtype, environment.DTYPE_BYTE_ORDER, _BYTE)
        flags = self._field(value, environment.FLAGS, _INT)
        dimensions = self._field(value, environment.DIMENSIONS_COUNT, _INT)
        for claim in (
            builder.icmp_signed("!=", order, _BYTE(_SWAPPED)),
            builder.icmp_signed("==", dimensions, _INT(type_.ndim)),
            builder.icmp_signed("==", builder.and_(flags, _INT(_NEEDED)), _INT(_NEEDED)),
        ):
            known = builder.and_(known, claim)
        return known

    def _go_on_if(self, claim: ir.Value, type_: Any, place: int, otherwise: ir.Block | None) -> None:
        builder = self._builder
        if otherwise is None:
            with builder.if_then(builder.not_(claim), likely=False):
                self.refuse(f"argument {place + 1} of {self._name}() is no {_in_words(type_)}")
        else:
            right = builder.append_basic_block("right")
            builder.cbranch(claim, right, otherwise)
            builder.position_at_end(right)

    def _leave_if_error(self, may_be: ir.Value) -> None:
        """Return to Python if a conversion gave the value that may mean an error, and it does."""
        builder = self._builder
        with builder.if_then(may_be, likely=False):
            error = builder.call(self._python("PyErr_Occurred", _POINTER, []), [])
            self._leave_if(builder.not_(self._same(error, ir.Constant(_POINTER, None))))

    def _leave_if(self, is_error: ir.Value) -> None:
        with self._builder.if_then(is_error, likely=False):
            self._builder.ret(ir.Constant(_POINTER, None))

    def _same(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self._builder.icmp_unsigned("==", one, other)

    def _field(self, value: ir.Value, offset: int, type_: ir.Type) -> ir.Value:
        builder = self._builder
        return builder.load(builder.bitcast(builder.gep(value, [_WORD(offset)]), ir.PointerType(type_)))

    def _address(self, symbol: str) -> ir.Value:
        """Of an object of Python's, which the binding gives the symbol of."""
        found = self._module.globals.get(symbol)
        if found is None:
            found = ir.GlobalVariable(self._module, _BYTE, symbol)
        return found

    def _python(self, name: str, result: ir.Type, arguments: Sequence[ir.Type], var_arg: bool = False) -> ir.Function:
        """A function of Python's own."""
        return cgutils.get_or_insert_function(self._module, ir.FunctionType(result, arguments, var_arg), name)


def _numbers(dtype: np.dtype[Any]) -> set[int]:
    """numpy's numbers of the types that are the same bytes: of int64 two, `long` and `long long`."""
    if dtype.names is not None:
        return {dtype.num}
    return {np.dtype(code).num for code in "?bBhHiIlLqQfd" if np.dtype(code) == dtype}


def _in_words(type_: Any) -> str:
    """Of a type, for errors."""
    if isinstance(type_, types.BaseTuple):
        return f"tuple of {len(type_.types)}"
    if isinstance(type_, types.Record):
        return f"record of {', '.join(type_.fields)}"
    return f"contiguous, writable array of {type_.dtype} in {type_.ndim} dimensions"
