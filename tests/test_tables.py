"""Answers as Arrow tables: those of a few elements, which are made by one call, and those of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidsms.answers import results
from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Column, Field, Schema, Type
from minidsms.values.dictionary import TextDictionary

TYPES = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.INTERVAL)


@pytest.mark.parametrize("tick_ns", [1, 1_000, 1_000_000, 10**9, 60 * 10**9])
@pytest.mark.parametrize("has_times", [False, True])
def test_a_table_of_a_few_elements_is_that_of_many(
    tick_ns: int, has_times: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dictionary = TextDictionary()
    codec = ResultCodec(Schema(tuple(Field("a", type_) for type_ in TYPES)), dictionary, tick_ns, has_times)
    for n in range(1, 17):
        rng = np.random.default_rng(n)
        columns = []
        for type_ in TYPES:
            values: Any = rng.integers(-(2**62), 2**62, n).astype(type_.dtype)
            if type_ is Type.TEXT:
                values = np.array([dictionary.code(text) for text in rng.choice(["a", "", "ü"], n).tolist()])
            valid = None if n % 2 else rng.random(n) < 0.5
            columns.append(Column(values if valid is None else np.where(valid, values, values.dtype.type(0)), valid))
        signs = None if n % 3 else rng.choice([-1, 1], n).astype(np.int8)
        whole = Batch(rng.integers(-(2**61), 2**61, n), signs, columns)
        for batches in ([whole], [whole.slice(0, n // 2), whole.slice(n // 2, n)]):
            few = codec.table(batches)
            with monkeypatch.context() as patch:
                patch.setattr(results, "_FEW", 0)
                many = codec.table(batches)
            assert few.schema == many.schema and few.equals(many)
