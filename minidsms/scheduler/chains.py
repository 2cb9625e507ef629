"""Chains in plans that are trees and graphs: the progress chart's lower envelope where paths part and meet.

A progress chart says how an element shrinks along a path: it starts at (0, 1), no time spent and one element, and each
operator is a step to (time spent so far, what is left); behind the last one nothing is left in the system.

An element that an operator hands to two readers is queued twice; so what follows an operator is a tree of work, not a
path. A chain begins at an operator and takes in what follows as long as this makes it steeper: always the steepest
chain that begins where it ends now. Where nothing parts this gives the lower envelope of the path.

Invariant: what a chain leaves to others is less steep than the chain.
Babu 2005, section 2.3.2; the steepest beginning of a tree is found as in Horn's scheduling of jobs on trees (1972).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.scheduler.statistics import Cost
from minidsms.scheduler.wiring import Wiring

LEAST = 1e-6
"""An operator that lets nothing pass counts as if it let this pass: what stands behind it still has an order."""
LARGEST = 1e100
"""An element that has grown so much grows no further: the figures stay finite on the longest path."""


@dataclass
class _Block:
    """The chain that begins at an operator, for one element there.

    members: positions.  behind: where it ends, and how many elements come there; a place that is reached on several
    ways has their sum.
    """

    reduction: float
    time: float
    members: set[int]
    behind: dict[int, float]

    @property
    def slope(self) -> float:
        """Elements per nanosecond."""
        return self.reduction / self.time


def chain_slopes(wiring: Wiring, costs: Sequence[Cost]) -> list[float]:
    """Per operator the slope of its chain; one that belongs to several, where paths meet, takes the steepest.

    O(n log n) for paths, and polynomial however often paths part and meet again.
    """
    blocks: list[_Block] = [_Block(1.0, 1.0, set(), {})] * len(costs)
    for position in reversed(range(len(costs))):  # consumers stand behind their producers
        blocks[position] = _steepest_from(position, wiring, costs[position], blocks)
    slopes: list[float | None] = [None] * len(costs)
    due = [i for i, producers in enumerate(wiring.producers) if not producers]
    begun = set(due)
    while due:
        block = blocks[due.pop()]
        for member in block.members:
            known = slopes[member]
            slopes[member] = block.slope if known is None else max(known, block.slope)
        due += [i for i in block.behind if i not in begun]
        begun.update(block.behind)
    return [slope or 0.0 for slope in slopes]


def _steepest_from(position: int, wiring: Wiring, cost: Cost, blocks: Sequence[_Block]) -> _Block:
    """The chain that begins here; those that begin behind it are known."""
    behind = dict.fromkeys(wiring.consumers[position], min(max(cost.selectivity, LEAST), LARGEST))
    block = _Block(1.0 - sum(behind.values()), cost.time_ns, {position}, behind)
    while block.behind:
        steepest = max(block.behind, key=lambda i: blocks[i].slope)
        following = blocks[steepest]
        if following.slope < block.slope:
            break
        share = block.behind.pop(steepest)
        block.reduction += share * following.reduction
        block.time += share * following.time
        block.members |= following.members
        for i, elements in following.behind.items():
            block.behind[i] = min(block.behind.get(i, 0.0) + share * elements, LARGEST)
    return block
