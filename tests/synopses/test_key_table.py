"""KeyTable against a dict: equal rows share an id, dead ids are used again, memory follows the rows present."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from minidsms.elements import Schema, Type, row_words
from minidsms.synopses.key_table import ArrivalRing, KeyTable
from tests.operators.harness import column


def rows_of(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, np.int64)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_ids_behave_like_a_dict_under_random_acquire_and_release(width: int) -> None:
    rng = random.Random(width)
    table = KeyTable(width)
    twin: dict[tuple[int, ...], int] = {}
    for _ in range(300):
        rows = [
            tuple(rng.choice((0, 1, -5, 2**62, rng.randrange(400))) for _ in range(width))
            for _ in range(rng.randrange(1, 40))
        ]
        ids = table.acquire(rows_of(*rows)).tolist()
        for row, i in zip(rows, ids):
            assert twin.setdefault(row, i) == i
        assert len(set(twin.values())) == len(twin) == len(table)
        dead = rng.sample(sorted(twin), min(len(twin), rng.randrange(60)))
        table.release(np.array([twin[row] for row in dead] * 2, np.int64))
        for row in dead:
            del twin[row]
        known = sorted(twin)
        if known:
            assert table.find(rows_of(*known)).tolist() == [twin[row] for row in known]
        if dead:
            assert table.find(rows_of(*dead)).tolist() == [-1] * len(dead)
        assert table.live().tolist() == sorted(twin.values())


def test_ever_new_keys_run_in_flat_memory() -> None:
    table = KeyTable(1)
    for start in range(0, 200_000, 500):
        ids = table.acquire(np.arange(start, start + 500, dtype=np.int64).reshape(-1, 1))
        table.release(ids)
    assert table.capacity <= 1024


def test_compact_keeps_the_rows_and_tells_their_old_ids() -> None:
    table = KeyTable(1)
    ids = table.acquire(np.arange(10_000, dtype=np.int64).reshape(-1, 1))
    table.release(ids[ids % 100 != 0])
    before = {int(i): int(table.keys[i, 0]) for i in table.live()}
    kept = table.compact()
    assert kept is not None and table.capacity < 1024 and len(table) == 100
    assert [before[i] for i in kept.tolist()] == table.keys[:100, 0].tolist()
    assert table.compact() is None
    assert table.find(rows_of((500,), (501,))).tolist() == [5, -1]


def test_state_goes_out_as_arrays_and_comes_back() -> None:
    schema = Schema.of(("a", Type.TEXT), ("b", Type.FLOAT))
    table = KeyTable.of_schema(schema)
    table.acquire(row_words([column([3, None, 7], Type.TEXT), column([0.5, 1.5, None], Type.FLOAT)]))
    table.release(np.array([0], np.int64))
    twin = KeyTable.of_schema(schema)
    twin.restore(table.arrays())
    assert sorted(map(tuple, twin.keys[twin.live()].tolist())) == sorted(map(tuple, table.keys[table.live()].tolist()))
    assert [sorted(codes.tolist()) for codes in twin.live_codes()] == [[0, 7]]
    assert twin.nbytes > 0


@pytest.mark.parametrize("n", [0, 1, 5000, 8192, 8193])
def test_a_table_that_comes_back_takes_no_more_than_it_did(n: int) -> None:
    rows = np.arange(2 * n).reshape(n, 2)
    table, back = KeyTable(2), KeyTable(2)
    table.acquire(rows)
    back.restore(table.arrays())
    assert back.nbytes <= table.nbytes
    more = np.arange(2, 2 * n + 4).reshape(n + 1, 2)
    assert back.acquire(more).tolist() == table.acquire(more).tolist()


@pytest.mark.parametrize("signs", [(-1, 1), (1, -1)])
def test_a_ring_has_room_for_rows_that_come_beside_those_present(signs: tuple[int, int]) -> None:
    ring, sign = ArrivalRing(), np.tile(np.array(signs, np.int8), 1024)
    ids = np.random.default_rng(0).integers(0, 5_000, (9, 1024))
    ring.recall(np.ones(1024, np.int8), ids[0])
    for present, coming in itertools.pairwise(ids):
        found = ring.recall(sign, coming)
        assert (found[sign > 0] == coming).all() and (found[sign < 0] == present).all()
        assert len(ring) == 1024 and ring.nbytes == 2048 * 4
