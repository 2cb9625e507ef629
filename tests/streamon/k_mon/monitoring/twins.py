"""What the monitors must compute, said slowly: distances by their definitions, and k from distances.

Babu 2005, section 6.2 (distances), definitions 6.6.1, 6.7.1 and 6.8.1, section 6.6.3 (k).
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import accumulate

Event = tuple[str, int | None]
"""'parent' or 'child', and the key; None for NULL. In the order of arrival."""


def join_distances(events: Sequence[Event]) -> list[int]:
    """Of each child arrival the greatest distance from a parent whose child it is: the first to come after it."""
    found = []
    children = 0
    waiting: list[tuple[int | None, int]] = []
    for side, key in events:
        if side == "parent":
            waiting.append((key, children))
            continue
        children += 1
        found.append(max((children - before for own, before in waiting if key is not None and own == key), default=0))
        waiting = [(own, before) for own, before in waiting if own != key]
    return found


def join_distances_within(events: Sequence[Event], span: int, by_time: bool) -> list[int]:
    """The same, of parents that stand in a window of `span` instants, or rows of theirs."""
    found = []
    children = parents = 0
    waiting: list[tuple[int | None, int, int]] = []
    for at, (side, key) in enumerate(events):
        if side == "parent":
            parents += 1
            waiting.append((key, children, at if by_time else parents))
            continue
        children += 1
        present = [(own, before) for own, before, born in waiting if (at if by_time else parents) - born < span]
        found.append(max((children - before for own, before in present if key is not None and own == key), default=0))
        waiting = [each for each in waiting if each[0] != key]
    return found


def clustering_distances(values: Sequence[int | None]) -> list[int]:
    """Of each arrival the greatest distance from an earlier row of its value, the first: the others between them."""
    return [
        sum(between != own for between in values[values.index(own) : i]) if own is not None else 0
        for i, own in enumerate(values)
    ]


def scrambling_distances(values: Sequence[float | None]) -> list[int]:
    """Of each arrival the greatest distance from an earlier row of greater value: the first, with which the maximum
    of all so far exceeds it.
    """
    greatest = [*accumulate((-math.inf if value is None else value for value in values), max)]
    return [max(i - bisect.bisect_right(greatest, own), 0) if own is not None else 0 for i, own in enumerate(values)]


class Estimating:
    """k_u, with a margin of so many eighths, where dormancy does not come into it; `add` gives it after an arrival."""

    def __init__(self, window: int, threshold: int, eighths: int = 0, blocks: int = 8) -> None:
        self.block = max(1, window // blocks)
        self.window = -(-window // self.block) * self.block
        self.threshold, self.eighths = threshold, eighths
        self.k: int | None = None
        self.since = self.changed = self.troubles = self.recent = 0
        self.distances: list[int] = []

    def add(self, distance: int) -> int | None:
        self.distances.append(distance)
        n = len(self.distances)
        if self.k is not None and distance > self.k:
            self.troubles = self.troubles + 1 if n - self.changed < 8 * self.window else max(0, self.troubles - 1)
            # Of distances beyond k_e = k_u nothing is known until so many rows have come.
            self.since = n + distance - self.k
            self.changed = self.since if distance <= self.threshold else n
            self.k = None
        if n % self.block == 0:
            # Of late, where k_u was given up again and again: the more often, the slower it is forgotten.
            forgotten = max(1, self.recent // 2 ** (min(self.troubles, 8) + 2))
            highest = 1024 * max(self.distances[n - self.block :])
            self.recent = max(highest, self.recent - forgotten) if self.troubles > 1 else 0
            greatest = max(-(-self.recent // 1024), *self.distances[max(0, n - self.window) :])
            enough = min(greatest + greatest * self.eighths // 8, self.threshold)
            if n - self.since >= self.window and greatest <= self.threshold and (self.k is None or enough < self.k):
                self.changed = n if self.k is None else self.changed
                self.k = enough
        return self.k


def estimates(distances: Sequence[int], estimating: Estimating) -> list[int | None]:
    """k_u after each arrival, where every distance is seen."""
    return [estimating.add(distance) for distance in distances]


def estimates_of_order(values: Sequence[int | None], estimating: Estimating) -> list[int | None]:
    """k_u of OA(k) with c = 1. Further out of order than k_u + 1 arrivals is as far as the maximum is still known."""
    found: list[int | None] = []
    known = 0
    for n, value in enumerate(values):
        limit = estimating.threshold if estimating.k is None else estimating.k
        before = [own for own in values[: n - limit] if own is not None] if value is not None and n > limit else []
        if before:
            known = max(known, _first_at(values, max(before)))
        later = next((j for j in range(known, n) if _exceeds(values, j, value)), n)
        found.append(estimating.add(n - later))
    return found


def _first_at(values: Sequence[int | None], value: int) -> int:
    return list(values).index(value)


def _exceeds(values: Sequence[int | None], j: int, value: int | None) -> bool:
    other = values[j]
    return value is not None and other is not None and other > value
