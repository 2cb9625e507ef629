"""The text dictionary: one code per text, order by code point, nothing lost that is held, nothing kept that is not."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidsms.cql.errors import DataError
from minidsms.values.dictionary import TextDictionary

texts = st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=3)), max_size=30)


@given(texts)
def test_decoding_undoes_encoding(values: list[str | None]) -> None:
    d = TextDictionary()
    column = d.encode(values)
    assert d.decode(column) == values == d.decode_arrow(column).to_pylist()
    assert (column.valid is None) == (None not in values)
    assert [code == 0 for code in column.values.tolist()] == [v is None for v in values]


@given(texts, st.sampled_from(["string", "large", "view", "dictionary", "chunked", "sliced"]))
def test_arrow_and_python_values_get_the_same_codes(values: list[str | None], form: str) -> None:
    d = TextDictionary()
    expected = d.encode(values).values.tolist()
    arrow = pa.array(values, pa.string())
    forms = {
        "string": lambda: arrow,
        "large": lambda: pa.array(values, pa.large_string()),
        "view": lambda: pa.array(values, pa.string_view()),
        "dictionary": lambda: arrow.dictionary_encode(),
        "chunked": lambda: pa.chunked_array([arrow, arrow[:0], arrow[:0]], pa.string()),
        "sliced": lambda: pa.concat_arrays([pa.array(["zz"]), arrow])[1:],
    }
    assert d.encode(forms[form]()).values.tolist() == expected


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from((None, "ü", "\ud800", 7)))
def test_many_new_texts_at_once_get_the_codes_they_get_one_by_one(freed: int, new: int, odd: object) -> None:
    many, single = TextDictionary(), TextDictionary()
    for d in (many, single):
        d.sweep([d.encode([f"old {i}" for i in range(freed)]).values[::3]])
    values: list[object] = [f"new {i % 50}" for i in range(new)]
    values.insert(new // 2, odd)
    codes = [single.code(v) if isinstance(v, str) and v != "\ud800" else 0 for v in values]
    if odd in ("\ud800", 7):
        with pytest.raises(DataError):
            many.encode(values)
    else:
        assert many.encode(values).values.tolist() == codes  # type: ignore[arg-type]
        assert (many.nbytes, len(many), many.capacity) == (single.nbytes, len(single), single.capacity)


@given(texts, texts, st.sampled_from((1, 20)))
def test_ranks_order_texts_by_code_point_and_null_first(
    old: list[str | None], new: list[str | None], times: int
) -> None:
    d = TextDictionary()
    d.encode(old)
    d.ranks(np.zeros(times, np.int64))
    ranks = d.ranks(np.tile(d.encode(new).values, times)).tolist()
    for a, rank_a in zip(new, ranks):
        for b, rank_b in zip(new, ranks):
            assert (rank_a < rank_b) == ((a is not None, a or "") < (b is not None, b or ""))


@given(texts, texts, texts)
def test_a_sweep_keeps_what_is_live_and_frees_the_rest(
    live: list[str | None], dead: list[str | None], later: list[str | None]
) -> None:
    d = TextDictionary()
    d.encode(dead)
    column = d.encode(live)
    d.sweep([column.values])
    assert d.decode(column) == live
    assert len(d) == len(set(live) - {None})
    assert d.encode(live).values.tolist() == column.values.tolist()
    assert d.decode(d.encode(later)) == later
    assert d.decode(column) == live


@pytest.mark.parametrize("gone", [1, 3, 40, 79])
def test_a_sweep_leaves_what_a_new_dictionary_would_hold_whatever_part_goes(gone: int) -> None:
    d = TextDictionary()
    codes = d.encode([f"{'é' * (i % 3)}{i}" for i in range(80)]).values
    for live in (codes[gone:], codes[gone:], np.concatenate((codes[gone + 1 :], codes[:1]))):
        d.sweep([live])  # at last a code is named that has no text
        texts = [text for text in d._texts if text is not None]
        other = TextDictionary()
        other.encode(texts)
        assert (len(d), d.nbytes) == (len(other), other.nbytes) and d.capacity - len(d) - 1 == len(d._free)
        assert [d.code(text) for text in texts] == [code for code in range(d.capacity) if d._texts[code]]
        with pytest.raises(KeyError):
            d.text(codes[0].item())
    assert d.code("new") == 1


def test_a_stream_of_ever_new_texts_runs_in_bounded_codes() -> None:
    d = TextDictionary()
    for batch in range(50):
        d.sweep([d.encode([f"{batch}-{i}" for i in range(100)]).values])
    assert len(d) == 100 and d.capacity <= 301


def test_a_held_text_survives_every_sweep_until_it_is_let_go() -> None:
    d = TextDictionary()
    held = d.hold("constant")
    d.sweep([])
    assert d.text(held.code) == "constant"
    code = held.code
    del held
    gc.collect()
    d.sweep([])
    assert len(d) == 0
    with pytest.raises(KeyError):
        d.text(code)


def test_a_sweep_that_frees_something_starts_a_generation() -> None:
    d = TextDictionary()
    codes = d.encode(["a", "b"]).values
    d.sweep([codes])
    assert d.generation == 0
    d.sweep([codes[:1]])
    assert d.generation == 1


@pytest.mark.parametrize("bad", [[1], [b"a"], [["a"]], ["\ud800"], [1.5, "a"], pa.array([1, 2])])
def test_what_is_no_text_is_refused(bad: object) -> None:
    with pytest.raises(DataError):
        TextDictionary().encode(bad)
