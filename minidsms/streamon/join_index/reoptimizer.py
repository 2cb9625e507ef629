"""The Re-optimizer of patterns: those that spare more than they cost.

A pattern spares the slots that its steps inspect beyond those that join, and costs a link for each row of its input and
a hash for each probe: the marginal benefit of Works, Rundensteiner and Agu 2010 (C_D), with what a slot, a link and a
part of a hash take as measured here (windows of 8,192 rows), and all counts from samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from minidsms.joins.plan import Index, Key
from minidsms.streamon.bans import Bans
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.streamon.join_index.profiler import IndexProfiler
from minidsms.synopses.bit_addresses import Bits

INSPECTED_NS, LINKED_NS, HASHED_NS = 6.0, 12.0, 3.0
"""Of a slot inspected, a row linked by one key, and a word hashed for a probe."""
TAKEN_NS = 100.0
"""Of an element, whatever it joins with."""
LEAST_GAIN = 0.05
"""Of what an element takes, that other patterns must save."""
FIRST_BAN = 262_144
"""Elements."""


class IndexReoptimizer:
    """weights: by input, its share of the elements."""

    def __init__(self, executor: IndexExecutor, profiler: IndexProfiler) -> None:
        self.weights: Mapping[int, float] = {}
        self._executor = executor
        self._profiler = profiler
        self._bans: Bans[Index] = Bans(FIRST_BAN)

    def benefits(self) -> dict[tuple[int, Key], float]:
        """ns of an element, on average, that each pattern of an input saves, less what it takes."""
        saves: dict[tuple[int, Key], float] = {}
        for i, samples in self._profiler.samples.items():
            for each in samples:
                place = each.visited, each.pattern
                hashing = HASHED_NS * len(each.pattern) * each.reached
                gain = INSPECTED_NS * (each.inspected - each.found) - hashing
                saves[place] = saves.get(place, 0.0) + self.weights.get(i, 0.0) * gain
        return {place: gain - LINKED_NS * self.weights.get(place[0], 0.0) for place, gain in saves.items()}

    def propose(self) -> Proposal[Index] | None:
        """The patterns worth their links, where these save enough."""
        benefits, present = self.benefits(), self._executor.plan
        able = self._executor.able
        chosen = tuple(tuple(key for key in keys if benefits.get((j, key), 0.0) > 0) for j, keys in enumerate(able))
        plan: Index = chosen if any(chosen) else ()
        if plan == present or self._bans.is_banned(plan, self._executor.spent()[1]):
            return None
        without = TAKEN_NS + sum(
            INSPECTED_NS * self.weights.get(i, 0.0) * n for i, n in self._profiler.inspected.items()
        )
        before, after = (without - _sum(benefits, each) for each in (present, plan))
        if before - after < LEAST_GAIN * before:
            return None
        return Proposal(plan, "c_d: they save more than they take", 1 - after / before)

    def adopt(self, plan: Index) -> None:
        """Others are there."""

    def give_up(self, plan: Index) -> None:
        """It was dearer, as measured."""
        self._bans.ban(plan, self._executor.spent()[1])


def _sum(benefits: Mapping[tuple[int, Key], float], plan: Index) -> float:
    patterns = [(j, key) for j, keys in enumerate(plan) if not isinstance(keys, Bits) for key in keys]
    return sum(benefits.get(place, 0.0) for place in patterns)
