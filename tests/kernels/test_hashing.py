"""The hashes of rows, and arrays as kernels take them."""

from __future__ import annotations

import numpy as np

from minidsms.kernels.arrays import normal
from minidsms.kernels.hashing import hash_rows


def test_equal_rows_have_equal_hashes_and_few_others_do() -> None:
    words = np.random.default_rng(1).integers(-5, 5, (20_000, 3))
    hashes = hash_rows(words)
    distinct = len(np.unique(words, axis=0))
    assert len(np.unique(hashes)) == distinct
    assert (hash_rows(words[::-1].copy())[::-1] == hashes).all()


def test_kernels_get_arrays_they_may_write() -> None:
    frozen = np.arange(6)
    frozen.flags.writeable = False
    for array in (normal(frozen), normal(np.arange(6)[::2])):
        assert array.flags.c_contiguous and array.flags.writeable
    kept = np.arange(3)
    assert normal(kept) is kept
