"""The states of candidates as conditions change, over a join whose statistics are given. Babu 2005, section 5.5.5.

Steps are counted, not timed: looking a row up costs 1 + the rows found, so does a cache; an update costs 1.
"""

from __future__ import annotations

from minidsms.joins.plan import CacheSpec, JoinPlan, position
from minidsms.streamon.caching.adaptive_selection import DEARER, INTERVAL, CacheSelection, SelectionOptions, State
from minidsms.streamon.caching.executor import CacheExecutor
from minidsms.streamon.caching.profiler import CacheProfiler
from minidsms.streamon.loop import Loop
from minidsms.streamon.stream_monitor import StreaMon
from tests.streamon.caching.simulated_join import SimulatedJoin

R, S, T = 0, 1, 2
THREE_WAY = (((R, 0), (S, 0)), ((S, 1), (T, 0)))
RS_FIRST = ((S, T), (R, T), (S, R))
"""R and S visit each other first: their join can be cached for T."""


class Running:
    """A simulated join with its selection."""

    def __init__(self, join: SimulatedJoin, options: SelectionOptions | None = None) -> None:
        self.join = join
        self.elements = 0
        self.executor = CacheExecutor(join, "RSTU", self)
        self.profiler = CacheProfiler(self.executor, join, measures_time=False)
        self.selection = CacheSelection(self.executor, self.profiler, options)
        self.adaptation: Loop[JoinPlan] = Loop(
            "caching",
            "MJoin",
            self.executor,
            self.profiler,
            self.selection,
            StreaMon({"adaptive": "on", "cost_model": "fixed"}),
        )

    def spent(self) -> tuple[float, int]:
        _, inspected, taken, put_out = self.join.work()
        return float(inspected + taken + put_out), taken

    def run(self, elements: int, step: int = 500) -> None:
        for at in range(0, elements, step):
            self.join.run(step)
            self.elements += step
            self.adaptation.passed(step, at)
            self.adaptation.reconsider(at)

    @property
    def used(self) -> tuple[CacheSpec, ...]:
        return self.join.plan.caches


def three_way(misses: float, rates: tuple[float, float, float] = (1, 1, 5)) -> SimulatedJoin:
    """Figure 5.7 turned round: R and S meet one row of each other, T five of R join S."""
    return SimulatedJoin(RS_FIRST, THREE_WAY, rates, [(1, 5), (1, 5), (5, 1)], {(T, frozenset((R, S))): misses})


RS_FOR_T = CacheSpec(T, (S, R))


def test_all_candidates_begin_profiled() -> None:
    running = Running(three_way(0.2))
    assert running.selection.states == {RS_FOR_T: State.PROFILED}
    assert running.join.profiled == {RS_FOR_T}


def test_a_cache_that_hits_is_used_after_w_observations_and_profiled_no_more() -> None:
    running = Running(three_way(0.2))
    running.run(INTERVAL - 1_000)
    assert running.used == ()
    running.run(1_000)
    assert running.used == (RS_FOR_T,)
    assert running.selection.states == {RS_FOR_T: State.USED}
    assert running.join.profiled == frozenset()
    (decision,) = running.adaptation.decisions
    assert decision.expected_gain is not None and decision.expected_gain > 0.2
    assert running.join.memory.priorities[running.join.store_of(RS_FOR_T)] > 0


def test_a_cache_that_never_hits_stays_unused() -> None:
    running = Running(three_way(1.0))
    running.run(20 * INTERVAL)
    assert running.adaptation.decisions == []
    assert running.selection.states == {RS_FOR_T: State.UNUSED}


def test_what_would_not_pay_if_it_never_missed_is_not_profiled_again() -> None:
    """R and S change so often, and T probes so seldom, that the updates alone cost more."""
    running = Running(three_way(0.0, rates=(10, 10, 0.4)))
    running.run(20 * INTERVAL)
    assert running.selection.states == {RS_FOR_T: State.UNUSED}
    assert running.join.profiled == frozenset()
    assert running.used == ()


def test_what_could_not_pay_is_profiled_no_more_as_soon_as_pipelines_are_known() -> None:
    running = Running(three_way(0.0, rates=(10, 10, 0.4)))
    assert running.join.profiled == {RS_FOR_T}
    running.run(2_000)
    assert running.join.profiled == frozenset()
    assert running.selection.states == {RS_FOR_T: State.UNUSED}
    assert running.selection.pause > 0


def test_a_used_cache_is_given_up_as_soon_as_it_costs_more_than_it_saves() -> None:
    running = Running(three_way(0.2))
    running.run(3 * INTERVAL)
    assert running.used == (RS_FOR_T,)
    running.join.misses[T, frozenset((R, S))] = 1.0
    running.run(INTERVAL + 2_000)
    assert running.used == ()
    assert running.adaptation.decisions[-1].reason == "net benefit has become negative"


def test_a_cache_given_up_is_left_alone_for_longer_each_time() -> None:
    """The profile says that it would hit, and in use it does not."""
    join = three_way(0.2)
    running = Running(join)
    for _ in range(60):
        join.misses[T, frozenset((R, S))] = 1.0 if running.used else 0.2
        running.run(INTERVAL)
    assert 4 <= len(join.switches) <= 14


def test_caches_under_which_the_join_becomes_dearer_are_given_up_whatever_the_statistics_say() -> None:
    join = three_way(0.2)
    join.dearer_with_caches = 1.5
    running = Running(join)
    running.run(4 * INTERVAL)
    assert [decision.reason for decision in running.adaptation.decisions] == ["its caches cost less", DEARER]
    assert running.used == ()


def test_stable_statistics_do_not_call_the_offline_choice_again() -> None:
    running = Running(three_way(0.2))
    running.run(3 * INTERVAL)
    assert running.selection.choices == 1
    running.run(20 * INTERVAL)
    assert running.selection.choices == 1
    assert len(running.join.switches) == 1


def test_a_burst_is_followed_within_three_intervals() -> None:
    """Figure 5.22: the R S cache for T is best; with R twenty times as fast, (T S) reduced by R for R."""
    join = SimulatedJoin(
        RS_FIRST,
        THREE_WAY,
        (1, 1, 5),
        [(3, 0.3), (1, 0.3), (1, 1)],
        {(T, frozenset((R, S))): 0.1, (R, frozenset((S, T))): 0.1},
    )
    running = Running(join, SelectionOptions("global"))
    running.run(4 * INTERVAL)
    assert RS_FOR_T in running.used
    join.rates[R] = 20
    running.run(3 * INTERVAL)
    assert CacheSpec(R, (S, T), (R,)) in running.used
    assert RS_FOR_T not in running.used


FOUR_WAY = tuple(((i, 0), (j, 0)) for i in range(4) for j in range(i))
FOUR_ORDERS = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
INNER, OUTER = CacheSpec(3, (0, 1)), CacheSpec(3, (0, 1, 2))


def four_way(inner: float, outer: float) -> SimulatedJoin:
    """{0, 1} and {0, 1, 2} can be cached for 3, {0, 1} for 2 also."""
    misses = {(3, frozenset((0, 1))): inner, (3, frozenset((0, 1, 2))): outer}
    return SimulatedJoin(FOUR_ORDERS, FOUR_WAY, (1, 1, 1, 10), [(2, 1, 1)] * 4, misses)


def test_a_used_cache_steps_aside_for_a_subset_that_could_do_better() -> None:
    join = four_way(inner=0.9, outer=0.45)
    running = Running(join)
    running.run(2 * INTERVAL)
    assert running.used == (OUTER,)
    join.misses[3, frozenset((0, 1))] = 0.01
    join.misses[3, frozenset((0, 1, 2))] = 0.5
    running.run(20 * INTERVAL)
    assert any(decision.reason == "subsets of a used cache are profiled" for decision in running.adaptation.decisions)
    assert INNER in running.used


def test_a_used_cache_stays_where_no_subset_could_do_better() -> None:
    join = four_way(inner=0.9, outer=0.02)
    running = Running(join)
    running.run(30 * INTERVAL)
    assert running.used == (OUTER,)
    assert len(join.switches) == 1


def test_new_orders_bring_new_candidates_and_keep_what_is_used() -> None:
    join = four_way(inner=0.9, outer=0.02)
    running = Running(join)
    running.run(3 * INTERVAL)
    orders = ((1, 2, 3), (0, 2, 3), (1, 0, 3), (0, 1, 2))
    join.switch(JoinPlan(orders, join.plan.caches))
    running.run(1_000)
    assert running.selection.states[OUTER] is State.USED
    assert all(state is not State.UNUSED for state in running.selection.states.values())
    running.run(5 * INTERVAL)
    assert running.used == (OUTER,)


def test_where_conditions_change_behind_new_orders_their_candidates_are_profiled() -> None:
    join = four_way(inner=0.9, outer=0.9)
    running = Running(join)
    running.run(500)
    assert INNER in running.selection.states
    orders = (*FOUR_ORDERS[:3], (0, 2, 1))
    join.switch(JoinPlan(orders))
    running.selection.start_over()
    assert INNER not in running.selection.states
    assert join.profiled and {position(spec, orders) for spec in join.profiled} <= {0, 1, 2}
