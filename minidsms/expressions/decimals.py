"""Arithmetic of DECIMAL: exact; more digits than the type of the result has are a failure (docs/semantics R4)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from minidsms.cql import bound
from minidsms.functions.function import FAILED
from minidsms.values.coded import EXACT, fitted


def _to(rounding: str) -> Callable[..., Decimal]:
    """To so many places behind the point, or before it by a negative number."""

    def apply(value: Decimal, places: int = 0) -> Decimal:
        # Beyond 38 digits on either side nothing changes any more.
        return value.quantize(Decimal(1).scaleb(min(max(-places, -40), 40)), rounding, EXACT)

    return apply


def _remainder(a: Decimal, b: Decimal) -> Decimal | None:
    return EXACT.remainder(a, b) if b else None


_FUNCTIONS: dict[str, Callable[..., Decimal | None]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "%": _remainder,
    "neg": EXACT.minus,
    "abs": EXACT.abs,
    "floor": _to(ROUND_FLOOR),
    "ceil": _to(ROUND_CEILING),
    "round": _to(ROUND_HALF_UP),
}


def function(name: str, call: bound.Call) -> Callable[..., Any] | None:
    """The function of DECIMALs that an operator of them is, over Python values; None for others."""
    if call.type.kind != "DECIMAL" or name not in _FUNCTIONS:
        return None
    compute, type_ = _FUNCTIONS[name], call.type

    def apply(*args: Any) -> Any:
        exact = compute(*args)
        if exact is None:
            return None
        found = fitted(exact, type_)
        return FAILED if found is None else found

    return apply
