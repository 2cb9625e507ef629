"""Where columns stand, as kernels read them by address."""

from __future__ import annotations

import numpy as np

from minidsms.elements import Column
from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.kernels.arrays import places


def test_places_are_those_of_the_values_and_masks() -> None:
    words, truths = np.arange(4), np.array([True, False, True, False])
    table, _kept = places([Column(words), Column(truths, ~truths), Column(words, truths)])
    assert table[:, VALUES].tolist() == [words.ctypes.data, truths.ctypes.data, words.ctypes.data]
    assert table[:, WIDTH].tolist() == [8, 1, 8]
    assert table[[0, 2], VALID].tolist() == [0, truths.ctypes.data]


def test_what_does_not_stand_in_one_piece_is_copied() -> None:
    rows, masks = np.arange(12).reshape(4, 3), np.array([[True, False]] * 4)
    askew = np.zeros(33, np.int8)[1:].view(np.int64)
    apart = Column(rows[:, 1]), Column(rows[::2, 2], masks[::2, 0]), Column(np.arange(4), masks[:, 1]), Column(askew)
    for column in apart:
        table, kept = places([column])
        values, valid = kept
        assert values.tolist() == column.values.tolist()
        assert table[0, VALUES] == values.ctypes.data
        if column.valid is not None:
            assert valid.tolist() == column.valid.tolist()
            assert table[0, VALID] == valid.ctypes.data


def test_values_may_be_their_own_mask() -> None:
    truths = np.array([True, False])
    table, _kept = places([Column(truths, truths)])
    assert table[0, VALID] == table[0, VALUES] == truths.ctypes.data


def test_no_columns_have_no_places() -> None:
    assert len(places([])[0]) == 0
