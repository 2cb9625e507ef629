"""Functions of lists. Positions count from 1, from the end by negative numbers; NULLs are elements like others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial, reduce
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import FAILED, MOST_CHARACTERS, Function, Signature, fixed, one_of
from minidsms.values.coded import EXACT, List, fitted, unscaled
from minidsms.values.types import MOST_DIGITS

_INT, _FLOAT, _TEXT, _BOOL = Type.INTEGER, Type.FLOAT, Type.TEXT, Type.BOOLEAN
_NUMBERS = (_INT, _FLOAT)
Resolver = Callable[[Sequence[Type]], Signature | None]


def _of_list(result: Callable[[Type], Type | None], *behind: Callable[[Type], Type], is_list: bool = False) -> Resolver:
    """A list, then arguments whose types follow from that of its elements, as does the result's, or a list of it."""

    def resolve(types: Sequence[Type]) -> Signature | None:
        element = types[0].element
        if element is None:
            return None
        wanted = [one(element) for one in behind[: len(types) - 1]]
        for have, want in zip(types[1:], wanted):
            if have not in (want, Type.NULL) and not (have is _INT and want is _FLOAT):
                return None
        found = result(element)
        if found is None:
            return None
        return Signature((types[0], *wanted), found.list_type if is_list else found)

    return resolve


def _or_of_text(of_list: Resolver, *behind: Type) -> Resolver:
    """Also of a TEXT, as if its characters were the elements."""

    def resolve(types: Sequence[Type]) -> Signature | None:
        if types[0] is not _TEXT:
            return of_list(types)
        fits = all(have in (want, Type.NULL) for have, want in zip(types[1:], behind))
        return Signature((_TEXT, *behind[: len(types) - 1]), _TEXT) if fits else None

    return resolve


def _counted(types: Sequence[Type]) -> Signature | None:
    return Signature((types[0],), _INT) if types[0].element is not None or types[0].kind == "MAP" else None


def _to_the_front(types: Sequence[Type]) -> Signature | None:
    found = _of_list(_list, _same)(types[::-1])
    return None if found is None else Signature(found.args[::-1], found.result)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value).lower()


def _same(element: Type) -> Type:
    return element


def _with_order(element: Type) -> Type | None:
    return None if element.is_nested else element


def _list(element: Type) -> Type:
    return element.list_type


def _always(type_: Type) -> Callable[[Type], Type]:
    return lambda element: type_


def _summed(element: Type) -> Type | None:
    """As SUM: DECIMALs as the longest of their scale."""
    if element.kind == "DECIMAL":
        return Type.decimal(MOST_DIGITS, element.scale)
    return element if element in (_INT, _FLOAT, Type.INTERVAL) else None


def _only(*types: Type) -> Callable[[Type], Type | None]:
    return lambda element: element if element in types else None


def _elements(types: Sequence[Type]) -> Signature | None:
    """The elements of a list that is written out: of one type, NULLs, INTEGER among FLOAT."""
    present: list[Type] = [t for t in types if t is not Type.NULL] or [_INT]
    element = _FLOAT if set(present) == {_INT, _FLOAT} else present[0]
    if any(t not in (element, _INT) for t in present) or (
        element is not _FLOAT and any(t is not element for t in present)
    ):
        return None
    return Signature((element,) * len(types), element.list_type)


def _at(values: List | str, place: int) -> Any:
    index = place - 1 if place > 0 else place
    nothing = "" if isinstance(values, str) else None
    return values[index] if place and -len(values) <= index < len(values) else nothing


def _slice(values: Any, first: int, last: int | None = None) -> Any:
    n = len(values)
    begin = first - 1 if first > 0 else max(n + first, 0) if first < 0 else 0
    end = n if last is None else last if last >= 0 else n + last + 1
    return values[begin : max(end, begin)]


def _joined(values: List, separator: str, null: str | None = None) -> str:
    shown = [null if v is None else _shown(v) for v in values]
    return separator.join(text for text in shown if text is not None)


def _split(text: str, separator: str) -> List:
    return tuple(text.split(separator)) if separator else tuple(text)


def _distinct(values: List) -> List:
    return tuple(dict.fromkeys(values))


def _present(values: List) -> list[Any]:
    return [v for v in values if v is not None]


def _sum(values: List) -> Any:
    numbers = _present(values)
    if not numbers:
        return None
    if isinstance(numbers[0], float):
        return _real_sum(numbers)
    if isinstance(numbers[0], Decimal):
        exact = reduce(EXACT.add, numbers)
        return FAILED if fitted(exact, Type.decimal(MOST_DIGITS, _scale(exact))) is None else exact
    total = sum(numbers)
    return total if -(2**63) <= total < 2**63 else FAILED


def _scale(number: Decimal) -> int:
    return -int(number.as_tuple().exponent)


def _real_sum(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return float(sum(numbers))


def _mean(values: List) -> Any:
    numbers = _present(values)
    if numbers and isinstance(numbers[0], Decimal):
        exact = reduce(EXACT.add, numbers)
        return float(unscaled(exact, _scale(exact))) / len(numbers) / 10 ** _scale(exact)
    return _real_sum([float(n) for n in numbers]) / len(numbers) if numbers else None


def _extreme(choose: Callable[..., Any]) -> Callable[[List], Any]:
    return lambda values: choose(_present(values), default=None)


def _junction(values: List, decides: bool) -> bool | None:
    return decides if decides in values else None if None in values else not decides


def _repeated(first: int, last: int, step: int = 1) -> Any:
    if step == 0 or (last - first) // step >= MOST_CHARACTERS:
        return FAILED
    return tuple(range(first, last + (1 if step > 0 else -1), step))


def _both(types: Sequence[Type]) -> Signature | None:
    first = next((t for t in types if t is not Type.NULL), Type.NULL)
    if first.element is None or any(t not in (first, Type.NULL) for t in types):
        return None
    return Signature((first,) * len(types), first)


def _compared(types: Sequence[Type]) -> Signature | None:
    found = _both(types)
    return None if found is None else Signature(found.args, _BOOL)


def _sorted(values: List, order: str = "asc") -> List:
    present = sorted(_present(values), reverse=order.lower() == "desc")
    return (*present, *(None for _ in range(len(values) - len(present))))


def _by_lambda(types: Sequence[Type]) -> None:
    """The type of a lambda follows from that of its parameters: the binder knows."""


_LIST = "a list"

FUNCTIONS = (
    Function(
        "list_value", 0, None, _elements, "values of one type", "the list of these; also `[1, 2]`",
        ("LIST_VALUE(1, NULL, 2)", "[1, None, 2]"), lambda *values: values, strict=False,
    ),
    Function(
        "element_at", 2, 2, _or_of_text(_of_list(_same, _always(_INT)), _INT), "a list or TEXT, and a position",
        "the element at a position, NULL where there is none; of a TEXT its character, or ''; also `l[2]`",
        ("ELEMENT_AT(['a', 'b'], -1)", "'b'"), _at,
    ),
    Function(
        "cardinality", 1, 1, _counted, "a list or a MAP", "the number of elements, or keys",
        ("CARDINALITY([7, NULL])", "2"), len,
    ),
    Function(
        "list_contains", 2, 2, _of_list(_always(_BOOL), _same), "a list and a value", "whether the value is an element",
        ("LIST_CONTAINS(['a', 'b'], 'b')", "true"), lambda values, value: value in values,
    ),
    Function(
        "list_position", 2, 2, _of_list(_always(_INT), _same), "a list and a value",
        "the position of the first element that is equal, or NULL", ("LIST_POSITION([7, 9], 9)", "2"),
        lambda values, value: values.index(value) + 1 if value in values else None,
    ),
    Function(
        "list_slice", 2, 3, _or_of_text(_of_list(_list, _always(_INT), _always(_INT)), _INT, _INT),
        "a list or TEXT, and one or two positions",
        "the elements, or characters, from a position to another, both included, or to the end; also `l[2:-2]`",
        ("LIST_SLICE([1, 2, 3, 4], 2, -2)", "[2, 3]"), _slice,
    ),
    Function(
        "list_concat", 2, None, _both, "lists of one type", "one after the other",
        ("LIST_CONCAT([1], [2, 3])", "[1, 2, 3]"), lambda *lists: tuple(v for values in lists for v in values),
    ),
    Function(
        "list_append", 2, 2, _of_list(_list, _same), "a list and a value", "the list with the value appended",
        ("LIST_APPEND([1], 2)", "[1, 2]"), lambda values, value: (*values, value),
    ),
    Function(
        "list_prepend", 2, 2, _to_the_front, "a value and a list", "the list with the value prepended",
        ("LIST_PREPEND(1, [2])", "[1, 2]"), lambda value, values: (value, *values),
    ),
    Function(
        "list_remove", 2, 2, _of_list(_list, _same), "a list and a value",
        "the list without the elements that are equal",
        ("LIST_REMOVE([1, 2, 1], 1)", "[2]"), lambda values, value: tuple(v for v in values if v != value),
    ),
    Function(
        "list_positions", 2, 2, _of_list(_always(_INT.list_type), _same), "a list and a value",
        "the positions of all elements that are equal", ("LIST_POSITIONS([7, 9, 7], 7)", "[1, 3]"),
        lambda values, value: tuple(i for i, v in enumerate(values, 1) if v == value),
    ),
    Function(
        "list_union", 2, 2, _both, "lists of one type",
        "the different elements of both, in the order of their first occurrence",
        ("LIST_UNION([1, 2, 1], [3, 2])", "[1, 2, 3]"), lambda a, b: _distinct(a + b),
    ),
    Function(
        "list_intersect", 2, 2, _both, "lists of one type",
        "the different elements of the first that are in the second",
        ("LIST_INTERSECT([1, 2, 1], [3, 1])", "[1]"), lambda a, b: tuple(v for v in _distinct(a) if v in b),
    ),
    Function(
        "list_except", 2, 2, _both, "lists of one type",
        "the different elements of the first that are not in the second",
        ("LIST_EXCEPT([1, 2, 1], [3, 1])", "[2]"), lambda a, b: tuple(v for v in _distinct(a) if v not in b),
    ),
    Function(
        "list_distinct", 1, 1, _of_list(_list), _LIST, "each element once, in the order of first occurrence",
        ("LIST_DISTINCT([2, 1, 2])", "[2, 1]"), _distinct,
    ),
    Function(
        "list_sort", 1, 2, _of_list(_with_order, _always(_TEXT), is_list=True), "a list and optionally 'ASC' or 'DESC'",
        "the elements from least to greatest, or from greatest to least, NULLs last",
        ("LIST_SORT([2, NULL, 1])", "[1, 2, None]"), _sorted, literals={1: one_of(("asc", "desc"), "an order")},
    ),
    Function(
        "list_has_all", 2, 2, _compared, "lists of one type",
        "whether all elements of the second are in the first; NULLs are ignored",
        ("LIST_HAS_ALL([1, 2], [2, 1, 1])", "true"), lambda a, b: set(_present(b)) <= set(a),
    ),
    Function(
        "list_has_any", 2, 2, _compared, "lists of one type",
        "whether an element of the second is in the first; NULLs are ignored",
        ("LIST_HAS_ANY([1, 2], [3, 2])", "true"), lambda a, b: not set(_present(b)).isdisjoint(a),
    ),
    Function(
        "flatten", 1, 1, _of_list(lambda element: element if element.element is not None else None), "a list of lists",
        "their elements in one list; a NULL list has none", ("FLATTEN([[1], [2, 3]])", "[1, 2, 3]"),
        lambda values: tuple(v for inner in values if inner is not None for v in inner),
    ),
    Function(
        "list_reverse", 1, 1, _of_list(_list), _LIST, "the elements from last to first",
        ("LIST_REVERSE([1, 2])", "[2, 1]"), lambda values: values[::-1],
    ),
    Function(
        "list_sum", 1, 1, _of_list(_summed), "a list of numbers",
        "the sum, of DECIMALs as DECIMAL(38, s); fails if it does not fit; NULLs are ignored",
        ("LIST_SUM([1, NULL, 2])", "3"),
        _sum, can_fail=True,
    ),
    Function(
        "list_avg", 1, 1, _of_list(lambda e: _FLOAT if e in _NUMBERS or e.kind == "DECIMAL" else None),
        "a list of numbers",
        "the mean; NULLs are ignored", ("LIST_AVG([1, NULL, 2])", "1.5"), _mean,
    ),
    Function(
        "list_min", 1, 1, _of_list(_with_order), _LIST,
        "the least; NULLs are ignored", ("LIST_MIN(['b', 'a'])", "'a'"),
        _extreme(min),
    ),
    Function(
        "list_max", 1, 1, _of_list(_with_order), _LIST,
        "the greatest; NULLs are ignored", ("LIST_MAX([1, NULL, 2])", "2"),
        _extreme(max),
    ),
    Function(
        "list_transform", 2, 3, _by_lambda, "a list and a lambda",
        "the lambda's result for each element, or element and position; for a MAP, one lambda each for keys and values",
        ("LIST_TRANSFORM([1, 2], x -> x * 10)", "[10, 20]"),
    ),
    Function(
        "list_filter", 2, 2, _by_lambda, "a list or MAP and a lambda", "the elements for which the lambda is TRUE",
        ("LIST_FILTER([1, 2, NULL, 3], x -> x > 1)", "[2, 3]"),
    ),
    Function(
        "list_reduce", 3, 3, _by_lambda, "a list or MAP, a beginning and a lambda",
        "the result of applying the lambda to the result so far, at first the second argument, and each element",
        ("LIST_REDUCE([1, 2, 3], 0, (sum, x) -> sum + x)", "6"),
    ),
    *(
        Function(
            f"list_{word}", 1, 1, _of_list(_only(_BOOL)), "a list of BOOLEAN", summary,
            (f"LIST_{word.upper()}([true, NULL])", value), partial(_junction, decides=decides),
        )
        for word, decides, value, summary in (
            ("any", True, "true", "TRUE if an element is TRUE, else NULL if one is NULL; also `x = ANY(l)`"),
            ("all", False, "NULL", "FALSE if an element is FALSE, else NULL if one is NULL; also `x <> ALL(l)`"),
        )
    ),
    Function(
        "array_to_string", 2, 3,
        _of_list(lambda e: _TEXT if e in (_TEXT, _BOOL, *_NUMBERS) else None, _always(_TEXT), _always(_TEXT)),
        "a list of TEXT, numbers or BOOLEAN, a separator and optionally a text for NULLs",
        "the texts joined with the separator; NULLs are skipped, or written as the third text",
        ("ARRAY_TO_STRING(['a', NULL, 'b'], '-')", "'a-b'"), _joined,
    ),
    Function(
        "string_split", 2, 2, fixed(Type.TEXT.list_type, _TEXT), "TEXT, and a separator",
        "the parts between separators; the characters where that is ''", ("STRING_SPLIT('a-b', '-')", "['a', 'b']"),
        _split,
    ),
    Function(
        "generate_series", 2, 3, fixed(Type.INTEGER.list_type, _INT), "INTEGER, from, to and optionally a step",
        "the numbers from one to another, both included; fails above 1,000,000 and with a step of 0",
        ("GENERATE_SERIES(1, 7, 3)", "[1, 4, 7]"), _repeated, can_fail=True,
    ),
)  # fmt: skip
