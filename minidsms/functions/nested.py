"""Functions of STRUCT and MAP. A STRUCT is a tuple of its values, a MAP of its pairs in the order of the keys.

The binder makes STRUCT, MAP and STRUCT_EXTRACT from names as well as types; their rows say what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import FAILED, Function, Signature, fixed
from minidsms.values.coded import List

Resolver = Callable[[Sequence[Type]], Signature | None]
_KEYS = (Type.TEXT, Type.INTEGER)


def _by_names(types: Sequence[Type]) -> None:
    """The types alone do not tell."""


def _of_map(result: Callable[[Type, Type], Type], *behind: bool) -> Resolver:
    """A MAP, then keys; the result follows from its types."""

    def resolve(types: Sequence[Type]) -> Signature | None:
        if types[0].kind != "MAP":
            return None
        (_, key), (_, value) = types[0].fields
        fits = all(t in (key, Type.NULL) for t in types[1:])
        return Signature((types[0], *(key for _ in types[1:])), result(key, value)) if fits else None

    return resolve


def _of_lists(types: Sequence[Type]) -> Signature | None:
    keys, values = types
    if keys.element not in _KEYS or keys.element is None or values.element is None:
        return None
    return Signature((keys, values), Type.map(keys.element, values.element))


def _of_entries(types: Sequence[Type]) -> Signature | None:
    pair = types[0].element
    if pair is None or pair.kind != "STRUCT" or len(pair.fields) != 2 or pair.fields[0][1] not in _KEYS:
        return None
    return Signature((types[0],), Type.map(pair.fields[0][1], pair.fields[1][1]))


def _same_maps(types: Sequence[Type]) -> Signature | None:
    is_one = types[0].kind == "MAP" and all(t is types[0] for t in types)
    return Signature(tuple(types), types[0]) if is_one else None


def map_of(pairs: Iterable[tuple[Any, Any]]) -> Any:
    """A MAP; FAILED where a key is NULL or there twice."""
    found = list(pairs)
    if len({k for k, _ in found} - {None}) < len(found):
        return FAILED
    return tuple(sorted(found, key=itemgetter(0)))


def _from_lists(keys: List, values: List) -> Any:
    return map_of(zip(keys, values)) if len(keys) == len(values) else FAILED


def _union(*maps: List) -> List:
    return tuple(sorted({k: v for pairs in maps for k, v in pairs}.items()))


def _split_to_map(text: str, between: str, inside: str) -> List:
    parts = [part.partition(inside) for part in (text.split(between) if between else [text])] if inside else []
    return tuple(sorted({key: value for key, found, value in parts if found}.items()))


_MAP = "a MAP"

FUNCTIONS = (
    Function(
        "struct", 1, None, _by_names, "named values", "the STRUCT of these; a column needs no name",
        ("STRUCT(a := 1, b := 'x')", "{'a': 1, 'b': 'x'}"), lambda *values: values, strict=False,
    ),
    Function(
        "struct_extract", 2, 2, _by_names, "a STRUCT and the name of a field",
        "the value of a field; also `s.a`, `s['a']` and `s->a`",
        ("STRUCT_EXTRACT(STRUCT(a := 1, b := 'x'), 'b')", "'x'"),
        lambda values, place: values[place],
    ),
    Function(
        "map", 1, None, _by_names, "keys and values",
        "the MAP from keys, TEXT or INTEGER, to values; fails where a key is NULL or twice there",
        ("MAP('a' := 1, 'b' := 2)", "{'a': 1, 'b': 2}"),
        lambda *both: map_of(zip(both[::2], both[1::2])), strict=False, can_fail=True,
    ),
    Function(
        "map_from_lists", 2, 2, _of_lists, "two lists",
        "from the elements of the first list to those of the second; fails as MAP does, and for different lengths",
        ("MAP_FROM_LISTS(['a', 'b'], [1, 2])", "{'a': 1, 'b': 2}"), _from_lists, can_fail=True,
    ),
    Function(
        "map_extract", 2, 2, _of_map(lambda key, value: value), "a MAP and a key",
        "the value of a key, or NULL; also `m['a']`", ("MAP_EXTRACT(MAP('a' := 1), 'a')", "1"),
        lambda pairs, key: dict(pairs).get(key),
    ),
    Function(
        "map_contains", 2, 2, _of_map(lambda key, value: Type.BOOLEAN), "a MAP and a key", "whether it has the key",
        ("MAP_CONTAINS(MAP('a' := NULL), 'a')", "true"), lambda pairs, key: key in dict(pairs),
    ),
    Function(
        "map_keys", 1, 1, _of_map(lambda key, value: key.list_type), _MAP, "the keys, from least to greatest",
        ("MAP_KEYS(MAP('b' := 1, 'a' := 2))", "['a', 'b']"), lambda pairs: tuple(k for k, _ in pairs),
    ),
    Function(
        "map_values", 1, 1, _of_map(lambda key, value: value.list_type), _MAP, "the values, in the order of their keys",
        ("MAP_VALUES(MAP('b' := 1, 'a' := 2))", "[2, 1]"), lambda pairs: tuple(v for _, v in pairs),
    ),
    Function(
        "map_entries", 1, 1, _of_map(lambda key, value: Type.struct((("key", key), ("value", value))).list_type), _MAP,
        "the list of its pairs, in the order of the keys", ("MAP_ENTRIES(MAP('a' := 1))", "[{'key': 'a', 'value': 1}]"),
        lambda pairs: pairs,
    ),
    Function(
        "map_from_entries", 1, 1, _of_entries, "a list of STRUCTs of a key and a value",
        "the MAP of these pairs; fails as MAP does, and where one is NULL",
        ("MAP_FROM_ENTRIES([STRUCT(key := 'a', value := 1)])", "{'a': 1}"),
        lambda entries: FAILED if None in entries else map_of(entries), can_fail=True,
    ),
    Function(
        "map_concat", 1, None, _same_maps, "MAPs of one type",
        "all their keys; of a key that several have, the last value",
        ("MAP_CONCAT(MAP('a' := 1), MAP('a' := 2))", "{'a': 2}"), _union,
    ),
    Function(
        "split_to_map", 3, 3, fixed(Type.map(Type.TEXT, Type.TEXT), Type.TEXT), "TEXT and two separators",
        "the MAP of the pairs between the first separators, each split by the second; parts without it are skipped, "
        "and the last value of a key counts",
        ("SPLIT_TO_MAP('a=1;b=2', ';', '=')", "{'a': '1', 'b': '2'}"), _split_to_map,
    ),
)  # fmt: skip
