"""Lists and STRUCTs of Arrow as the texts by which the dictionary codes them, without a Python object for each value.

Invariant: a text is the one that `values.coded.text_of` writes of the value that `nested_value` reads. What may be
refused, and what this page does not know, is for them to read, value by value.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.elements import Int64Array
from minidsms.values.types import Type

_ESCAPED = r'[\x00-\x1f"\\]'
_NULL = "null"


def texts_of_nested(array: Any, rows: Int64Array, type_: Type) -> Any:
    """The values of rows as JSON, (n,) strings, NULL where there is none; None where they are to be read one by one."""
    try:
        return _texts(array.take(pa.array(rows)), type_)
    except (pa.ArrowException, UnicodeError):
        return None  # more than an array holds, no Unicode, or a type that Arrow does not take apart


def _texts(array: Any, type_: Type) -> Any:
    kind, types = array.type, pa.types
    if type_.element is not None:
        return _lists(array, type_.element) if types.is_list(kind) or types.is_large_list(kind) else None
    if type_.kind == "STRUCT":
        return _structs(array, type_) if types.is_struct(kind) else None
    if type_ is Type.INTEGER:
        is_sure = types.is_signed_integer(kind) or (types.is_unsigned_integer(kind) and kind.bit_width < 64)
        return array.cast(pa.string()) if is_sure else None
    if type_ is Type.BOOLEAN:
        return array.cast(pa.string()) if types.is_boolean(kind) else None
    if type_ is Type.TEXT:
        return _quoted(array) if types.is_string(kind) or types.is_large_string(kind) else None
    return _floats(array) if type_ is Type.FLOAT and types.is_float64(kind) else None


def _quoted(array: Any) -> Any:
    import pyarrow.compute as pc  # a tenth of the time until a first answer, which seldom needs it

    if pc.any(pc.match_substring_regex(array, _ESCAPED)).as_py():
        return None
    return pc.binary_join_element_wise('"', array.cast(pa.string()), '"', "")


def _floats(array: Any) -> Any:
    """As Python writes them: -0.0 is 0.0, and NaN NULL."""
    floats = array.fill_null(float("nan")).to_numpy(zero_copy_only=False) + 0.0
    texts = json.dumps(floats.tolist())[1:-1].split(", ") if len(floats) else []
    return pa.array(texts, pa.string(), mask=np.isnan(floats))


def _lists(array: Any, element: Type) -> Any:
    import pyarrow.compute as pc  # a tenth of the time until a first answer, which seldom needs it

    elements = _texts(array.flatten(), element)
    if elements is None:
        return None
    ends = np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False))
    offsets = pa.array(np.concatenate((np.zeros(1, np.int64), ends)), pa.int64()).cast(pa.int32())
    lists = pa.ListArray.from_arrays(offsets, elements.fill_null(_NULL))
    return _within("[", [pc.binary_join(lists, ", ")], "]", array)


def _structs(array: Any, type_: Type) -> Any:
    names = [name for name, _ in type_.fields]
    if [name.lower() for name in names] != [field.name.lower() for field in array.type]:
        return None
    pieces: list[Any] = []
    for name, part, (_, inside) in zip(names, array.flatten(), type_.fields):
        texts = _texts(part, inside)
        if texts is None:
            return None
        pieces += [f"{', ' if pieces else ''}{json.dumps(name, ensure_ascii=False)}: ", texts.fill_null(_NULL)]
    return _within("{", pieces, "}", array)


def _within(opening: str, pieces: list[Any], closing: str, array: Any) -> Any:
    """The pieces one behind the other, NULL where the array has NULL."""
    import pyarrow.compute as pc  # a tenth of the time until a first answer, which seldom needs it

    texts = pc.binary_join_element_wise(opening, *pieces, closing, "")
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts
