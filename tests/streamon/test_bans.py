"""What was tried in vain is left alone, for longer each time."""

from __future__ import annotations

from minidsms.streamon.bans import Bans


def test_a_plan_is_banned_for_twice_as_long_each_time() -> None:
    bans: Bans[str] = Bans(100)
    assert not bans.is_banned("a", 0)
    bans.ban("a", 1000)
    assert bans.is_banned("a", 1099) and not bans.is_banned("a", 1100) and not bans.is_banned("b", 1000)
    bans.ban("a", 2000)
    assert bans.is_banned("a", 2199) and not bans.is_banned("a", 2200)
    assert bans.times("a") == 2 and bans.times("b") == 0


def test_bans_grow_no_longer_than_told() -> None:
    bans: Bans[str] = Bans(100, most=2)
    for _ in range(5):
        bans.ban("a", 0)
    assert bans.is_banned("a", 199) and not bans.is_banned("a", 200) and bans.times("a") == 2


def test_nothing_is_banned_when_conditions_have_changed() -> None:
    bans: Bans[str] = Bans(100)
    bans.ban("a", 0)
    bans.clear()
    assert not bans.is_banned("a", 1) and bans.times("a") == 0
