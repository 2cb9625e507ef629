"""The bag of a relation's rows against a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from minidsms.elements import Column, Int8Array, Int64Array, Schema, Type, row_words
from minidsms.synopses.row_bag import RowBag

SCHEMA = Schema.of(("v", Type.INTEGER))
Rows = list[tuple[int, int]]


def words(values: Sequence[int]) -> Int64Array:
    return row_words([Column(np.array(values, np.int64))])


def changed(rows: Rows, ts: int, signs: Sequence[int], values: Sequence[int]) -> tuple[int, Rows]:
    """-1, or the first deletion that cancels nothing, and the rows then; a deletion takes the oldest of its row."""
    now = list(rows)
    for i, (sign, value) in enumerate(zip(signs, values)):
        if sign > 0:
            now.append((ts, value))
            continue
        oldest = next((row for row in now if row[1] == value), None)
        if oldest is None:
            return i, rows
        now.remove(oldest)
    return -1, now


def test_a_bag_has_the_rows_of_a_list_after_any_changes() -> None:
    for seed in range(60):
        rng, bag, rows = Random(seed), RowBag(SCHEMA), Rows()
        for ts in range(30):
            n = rng.choice((1, 2, 7, 40))
            signs = [1] * n if rng.random() < 0.2 else [rng.choice((1, 1, -1)) for _ in range(n)]
            values = [rng.randrange(6) for _ in range(n)]
            sign: Int8Array | None = None if min(signs) > 0 else np.array(signs, np.int8)
            bad, rows = changed(rows, ts, signs, values)
            assert bag.apply(np.full(n, ts), sign, words(values)) == bad
            assert len(bag) == len(rows)
            if rng.random() < 0.3:
                present = bag.present()
                assert list(zip(present.ts.tolist(), present.columns[0].values.tolist())) == rows


def test_deletions_need_no_room() -> None:
    bag, n = RowBag(SCHEMA), 10_000
    bag.apply(np.zeros(n, np.int64), None, words(range(n)))
    before, gone = bag.nbytes, n // 3
    assert bag.apply(np.ones(gone, np.int64), np.full(gone, -1, np.int8), words(range(gone))) == -1
    assert bag.nbytes == before
