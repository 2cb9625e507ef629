"""What kernels can do that no Python function could: read memory behind an address, multiply and add in one.

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
