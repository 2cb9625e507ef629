"""The Re-optimizer of patterns: those that spare more than they cost.

A pattern spares the slots that its steps inspect beyond those that join, and costs a link for each row of its input and
a hash for each probe: the marginal benefit of Works, Rundensteiner and Agu 2010 (C_D), with what a slot, a link and a
part of a hash take as measured here (windows of 8,192 rows), and all counts from samples. Bits of all columns cost what
C_D says of the same requests; a pattern more takes memory, which bits do not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from minidsms.joins.plan import Index, Key, Patterns
from minidsms.kernels.access_methods.bit_addresses import MOST_BITS, Bits
from minidsms.kernels.access_methods.cells import with_cells
from minidsms.streamon.bans import Bans
from minidsms.streamon.framework import Proposal
from minidsms.streamon.join_index.executor import IndexExecutor
from minidsms.streamon.join_index.profiler import IndexProfiler
from minidsms.streamon.join_index.selection import (
    HASHED_NS,
    INSPECTED_NS,
    LINKED_NS,
    VISITED_NS,
    UnitCosts,
    dependent_costs,
    select,
)

COSTS = UnitCosts(hashed=HASHED_NS, compared=INSPECTED_NS, visited=VISITED_NS)
"""Of bits."""
LEFT_OUT_NS = 25.0
"""Of a tuple that is not put out, for the condition to drop it."""
TAKEN_NS = 100.0
"""Of an element, whatever it joins with."""
LEAST_GAIN = 0.05
"""Of what an element takes, that other patterns must save."""
LEAST_LOSS = 0.01
"""Of what an element takes, that a pattern must cost more than it saves to be dropped: what a few rows say of it may be
chance, and to be without it is dear where conditions change.
"""
FIRST_BAN = 262_144
"""Elements."""


class IndexReoptimizer:
    """weights: by input, its share of the elements.  is_short: memory has been; then nothing is linked beside keys."""

    def __init__(self, executor: IndexExecutor, profiler: IndexProfiler) -> None:
        self.is_short = False
        self.weights: Mapping[int, float] = {}
        self._executor = executor
        self._profiler = profiler
        self._bans: Bans[Index] = Bans(FIRST_BAN)
        self._given_up: Index = ()

    def benefits(self) -> dict[tuple[int, Key], float]:
        """ns of an element, on average, that each pattern of an input saves, less what it takes."""
        saves: dict[tuple[int, Key], float] = {}
        for i, samples in self._profiler.samples.items():
            for each in samples:
                place = each.visited, each.pattern
                tags = 2 ** sum(c < 0 for c in each.pattern)
                asking = (HASHED_NS * len(each.pattern) * tags + INSPECTED_NS * (tags - 1)) * each.reached
                gain = INSPECTED_NS * (each.inspected - each.found) + LEFT_OUT_NS * each.left_out - asking
                saves[place] = saves.get(place, 0.0) + self.weights.get(i, 0.0) * gain
        keys = {place: len(with_cells([place[1]])) for place in saves}
        benefits = {
            place: gain - LINKED_NS * keys[place] * self.weights.get(place[0], 0.0) for place, gain in saves.items()
        }
        if self._executor.join.graph.has_banded_patterns:
            # Of both inputs or none.
            return dict.fromkeys(benefits, sum(benefits.values()) / max(len(benefits), 1))
        return benefits

    def propose(self) -> Proposal[Index] | None:
        """The patterns worth their links, or bits, where these save enough, or memory is short."""
        present = self._executor.plan
        plan, reason = self._best()
        if plan == present or self._bans.is_banned(plan, self._executor.spent()[1]):
            return None
        before, after = self.cost(present), self.cost(plan)
        gives_up = self.is_short and any(each and not isinstance(each, Bits) for each in present)
        if before - after < LEAST_GAIN * before and not gives_up:
            return None
        considered = tuple((each, self.cost(each)) for each in {present, plan, ()} | set(filter(None, [self._bits()])))
        return Proposal(plan, reason, None if gives_up else 1 - after / before, considered)

    def _best(self) -> tuple[Index, str]:
        """The patterns worth their links, no patterns where memory is short; or bits that cost less still."""
        benefits, executor = self.benefits(), self._executor
        present = executor.plan or ((),) * len(executor.able)
        least = -LEAST_LOSS * self.cost(executor.plan)
        chosen = tuple(
            tuple(key for key in keys if benefits.get((j, key), 0.0) > (least if key in _patterns(has) else 0.0))
            for j, (keys, has) in enumerate(zip(executor.able, present))
        )
        keys: Index = chosen if any(chosen) and not self.is_short else ()
        bits = self._bits()
        if bits is not None and (self._has_bits or self.cost(bits) < self.cost(keys)):
            # What keys would inspect cannot be seen while there are bits: these go where they have turned out dearer.
            return bits, "c_d: bits cost less"
        return keys, "memory is short" if self.is_short else "c_d: they save more than they take"

    @property
    def _has_bits(self) -> bool:
        return any(isinstance(each, Bits) for each in self._executor.plan)

    def _bits(self) -> Index | None:
        """The best bits; None where the join can have none, or nothing is known of what it asks."""
        if not self._executor.can_have_bits or not self._profiler.asked or not self.weights:
            return None
        bits = []
        for j, workload in enumerate(self._profiler.workloads(self.weights)):
            most, telling = min(MOST_BITS, int(workload.rows).bit_length() + 1), self._profiler.telling_bits(j)
            columns = len(self._executor.join.graph.columns(j))
            bits.append(Bits(select(columns, most, workload, COSTS, telling=telling)))
        return tuple(bits)

    def cost(self, plan: Index) -> float:
        """ns of an element by these patterns or bits."""
        graph = self._executor.join.graph
        if any(isinstance(each, Bits) for each in plan):
            workloads = self._profiler.workloads(self.weights)
            pairs = [(each, asked) for each, asked in zip(plan, workloads) if isinstance(each, Bits)]
            searching = sum(float(dependent_costs(np.array([each.of]), asked, COSTS)[0]) for each, asked in pairs)
            return TAKEN_NS + searching + LINKED_NS
        linking = LINKED_NS * sum(weight * len(graph.keys[i]) for i, weight in self.weights.items())
        walking = INSPECTED_NS * sum(self.weights.get(i, 0.0) * n for i, n in self._profiler.inspected.items())
        return TAKEN_NS + linking + walking - _sum(self.benefits(), plan)

    def adopt(self, plan: Index) -> None:
        """Others are there."""

    def give_up(self, plan: Index) -> None:
        """It was dearer, as measured."""
        self._bans.ban(plan, self._executor.spent()[1])
        self._given_up = plan

    @property
    def may_index(self) -> bool:
        """Patterns may be proposed again: memory is not short, and the last ones were not dearer than without."""
        return not self.is_short and not self._bans.is_banned(self._given_up, self._executor.spent()[1])


def _patterns(each: Patterns | Bits) -> Patterns:
    return () if isinstance(each, Bits) else each


def _sum(benefits: Mapping[tuple[int, Key], float], plan: Index) -> float:
    patterns = [(j, key) for j, keys in enumerate(plan) for key in _patterns(keys)]
    return sum(benefits.get(place, 0.0) for place in patterns)
