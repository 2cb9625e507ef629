"""The adaptive loop, with a technique made up for the purpose."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random
from typing import Any

import pytest

from minidsms.settings import Settings
from minidsms.streamon import loop as loop_module
from minidsms.streamon.forcing import ForcedSwitching
from minidsms.streamon.framework import Proposal
from minidsms.streamon.loop import ENOUGH, Budget, Loop
from minidsms.streamon.plan_log import Decision
from minidsms.streamon.stream_monitor import StreaMon


class Gears:
    """An executor, a profiler and a re-optimizer at once: in gear g a tuple costs g."""

    def __init__(self) -> None:
        self.plan = 5
        self.wish = 5
        self.adopted: list[int] = []
        self.cost, self.tuples = 0.0, 0

    def switch(self, plan: int) -> None:
        self.plan = plan

    def is_legal(self, plan: object) -> bool:
        return plan in (1, 2, 5)

    def random_plan(self, rng: Random) -> int:
        return rng.choice((1, 2, 5))

    def plan_text(self, plan: int) -> str:
        return f"gear {plan}"

    def spent(self) -> tuple[float, int]:
        return self.cost, self.tuples

    def statistics(self) -> Mapping[str, Any]:
        return {"wish": self.wish}

    def propose(self) -> Proposal[int] | None:
        return None if self.wish == self.plan else Proposal(self.wish, "steep", 0.25)

    def adopt(self, plan: int) -> None:
        self.adopted.append(plan)

    def run(self, tuples: int) -> None:
        self.cost += tuples * self.plan
        self.tuples += tuples


def made(**settings: Any) -> tuple[Gears, Loop[int], StreaMon]:
    streamon = StreaMon(Settings(**settings))
    gears = Gears()
    adaptation = Loop("gears", "Gearbox", gears, gears, gears, streamon)
    adaptation.query = "q"
    return gears, adaptation, streamon


def drive(adaptation: Loop[int], gears: Gears, tuples: int, instant: int = 0) -> list[int]:
    """The plan of every tuple."""
    plans: list[int] = []
    while tuples:
        step = adaptation.limit(tuples)
        gears.run(step)
        plans += [gears.plan] * step
        adaptation.passed(step, instant)
        tuples -= step
    return plans


def test_a_proposal_is_taken_and_logged_with_all_it_rested_on() -> None:
    gears, adaptation, streamon = made()
    told: list[Decision] = []
    end = streamon.plan_log.subscribe(told.append)
    assert not adaptation.reconsider(10)
    gears.wish = 2
    assert adaptation.reconsider(20) and gears.plan == 2 and gears.adopted == [2]
    (decision,) = streamon.plan_log
    assert told == [decision] and adaptation.decisions == [decision]
    assert (decision.number, decision.instant, decision.query, decision.technique) == (1, 20, "q", "gears")
    assert (decision.old_plan, decision.new_plan, decision.reason) == ("gear 5", "gear 2", "steep")
    assert decision.statistics == {"wish": 2} and decision.expected_gain == 0.25 and decision.measured_gain is None
    assert str(decision) == "#1 at 20, q, gears: gear 5 -> gear 2 (steep, expected gain 25 %)"
    end()
    gears.wish = 1
    assert adaptation.reconsider(30) and len(told) == 1


def test_the_gain_is_measured_once_enough_tuples_have_passed() -> None:
    gears, adaptation, streamon = made()
    drive(adaptation, gears, 1000)
    gears.wish = 2
    adaptation.reconsider(1)
    (decision,) = streamon.plan_log
    drive(adaptation, gears, ENOUGH - 1)
    assert decision.measured_gain is None
    drive(adaptation, gears, 1)
    assert decision.measured_gain == pytest.approx(1 - 2 / 5)
    gears.wish = 5
    adaptation.reconsider(2)
    drive(adaptation, gears, ENOUGH)
    assert [d.measured_gain for d in streamon.plan_log] == pytest.approx([0.6, 1 - 5 / 2])


def test_a_pinned_plan_stays_until_it_is_unpinned() -> None:
    gears, adaptation, _ = made()
    gears.wish = 1
    adaptation.pin()
    assert not adaptation.reconsider(1) and gears.plan == 5 and adaptation.is_pinned
    adaptation.unpin()
    assert adaptation.reconsider(1) and gears.plan == 1


def test_a_plan_can_be_pinned_by_name_if_it_is_legal() -> None:
    gears, adaptation, streamon = made()
    with pytest.raises(ValueError, match="3 is no plan for Gearbox"):
        adaptation.pin(3)
    assert not adaptation.is_pinned
    adaptation.pin(2)
    assert gears.plan == 2 and [d.reason for d in streamon.plan_log] == ["pinned"]


def test_adaptive_off_leaves_every_plan_at_once() -> None:
    gears, adaptation, streamon = made()
    gears.wish = 1
    assert isinstance(streamon.settings, Settings)
    streamon.settings.set("adaptive", "off")
    assert not adaptation.reconsider(1) and gears.plan == 5
    streamon.settings.set("adaptive", True)
    assert adaptation.reconsider(1) and gears.plan == 1


def test_forced_switching_switches_at_every_kth_tuple_and_ends() -> None:
    gears, adaptation, streamon = made(adaptive="off")
    streamon.forcing = ForcedSwitching(3, seed=4)
    plans = drive(adaptation, gears, 300)
    assert all(len(set(plans[i : i + 3])) == 1 for i in range(0, 300, 3)) and set(plans) == {1, 2, 5}
    assert {d.reason for d in streamon.plan_log} == {"forced"}
    streamon.forcing = None
    assert len(set(drive(adaptation, gears, 50))) == 1 and adaptation.limit(50) == 50
    again_gears, again, streamon = made()
    streamon.forcing = ForcedSwitching(3, seed=4)
    assert drive(again, again_gears, 300) == plans


def test_a_forced_plan_is_taken_where_it_is_legal() -> None:
    gears, adaptation, streamon = made()
    streamon.forcing = ForcedSwitching(2, plan=1)
    assert drive(adaptation, gears, 5) == [5, 5, 1, 1, 1]
    streamon.forcing = ForcedSwitching(1, plan="reverse")
    assert drive(adaptation, gears, 3) == [1, 1, 1]


def test_the_plan_log_forgets_the_oldest_decisions_of_a_place() -> None:
    gears, adaptation, streamon = made()
    streamon.decisions_kept = 2
    for wish in (1, 2, 5):
        gears.wish = wish
        adaptation.reconsider(wish)
    assert [d.number for d in adaptation.decisions] == [2, 3] and len(streamon.plan_log) == 3


def budgeted(budget: Budget, cost_model: str = "measured") -> tuple[Gears, Loop[int]]:
    """A loop whose gears cost 5 ns a tuple."""
    gears = Gears()
    return gears, Loop("gears", "Gearbox", gears, gears, gears, StreaMon(Settings(cost_model=cost_model)), budget)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock says 7 more each time."""
    ticks = count(0, 7)
    monkeypatch.setattr(loop_module, "thread_ns", lambda: next(ticks))


def test_adapting_is_worth_it_after_enough_tuples_or_enough_time() -> None:
    gears, loop = budgeted(Budget(worth_tuples=100, worth_ns=400))
    assert not loop.is_worth_it(99) and loop.is_worth_it(100)
    gears.run(80)
    assert not loop.is_worth_it() and loop.is_worth_it(20)
    gears.run(1)
    assert loop.is_worth_it()
    assert budgeted(Budget(worth_tuples=100), "fixed")[1].is_worth_it()


def test_deciding_takes_its_share_and_more_where_it_is_urgent_or_promises_more(ticking: None) -> None:
    gears, loop = budgeted(Budget(share=0.01, urgent=0.04, promised=0.1))
    gears.run(100)
    assert loop.is_affordable() and loop.waits() == 0
    with loop.deciding():
        pass
    assert loop.decided_ns == 7
    assert not loop.is_affordable() and loop.waits() == 40
    assert loop.is_affordable(urgency=0.5) and loop.waits(urgency=0.5) == 0
    assert loop.is_affordable(promise=0.1)
    assert loop.is_promising(100.0, 10.0) and not loop.is_promising(99.0, 10.0)


def test_credit_is_granted_when_conditions_change_but_not_without_end(ticking: None) -> None:
    gears, loop = budgeted(Budget(share=0.01, urgent=0.1, credit_ns=4))
    with loop.deciding():
        pass
    assert not loop.is_affordable()
    assert loop.grant() and not loop.is_affordable()
    assert loop.grant() and not loop.grant()
    gears.run(1)
    assert loop.is_affordable() and loop.grant()


def test_where_steps_are_counted_nothing_waits_for_time(ticking: None) -> None:
    _, loop = budgeted(Budget(), "fixed")
    with loop.deciding():
        pass
    assert loop.is_affordable() and loop.waits() == 0 and loop.is_promising(0.0, 1.0)
