"""Rows of a k-Mon join: what is held decides how much room is taken."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Schema, Type
from minidsms.joins.directed_graph import Edge
from minidsms.kernels.k_mon_rows import ROWS
from minidsms.synopses.k_mon_rows import KMonRows, Window

S = Schema.of(("a", Type.INTEGER), ("b", Type.INTEGER))


def test_rows_that_come_back_again_and_again_take_the_room_of_those_held() -> None:
    edges = (Edge(0, 1, ((0, 0),), right_key=True),)
    rows = KMonRows([S, S], edges, [Window(ROWS, 10_000)] * 2, [[0, 1], [1]], True, True)
    stride = int(rows.strides[0])
    for n in range(200):
        back = np.full((5, stride), n, np.int64)
        rows.merge([back, None])
    assert rows.held(0) == 1000
    assert rows.nbytes < 20 * 8 * stride * rows.held(0)
