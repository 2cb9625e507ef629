"""Nested values as texts: written as JSON writes them, and read alike alone and together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidsms.values.coded import text_of, value_of, values_of
from minidsms.values.types import Type

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(('"], ["', "\x00", "null", "\x7f\\", " "))
_FLOATS = st.floats(allow_nan=False).map(lambda value: value + 0.0)
_LEAVES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT: _FLOATS,
    Type.BOOLEAN: st.booleans(),
    Type.TEXT: _TEXTS,
    Type.DATE: st.integers(-700_000, 2_900_000),
    Type.TIME: st.integers(0, 86_399_999_999),
}


@st.composite
def _typed(draw: st.DrawFn, depth: int = 2) -> tuple[Type, st.SearchStrategy[Any]]:
    """A type, and values of it, some of them NULL."""
    form = draw(st.sampled_from(("leaf", "list", "struct", "map"))) if depth else "leaf"
    if form == "leaf":
        type_ = draw(st.sampled_from([*_LEAVES]))
        return type_, st.none() | _LEAVES[type_]
    inside, values = draw(_typed(depth - 1))
    if form == "list":
        return inside.list_type, st.none() | st.lists(values, max_size=3).map(tuple)
    if form == "struct":
        other, others = draw(_typed(depth - 1))
        return Type.struct((("a", inside), ('b "é"', other))), st.none() | st.tuples(values, others)
    key = draw(st.sampled_from((Type.INTEGER, Type.TEXT)))
    items = st.dictionaries(_LEAVES[key], values, max_size=3)
    return Type.map(key, inside), st.none() | items.map(lambda found: tuple(sorted(found.items(), key=lambda p: p[0])))


@given(st.data())
def test_values_that_are_read_together_are_those_read_alone(data: st.DataObject) -> None:
    type_, values = data.draw(_typed().filter(lambda typed: typed[0].is_nested))
    wanted = data.draw(st.lists(values, max_size=5)) * data.draw(st.sampled_from((1, 13, 32)))
    texts = [None if value is None else text_of(value, type_) for value in wanted]
    assert [*values_of(texts, type_, 0)] == wanted == [None if t is None else value_of(t, type_) for t in texts]


@pytest.mark.parametrize(
    "value", [(), (None,), ("",), ('"\\/', "\x00\x1f\x7f\t\n", "é\u2028😀"), (1e22, float("-inf"), 5e-324), (True, 7)]
)
def test_a_list_is_written_as_json_writes_it(value: tuple[Any, ...]) -> None:
    assert text_of(value, Type.TEXT.list_type) == json.dumps(value, ensure_ascii=False)
