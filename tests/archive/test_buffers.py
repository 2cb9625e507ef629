"""Memory of what waits to be written: copies keep what was copied, and blocks are used again once nobody looks."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from minidsms.archive import buffers
from minidsms.archive.buffers import Buffers
from tests.archive.reading import elements
from tests.waiting import soon

ROWS = 1000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Buffers]:
    """Blocks of four copies."""
    monkeypatch.setattr(buffers, "BLOCK_BYTES", 4 * 8 * ROWS + 512)
    monkeypatch.setattr(buffers, "LEAST_BYTES", 100)
    made = Buffers(idle_s=1000.0, most_blocks=6)
    yield made
    made.close()


def warm(memory: Buffers) -> None:
    memory.copy(np.zeros(ROWS, np.int64))
    soon(lambda: memory.nbytes >= 4 * buffers.BLOCK_BYTES)


def test_copies_keep_what_was_copied_while_they_live(small: Buffers) -> None:
    warm(small)
    rng, alive = Random(1), []
    for n in range(400):
        source = np.full(rng.randrange(20, ROWS), n, rng.choice((np.int64, np.float64)))
        alive.append((n, len(source), pa.array(small.copy(source))))
        source[:] = -1
        while len(alive) > 30 or (alive and rng.random() < 0.3):
            n_, length, array = alive.pop(rng.randrange(len(alive)))
            assert array.to_numpy().tolist() == [n_] * length
    assert small.nbytes <= 6 * buffers.BLOCK_BYTES


def test_blocks_are_used_again_when_no_array_looks_at_them(small: Buffers) -> None:
    warm(small)
    seen = set()
    for _ in range(100):
        made = [small.copy(np.zeros(ROWS, np.int64)) for _ in range(4)]
        seen |= {id(array.base) for array in made if array.base is not None}
        del made
        soon(lambda: len(small._ready) > 0)
    assert len(seen) <= 6


def test_a_copy_that_finds_no_block_has_memory_of_its_own(small: Buffers) -> None:
    warm(small)
    kept = [small.copy(np.full(ROWS, n)) for n in range(100)]
    assert [int(array[-1]) for array in kept] == list(range(100))
    assert small.nbytes <= 6 * buffers.BLOCK_BYTES
    assert any(array.base is None for array in kept) and any(array.base is not None for array in kept)


def test_memory_goes_back_when_nothing_comes(small: Buffers) -> None:
    warm(small)
    kept = [small.copy(np.zeros(ROWS, np.int64)) for n in range(10)]
    small._idle_s = 0.01
    small._is_due.set()  # it waits by its new patience
    del kept
    soon(lambda: small.nbytes <= buffers.BLOCK_BYTES)


def test_what_is_archived_is_right_whatever_becomes_of_the_arrays_that_were_pushed(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "BLOCK_BYTES", 50_000)
    monkeypatch.setattr(buffers, "LEAST_BYTES", 100)
    expected = []
    with minidsms.connect(archive_rows=3000) as db:
        db.execute("CREATE STREAM S (v INTEGER, x FLOAT, t TEXT, b BOOLEAN)")
        db.archive("S", str(tmp_path))
        values = np.zeros(ROWS, np.int64)
        for n in range(60):
            values[:] = n
            x = [None if k % 7 == 0 else k / 2 + n for k in range(ROWS)]
            t = [None if k % 5 == 0 else f"t{k % 9}" for k in range(ROWS)]
            b = [None if k % 3 == 0 else k % 2 == 0 for k in range(ROWS)]
            db.push("S", {"v": values, "x": x, "t": t, "b": b}, ts=n)
            expected += [(n, 1, n, *row) for row in zip(x, t, b)]
    assert elements(tmp_path, "S") == expected
