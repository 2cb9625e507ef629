"""The profile window: which filters drop the sampled tuples, and how long each filter takes.

Invariant: it holds the last `capacity` profile tuples, or fewer where older ones were found to be out of date, each
with a bit per filter (a filter that was not evaluated counts as one that lets the tuple pass), and the times measured
with them; `averages` are the means of those times.
Babu 2005, section 4.3.1, figure 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.kernels.filter_ordering import NEXT, PLACE_WORDS, SCALE, SIZE, Profile, append_tuples
from minidsms.machine_code import Int64s, Uint8Table, kernel
from minidsms.streamon.contracts import Float64Array, OrderStatistics

ENOUGH = 50
"""Profile tuples that say something: with fewer, and more of them to come, no order is judged."""


class ProfileWindow:
    """n: filters.  capacity: profile tuples held.

    bits: (capacity, n), 1 where the filter drops the tuple; times: (capacity, n), in 1/1024 ns, -1 where not measured;
    averages: (n,) ns per tuple, 1 before anything was measured; slots: (capacity,), for the time of a recount. The
    kernels write all four.
    """

    def __init__(self, n: int, capacity: int) -> None:
        if n < 1 or capacity < 1:
            raise ValueError("a profile window has at least one filter and room for one tuple")
        self.capacity = capacity
        self.bits: UInt8Array = np.zeros((capacity, n), np.uint8)
        self.times: Int64Array = np.full((capacity, n), -1, np.int64)
        self.place: Int64Array = np.zeros(PLACE_WORDS, np.int64)
        self.totals: Int64Array = np.zeros((2, n), np.int64)
        self.averages: Float64Array = np.ones(n)
        self.slots: Int64Array = np.empty(capacity, np.int64)
        self.enough = min(ENOUGH, capacity)

    @property
    def size(self) -> int:
        """Profile tuples held."""
        return int(self.place[SIZE])

    @property
    def bundle(self) -> Profile:
        """What the kernels work on."""
        return Profile(self.bits, self.times, self.place, self.totals, self.averages, self.slots)

    def append(self, bits: UInt8Array, times: Int64Array) -> None:
        """Take profile tuples (m, n) in, all with the same times (n,); see `as_profile`."""
        append_tuples(bits, times, self.bundle)

    def keep_last(self, count: int) -> None:
        """Forget all profile tuples but the last so many: those before them are out of date."""
        kept = max(0, min(count, self.size))
        if not kept:
            self.place[:] = 0
            self.totals[:] = 0
            return
        slots = (int(self.place[NEXT]) - kept + np.arange(kept)) % self.capacity
        self.bits[:kept], self.times[:kept] = self.bits[slots], self.times[slots]
        self.place[NEXT], self.place[SIZE] = kept % self.capacity, kept
        known = self.times[:kept] >= 0
        self.totals[0] = np.where(known, self.times[:kept], 0).sum(axis=0)
        self.totals[1] = known.sum(axis=0)
        measured = self.totals[1] > 0
        self.averages[measured] = np.maximum(self.totals[0], 1)[measured] / SCALE / self.totals[1][measured]

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """Equation 4.1 over the tuples held: mean ns per tuple under an order; None of none.  O(size * n)."""
        return cost_of(self.bits[: self.size], self.averages, order)

    def statistics(self, order: Sequence[int]) -> OrderStatistics:
        """The order with its conditional drop rates d(i | i - 1) and average times, by position."""
        reaching = reaching_by_position(self.bits[: self.size], order)
        rates = tuple(
            (before - after) / before if before else None
            for before, after in zip(reaching[:-1].tolist(), reaching[1:].tolist())
        )
        known = self.totals[1] > 0
        costs = tuple(float(self.averages[f]) if known[f] else None for f in order)
        return OrderStatistics(tuple(order), rates, costs, self.size)


def reaching_by_position(bits: UInt8Array | BoolArray, order: Sequence[int]) -> Int64Array:
    """(n + 1,) how many of the tuples (m, n) reach each position of the order, and its end."""
    reaching = np.zeros(len(order) + 1, np.int64)
    _count_reaching(np.ascontiguousarray(bits, np.uint8), np.array(order, np.int64), reaching)
    return reaching


@kernel
def _count_reaching(bits: Uint8Table, order: Int64s, reaching: Int64s) -> None:
    """Add each tuple to the positions up to the first whose filter drops it, or to all and the end."""
    n = len(order)
    for t in range(len(bits)):
        place = 0
        reaching[0] += 1
        while place < n and bits[t, order[place]] == 0:
            place += 1
            reaching[place] += 1


def cost_of(bits: UInt8Array | BoolArray, times: Float64Array, order: Sequence[int]) -> float | None:
    """Mean time of the tuples (m, n) under an order; None of no tuples."""
    if not len(bits):
        return None
    reaching = reaching_by_position(bits, order)[:-1]
    return float(reaching @ times[list(order)]) / len(bits)


def as_profile(drops: BoolArray, costs: Float64Array) -> tuple[UInt8Array, Int64Array]:
    """Profile tuples and times as the kernels take them.

    Times are kept in 1/1024 ns, so that their sums are exact; -1 where nothing was measured.
    """
    scaled = np.asarray(costs, np.float64) * SCALE
    times = np.full(len(scaled), -1, np.int64)
    known = np.isfinite(scaled)
    times[known] = np.clip(scaled[known], 1.0, 2.0**42).round().astype(np.int64)
    bits = np.array(drops, np.uint8, order="C", ndmin=2)
    if bits.shape[1] != len(times):
        raise ValueError(f"profile tuples of {bits.shape[1]} filters, times of {len(times)}")
    return bits, times


def checked_order(n: int, order: Sequence[int] | None) -> Int64Array:
    """The order to begin with, 0 to n - 1 unless given; ValueError if it is no permutation."""
    if order is None:
        return np.arange(n, dtype=np.int64)
    given = np.array(order, np.int64)
    if sorted(given.tolist()) != list(range(n)):
        raise ValueError(f"{tuple(order)} is no order of {n} filters")
    return given
