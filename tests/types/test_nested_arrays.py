"""Lists and STRUCTs of Arrow become the texts that their values have one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from minidsms.cql.parser import parse_type
from minidsms.inputs.arrays import ColumnReader
from minidsms.inputs.nested_arrays import texts_of_nested
from minidsms.inputs.values import ValueRefused, nested_value
from minidsms.values.coded import text_of
from minidsms.values.dictionary import TextDictionary

_LISTS: tuple[list[Any] | None, ...] = ([], None, [None], [None, None])
_PLAIN = ["", " ", "é😀", "], [", "null", "a" * 5000, "\x7f\u2028", "'", "ŉ ß İ"]
_STRUCT = pa.struct([("a", pa.int64()), ("B", pa.list_(pa.string()))])
WRITTEN = (
    ("INTEGER[]", pa.list_(pa.int64()), (*_LISTS, [-(2**63), 2**63 - 1, 0])),
    ("INTEGER[]", pa.large_list(pa.uint32()), (*_LISTS, [2**32 - 1])),
    ("FLOAT[]", pa.list_(pa.float64()), (*_LISTS, [-0.0, math.nan], [math.inf, -math.inf], [1e22, 5e-324, 0.1, 1e16])),
    ("BOOLEAN[]", pa.list_(pa.bool_()), (*_LISTS, [True, False])),
    ("TEXT[]", pa.list_(pa.string()), (*_LISTS, _PLAIN)),
    ("TEXT[]", pa.large_list(pa.large_string()), (*_LISTS, _PLAIN)),
    ("TEXT[][]", pa.list_(pa.list_(pa.string())), (*_LISTS, [[], None, ["x", None]])),
    (
        'STRUCT(a INTEGER, b TEXT[], "c ""d" FLOAT)', pa.struct([*_STRUCT, ('c "D', pa.float64())]),
        (None, {"a": 1, "B": ["x"], 'c "D': 2.0}, {"a": None, "B": None, 'c "D': math.nan}),
    ),
    ("STRUCT(a INTEGER, b TEXT[])[]", pa.list_(_STRUCT), (*_LISTS, [{"a": 1, "B": []}, None])),
)  # fmt: skip
READ_ONE_BY_ONE = (
    ("INTEGER[]", pa.list_(pa.uint64()), [1]),
    ("INTEGER[]", pa.list_(pa.float64()), [1.0]),
    ("FLOAT[]", pa.list_(pa.int64()), [1]),
    ("TEXT[]", pa.list_(pa.string()), ['"']),
    ("TEXT[]", pa.list_(pa.string()), ["\\"]),
    ("TEXT[]", pa.list_(pa.string()), ["\x00"]),
    ("STRUCT(b TEXT[], a INTEGER)", _STRUCT, {"a": 1, "B": []}),
    ("MAP(TEXT, INTEGER)", pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    ("DATE[]", pa.list_(pa.date32()), [1]),
)


@pytest.mark.parametrize(("declared", "kind", "values"), WRITTEN)
def test_they_are_those_of_the_values_one_by_one(declared: str, kind: pa.DataType, values: Any) -> None:
    type_ = parse_type(declared)
    whole = pa.array([*values, *values[::-1]], kind)
    for array in (whole, whole[1:], whole[3:5], whole[:0]):
        read = [nested_value(value, type_, 1) for value in array.to_pylist()]
        expected = [None if value is None else text_of(value, type_) for value in read]
        assert texts_of_nested(array, np.arange(len(array)), type_).to_pylist() == expected


@pytest.mark.parametrize(("declared", "kind", "value"), READ_ONE_BY_ONE)
def test_what_needs_a_look_at_each_value_is_left(declared: str, kind: pa.DataType, value: Any) -> None:
    assert texts_of_nested(pa.array([value], kind), np.arange(1), parse_type(declared)) is None


@pytest.mark.parametrize("n", [10, 40])
def test_what_is_no_unicode_in_a_list_is_refused(n: int) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    texts = pa.concat_arrays([pa.array([str(i) for i in range(n - 1)]), broken])
    lists = pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), texts)
    with pytest.raises(ValueRefused):
        ColumnReader(TextDictionary(), 1).read(lists, parse_type("TEXT[]"))
