"""Functions of lists, by definition: element by element. A list is a tuple."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from minidsms.testing.definition_library import Failure

List = Sequence[Any]


def _place(values: List, place: int) -> int:
    """A position counted from 1, or from the end, as one from 1; perhaps outside."""
    return place if place >= 0 else len(values) + 1 + place


def _slice(values: Any, first: int, last: int | None = None) -> Any:
    begin, end = _place(values, first), len(values) if last is None else _place(values, last)
    found = [v for i, v in enumerate(values, 1) if begin <= i <= end]
    return "".join(found) if isinstance(values, str) else tuple(found)


def _at(values: Any, place: int) -> Any:
    nothing = "" if isinstance(values, str) else None
    return next((v for i, v in enumerate(values, 1) if i == _place(values, place)), nothing)


def _position(values: List, value: Any) -> int | None:
    return next((i for i, v in enumerate(values, 1) if v == value), None)


def _present(values: List) -> List:
    return [v for v in values if v is not None]


def _sorted(values: List) -> List:
    return (*sorted(_present(values)), *(v for v in values if v is None))


def _falling(values: List) -> List:
    return (*reversed(_sorted(_present(values))), *(v for v in values if v is None))


def _once(values: List) -> List:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return tuple(found)


def _sum(values: List) -> Any:
    numbers = _present(values)
    if numbers and isinstance(numbers[0], Decimal):
        scale = -int(numbers[0].as_tuple().exponent)
        digits = int(sum(map(Fraction, numbers)) * 10**scale)
        if abs(digits) >= 10**38:
            raise Failure("overflow")
        return Decimal(digits).scaleb(-scale, Context(prec=100))
    if not numbers or isinstance(numbers[0], int):
        total = sum(numbers) if numbers else None
        if total is not None and not -(2**63) <= total < 2**63:
            raise Failure("overflow")
        return total
    return _fsum(numbers)


def _fsum(numbers: List) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return float(sum(numbers))


def _mean(values: List) -> Any:
    if any(isinstance(v, Decimal) for v in values):
        present = [Fraction(v) for v in _present(values)]
        power = 10 ** max(-int(v.as_tuple().exponent) for v in _present(values))
        return float(sum(present) * power) / len(present) / power
    numbers = [float(v) for v in _present(values)]
    return _fsum(numbers) / len(numbers) if numbers else None


def _split(text: str, separator: str) -> List:
    if not separator:
        return tuple(text[i] for i in range(len(text)))
    parts = [""]
    while text:
        if text.startswith(separator):
            parts.append("")
            text = text[len(separator) :]
        else:
            parts[-1] += text[0]
            text = text[1:]
    return tuple(parts)


def _series(first: int, last: int, step: int = 1) -> List:
    if step == 0 or (last - first) // step >= 1_000_000:
        raise Failure("too many")
    found = []
    while (first <= last) if step > 0 else (first >= last):
        found.append(first)
        first += step
    return tuple(found)


OF_LISTS: dict[str, Callable[..., Any]] = {
    "list_value": lambda *values: values,
    "element_at": _at,
    "cardinality": lambda values: sum(1 for _ in values),
    "list_contains": lambda values, value: _position(values, value) is not None,
    "list_position": _position,
    "list_slice": _slice,
    "list_concat": lambda *lists: tuple(v for values in lists for v in values),
    "list_prepend": lambda value, values: tuple([value, *values]),
    "list_remove": lambda values, value: tuple(v for v in values if v is None or v != value),
    "list_positions": lambda values, value: tuple(i for i, v in enumerate(values, 1) if v == value),
    "list_union": lambda a, b: _once([*a, *b]),
    "list_intersect": lambda a, b: tuple(v for v in _once(a) if _position(b, v) is not None),
    "list_except": lambda a, b: tuple(v for v in _once(a) if _position(b, v) is None),
    "list_append": lambda values, value: tuple([*values, value]),
    "list_distinct": _once,
    "list_sort": lambda values, order="asc": _sorted(values) if order.lower() == "asc" else _falling(values),
    "list_has_all": lambda a, b: all(_position(a, v) is not None for v in _present(b)),
    "list_has_any": lambda a, b: any(_position(a, v) is not None for v in _present(b)),
    "flatten": lambda values: tuple(v for inner in _present(values) for v in inner),
    "list_any": lambda values: True if True in values else None if None in values else False,
    "list_all": lambda values: False if False in values else None if None in values else True,
    "list_reverse": lambda values: tuple(reversed(values)),
    "list_sum": _sum,
    "list_avg": _mean,
    "list_min": lambda values: next(iter(_sorted(_present(values))), None),
    "list_max": lambda values: next(reversed(_sorted(_present(values))), None),
    "array_to_string": lambda values, separator, null=None: separator.join(
        str(v).lower() if isinstance(v, bool) else str(v)
        for v in (null if v is None else v for v in values)
        if v is not None
    ),
    "string_split": _split,
    "generate_series": _series,
}
"""Functions of lists, by name."""
