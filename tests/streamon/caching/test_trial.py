"""Whether new caches have helped."""

from __future__ import annotations

from minidsms.streamon.caching.trial import ENOUGH, FILLING, Trial


def verdict(before: float, filling: float, after: float) -> bool:
    """Costs per element before the change, while the caches fill, and after."""
    units, elements = 0.0, 0
    trial = Trial((units, elements))
    failed = False

    def run(cost: float, count: int) -> None:
        nonlocal units, elements, failed
        for _ in range(count // 500):
            units, elements = units + 500 * cost, elements + 500
            failed |= trial.has_failed((units, elements))

    run(before, ENOUGH)
    trial.begin((units, elements))
    assert trial.is_running
    run(filling, FILLING)
    run(after, ENOUGH + 1_000)
    assert not trial.is_running
    return failed


def test_a_join_that_has_become_dearer_fails() -> None:
    assert verdict(before=10, filling=10, after=11)


def test_a_join_that_has_become_cheaper_passes_whatever_filling_the_caches_took() -> None:
    assert not verdict(before=10, filling=50, after=9)


def test_there_is_no_verdict_where_little_was_seen_before() -> None:
    trial = Trial((0.0, 0))
    trial.begin((10.0, ENOUGH - 1))
    assert not trial.is_running
    assert not trial.has_failed((1e9, 10 * ENOUGH))
