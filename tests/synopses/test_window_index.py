"""The windows of an n-way join keep numbers of rows, and claim of the store what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.elements import Column, Field, Schema, Type
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.window_index import WindowIndex

SCHEMA = Schema((Field("a", Type.INTEGER), Field("b", Type.INTEGER)))


@pytest.mark.parametrize("first", [0, 2**31 - 3, 2**32 - 3, 2**40 + 7])
def test_numbers_of_rows_may_pass_what_the_ring_keeps_of_them(first: int) -> None:
    store = StreamStore(SCHEMA)
    store.head = store.tail = first
    index = WindowIndex([SCHEMA], [[(0,)]], None, [[0, 1]])
    window = index.windows[0]
    values = np.arange(10, dtype=np.int64)
    store.append(values, [Column(values), Column(values * 7)])

    index.admit([store.batch(first, first + 10)])
    window.figures.hi = 10
    window.figures.lo = 4
    window.settle()
    store.free()

    assert store.tail == first + 4
    a, b = window.gather([0, 1], np.array([4, 9, 5], np.int64))
    assert a.values.tolist() == [4, 9, 5] and b.values.tolist() == [28, 63, 35]
