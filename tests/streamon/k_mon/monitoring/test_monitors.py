"""The monitors against the definitions of what they watch. Babu 2005, sections 6.6.3, 6.7.3 and 6.8.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from minidsms.kernels.bounds import FEWEST_TROUBLES
from minidsms.machine_code import words_of
from minidsms.streamon.k_mon.monitoring.clustered import ClusteredMonitor
from minidsms.streamon.k_mon.monitoring.estimate import Estimate, MonitorSettings
from minidsms.streamon.k_mon.monitoring.ordered import OrderedMonitor
from minidsms.streamon.k_mon.monitoring.rids import RidsMonitor
from tests.seeds import seeds
from tests.streamon.k_mon.monitoring.streams import (
    CA,
    OAP,
    RIDS,
    arrivals,
    clustered,
    joined,
    ordered,
    sliced,
    sliced_events,
)
from tests.streamon.k_mon.monitoring.twins import (
    Estimating,
    clustering_distances,
    estimates,
    estimates_of_order,
    join_distances,
    join_distances_within,
    scrambling_distances,
)

Feed = Callable[[Any, Random | int], list[int | None]]
SEEDS = seeds(8)


def rids(settings: MonitorSettings) -> tuple[Estimate, Feed]:
    monitor = RidsMonitor(RIDS, settings)

    def feed(events: Any, cut: Random | int) -> list[int | None]:
        found = []
        for children, parents in sliced_events(events, cut):
            monitor.observe(children, parents)
            found += [monitor.k] * len(children.values)
        return found

    return monitor, feed


def clusters(settings: MonitorSettings) -> tuple[Estimate, Feed]:
    return _single(ClusteredMonitor(CA, settings))


def order(settings: MonitorSettings) -> tuple[Estimate, Feed]:
    return _single(OrderedMonitor(OAP, settings))


def _single(monitor: ClusteredMonitor | OrderedMonitor) -> tuple[Estimate, Feed]:
    def feed(values: Any, cut: Random | int) -> list[int | None]:
        found = []
        for rows in sliced(values, cut):
            monitor.observe(rows)
            found += [monitor.k] * len(rows.values)
        return found

    return monitor, feed


CASES = [
    pytest.param(rids, joined, join_distances, id="RIDS"),
    pytest.param(clusters, clustered, clustering_distances, id="CA"),
    pytest.param(order, ordered, scrambling_distances, id="OA"),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_k_is_what_the_distances_say_where_all_are_kept(make: Any, stream: Any, distances: Any, seed: int) -> None:
    rng = Random(seed)
    window, threshold, eighths = rng.choice([12, 24, 100]), rng.choice([30, 1000]), rng.choice([0, 1, 4])
    rows = stream(rng, 6 * window, 60)
    _, feed = make(MonitorSettings(growth=1.0, window=window, chance=1.0, threshold=threshold, margin=eighths / 8))
    twin = Estimating(window, threshold, eighths)
    expected = estimates_of_order(rows, twin) if make is order else estimates(distances(rows), twin)
    assert feed(rows, 1) == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_k_is_never_below_a_distance_up_to_k_e(make: Any, stream: Any, distances: Any, seed: int) -> None:
    rng = Random(seed)
    # So few windows that none of the streams is given up as keeping nothing.
    growth, window = rng.choice([1.0, 1.2, 3.0]), rng.choice([50, 100])
    rows = stream(rng, 1500, 50)
    monitor, feed = make(MonitorSettings(growth, window, chance=rng.choice([0.0, 0.01, 0.5]), seed=seed))
    found = feed(rows, 1)
    increases = 0
    for before, after, distance in zip([None, *found], found, distances(rows)):
        if before is not None and distance <= int(growth * before + 1e-9):
            increases += distance > before
            assert after is None or after >= distance
    assert increases or growth == 1
    assert monitor.increases >= increases


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_k_falls_to_the_greatest_distance_within_two_windows_or_the_longer_it_was_wrong_the_slower(
    make: Any, stream: Any, distances: Any, seed: int
) -> None:
    rng = Random(seed)
    window = 48
    rows = stream(rng, 600, 40)
    monitor, feed = make(MonitorSettings(growth=1.2, window=window, seed=seed))
    feed(rows, 7)
    troubles = monitor.bound.troubles
    found = feed_more(monitor, 0, 2 * window)
    assert found is not None
    assert found == 0 or troubles >= FEWEST_TROUBLES
    # What is remembered halves in 0.09 W times 2^(troubles + 2); 10 times suffice.
    assert feed_more(monitor, 2 * window, window * 2 ** min(troubles + 2, 10)) == 0


def feed_more(monitor: Any, first: int, n: int) -> int | None:
    """k after n rows that keep every constraint, which come later."""
    number = 1_000_000 + first
    if isinstance(monitor, RidsMonitor):
        monitor.observe(arrivals(number, range(-number, -number - n, -1)), arrivals(number, []))
    else:
        monitor.observe(arrivals(number, range(number, number + n)))
    return monitor.k


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make, stream, distances", CASES)
def test_slices_change_nothing(make: Any, stream: Any, distances: Any, seed: int) -> None:
    rows = stream(Random(seed), 3000, 200)
    settings = MonitorSettings(growth=1.2, window=30, chance=0.05, horizon=500, seed=seed)
    states = []
    for cut in (1, 2, 7, Random(seed), len(rows)):
        monitor, feed = make(settings)
        feed(rows, cut)
        states.append(
            (words_of(monitor.bound).tolist(), words_of(monitor.state)[:-3].tolist(), monitor.nbytes, monitor.k)
        )
    assert all(state == states[0] for state in states)


@pytest.mark.parametrize("make, stream, distances", CASES)
def test_a_jump_beyond_k_e_is_seen_by_the_sample(make: Any, stream: Any, distances: Any) -> None:
    monitor, feed = make(MonitorSettings(growth=1.0, window=100, chance=0.1))
    if make is rids:
        near = [event for i in range(1000) for event in (("parent", i), ("child", i))]
        far = [event for i in range(2000, 3000) for event in (("parent", i), ("child", i - 400))]
    elif make is clusters:
        near = [i // 2 for i in range(1000)]
        far = [5000 + i % 700 for i in range(2000)]
    else:
        near = list(range(1000))
        far = [5000 + i - (600 if i % 10 == 0 else 0) for i in range(2000)]
    assert feed(near, 50)[-1] == (1 if make is rids else 0)
    after = feed_events_later(monitor, far) if make is rids else feed_later(monitor, far)
    true = distances(far)
    violations = [n for n, d in enumerate(true) if d > 10]
    noticed = next(n for n, k in enumerate(after) if k is None or k > 10)
    assert sum(n <= noticed for n in violations) < 60


def feed_events_later(monitor: Any, events: Sequence[Any]) -> list[int | None]:
    """k after each child, of events that come after 100,000 others."""
    found = []
    for n, (side, key) in enumerate(events):
        one, none = arrivals(100_000 + n, [key]), arrivals(100_000 + n, [])
        monitor.observe(*((one, none) if side == "child" else (none, one)))
        if side == "child":
            found.append(monitor.k)
    return found


def feed_later(monitor: Any, values: Sequence[int]) -> list[int | None]:
    """k after each of the values, which come after 100,000 others."""
    found = []
    for n, value in enumerate(values):
        monitor.observe(arrivals(100_000 + n, [value]))
        found.append(monitor.k)
    return found


def test_a_stream_without_any_constraint_is_watched_in_part_and_one_that_recovers_in_full() -> None:
    rng = np.random.default_rng(3)
    settings = MonitorSettings(growth=1.2, window=100, threshold=300)
    random = [int(v) for v in rng.integers(0, 2000, 30_000)]
    calm = [10_000 + i // 4 for i in range(60_000)]
    for monitor in (ClusteredMonitor(CA, settings), OrderedMonitor(OAP, settings)):
        for rows in sliced(random, 512):
            monitor.observe(rows)
        assert monitor.state.is_dormant
        assert monitor.k is None
        busy = monitor.nbytes
        for rows in sliced(calm, 512):
            monitor.observe(arrivals(int(rows.numbers[0]) + 50_000, rows.values.tolist()))
        assert not monitor.state.is_dormant
        assert monitor.k == 0
        assert monitor.nbytes <= busy


def test_values_that_return_later_than_a_trial_lasts_are_not_taken_for_clusters() -> None:
    # Cars in turn, each of which comes eight times and then never again.
    settings = MonitorSettings(growth=1.2, window=50, threshold=300, horizon=12_000)
    monitor = ClusteredMonitor(CA, settings)
    found = []
    for rows in sliced([i % 5000 + 5000 * (i // 40_000) for i in range(400_000)], 500):
        monitor.observe(rows)
        found.append(monitor.k)
    assert found[5] == 0
    assert set(found[50:]) == {None}


def test_of_many_keys_a_share_is_watched_whose_distances_are_whole() -> None:
    # 60,000 children that come 20,000 after their parents: more keys wait than are remembered.
    n = 60_000
    monitor = RidsMonitor(RIDS, MonitorSettings(growth=1.0, window=500, margin=0.0))
    found = []
    for first in range(0, n, 1000):
        parents = arrivals(first, list(range(first, first + 1000)), list(range(2 * first, 2 * first + 2000, 2)))
        keys = [key - 20_000 for key in range(first, first + 1000)]
        monitor.observe(arrivals(first, keys, list(range(2 * first + 1, 2 * first + 2001, 2))), parents)
        found.append((monitor.k, monitor.nbytes))
    assert found[-1][0] == 20_001
    assert max(nbytes for _, nbytes in found) < 1_000_000


def test_an_entry_leaves_with_its_window() -> None:
    # Parents without a child: what is remembered of them does not grow with the stream.
    monitor = RidsMonitor(RIDS, MonitorSettings(growth=1.0, window=50, horizon=1000))
    sizes = []
    for first in range(0, 200_000, 1000):
        keys = list(range(first, first + 1000))
        monitor.observe(arrivals(first // 10, [-1] * 100), arrivals(first, keys))
        sizes.append(monitor.nbytes)
    assert max(sizes[100:]) == max(sizes[:100])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by_time", [False, True])
def test_a_parent_that_has_left_its_window_waits_no_more(by_time: bool, seed: int) -> None:
    rng = Random(seed)
    span = rng.choice([20, 60, 200])
    events: list[tuple[str, int | None]] = []
    last: dict[int, int] = {}
    clock = 0
    for at in range(3000):
        key = rng.randrange(40)
        # So far apart, by either clock, that of each key one parent stands in the window.
        if rng.random() < 0.5 and (key not in last or (at if by_time else clock) - last[key] >= span):
            last[key] = at if by_time else clock
            events.append(("parent", key))
        elif rng.random() < 0.3:
            events.append(("child", key))
        else:
            events.append(("parent", None))
        clock += events[-1][0] == "parent"
    window = 40
    monitor = RidsMonitor(
        replace(RIDS, window=(by_time, span)), MonitorSettings(growth=1.0, window=window, chance=1.0, margin=0.0)
    )
    found = []
    for children, parents in sliced_events(events, 1):
        monitor.observe(children, parents)
        found += [monitor.k] * len(children.values)
    within = join_distances_within(events, span, by_time)
    assert found == estimates(within, Estimating(window, 50_000))
    assert max(within) < max(join_distances(events))


def test_the_first_of_several_parents_stands_for_those_that_outlast_it() -> None:
    # Two parents of each key, of which one is in its window when the child comes: no distance is taken for too little.
    for gap, child_after, most in ((5, 8, 10), (5, 12, 20), (5, 25, 0)):
        events: list[tuple[str, int | None]] = []
        for start in range(0, 6000, 40):
            steps: dict[int, tuple[str, int | None]] = {0: ("parent", start), gap: ("parent", start)}
            steps[child_after] = ("child", start)
            events += [steps.get(step, ("child", -1)) for step in range(40)]
        monitor = RidsMonitor(replace(RIDS, window=(True, 10)), MonitorSettings(growth=1.0, window=100, margin=0.0))
        for children, parents in sliced_events(events, 1000):
            monitor.observe(children, parents)
        true = max(join_distances_within(events, 10, True))
        assert monitor.k is not None
        assert true <= monitor.k <= most


def test_rows_shown_by_several_joins_count_once() -> None:
    values = clustered(Random(5), 2000, 80)
    settings = MonitorSettings(growth=1.2, window=80)
    once, often = ClusteredMonitor(CA, settings), ClusteredMonitor(CA, settings)
    found = set()
    for rows in sliced(values, 100):
        once.observe(rows)
        often.observe(rows)
        often.observe(arrivals(max(0, int(rows.numbers[0]) - 30), values[max(0, int(rows.numbers[0]) - 30) :][:70]))
        assert often.k == once.k
        found.add(often.k)
    assert often.arrived == once.arrived == 2000
    assert len(found) > 5


def test_a_refuted_constraint_is_given_up_until_a_window_has_passed() -> None:
    monitor = OrderedMonitor(OAP, MonitorSettings(growth=1.2, window=80))
    monitor.observe(arrivals(0, list(range(100))))
    assert monitor.k == 0
    monitor.refuted()
    assert monitor.k is None
    monitor.observe(arrivals(100, list(range(100, 179))))
    assert monitor.k is None
    monitor.observe(arrivals(179, list(range(179, 200))))
    assert monitor.k == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_comes_below_what_an_order_says(seed: int) -> None:
    rng = Random(seed)
    values = ordered(rng, 600, 30)
    distances = scrambling_distances(values)
    monitor = OrderedMonitor(OAP, MonitorSettings(growth=1.2, window=40))
    bounds = set()
    for rows in sliced(values, rng):
        monitor.observe(rows)
        n, k = monitor.arrived, monitor.k
        if k is None:
            continue
        below = monitor.below(k)
        assert below == max((v for v in values[: max(n - k, 0)] if v is not None), default=None)
        if max(distances[n:], default=0) <= k and below is not None:
            bounds.add(below)
            assert all(v is None or v >= below for v in values[n:])
    assert bounds


def test_values_without_an_order_have_none_that_is_kept() -> None:
    monitor = OrderedMonitor(OAP, MonitorSettings(growth=1.2, window=10))
    rows = arrivals(0, list(range(100)))
    monitor.observe(type(rows)(rows.numbers, rows.ts, rows.values, None, is_ordered=False))
    assert monitor.k is None


@pytest.mark.parametrize(
    "values", [{"growth": 0.9}, {"window": 0}, {"chance": 1.5}, {"threshold": -1}, {"margin": -0.1}, {"horizon": 0}]
)
def test_settings_out_of_range_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="out of its range"):
        MonitorSettings(**{"growth": 1.0, "window": 10, **values})
