"""Monitors look away from what is kept for long where a break is noticed without them, and from what is never kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.operators.k_mon.contracts import NEVER, KConstraint, Kind
from minidsms.streamon.k_mon.monitoring.clustered import ClusteredMonitor
from minidsms.streamon.k_mon.monitoring.estimate import Estimate, MonitorSettings
from minidsms.streamon.k_mon.monitoring.rids import RidsMonitor
from minidsms.streamon.k_mon.monitoring.unique import UniqueMonitor
from tests.streamon.k_mon.monitoring.streams import CA, RIDS, arrivals

KEY = KConstraint(Kind.KEY, "s", ("a",))
SETTINGS = MonitorSettings(growth=1.0, window=100, margin=0.0)
STEP = 50


def shown(monitor: Any, first: int, end: int, distance: int) -> tuple[int, set[int | None]]:
    """Show rows whose distance is given, those that the monitor asks for; how many it was shown, and every k."""
    seen, ks = 0, set()
    for at in range(first, end, STEP):
        numbers = range(at, min(at + STEP, end))
        if numbers[-1] >= monitor.asleep_until:
            seen += len(numbers)
            if isinstance(monitor, RidsMonitor):
                # A parent before each child; its own child comes so many later.
                parents = arrivals(at, list(numbers), [2 * n for n in numbers])
                monitor.observe(
                    arrivals(at, [n + 1 - distance for n in numbers], [2 * n + 1 for n in numbers]), parents
                )
            else:
                monitor.observe(arrivals(at, [n // 2 if distance == 0 else n // 2 % (1 + distance) for n in numbers]))
        ks.add(monitor.k)
    return seen, ks


@pytest.mark.parametrize("make, distance", [(RidsMonitor, 20), (RidsMonitor, 1), (ClusteredMonitor, 0)])
def test_a_constraint_that_is_kept_is_looked_at_seldom_and_its_k_stands(make: Any, distance: int) -> None:
    monitor = make(RIDS if make is RidsMonitor else CA, SETTINGS)
    monitor.need("join", 200, True)
    _, ks = shown(monitor, 0, 2000, distance)
    assert monitor.k == distance
    seen, ks = shown(monitor, 2000, 100_000, distance)
    assert ks == {distance}
    assert seen < 12_000
    busy = make(RIDS if make is RidsMonitor else CA, SETTINGS)
    busy.need("join", 200, False)
    assert shown(busy, 0, 20_000, distance)[0] == 20_000, "where nobody else notices a break it is looked at always"


def test_a_k_that_has_fallen_is_found_after_the_next_rest() -> None:
    monitor = RidsMonitor(RIDS, SETTINGS)
    monitor.need("join", 200, True)
    shown(monitor, 0, 10_000, 40)
    assert monitor.k == 40
    most = 16 * (40 + 2 * 100)
    # A rest, and then the trial: k rows until distances are whole, and a window.
    shown(monitor, 10_000, 10_000 + most + 400, 3)
    assert monitor.k == 3


def resting(distance: int) -> tuple[RidsMonitor, int]:
    """A monitor that rests, and the next row."""
    monitor = RidsMonitor(RIDS, SETTINGS)
    monitor.need("join", 200, True)
    end = 5000
    shown(monitor, 0, end, distance)
    while monitor.asleep_until <= end + STEP:
        shown(monitor, end, end + STEP, distance)
        end += STEP
    return monitor, end


def test_a_k_that_is_refuted_while_nobody_looks_is_infinite_at_once_and_then_twice_as_great() -> None:
    monitor, end = resting(12)
    monitor.refuted()
    assert monitor.k is None
    assert monitor.asleep_until <= end
    seen, _ = shown(monitor, end, end + STEP, 12)
    assert seen == STEP
    assert monitor.k == 25, "for a window: until more is known"
    shown(monitor, end + STEP, end + 400, 12)
    assert monitor.k == 12


def test_where_a_break_is_noticed_k_is_what_was_seen_an_eighth_of_a_window_later() -> None:
    for notices, soon in ((True, 30), (False, None)):
        monitor = RidsMonitor(RIDS, SETTINGS)
        monitor.need("join", 200, notices)
        shown(monitor, 0, 600, 12)
        assert monitor.k == 12
        shown(monitor, 600, 650, 30)
        assert monitor.k == soon


def test_who_would_not_notice_a_break_begins_with_no_k_that_was_not_looked_at() -> None:
    monitor = RidsMonitor(RIDS, SETTINGS)
    monitor.need("exact", 200, True)
    shown(monitor, 0, 5000, 2)
    assert monitor.k == 2
    monitor.need("lossy", 200, False)
    assert monitor.k is None
    assert shown(monitor, 5000, 5600, 2)[0] == 600
    assert monitor.k == 2
    monitor.leave("lossy")
    assert shown(monitor, 5600, 9000, 2)[0] < 2000


def test_rows_that_were_left_out_while_it_slept_count_as_arrivals() -> None:
    shown_all, shown_few = RidsMonitor(RIDS, SETTINGS), RidsMonitor(RIDS, SETTINGS)
    for monitor in (shown_all, shown_few):
        monitor.need("join", 200, True)
    for at in range(0, 30_000, STEP):
        numbers = list(range(at, at + STEP))
        for monitor in (shown_all, shown_few):
            if monitor is shown_all or at + STEP > monitor.asleep_until:
                monitor.observe(
                    arrivals(at, [n - 4 for n in numbers], [2 * n + 1 for n in numbers]),
                    arrivals(at, numbers, [2 * n for n in numbers]),
                )
        assert shown_all.k == shown_few.k
        assert shown_all.asleep_until == shown_few.asleep_until
    assert shown_few.arrived < shown_all.arrived <= shown_few.asleep_until or shown_few.arrived == shown_all.arrived


def keys(monitor: UniqueMonitor, first: int, end: int, values: np.ndarray) -> int:
    """Show the rows that it asks for; how many."""
    seen = 0
    for at in range(first, end, 500):
        if at + 499 >= monitor.asleep_until:
            seen += 500
            monitor.observe(arrivals(at, values[at : at + 500].tolist()))
    return seen


def test_an_attribute_that_is_no_key_is_tried_more_and_more_seldom() -> None:
    monitor = UniqueMonitor(KEY)
    values = np.random.default_rng(1).integers(0, 2000, 600_000)
    assert keys(monitor, 0, 600_000, values) < 60_000
    assert monitor.k is None


def test_a_key_is_looked_at_now_and_then_where_a_repeat_is_noticed_anyway_else_always() -> None:
    values = np.arange(400_000)
    for notices, most in ((True, 120_000), (False, 400_000)):
        monitor = UniqueMonitor(KEY)
        monitor.need("join", 1000, notices)
        seen = keys(monitor, 0, 400_000, values)
        assert monitor.k == 0
        assert seen <= most
        assert notices or seen == 400_000
    monitor = UniqueMonitor(KEY)
    monitor.need("join", 1000, True)
    keys(monitor, 0, 100_000, values)
    monitor.refuted()
    assert monitor.k is None
    assert monitor.asleep_until < NEVER
    assert keys(monitor, 100_000, 101_000, values) == 1000, "what has turned out to be wrong is looked at"


def test_what_becomes_a_key_after_all_is_found() -> None:
    monitor = UniqueMonitor(KEY)
    values = np.concatenate((np.random.default_rng(1).integers(0, 500, 100_000), np.arange(1000, 601_000)))
    keys(monitor, 0, 100_000, values)
    assert monitor.k is None
    keys(monitor, 100_000, 700_000, values)
    assert monitor.k == 0


def test_who_sleeps_looks_again_when_conditions_have_changed_and_finds_the_new_k() -> None:
    monitor, end = resting(40)
    assert monitor.asleep_until > end + 200
    rows = monitor.asleep_until - 200
    shown(monitor, end, rows, 3)
    monitor.notice(rows)
    assert monitor.asleep_until <= rows
    # Distances are whole k rows later; then a window tells.
    shown(monitor, rows, rows + 40 + 2 * 100, 3)
    assert monitor.k == 3
    assert rows + 240 == monitor.arrived, "rows that it was not shown count"


def test_what_becomes_a_key_is_found_at_once_when_conditions_change_with_it() -> None:
    values = np.concatenate((np.random.default_rng(1).integers(0, 500, 100_000), np.arange(1000, 101_000)))
    found = []
    for is_noticed in (False, True):
        monitor = UniqueMonitor(KEY)
        keys(monitor, 0, 100_000, values)
        if is_noticed:
            monitor.notice(100_000)
        at = 100_000
        while monitor.k is None and at < len(values):
            keys(monitor, at, at + 500, values)
            at += 500
        found.append(at - 100_000)
    assert found[1] <= 1000 < 10_000 < found[0]


@pytest.mark.parametrize("detection", ["auto", "off"])
def test_joins_tell_monitors_when_the_shares_of_their_inputs_have_changed(
    detection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 4000
    told: list[int] = []
    for each in (Estimate, UniqueMonitor):
        monkeypatch.setattr(each, "notice", lambda self, number: told.append(number))
    with minidsms.connect(state_reduction="k-mon", change_detection=detection) as db:
        db.execute("CREATE STREAM O (k INTEGER); CREATE STREAM F (k INTEGER)")
        db.query("SELECT O.k AS a, F.k AS b FROM O [RANGE 2000], F [RANGE 2000] WHERE O.k = F.k")
        for part in range(10):
            for name, step in (("O", 2), ("F", 2 if part < 5 else 40)):
                ts = np.arange(part * n, (part + 1) * n, step)
                db.push(name, {"k": ts}, ts=ts)
            db.advance((part + 1) * n - 1)
    assert bool(told) == (detection == "auto")
