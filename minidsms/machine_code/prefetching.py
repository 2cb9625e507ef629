"""Having what a kernel is about to read on its way into the cache.

Invariant: like any intrinsic it is told apart by its name alone; other instructions are to have another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidsms.machine_code.intrinsics import Intrinsic


class _Prefetch(Intrinsic):
    def compiled(self) -> Callable[..., Any]:
        """As numba calls it."""
        from llvmlite import ir
        from numba import types
        from numba.core.cgutils import voidptr_t
        from numba.extending import intrinsic
        from numba.np.arrayobj import make_array

        number = ir.IntType(32)
        is_read, stays, is_data = number(0), number(3), number(1)

        def prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]
            kind = ir.FunctionType(ir.VoidType(), [voidptr_t, number, number, number])
            function = builder.module.declare_intrinsic("llvm.prefetch", (voidptr_t,), kind)
            at = builder.bitcast(builder.gep(array.data, [arguments[1]]), voidptr_t)
            builder.call(function, [at, is_read, stays, is_data])
            return context.get_dummy_value()

        def typed(typingctx: Any, array: Any, index: Any) -> Any:
            return types.none(array, index), prefetch

        made: Callable[..., Any] = intrinsic(typed)
        return made


prefetch: Any = _Prefetch("prefetch", 64)
"""(array, index) -> None; the element, which need not be there, is not read."""
