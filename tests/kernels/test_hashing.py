"""The hashes and tags of keys and rows."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Column
from minidsms.kernels.hashing import hash_rows, key_tags, normal, normal_signs


def test_equal_rows_have_equal_hashes_and_few_others_do() -> None:
    words = np.random.default_rng(1).integers(-5, 5, (20_000, 3))
    hashes = hash_rows(words)
    distinct = len(np.unique(words, axis=0))
    assert len(np.unique(hashes)) == distinct
    assert (hash_rows(words[::-1].copy())[::-1] == hashes).all()
    assert (hash_rows(words, 2) == hash_rows(words[:, :2].copy())).all()


def test_the_tag_of_a_single_key_is_the_key() -> None:
    tags, words, nulls = key_tags([Column(np.array([3, 1, 2]))], 3)
    assert tags.tolist() == [3, 1, 2] and words.shape == (3, 0) and nulls is None


def test_a_null_key_is_told_apart() -> None:
    column = Column(np.array([0, 0, 5]), np.array([True, False, True]))
    _, _, nulls = key_tags([column], 3)
    assert nulls is not None and nulls.tolist() == [False, True, False]


def test_without_key_columns_all_rows_have_one_tag() -> None:
    assert key_tags([], 4)[0].tolist() == [1, 1, 1, 1]


def test_kernels_get_arrays_they_may_write() -> None:
    frozen = np.arange(6)
    frozen.flags.writeable = False
    for array in (
        normal(frozen),
        normal(np.arange(6)[::2]),
        normal_signs(None, 3),
        normal_signs(np.ones(6, np.int8)[::2], 3),
    ):
        assert array.flags.c_contiguous and array.flags.writeable
    kept = np.arange(3)
    assert normal(kept) is kept
