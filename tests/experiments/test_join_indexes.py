"""The experiment of join indexes: its streams, and that all that is compared joins alike."""

from __future__ import annotations

import numpy as np

from experiments.join_indexes.__main__ import AMRI
from experiments.join_indexes.running import run
from experiments.join_indexes.streams import COLUMNS, PERIOD, VALUES, pushes


def test_columns_change_places_after_each_period_and_never_where_none_is_to() -> None:
    for changing, changed in ((0, 0), (6, 3)):
        greatest = np.array([[rows["A"][c].max() for c in COLUMNS["A"]] for _, rows in pushes(2 * PERIOD, changing, 3)])
        before, after = greatest[:10].max(axis=0), greatest[10:].max(axis=0)
        assert np.count_nonzero(np.maximum(before, after) > 1.5 * np.minimum(before, after)) == changed
        assert greatest.max() < VALUES.max()


def test_bits_and_keys_join_alike_and_bits_are_chosen() -> None:
    by_bits, by_keys = run(1_000, 0, 1, 300, **AMRI, index_window=2_000), run(1_000, 0, 1, 300, join_index="hash")
    assert by_bits.answers == by_keys.answers
    assert by_bits.switches > 0 and by_keys.switches == 0 and by_bits.inspected > 0
