"""Matrix views over profile windows: the loops of the algorithms that order filters.

The window is a ring of profile tuples: `bits` (W, n) uint8, 1 where the filter of that number drops the tuple, and
`times` (W, n) int64, what the filter took, in 1/1024 ns, or -1 where it was not measured; sums of whole numbers stay
exact however long tuples come and go. `place` (2,) holds the next slot and how many are taken; the taken ones are
always the first. `averages` (n,) are the running means a_i in ns; a filter whose samples have all left keeps its last.

Of a view, `order` (n,) says which filter stands at a position, and `counts[i, j]`, i <= j, how many tuples of the
window the filter at position j drops among those that no filter before i drops. Babu 2005, sections 4.3 to 4.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minidsms.machine_code import Float64s, Int64s, Int64Table, Uint8s, Uint8Table, helper, kernel

SCALE = 1024.0
NEXT, SIZE, PLACE_WORDS = 0, 1, 2


class Profile(NamedTuple):
    """The window. totals (2, n): sums and counts of the times in it.  slots (W,): for the time of a recount."""

    bits: Uint8Table
    times: Int64Table
    place: Int64s
    totals: Int64Table
    averages: Float64s
    slots: Int64s


class View(NamedTuple):
    """An order and its matrix view, or the part of it that an algorithm keeps."""

    order: Int64s
    counts: Int64Table


@helper(typed=True)
def _take(drops: Uint8Table, t: int, costs: Int64s, profile: Profile) -> int:
    """Put a profile tuple and its times into the next slot, and move the ring on by one; the slot."""
    bits, times, place, totals, averages = profile.bits, profile.times, profile.place, profile.totals, profile.averages
    slot, capacity = int(place[NEXT]), bits.shape[0]
    is_full = place[SIZE] == capacity
    for f in range(costs.shape[0]):
        bits[slot, f] = drops[t, f]
        if is_full and times[slot, f] >= 0:
            totals[0, f] -= times[slot, f]
            totals[1, f] -= 1
        times[slot, f] = costs[f]
        if costs[f] >= 0:
            totals[0, f] += costs[f]
            totals[1, f] += 1
        if totals[1, f] > 0:
            averages[f] = max(totals[0, f], 1) / SCALE / totals[1, f]
    place[NEXT] = slot + 1 if slot + 1 < capacity else 0
    place[SIZE] = min(place[SIZE] + 1, capacity)
    return slot


@kernel
def append_tuples(drops: Uint8Table, costs: Int64s, profile: Profile) -> None:
    """Take profile tuples into the window, and nothing else."""
    for t in range(drops.shape[0]):
        _take(drops, t, costs, profile)


@helper(typed=True)
def _first_drop(row: Uint8s, order: Int64s) -> int:
    """The position of the first filter that drops the tuple; n if none does."""
    n = len(order)
    for c in range(n):
        if row[order[c]]:
            return c
    return n


@helper(typed=True)
def _count(row: Uint8s, order: Int64s, view: Int64Table, change: int) -> None:
    """Figure 4.5: a profile tuple comes (+1) or goes (-1)."""
    first = _first_drop(row, order)
    for c in range(first, order.shape[0]):
        if row[order[c]]:
            for r in range(first + 1):
                view[r, c] += change


@helper(typed=True)
def _violation(order: Int64s, view: Int64Table, averages: Float64s, alpha: float, start: int) -> int:
    """Figure 4.6 with equation 4.4: the first position from `start` on that violates the Greedy Invariant, or -1."""
    n = order.shape[0]
    for i in range(start, n):
        own, time = view[i, i], averages[order[i]]
        for j in range(i + 1, n):
            if own * averages[order[j]] < alpha * view[i, j] * time:
                return i
    return -1


@helper(typed=True)
def _keep_passing(bits: Uint8Table, slots: Int64s, kept: int, f: int) -> int:
    """Of the first `kept` slots keep those of tuples that a filter lets pass; how many."""
    passing = 0
    for t in range(kept):
        slots[passing] = slots[t]
        passing += 1 - bits[slots[t], f]
    return int(passing)


@helper(typed=True)
def _correct(profile: Profile, of: View, violated: int) -> None:
    """Figure 4.7: greedy order from position `violated` on.

    The best filter is inserted and those between move back by one, so that filters keep their order among themselves.
    Behind the last place that moved, every row counts the same tuples as before.
    """
    bits, averages, slots = profile.bits, profile.averages, profile.slots
    order, view = of.order, of.counts
    n, kept = order.shape[0], int(profile.place[SIZE])
    for t in range(kept):
        slots[t] = t
    for r in range(violated):
        kept = _keep_passing(bits, slots, kept, order[r])
    last = violated
    r = violated
    while r <= last:
        for c in range(r, n):
            count = 0
            for t in range(kept):
                count += bits[slots[t], order[c]]
            view[r, c] = count
        best = r
        for c in range(r + 1, n):
            if view[r, c] * averages[order[best]] > view[r, best] * averages[order[c]]:
                best = c
        last = max(last, best)
        f = order[best]
        for c in range(best, r, -1):
            order[c] = order[c - 1]
        order[r] = f
        for k in range(r + 1):
            count = view[k, best]
            for c in range(best, r, -1):
                view[k, c] = view[k, c - 1]
            view[k, r] = count
        kept = _keep_passing(bits, slots, kept, f)
        r += 1


@kernel
def observe_all(drops: Uint8Table, costs: Int64s, profile: Profile, of: View, alpha: float, enough: int) -> int:
    """A-Greedy: take profile tuples in one by one; how many violations were corrected."""
    corrected = 0
    bits, place, averages, order, view = profile.bits, profile.place, profile.averages, of.order, of.counts
    for t in range(drops.shape[0]):
        if place[SIZE] == bits.shape[0]:
            _count(bits[place[NEXT]], order, view, -1)
        _count(bits[_take(drops, t, costs, profile)], order, view, 1)
        if place[SIZE] < enough:
            continue
        violated = _violation(order, view, averages, alpha, 0)
        while violated >= 0:
            corrected += 1
            _correct(profile, of, violated)
            violated = _violation(order, view, averages, alpha, violated + 1)
    return corrected


@kernel
def observe_unconditional(
    drops: Uint8Table, costs: Int64s, profile: Profile, of: View, alpha: float, enough: int
) -> int:
    """Independent: as A-Greedy, with the first row of the view only; how often the filters were sorted."""
    bits, place, averages, order, view = profile.bits, profile.place, profile.averages, of.order, of.counts
    n = order.shape[0]
    sorted_again = 0
    for t in range(drops.shape[0]):
        slot = place[NEXT]
        is_full = place[SIZE] == bits.shape[0]
        for c in range(n):
            view[0, c] += np.int64(drops[t, order[c]]) - (np.int64(bits[slot, order[c]]) if is_full else 0)
        _take(drops, t, costs, profile)
        if place[SIZE] < enough:
            continue
        least = 0
        for c in range(1, n):
            own, time = view[0, least], averages[order[least]]
            if own * averages[order[c]] < alpha * view[0, c] * time:
                break
            if view[0, c] * time < own * averages[order[c]]:
                least = c
        else:
            continue
        sorted_again += 1
        for c in range(1, n):
            f, count, k = order[c], view[0, c], c
            while k > 0 and view[0, k - 1] * averages[f] < count * averages[order[k - 1]]:
                order[k], view[0, k] = order[k - 1], view[0, k - 1]
                k -= 1
            order[k], view[0, k] = f, count
    return sorted_again


@helper(typed=True)
def _count_neighbours(row: Uint8s, order: Int64s, view: Int64Table, change: int) -> None:
    """As figure 4.5, for the entries view[i, i] and view[i, i + 1]: three of them at most."""
    first = _first_drop(row, order)
    if first == order.shape[0]:
        return
    view[first, first] += change
    if first > 0:
        view[first - 1, first] += change
    if first + 1 < order.shape[0] and row[order[first + 1]]:
        view[first, first + 1] += change


@kernel
def recount_neighbours(bits: Uint8Table, size: int, order: Int64s, view: Int64Table) -> None:
    """Both diagonals from the window."""
    for r in range(view.shape[0]):
        for c in range(view.shape[1]):
            view[r, c] = 0
    for t in range(size):
        _count_neighbours(bits[t], order, view, 1)


@helper(typed=True)
def _recount_around(bits: Uint8Table, size: int, order: Int64s, view: Int64Table, swapped: int, slots: Int64s) -> None:
    """The entries that a swap of positions `swapped` and `swapped` + 1 changes: three rows of both diagonals."""
    n = order.shape[0]
    for t in range(size):
        slots[t] = t
    kept = size
    for r in range(min(swapped + 2, n)):
        if r >= swapped - 1:
            for c in range(r, min(r + 2, n)):
                count = 0
                for t in range(kept):
                    count += bits[slots[t], order[c]]
                view[r, c] = count
        kept = _keep_passing(bits, slots, kept, order[r])


@kernel
def observe_neighbours(drops: Uint8Table, costs: Int64s, profile: Profile, of: View, alpha: float, enough: int) -> int:
    """LocalSwaps: swap neighbours while that pays; how many swaps.

    It ends: a swap makes the order cheaper on the tuples of the window, as they are known.
    """
    bits, place, averages, order, view = profile.bits, profile.place, profile.averages, of.order, of.counts
    n = order.shape[0]
    swaps = 0
    for t in range(drops.shape[0]):
        if place[SIZE] == bits.shape[0]:
            _count_neighbours(bits[place[NEXT]], order, view, -1)
        _count_neighbours(bits[_take(drops, t, costs, profile)], order, view, 1)
        if place[SIZE] < enough:
            continue
        i = 0
        while i < n - 1:
            if view[i, i] * averages[order[i + 1]] < alpha * view[i, i + 1] * averages[order[i]]:
                order[i], order[i + 1] = order[i + 1], order[i]
                _recount_around(bits, place[SIZE], order, view, i, profile.slots)
                swaps += 1
                i = max(i - 1, 0)
            else:
                i += 1
    return swaps


class Stage(NamedTuple):
    """Of Sweep. profiled: the position that it looks at.  seen: profile tuples that have come.  found: (2,), out: how
    many tuples were taken, and the first position where the Sweep Invariant is violated, or -1.
    """

    profiled: int
    seen: int
    found: Int64s


@kernel
def observe_one(
    drops: Uint8Table,
    costs: Int64s,
    profile: Profile,
    of: View,
    alpha: float,
    enough: int,
    stage: Stage,
) -> None:
    """Sweep: take the profile tuples of one stage in, until it ends.

    The view counts the tuples of the stage only; a stage is not longer than the window, so that none of them leaves
    while it lasts.
    """
    profiled, seen, found = stage
    averages, order, view = profile.averages, of.order, of.counts
    found[1] = -1
    for t in range(drops.shape[0]):
        _take(drops, t, costs, profile)
        found[0] = t + 1
        seen += 1
        first = _first_drop(drops[t], order)
        if first <= profiled:
            view[first, first] += 1
        if drops[t, order[profiled]]:
            for r in range(min(first + 1, profiled)):
                view[r, profiled] += 1
        if seen >= enough:
            own = averages[order[profiled]]
            for i in range(profiled):
                if view[i, i] * own < alpha * view[i, profiled] * averages[order[i]]:
                    found[1] = i
                    return
        if seen == profile.bits.shape[0]:
            return
