"""Plan logging: the regions of statistics in which a plan was found good.

An entry <t, S, P> says that at instant t, under the statistics S, a number for each dimension, the Re-optimizer picked
plan P. Entries of a plan that are neighbours, whose statistics differ by a tolerance at most, are put together to
boxes: what falls into one of them again needs no optimization. Plans are values: hashable, and alike when equal.

Invariant: every entry lies in a box of its plan; a box holds no entry of another plan, but where both were picked under
the very same statistics.  Babu 2005, section 7.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]
P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True)
class Entry(Generic[P]):
    """t: instant.  statistics: (d,).  plan: the one picked."""

    t: int
    statistics: Float64Array
    plan: P


@dataclass(frozen=True)
class Region(Generic[P]):
    """A box, low <= S <= high in each dimension, in which the plan was picked, and nothing else was."""

    low: Float64Array
    high: Float64Array
    plan: P

    def contains(self, statistics: Float64Array) -> bool:
        """Does it lie in the box?"""
        return bool(((self.low <= statistics) & (statistics <= self.high)).all())

    def with_point(self, statistics: Float64Array) -> Region[P]:
        """The least box that holds this one and the point."""
        return Region(np.minimum(self.low, statistics), np.maximum(self.high, statistics), self.plan)


class PlanRegions(Generic[P]):
    """tolerances: by the name of a dimension, how far apart two values may be and still count as neighbours.

    capacity: entries held; beyond it the older half is forgotten.
    """

    def __init__(self, tolerances: Mapping[str, float], capacity: int = 1024) -> None:
        if not tolerances or any(tolerance <= 0 for tolerance in tolerances.values()) or capacity < 2:
            raise ValueError("plan regions take at least one dimension, tolerances above 0, and room for two entries")
        self.dimensions = tuple(tolerances)
        self.entries: list[Entry[P]] = []
        self.regions: list[Region[P]] = []
        self._tolerances = np.array(list(tolerances.values()))
        self._corners: tuple[Float64Array, Float64Array] | None = None
        """(regions, d) each: the lows and highs of all regions, None when they have changed."""
        self._capacity = capacity

    def record(self, t: int, statistics: Mapping[str, float], plan: P) -> None:
        """Log what was picked, and under what.  O(entries + regions), more where regions must be cut."""
        entry = Entry(t, self._point(statistics), plan)
        self.entries.append(entry)
        if len(self.entries) > self._capacity:
            del self.entries[: self._capacity // 2]
            self._build_again({e.plan for e in self.entries} | {r.plan for r in self.regions})
            return
        self._build_again({r.plan for r in self._holding(entry.statistics, 0.0) if r.plan != plan})
        self._include(entry)

    def plans_near(self, statistics: Mapping[str, float]) -> tuple[P, ...]:
        """The plans of all regions that these statistics fall into or lie within a tolerance of."""
        point = self._point(statistics)
        return tuple(dict.fromkeys(r.plan for r in self._holding(point, self._tolerances)))

    def _point(self, statistics: Mapping[str, float]) -> Float64Array:
        """(d,), in the order of the dimensions."""
        point = np.array([statistics[name] for name in self.dimensions], np.float64)
        if not np.isfinite(point).all():
            raise ValueError("statistics of a plan log are finite numbers")
        return point

    def _holding(self, point: Float64Array, margin: Float64Array | float) -> list[Region[P]]:
        """The regions that hold the point, or lie within the margin of it."""
        if self._corners is None:
            shape = (len(self.regions), len(self.dimensions))
            low, high = (np.array([getattr(r, side) for r in self.regions]).reshape(shape) for side in ("low", "high"))
            self._corners = low, high
        low, high = self._corners
        inside = ((low - margin <= point) & (point <= high + margin)).all(axis=1)
        return [self.regions[i] for i in np.flatnonzero(inside).tolist()]

    def _build_again(self, plans: set[P]) -> None:
        """Make the boxes of these plans anew, in the order of the log: entries have come between theirs, or gone."""
        if not plans:
            return
        self.regions = [region for region in self.regions if region.plan not in plans]
        self._corners = None
        for entry in self.entries:
            if entry.plan in plans:
                self._include(entry)

    def _include(self, entry: Entry[P]) -> None:
        """Put an entry into a box of its plan: into one that holds it, else into the neighbour that grows least, else
        into one of its own.
        """
        point = entry.statistics
        near = [r for r in self._holding(point, self._tolerances) if r.plan == entry.plan]
        if any(region.contains(point) for region in near):
            return
        strangers = np.array([e.statistics for e in self.entries if e.plan != entry.plan]).reshape(-1, len(point))
        growths: list[tuple[float, int, Region[P]]] = []
        for i, region in enumerate(near):
            larger = region.with_point(point)
            if not ((larger.low <= strangers) & (strangers <= larger.high)).all(axis=1).any():
                growth = ((larger.high - larger.low) - (region.high - region.low)) / self._tolerances
                growths.append((float(growth.sum()), i, larger))
        if growths:
            _, i, larger = min(growths, key=lambda g: g[:2])
            self.regions = [larger if region is near[i] else region for region in self.regions]
        else:
            self.regions.append(Region(point, point, entry.plan))
        self._corners = None
