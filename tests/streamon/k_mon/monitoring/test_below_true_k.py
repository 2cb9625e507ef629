"""For how long may k_u be less than the true k? Babu 2005, section 6.6.3.

k_u falls when W rows in a row have shown no greater distance; after that, the first greater distance seen raises
it at once. So it is less than the distance of a row only until that row has come, and then only if the distance lies
beyond k_e, where a row is seen with the chance p alone.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from minidsms.streamon.k_mon.monitoring.estimate import MonitorSettings
from tests.streamon.k_mon.monitoring.test_monitors import CASES, SEEDS


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_k_is_below_a_distance_no_longer_than_until_it_shows(make: Any, stream: Any, distances: Any, seed: int) -> None:
    rng = Random(seed)
    window = rng.choice([40, 80])
    rows = stream(rng, 1200, 60)
    # Where the whole sample is kept every distance shows, however great.
    monitor, feed = make(MonitorSettings(growth=1.0, window=window, chance=1.0, margin=rng.choice([0.0, 0.125])))
    found = feed(rows, 1)
    too_low = 0
    for n, distance in enumerate(distances(rows)):
        k = found[n]
        assert k is None or k >= distance, "the row that shows a distance raises k at once"
        too_low += n > 0 and found[n - 1] is not None and found[n - 1] < distance
        if k is not None and found[n - 1] is None:
            assert max(distances(rows)[n + 1 - window : n + 1]) <= k, "k has become finite by a whole window"
    assert too_low == monitor.increases
    assert too_low > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_after_k_was_below_a_distance_it_is_infinite_for_a_window(
    make: Any, stream: Any, distances: Any, seed: int
) -> None:
    rng = Random(seed)
    window = rng.choice([40, 80])
    rows = stream(rng, 1200, 60)
    _, feed = make(MonitorSettings(growth=1.2, window=window, chance=0.01, seed=seed))
    found = feed(rows, 1)
    fallen = [n for n in range(1, len(found)) if found[n] is None and found[n - 1] is not None]
    for n in fallen:
        # Whole blocks of W / 8 rows.
        assert all(k is None for k in found[n : n + window - window // 8])
    assert fallen
