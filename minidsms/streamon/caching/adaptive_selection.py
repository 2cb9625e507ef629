"""The Re-optimizer of caches: keeps the best set of candidates in use as conditions change (Babu 2005, section 5.5.5).

A candidate is used, profiled or unused (figure 5.9). All begin profiled, but for those that could not pay even if they
never missed; when W observations of each have been made, the offline choice says which are used. After an interval I
the unused are profiled again, and of the used those that hide the probe stream of an unused subset. If no benefit or
cost has changed by a fifth, the choice stands. A used cache whose net benefit becomes negative is given up at once.

Kept cheap: a used cache does not step aside for a subset that could not do better. Caches under which the join has
become dearer are given up (`trial.py`). Each interval that changed nothing makes the next one twice as long, up to
LONGEST, unless what the pipelines spend, which is always known, has shifted.

Invariant: what it proposes is legal for the executor's present orders; new orders make all new candidates profiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from minidsms.joins.figures import Memory
from minidsms.joins.plan import CacheSpec, JoinPlan, Orders, SharedKey, group, key_parts, shared_key
from minidsms.streamon.bans import Bans
from minidsms.streamon.caching.candidates import QUOTA, global_candidates, prefix_candidates
from minidsms.streamon.caching.costs import CacheValue, expected_bytes, priority, value_of
from minidsms.streamon.caching.executor import CacheExecutor
from minidsms.streamon.caching.offline_selection import Priced, Problem, select
from minidsms.streamon.caching.profiler import CacheProfiler
from minidsms.streamon.caching.trial import Trial
from minidsms.streamon.change_detection.usual import Tolerance
from minidsms.streamon.framework import Proposal

INTERVAL = 10_000
"""I: elements between two choices."""
VALUES = Tolerance(relative=0.2)
"""Of benefits and costs: beyond it the choice is made again."""
LEAST_GAIN = 0.05
"""Of the join's cost, what another set of caches must save: less is noise."""
LOOKS = 2
"""At the pipelines, in an interval between two choices while no cache is used."""
NEVER = 2**62
LONGEST = 16
"""Intervals between two choices while nothing changes."""
SPENDINGS = Tolerance(relative=0.5, matters=0.2)
"""Of what pipelines spend, as shares of all: beyond it the next choice comes after one interval."""
DEARER = "the join has become dearer"
"""Why caches are given up that should have saved something, and did not."""
MOST_REFUSALS = 6
"""A cache that was used in vain is left alone for 2 intervals, then 4, up to 2 to this power."""


class State(Enum):
    """Of a candidate (figure 5.9)."""

    USED = "used"
    PROFILED = "profiled"
    UNUSED = "unused"


@dataclass(frozen=True)
class SelectionOptions:
    """consistency: 'prefix' or 'global'.  quota: m of section 5.7.  interval: I."""

    consistency: str = "prefix"
    quota: int = QUOTA
    interval: int = INTERVAL


class CacheSelection:
    """Says which caches to use. choices: times that the offline choice was made.  saving: the
    share of the cost without caches that the latest would save.  promise: that those profiled would save at best.

    budget: bytes that all caches may hold, None for no limit.  priorities: of the stores chosen (section 5.6).
    """

    def __init__(
        self,
        executor: CacheExecutor,
        profiler: CacheProfiler,
        options: SelectionOptions | None = None,
        budget: int | None = None,
    ) -> None:
        self.options = options or SelectionOptions()
        self.budget = budget
        self.priorities: dict[SharedKey, float] = {}
        self.states: dict[CacheSpec, State] = {}
        self.saving = 0.0
        self.promise = 0.0
        self.choices = 0
        self._executor = executor
        self._profiler = profiler
        self._orders: Orders = ()
        self._used: tuple[CacheSpec, ...] = ()
        self._aside: tuple[CacheSpec, ...] = ()
        self._trial = Trial(executor.spent())
        self._is_profiling = False
        self._is_pruned = False
        self._rested_since = 0
        self._look_at = 0
        self._interval = self.options.interval
        self._values: dict[CacheSpec, CacheValue] = {}
        self._spent: list[float] = []
        self._refused: Bans[CacheSpec] = Bans(2 * self.options.interval, MOST_REFUSALS)
        self._foreseen: Proposal[JoinPlan] | None = None
        self._meet_orders()

    @property
    def knows_orders(self) -> bool:
        """The states are of the candidates that the orders in use allow."""
        return self._executor.plan.orders == self._orders

    @property
    def pause(self) -> int:
        """Elements of the join before something may be found again: many where no cache is used, and none has been
        worth it for long; for ever where there is no candidate.
        """
        if not self.knows_orders:
            return 0
        if not self.states:
            return NEVER
        return 0 if self._is_profiling else self.options.interval if self._used else self._interval // LOOKS

    # ------------------------------------------------------------------------------------------------ the decision

    def propose(self) -> Proposal[JoinPlan] | None:
        """Another set of caches, where the statistics ask for one."""
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and foreseen.plan.orders == self._executor.plan.orders:
            return foreseen
        if not self.knows_orders:
            self._meet_orders()
        rests = not self._is_profiling and self._executor.elements < self._look_at
        if rests and not self._profiler.arrivals_shifted():
            return None
        if not self._profiler.observe():
            return None
        self._look_at = self._executor.elements + (self.options.interval if self._used else self._interval)
        if self._trial.has_failed(self._executor.spent()):
            return self._evict(self._used, DEARER)
        losers = self._losers()
        if losers:
            return self._evict(losers, "net benefit has become negative")
        if self._is_profiling and not self._is_pruned:
            self._prune()
        if self._is_profiling:
            is_known = self._profiler.is_ready and len(self._values_of(self._used)) == len(self._used)
            return self._choose() if is_known else None
        interval = self.options.interval if self._has_shifted() else self._interval
        if self._profiler.elements - self._rested_since >= interval and not self._trial.is_running:
            return self._profile_again()
        return None

    @property
    def foresees(self) -> bool:
        """Caches are chosen that can be used as soon as the join has pipelines again."""
        return self._foreseen is not None and self._foreseen.plan.orders == self._executor.plan.orders

    def foresee(self) -> bool:
        """The join runs without pipelines for now: choose what is to be proposed first when it has them again. Whether
        that is something else than before.
        """
        before, self._foreseen = self._foreseen, None
        proposal = self.propose()
        self._foreseen = before if proposal is None else proposal if proposal.plan.caches else None
        return self._foreseen is not None and (before is None or before.plan != self._foreseen.plan)

    def start_over(self) -> None:
        """Conditions have changed: what was seen before does not count, and all that is not used is profiled."""
        if not self.knows_orders:
            self._meet_orders()
        self._foreseen = None
        self._refused.clear()
        self._values.clear()
        self._trial.end(self._executor.spent())
        if not self._used:
            self.saving = 0.0
        self._profiler.forget()
        self._interval = self.options.interval
        for spec in self._in_state(State.UNUSED):
            self.states[spec] = State.PROFILED
        self._begin_profiling()

    def hurry(self) -> None:
        """An element makes other work than it used to: what did not pay may now."""
        self._interval = self.options.interval
        self._look_at = 0

    def adopt(self, plan: JoinPlan) -> None:
        """This plan runs now."""
        if set(plan.caches) - set(self._used):
            self._trial.begin(self._executor.spent())
        else:
            self._trial.end(self._executor.spent())
        self._used = plan.caches
        if plan.orders != self._orders:
            self._meet_orders()
        for spec in self.states:
            if spec in plan.caches:
                self.states[spec] = State.USED
            elif self.states[spec] is State.USED:
                self.states[spec] = State.UNUSED
        if self._is_profiling:
            self._profiler.begin(self._in_state(State.PROFILED))

    # --------------------------------------------------------------------------------------------- state transitions

    def _meet_orders(self) -> None:
        """Take the executor's orders for given: new candidates are profiled, those that were used stay."""
        plan = self._executor.plan
        equalities = self._executor.join.equalities
        candidates = prefix_candidates(plan.orders, equalities)
        if self.options.consistency == "global":
            candidates += global_candidates(
                plan.orders,
                equalities,
                self.options.quota,
                self._pipeline_costs() or None,
                lambda spec: self._executor.is_legal(JoinPlan(plan.orders, (spec,))),
            )
        is_new = bool(self._orders)  # what the profiler has seen was of other orders
        self._orders = plan.orders
        self._used = plan.caches
        self._aside = ()
        self.states = {s: State.USED if s in plan.caches else State.PROFILED for s in sorted(candidates)}
        self._values.clear()
        if is_new:
            self._profiler.forget()
        self._begin_profiling()
        self._prune()

    def _begin_profiling(self) -> None:
        self._is_profiling, self._is_pruned = True, False
        self._profiler.begin(self._in_state(State.PROFILED))

    def _prune(self) -> None:
        """As soon as it is known what the pipelines spend: profile no more what could not pay."""
        total = sum(self._pipeline_costs())
        if not total:
            return
        self._is_pruned = True
        best_cases = {s: self._best_case(s) for s in self._in_state(State.PROFILED)}
        hopeless = [s for s, best in best_cases.items() if best < LEAST_GAIN * total]
        self.promise = min(1.0, max(best_cases.values(), default=0.0) / total)
        if hopeless:
            for spec in hopeless:
                self.states[spec] = State.UNUSED
            self._profiler.begin(self._in_state(State.PROFILED))
        if len(hopeless) == len(best_cases) and not self._used:
            self._rest()

    def _rest(self) -> None:
        """Nothing pays: look again after an interval, each time twice as long."""
        self._profiler.end()
        self._is_profiling = False
        self.saving = self.promise = 0.0
        self._spent = self._pipeline_costs()
        self._rested_since = self._profiler.elements
        self._interval = min(2 * self._interval, self._longest)

    def _choose(self) -> Proposal[JoinPlan] | None:
        """End the profile: take the best set of used and profiled candidates, if a value has changed enough."""
        known = {s: v for s in self._considered() if (v := self._profiler.value(s)) is not None}
        has_changed = self._has_changed(known)
        self._profiler.end()
        self._is_profiling = False
        self._rested_since = self._profiler.elements
        for spec in self._in_state(State.PROFILED):
            self.states[spec] = State.UNUSED
        wanted, gain = tuple(sorted({*self._used, *self._aside})), None
        self._aside = ()
        self._spent = self._pipeline_costs()
        if has_changed:
            self._values.update(known)
            problem = self._problem(known)
            self.choices += 1
            whole = self._profiler.step_costs.whole
            now = whole(problem.cost_of(wanted), wanted)
            chosen, cost = self._best(problem)
            self.saving = 1 - cost / problem.uncached if problem.uncached else 0.0
            gain = 1 - cost / now if now else 0.0
            if gain >= LEAST_GAIN:
                wanted = chosen
        changes = wanted != self._executor.plan.caches
        self._interval = self.options.interval if changes else min(2 * self._interval, self._longest)
        if not changes:
            return None
        self._allot(wanted, known)
        reason = "its caches cost less" if wanted else "no cache pays"
        return Proposal(JoinPlan(self._orders, wanted), reason, gain)

    def _best(self, problem: Problem) -> tuple[tuple[CacheSpec, ...], float]:
        """The best caches and the cost with them: of all, or of those alone that are not reduced, or none."""
        unreduced = replace(problem, candidates=tuple(c for c in problem.candidates if not c.spec.reduced_by))
        best: tuple[CacheSpec, ...] = ()
        least = problem.uncached
        for each in dict.fromkeys((problem, unreduced)):
            choice = select(each)
            cost = self._profiler.step_costs.whole(choice.cost, choice.caches)
            if cost < least:
                best, least = choice.caches, cost
        return best, least

    def _profile_again(self) -> Proposal[JoinPlan] | None:
        """The interval is over: profile what could pay, and let used caches step aside that hide a better subset."""
        values = {s: self._best_case(s) for s in self.states}
        self._aside = tuple(s for s in self._in_state(State.USED) if self._hides_better(s, values))
        self._profile_what_pays(values)
        for spec in self._aside:
            self.states[spec] = State.PROFILED
        if not self._in_state(State.PROFILED) and not self._used:
            self._rest()
            return None
        if not self._aside:
            self._begin_profiling()
            return None
        self._is_profiling = True
        kept = tuple(s for s in self._used if s not in self._aside)
        return Proposal(JoinPlan(self._orders, kept), "subsets of a used cache are profiled", None)

    def _profile_what_pays(self, best_cases: dict[CacheSpec, float]) -> None:
        for spec, state in self.states.items():
            if state is State.UNUSED and best_cases[spec] > 0 and not self._is_refused(spec):
                self.states[spec] = State.PROFILED

    def _evict(self, losers: tuple[CacheSpec, ...], reason: str) -> Proposal[JoinPlan]:
        values = self._values_of(self._used)
        self._values.update(values)
        self.saving = 0.0
        for spec in losers:
            self.states[spec] = State.UNUSED
            self._refused.ban(spec, self._profiler.elements)
        # Conditions have changed: what else could pay is profiled without waiting for the interval to end.
        self._interval = self.options.interval
        self._is_profiling = True
        self._profile_what_pays({s: self._best_case(s) for s in self.states})
        kept = tuple(s for s in self._used if s not in losers)
        total = sum(self._pipeline_costs())
        gain = -sum(values[s].net for s in losers if s in values) / total if total else None
        return Proposal(JoinPlan(self._orders, kept), reason, gain if reason != DEARER else None)

    # ------------------------------------------------------------------------------------------------- what it rests on

    @property
    def _longest(self) -> int:
        return LONGEST * self.options.interval

    def _in_state(self, state: State) -> list[CacheSpec]:
        return [s for s, its in self.states.items() if its is state]

    def _considered(self) -> list[CacheSpec]:
        return [s for s, state in self.states.items() if state is not State.UNUSED]

    def _values_of(self, specs: Iterable[CacheSpec]) -> dict[CacheSpec, CacheValue]:
        return {s: v for s in specs if (v := self._profiler.value(s)) is not None}

    def _losers(self) -> tuple[CacheSpec, ...]:
        """Used caches that cost more than they save: alone, or with all that share their store."""
        values = self._values_of(self._used)
        losers: list[CacheSpec] = []
        for members in group(self._used, self._orders, self._executor.join.equalities).values():
            if any(s not in values for s in members):
                continue
            paying = [s for s in members if values[s].benefit > 0]
            worth = sum(values[s].benefit for s in paying) - max(values[s].cost for s in members)
            losers.extend(members if worth < 0 else [s for s in members if s not in paying])
        return tuple(sorted(losers))

    def _has_changed(self, known: dict[CacheSpec, CacheValue]) -> bool:
        """A benefit or a cost differs by more than CHANGE from when it was last chosen by."""
        for spec, value in known.items():
            before = self._values.get(spec)
            if before is None:
                return True
            for old, new in ((before.benefit, value.benefit), (before.cost, value.cost)):
                if VALUES.change(old, new):
                    return True
        return False

    def _has_shifted(self) -> bool:
        """A pipeline that matters spends another share of the work than when caches were last chosen."""
        spent = self._pipeline_costs()
        total = max(sum(spent), sum(self._spent))
        if len(spent) != len(self._spent):
            return False
        return total > 0 and any(SPENDINGS.change(a / total, b / total) for a, b in zip(spent, self._spent))

    def _problem(self, known: dict[CacheSpec, CacheValue]) -> Problem:
        pipelines = self._profiler.pipelines()
        assert pipelines is not None
        priced = []
        for spec, value in known.items():
            if not self._is_refused(spec) or spec in self._used:
                store = shared_key(spec, self._orders, self._executor.join.equalities)
                # What was used in vain is thought to save half of what its statistics say, then a quarter.
                doubted = value.benefit * (1 - 0.5 ** self._refused.times(spec))
                priced.append(Priced(spec, store, value.processing + doubted, value.cost))
        return Problem(self._orders, tuple(tuple(d * c for d, c in zip(p.d, p.c)) for p in pipelines), tuple(priced))

    def _best_case(self, spec: CacheSpec) -> float:
        """Net benefit if every probe hit, no change met an entry, and all that could share the store did."""
        pipelines = self._profiler.pipelines()
        if pipelines is None:
            return 0.0
        store = shared_key(spec, self._orders, self._executor.join.equalities)
        sharing = [s for s in self.states if shared_key(s, self._orders, self._executor.join.equalities) == store]
        values = [value_of(s, self._orders, pipelines, self._profiler.at_best(s, pipelines)) for s in sharing]
        return sum(max(v.benefit, 0.0) for v in values) - max(v.cost for v in values)

    def _hides_better(self, used: CacheSpec, best_cases: dict[CacheSpec, float]) -> bool:
        """An unused cache of a part of its segment might save more than it does."""
        value = self._profiler.value(used)
        net = 0.0 if value is None else value.net
        return any(
            state is State.UNUSED
            and spec.pipeline == used.pipeline
            and set(spec.segment) < set(used.segment)
            and best_cases[spec] > net
            and not self._is_refused(spec)
            for spec, state in self.states.items()
        )

    def _is_refused(self, spec: CacheSpec) -> bool:
        return self._refused.is_banned(spec, self._profiler.elements)

    def _pipeline_costs(self) -> list[float]:
        """What each pipeline spends per element of the join without caches; empty while too little is known."""
        return [p.work(0, len(p.c) - 1) for p in self._profiler.pipelines() or ()]

    # ------------------------------------------------------------------------------------------------------- memory

    def _allot(self, caches: Iterable[CacheSpec], known: dict[CacheSpec, CacheValue]) -> None:
        """Tell the executor which caches are worth their memory most (section 5.6)."""
        self.priorities = {}
        for store, members in group(caches, self._orders, self._executor.join.equalities).items():
            values = [known[s] for s in members if s in known]
            statistics = [self._profiler.cache(s) for s in members]
            sizes = [
                expected_bytes(s, len(key_parts(s, self._orders, self._executor.join.equalities)), c, v.entry_rows)
                for s, c, v in zip(members, statistics, values)
                if c is not None
            ]
            net = sum(v.benefit for v in values) - max((v.cost for v in values), default=0.0)
            self.priorities[store] = priority(net, max(sizes, default=1.0))
        self._executor.join.allot(Memory(self.budget, self.priorities))
