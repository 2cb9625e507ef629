"""The functions of `minidsms.functions` over columns.

Functions of values are computed once per distinct text, or combination of arguments, as those of `expressions.text`
are; functions of arrays once per chunk. Arguments that must be literals arrive as Python values in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minidsms.cql import scalar
from minidsms.elements import Type, has_true
from minidsms.expressions.value import Value, any_failed, both_valid, finish, finish_float
from minidsms.functions.function import Arrays, Function


def value_function(function: Function, tick_ns: int) -> Callable[..., Any] | None:
    """The function over Python values, if it has that form."""
    if function.of_values is None or not function.in_ticks:
        return function.of_values
    return partial(function.of_values, tick_ns=tick_ns)


def array_function(
    function: Function, args: Sequence[scalar.Expr], type_: Type, tick_ns: int
) -> Callable[[Sequence[Value]], Value]:
    """The function over the values of its arguments, in their order, literal ones among them."""
    assert function.of_arrays is not None
    compute: Callable[..., Any] = function.of_arrays
    if function.in_ticks:
        compute = partial(compute, tick_ns=tick_ns)
    literals = {i: a.value for i, a in enumerate(args) if i in function.literals and isinstance(a, scalar.Literal)}

    def apply(values: Sequence[Value]) -> Value:
        given = [v for i, v in enumerate(values) if i not in literals]
        result = compute(*(literals.get(i, v.values) for i, v in enumerate(values)))
        arrays = result if isinstance(result, Arrays) else Arrays(result)
        fresh = np.asarray(arrays.values, type_.dtype)
        shape = fresh.shape or (1,)
        if not fresh.ndim:
            fresh = fresh.reshape(shape)
        # What a function gives may be an argument itself.
        if any(np.may_share_memory(fresh, v.values) for v in given):
            fresh = fresh.copy()
        valid, failed = both_valid(*given), any_failed(*given)
        if type_ is Type.FLOAT:
            return finish_float(fresh, valid, failed)
        return finish(fresh, valid, failed, bad=_mask(arrays.bad, shape), null=_mask(arrays.null, shape))

    return apply


def _mask(mask: Any, shape: tuple[int, ...]) -> Any:
    if mask is None or not has_true(mask := np.asarray(mask)):
        return None
    return mask if mask.shape == shape else np.broadcast_to(mask, shape)
