"""The windows of an n-way join keep numbers of rows, and claim of the store what they hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from minidsms.elements import Column, Field, Schema, Type
from minidsms.kernels.links import LOWER, WAITING
from minidsms.synopses.indexed_window import IndexedWindow
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


@pytest.mark.parametrize("length", [1, 40, 700, None])
@pytest.mark.parametrize("ways", [1, 3])
def test_elements_that_come_are_numbered_and_those_held_at_once_counted(length: int | None, ways: int) -> None:
    rng = np.random.default_rng(7)
    store = StreamStore(SCHEMA)
    index = WindowIndex([SCHEMA], [[(0,)]], None, [[0, 1]], [length])
    (window,) = index.windows
    assert isinstance(window, IndexedWindow)
    came = np.zeros(0, np.int64)
    for count in (1, 2, 255, 256, 3_000, 700, 3_000):
        # Many of an instant, and after times with few: where most are held at once lies anywhere.
        ts = (came[-1] if len(came) else 0) + np.sort(rng.integers(0, 3 * count, count) // rng.integers(1, 9))
        first, keys = len(came), rng.integers(0, 99, count)
        store.append(ts, [Column(keys), Column(keys)])
        batch = store.batch(first, first + count)
        given = batch if count != 3_000 or first < 3_000 else batch.take(np.arange(count))
        assert given.is_run == (given is batch)
        index.reserve({0: count})
        lo = window.figures.lo
        entered = window.arriving(given)
        stops = [count * k // ways for k in range(ways + 1)]
        most = max(window.enter(*entered, start, stop) for start, stop in pairwise(stops))

        came = np.concatenate([came, ts])
        gone = np.full(count, lo) if length is None else np.maximum(lo, came.searchsorted(ts - length, "right"))
        held = int((np.arange(first, first + count) + 1 - gone).max())
        assert held * 64 / 65 <= most <= held
        figures = window.figures
        assert figures.linked == first and figures.stop == first + count
        figures.hi = first + count
        assert window._numbers(np.arange(lo, figures.hi)).tolist() == list(range(lo, figures.hi))
        slots = np.arange(first, first + count)
        assert window.gather([0], slots)[0].values.tolist() == keys.tolist()
        nodes = figures.nodes + 2 * (slots & figures.mask)
        assert index.nodes[nodes].tolist() == keys.tolist()
        assert set((index.nodes[nodes + 1] & LOWER).tolist()) == {WAITING}
        index.expire(int(ts[-1]))


@pytest.mark.parametrize("gone", [0, 70])
def test_a_window_that_grows_leaves_rows_in_their_buckets(gone: int) -> None:
    stores = [StreamStore(SCHEMA), StreamStore(SCHEMA)]
    index = WindowIndex([SCHEMA, SCHEMA], [[(0,), (1,)], [(0,)]], None, [[0, 1], [0]], [None, None])
    for i, store in enumerate(stores):
        keys = np.arange(100, dtype=np.int64) % 7
        store.append(np.zeros(100, np.int64), [Column(keys), Column(keys * 3)])
        index.arrive([store.batch(0, 100) if j == i else None for j in range(2)])
        index.records[i].lo, index.records[i].hi = gone, 100
        index.relink(i)
    before = [_chains(index, i) for i in range(2)]
    assert [sum(map(len, chains.values())) for chains in before] == [2 * (100 - gone), 100 - gone]

    index.reserve({1: 5_000})

    assert index.records[1].mask >= 5_000
    assert [_chains(index, i) for i in range(2)] == before


def _chains(index: WindowIndex, i: int) -> dict[tuple[int, int], list[int]]:
    """The slots of each key's buckets, from the newest on."""
    chains: dict[tuple[int, int], list[int]] = {}
    for x in range(index.records[i].key, index.records[i].keys_end):
        heads = int(index.keys["heads"][x])
        for bucket in range(heads, heads + index._buckets[i]):
            slot = int(index.heads[bucket])
            while slot >= index.records[i].lo:
                chains.setdefault((x, bucket), []).append(slot)
                node = index.keys["nodes"].item(x) + 2 * (slot & index.records[i].mask)
                slot -= index.nodes.item(node + 1) & LOWER
    return chains
