"""Bursts show in the shares that inputs bring; small inputs and noise do not."""

from __future__ import annotations

from minidsms.streamon.arrival_shares import ArrivalShares


def test_a_burst_is_seen_once_and_so_is_its_end() -> None:
    shares = ArrivalShares()
    asked = [shares.have_shifted(counts) for counts in ([100, 500], [105, 490], [2000, 500], [2100, 480], [100, 500])]
    assert asked == [False, False, True, False, True]


def test_slow_drift_adds_up_against_what_is_usual() -> None:
    shares = ArrivalShares()
    asked = [shares.have_shifted([100 + step, 900 - step]) for step in range(0, 300, 20)]
    assert asked.count(True) == 1


def test_inputs_that_bring_little_do_not_matter_and_no_elements_say_nothing() -> None:
    shares = ArrivalShares()
    assert not any(shares.have_shifted(counts) for counts in ([10, 990], [0, 0], [40, 960], [1, 999]))
