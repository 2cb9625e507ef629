"""What kernels can do that no Python function could: read memory behind an address, look at bits, multiply and add in
one.

The names stand here, for kernels to import; the compiler puts LLVM's instructions in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Intrinsic:
    """A name for instructions.  bits: of the integer it reads."""

    def __init__(self, name: str, bits: int) -> None:
        self.name = name
        self.bits = bits

    def compiled(self) -> Callable[..., Any]:
        """As numba calls it."""
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        element = ir.IntType(self.bits)
        result = types.Integer.from_bitwidth(self.bits, signed=True)

        def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start = builder.inttoptr(arguments[0], element.as_pointer())
            return builder.load(builder.gep(start, [arguments[1]]))

        def typed(typingctx: Any, address: Any, index: Any) -> Any:
            return result(types.int64, types.int64), load

        made: Callable[..., Any] = intrinsic(typed)
        return made


word_at: Any = Intrinsic("word_at", 64)
"""(address, index) -> the index-th int64 behind the address."""
byte_at: Any = Intrinsic("byte_at", 8)
"""(address, index) -> the index-th int8 behind the address."""


class _Behind(Intrinsic):
    """element: numba's name of the type of an array's elements."""

    def __init__(self, name: str, bits: int, element: str) -> None:
        super().__init__(name, bits)
        self.element = element

    def compiled(self) -> Callable[..., Any]:
        """As numba calls it."""
        from numba import types
        from numba.extending import intrinsic
        from numba.np.arrayobj import make_array, populate_array

        array = types.Array(getattr(types, self.element), 1, "C")
        width = self.bits >> 3

        def behind(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, count = arguments
            made = make_array(array)(context, builder)  # type: ignore[no-untyped-call]
            item = context.get_constant(types.intp, width)
            start = builder.inttoptr(address, made.data.type)
            populate_array(made, start, [count], [item], item, None)  # type: ignore[no-untyped-call]
            return made._getvalue()

        def typed(typingctx: Any, address: Any, count: Any) -> Any:
            return array(types.int64, types.int64), behind

        made: Callable[..., Any] = intrinsic(typed)
        return made


words_behind: Any = _Behind("words_behind", 64, "int64")
"""(address, count) -> so many int64 behind the address, as an array."""
floats_behind: Any = _Behind("floats_behind", 64, "float64")
"""The same of float64, ..."""
truths_behind: Any = _Behind("truths_behind", 8, "boolean")
"""... and of bytes that are 0 or 1."""


class _MultiplyAdd(Intrinsic):
    def compiled(self) -> Callable[..., Any]:
        """As numba calls it."""
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        number = ir.DoubleType()

        def multiply_add(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(number, [number] * 3)
            return builder.call(builder.module.declare_intrinsic("llvm.fmuladd", (number,), kind), arguments)

        def typed(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
            return types.float64(types.float64, types.float64, types.float64), multiply_add

        made: Callable[..., Any] = intrinsic(typed)
        return made


multiply_add: Any = _MultiplyAdd("multiply_add", 64)
"""(a, b, c) -> a * b + c of float64s: one instruction, which rounds once, where the processor has it; else two."""


class _OfBits(Intrinsic):
    """instruction: LLVM's name of it, of one word.  also: what else it is given."""

    def __init__(self, name: str, instruction: str, *also: int) -> None:
        super().__init__(name, 64)
        self.instruction = instruction
        self.also = also

    def compiled(self) -> Callable[..., Any]:
        """As numba calls it."""
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        word, truth = ir.IntType(64), ir.IntType(1)

        def count(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(word, [word, *(truth for _ in self.also)])
            function = builder.module.declare_intrinsic(self.instruction, (word,), kind)
            return builder.call(function, [*arguments, *map(truth, self.also)])

        def typed(typingctx: Any, bits: Any) -> Any:
            return types.int64(types.uint64), count

        made: Callable[..., Any] = intrinsic(typed)
        return made


first_bit: Any = _OfBits("first_bit", "llvm.cttz", 1)
"""(word) -> the number of the lowest bit that is set in a uint64 that is not 0."""
bits_set: Any = _OfBits("bits_set", "llvm.ctpop")
"""(word) -> how many bits of a uint64 are set."""
