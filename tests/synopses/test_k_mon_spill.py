"""Spill against a twin that keeps every row in a list."""

from __future__ import annotations

import random

import numpy as np
import pytest

from minidsms.synopses import k_mon_spill_index
from minidsms.synopses.k_mon_spill import Spill


@pytest.mark.parametrize("run", [1, 5, 64, 2048])
def test_rows_are_found_by_the_sides_that_were_closed_and_by_no_others(
    run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(k_mon_spill_index, "_YOUNG", run)
    monkeypatch.setattr(k_mon_spill_index, "_MOST_GENERATIONS", 3)
    rng = random.Random(run)
    spill = Spill([2], [0], [[]])
    twin: list[tuple[int, int, int, int]] = []
    now = 0
    for _ in range(120):
        m = rng.randrange(1, 12)
        rows = [(now + n // 3, rng.randrange(40), rng.randrange(40)) for n in range(m)]
        closed = [rng.randrange(4) for _ in rows]
        array = np.array(rows, np.int64)
        spill.put(0, array, np.ascontiguousarray(array[:, 1:].T), np.array(closed, np.int64))
        twin += [(*row, mask) for row, mask in zip(rows, closed)]
        side, keys = rng.randrange(2), [rng.randrange(60) for _ in range(rng.randrange(4))]
        present = now - 40
        found = spill.find(0, side, np.array(keys, np.int64), present)
        expected = [row for row in twin if row[1 + side] in keys and (row[3] >> side) & 1]
        twin = [row for row in twin if row not in expected]
        shown = [] if found is None else sorted(map(tuple, found.tolist()))
        assert shown == sorted(row[:3] for row in expected if row[0] >= present)
        words = [int(word) for piece in spill.first_words(0) for word in piece]
        assert sorted(words) == sorted(row[0] for row in twin)
        spill.expire(0, present)
        now += rng.randrange(5)
    assert spill.nbytes > 0
    assert len(spill) >= sum(row[0] >= now - 40 for row in twin)
    assert spill.file_nbytes > 0
    copy = Spill([2], [0], [[]])
    copy.restore(spill.arrays())
    for side in (0, 1):
        keys = np.arange(60)
        mine, theirs = spill.find(0, side, keys, 0), copy.find(0, side, keys, 0)
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            assert sorted(mine.tolist()) == sorted(theirs.tolist())
    spill.close()
    copy.close()
    assert len(spill) == 0
