"""What is usual, and what is a change: of shares of inputs, drop rates by place, work per element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import pytest

from minidsms.streamon.change_detection.usual import Tolerance, Usual
from minidsms.streamon.join_watch import SHARES, WORK, WORK_ENOUGH
from minidsms.streamon.pipelined_filters.change_watch import DROP_RATES, ENOUGH, drop_rates_have_changed

ORDER = (0, 1)


def asked(whiles: Sequence[Sequence[int]]) -> list[bool]:
    """Of counts of two inputs in one while after the other."""
    shares, totals, found = Usual(SHARES, 1), [0, 0], []
    for counts in whiles:
        totals = [a + b for a, b in zip(totals, counts)]
        found.append(shares.change((), totals, [sum(totals)] * 2) > 0)
    return found


def test_a_burst_is_seen_once_and_so_is_its_end() -> None:
    found = asked([[100, 500], [105, 490], [2000, 500], [2100, 480], [100, 500]])
    assert found == [False, False, True, False, True]


def test_slow_drift_adds_up_against_what_is_usual() -> None:
    assert asked([[100 + step, 900 - step] for step in range(0, 300, 20)]).count(True) == 1


def test_inputs_that_bring_little_do_not_matter_and_no_elements_say_nothing() -> None:
    assert not any(asked([[10, 990], [0, 0], [40, 960], [1, 999]]))


def reached(rates: list[float], tuples: int, before: list[int] | None = None) -> list[int]:
    counts = [tuples]
    for rate in rates:
        counts.append(round(counts[-1] * (1 - rate)))
    return counts if before is None else [a + b for a, b in zip(before, counts)]


def drop_rates() -> Usual:
    return Usual(DROP_RATES, ENOUGH, restarts=True)


def test_drop_rates_that_stay_are_no_change_and_others_are() -> None:
    rates = drop_rates()
    counts = reached([0.5, 0.1], 200_000)
    assert not drop_rates_have_changed(rates, ORDER, counts)
    counts = reached([0.505, 0.102], 200_000, counts)
    assert not drop_rates_have_changed(rates, ORDER, counts)
    counts = reached([0.505, 0.3], 200_000, counts)
    assert drop_rates_have_changed(rates, ORDER, counts)
    counts = reached([0.505, 0.3], 200_000, counts)
    assert not drop_rates_have_changed(rates, ORDER, counts)


def test_slow_drift_of_drop_rates_adds_up_to_a_change() -> None:
    rates = drop_rates()
    counts = [0, 0]
    changes = 0
    for step in range(20):
        counts = reached([0.5 + 0.02 * step], 150_000, counts)
        changes += drop_rates_have_changed(rates, (0,), counts)
    assert changes >= 4


def test_counts_that_begin_anew_with_an_order_are_no_change() -> None:
    rates, other = drop_rates(), (1, 0)
    assert not drop_rates_have_changed(rates, ORDER, reached([0.9, 0.0], 500_000))
    assert not drop_rates_have_changed(rates, other, reached([0.1, 0.9], 600_000))
    assert not drop_rates_have_changed(rates, other, reached([0.1, 0.9], 800_000))
    assert drop_rates_have_changed(rates, other, reached([0.1, 0.9], 200_000, reached([0.9, 0.9], 800_000)))


def test_few_tuples_at_a_late_place_are_chance() -> None:
    rates = drop_rates()
    assert not drop_rates_have_changed(rates, ORDER, [200_000, 4, 1])
    assert not drop_rates_have_changed(rates, ORDER, [400_000, 8, 5])


def test_work_is_compared_under_one_plan_and_over_enough_elements() -> None:
    work = Usual(WORK, WORK_ENOUGH)

    def change(plan: str, slots: float, elements: int) -> float:
        return work.change(plan, (round(slots * elements), 0), (elements, elements))

    totals = list(accumulate([WORK_ENOUGH] * 8))
    assert change("a", 2, totals[0]) == change("a", 2, totals[1]) == 0
    assert work.change("a", (2 * totals[1] + 3 * 16_383, 0), (totals[1] + 16_383,) * 2) == 0, "too few elements"
    assert work.change("a", (2 * totals[1] + 4 * WORK_ENOUGH, 0), (totals[2],) * 2) == pytest.approx(0.5)
    assert change("b", 9, totals[3]) == change("b", 9, totals[4]) == 0, "another plan has other work"


def test_a_difference_counts_if_it_is_beyond_every_bound() -> None:
    assert Tolerance(relative=0.2).change(100, 130) == pytest.approx(30 / 130)
    assert Tolerance(relative=0.2).change(100, 119) == 0
    assert Tolerance(relative=0.2).change(-1.0, 1.0) == 2.0
    assert Tolerance(absolute=0.04).change(0.5, 0.53) == 0
    assert Tolerance(relative=0.1, matters=0.05).change(0.01, 0.04) == 0
    assert Tolerance(sure=5).change(0.1, 0.9, 3, 3) == 0
    assert Tolerance(sure=5).change(0.1, 0.9, 300, 300) > 0
