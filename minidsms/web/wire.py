"""Values on their way to the page, as JSON that every browser reads: what it cannot hold exactly goes as text."""

from __future__ import annotations

import json
import math
from typing import Any

from minidsms.elements import Type

_EXACT = 2**53


def text_of(value: Any) -> str:
    """JSON of plain values, without NaN and infinities, which stand as null."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=str)


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -_EXACT < value < _EXACT else str(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def is_number(type_: Type) -> bool:
    """Values of the type can be drawn."""
    return type_ in (Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.INTERVAL)
