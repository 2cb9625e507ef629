"""Greedy: the operator that by itself reduces what is queued fastest. Babu 2005, section 2.3.2.

It looks at single operators only, and so lets a fast one starve behind a slow one; `Chain` does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from minidsms.scheduler.by_priority import ByPriority
from minidsms.scheduler.statistics import Cost
from minidsms.scheduler.wiring import Wiring


class Greedy(ByPriority):
    """quantum: elements per turn."""

    name = "greedy"

    def priorities(self, wiring: Wiring, costs: Sequence[Cost]) -> list[float]:
        """(1 - selectivity) / time per element; an element that goes to several readers is queued as often."""
        return [(1.0 - cost.selectivity * readers) / cost.time_ns for cost, readers in zip(costs, wiring.readers)]
