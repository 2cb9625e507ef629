"""The join kernels' pieces that no operator test sees alone: hashes, tags, and buckets after growth and shrinkage."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Batch, Column, Schema, Type
from minidsms.kernels.hashing import hash_rows, key_tags, normal, normal_signs
from minidsms.kernels.keyed_slots import STATE_WORDS
from minidsms.synopses.keyed_bag import KeyedBag
from minidsms.synopses.keyed_ring import KeyedRing


def test_equal_rows_have_equal_hashes_and_few_others_do() -> None:
    words = np.random.default_rng(1).integers(-5, 5, (20_000, 3))
    hashes = hash_rows(words)
    distinct = len(np.unique(words, axis=0))
    assert len(np.unique(hashes)) == distinct
    assert (hash_rows(words[::-1].copy())[::-1] == hashes).all()
    assert (hash_rows(words, 2) == hash_rows(words[:, :2].copy())).all()


def test_the_tag_of_a_single_key_is_the_key() -> None:
    tags, words, nulls = key_tags([Column(np.array([3, 1, 2]))], 3)
    assert tags.tolist() == [3, 1, 2] and words is None and nulls is None


def test_a_null_key_is_told_apart_unless_null_is_a_key() -> None:
    column = Column(np.array([0, 0, 5]), np.array([True, False, True]))
    _, _, nulls = key_tags([column], 3)
    assert nulls is not None and nulls.tolist() == [False, True, False]
    tags, words, nulls = key_tags([column], 3, null_safe=True)
    assert nulls is None and words is not None and words.tolist() == [[0, 0], [0, 1], [5, 0]]
    assert len(set(tags.tolist())) == 3


def test_without_key_columns_all_rows_have_one_tag() -> None:
    assert key_tags([], 4)[0].tolist() == [0, 0, 0, 0]


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


def test_a_bucket_lists_the_live_slots_of_its_keys_after_every_change_of_size() -> None:
    schema = Schema.of(("k", Type.INTEGER), ("v", Type.FLOAT))
    for kind in (KeyedRing, KeyedBag):
        state = np.zeros(STATE_WORDS, np.int64)
        side = kind(schema, [0], [0, 1], state)
        keys = np.arange(1000) % 10
        words = {"words": np.zeros((1000, 3), np.int64), "count": np.array([1000])}
        words["words"][:, 0] = keys
        side.restore(words)
        assert len(side) == 1000 and len(side.nodes) >= 1000
        found = sorted(slot for bucket in np.unique(side.heads[0]) for slot in _chain(side, int(bucket)))
        assert found == list(range(1000))
        again = side.arrays()
        assert sorted(again["words"][:, 0].tolist()) == sorted(keys.tolist())


def _chain(side: KeyedRing | KeyedBag, slot: int) -> list[int]:
    slots = []
    while slot >= 0:
        slots.append(slot)
        slot = int(side.nodes[slot, 1])
    return slots


def test_a_batch_written_but_not_yet_joined_is_not_counted() -> None:
    schema = Schema.of(("k", Type.INTEGER))
    side = KeyedRing(schema, [0], [0], np.zeros(STATE_WORDS, np.int64))
    side.begin(Batch(np.arange(5), None, [Column(np.arange(5))]))
    assert len(side) == 0
