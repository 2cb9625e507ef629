"""Hand-written kernels for COUNT and MAX by group over a sliding window: what this machine could do, were that all it
did.

They know that keys are small whole numbers, that no value is NULL, and that nothing is taken back, and write the
answer's columns into memory as the engine does, netted per instant. `running_hashed` knows nothing of the keys.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.feeds import Int64Array

RANGE, SLIDE = 10_000, 2_000
Changes = tuple[Int64Array, npt.NDArray[np.int8], Int64Array, Int64Array, Int64Array]


def running(ts: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> Changes:
    """Every change of the last ten seconds' count and greatest price by auction."""
    return _changes(ts, ts + RANGE, auction, price, until)


def winagg(ts: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> Changes:
    """The same where the window moves every two seconds."""
    return _changes(-(-ts // SLIDE) * SLIDE, -(-(ts + RANGE) // SLIDE) * SLIDE, auction, price, until)


def _changes(enters: Int64Array, leaves: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> Changes:
    least = int(auction.min())
    keys = int(auction.max()) - least + 1
    return count_and_max(enters, leaves, auction - least, least, keys, price, until)


def count_and_max(
    enters: Int64Array, leaves: Int64Array, key: Int64Array, least: int, keys: int, price: Int64Array, until: int
) -> Changes:
    """The changes of bids that enter and leave at these instants; keys: they are below it, and shown with `least`."""
    out, sign = _room(len(enters))
    return _shown(out, sign, _count_and_max(enters, leaves, key, least, keys, price, until, out, sign))


def _room(bids: int) -> tuple[Int64Array, npt.NDArray[np.int8]]:
    """For all changes that so many bids may make. numpy asks for large pages, compiled code does not."""
    return np.empty((4, 4 * bids), np.int64), np.empty(4 * bids, np.int8)


def _shown(out: Int64Array, sign: npt.NDArray[np.int8], k: int) -> Changes:
    return out[0, :k], sign[:k], out[1, :k], out[2, :k], out[3, :k]


@njit(cache=True, nogil=True)
def _count_and_max(
    enters: Int64Array, leaves: Int64Array, key: Int64Array, least: int, keys: int, price: Int64Array, until: int,
    out: Int64Array, out_sign: npt.NDArray[np.int8],
) -> int:  # fmt: skip
    """A group is a row of `groups`: [rows, front and back of its deque of bids, stamp, was shown, count and top shown].

    links[i]: the bids before and after i in the deque of its group; -1 is nobody.
    """
    n = len(enters)
    groups = np.zeros((keys, 8), np.int64)
    groups[:, 1:3] = -1
    links = np.empty((n, 2), np.int64)
    touched = np.empty(2 * n, np.int64)
    i = d = k = stamp = 0
    while (i < n and enters[i] <= until) or (d < i and leaves[d] <= until):
        now = leaves[d] if d < i and (i == n or leaves[d] <= enters[i]) else enters[i]
        stamp += 1
        m = 0
        while d < i and leaves[d] == now:
            g = key[d]
            groups[g, 0] -= 1
            if groups[g, 1] == d:
                groups[g, 1] = links[d, 1]
                if groups[g, 1] < 0:
                    groups[g, 2] = -1
                else:
                    links[groups[g, 1], 0] = -1
            if groups[g, 3] != stamp:
                groups[g, 3] = stamp
                touched[m] = g
                m += 1
            d += 1
        while i < n and enters[i] == now:
            g = key[i]
            groups[g, 0] += 1
            back = groups[g, 2]
            while back >= 0 and price[back] <= price[i]:
                back = links[back, 0]
            links[i, 0], links[i, 1] = back, -1
            if back < 0:
                groups[g, 1] = i
            else:
                links[back, 1] = i
            groups[g, 2] = i
            if groups[g, 3] != stamp:
                groups[g, 3] = stamp
                touched[m] = g
                m += 1
            i += 1
        changed = 0
        for t in range(m):
            g = touched[t]
            top = price[groups[g, 1]] if groups[g, 0] > 0 else 0
            if groups[g, 5] == groups[g, 0] and groups[g, 6] == top:
                continue
            if groups[g, 5] > 0:
                out[0, k], out_sign[k], out[1, k], out[2, k], out[3, k] = now, -1, g + least, groups[g, 5], groups[g, 6]
                k += 1
            groups[g, 5], groups[g, 6] = groups[g, 0], top
            touched[changed] = g
            changed += 1
        for t in range(changed):
            g = touched[t]
            if groups[g, 5] > 0:
                out[0, k], out_sign[k], out[1, k], out[2, k], out[3, k] = now, 1, g + least, groups[g, 5], groups[g, 6]
                k += 1
    return k


_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ROWS, _FRONTS, _NEWEST, _STAMP, _OF_FRONT, _OF_BACK, _SEEN, _TOP, _KEY, _NEXT, _WORDS = map(np.uint64, range(11))
_NOTHING = -(1 << 63)


def running_hashed(ts: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> Changes:
    """As `running`, knowing nothing of the keys."""
    out, sign = _room(len(ts))
    return _shown(out, sign, _running_hashed(ts, auction, price, until, out, sign))


@njit(inline="always")
def _home(key: int, bits: int) -> np.uint64:
    return (np.uint64(key) * _FACTOR) >> np.uint64(64 - bits)


@njit(inline="always")
def _slot_of(slots: npt.NDArray[np.uint32], groups: Int64Array, key: int, bits: int) -> np.uint64:
    """Where the group of a key stands, or would."""
    mask, at = np.uint64(len(slots) - 1), _home(key, bits)
    while slots[at] > 0 and groups[np.uint64(slots[at]), _KEY] != key:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _grown(groups: Int64Array, bits: int) -> tuple[npt.NDArray[np.uint32], Int64Array]:
    """Slots of so many bits for these groups, all in use, and room for as many again."""
    slots = np.zeros(1 << bits, np.uint32)
    for g in range(1, len(groups)):
        slots[_slot_of(slots, groups, groups[g, _KEY], bits)] = g
    more = np.empty((len(slots) // 2 + 1, groups.shape[1]), np.int64)
    more[: len(groups)] = groups
    return slots, more


@njit(cache=True, nogil=True)
def _give_up(slots: npt.NDArray[np.uint32], groups: Int64Array, g: np.uint64, bits: int) -> None:
    """Take a group out of the slots; those behind it move up."""
    mask, one = np.uint64(len(slots) - 1), np.uint64(1)
    hole = _slot_of(slots, groups, groups[g, _KEY], bits)
    at = (hole + one) & mask
    while slots[at] > 0:
        home = _home(groups[np.uint64(slots[at]), _KEY], bits)
        if ((at - home) & mask) >= ((at - hole) & mask):
            slots[hole] = slots[at]
            hole = at
        at = (at + one) & mask
    slots[hole] = 0


@njit(cache=True, nogil=True)
def _running_hashed(
    ts: Int64Array, auction: Int64Array, price: Int64Array, until: int, out: Int64Array, out_sign: npt.NDArray[np.int8]
) -> int:
    """Groups are found by open addressing in slots, of which half are empty at least; one without bids is free again.

    The greatest price of a group is that of two stacks: bids come onto the back one, of which the greatest is known,
    and leave the front one. Where that is empty the back one is turned over: above[i] is then the greatest price of
    those that leave after bid i. That has no branch that is hard to foretell, unlike a monotone deque. older[i]: the
    bid before i in its group.
    """
    n, one = np.uint64(len(ts)), np.uint64(1)
    bits = 7
    slots, groups = np.zeros(1 << bits, np.uint32), np.zeros((1 + (1 << bits) // 2, _WORDS), np.int64)
    used, free = one, np.uint64(0)
    group_of, older = np.empty(n, np.uint32), np.empty(n, np.uint32)
    above = np.empty(n, np.int64)
    touched = np.empty(2 * len(ts), np.uint32)
    out_ts, out_key, out_rows, out_top = out[0], out[1], out[2], out[3]
    i = d = k = np.uint64(0)
    stamp = 0
    while i < n or d < i:
        now = ts[d] + RANGE if d < i and (i == n or ts[d] + RANGE <= ts[i]) else ts[i]
        if now > until:
            break
        stamp += 1
        m = np.uint64(0)
        while d < i and ts[d] + RANGE == now:
            g = np.uint64(group_of[d])
            group = groups[g]
            if group[_FRONTS] == 0:
                greatest, bid = _NOTHING, np.uint64(group[_NEWEST])
                group[_FRONTS], group[_OF_BACK] = group[_ROWS], _NOTHING
                for _ in range(group[_ROWS]):
                    above[bid] = greatest
                    greatest = max(greatest, price[bid])
                    bid = np.uint64(older[bid])
            group[_FRONTS] -= 1
            group[_OF_FRONT] = above[d]
            group[_ROWS] -= 1
            touched[m] = g
            m += np.uint64(group[_STAMP] != stamp)
            group[_STAMP] = stamp
            d += one
        while i < n and ts[i] == now:
            at = _slot_of(slots, groups, auction[i], bits)
            g = np.uint64(slots[at])
            if g == 0:
                g = free if free > 0 else used
                if free > 0:
                    free = np.uint64(groups[g, _NEXT])
                else:
                    if used == len(groups):
                        bits += 1
                        slots, groups = _grown(groups, bits)
                        at = _slot_of(slots, groups, auction[i], bits)
                    used += one
                slots[at] = g
                groups[g] = 0
                groups[g, _KEY], groups[g, _OF_FRONT], groups[g, _OF_BACK] = auction[i], _NOTHING, _NOTHING
            group = groups[g]
            group_of[i] = g
            older[i] = group[_NEWEST]
            group[_NEWEST] = np.int64(i)
            group[_OF_BACK] = max(group[_OF_BACK], price[i])
            group[_ROWS] += 1
            touched[m] = g
            m += np.uint64(group[_STAMP] != stamp)
            group[_STAMP] = stamp
            i += one
        changed = np.uint64(0)
        for t in range(m):
            g = np.uint64(touched[t])
            group = groups[g]
            rows, top = group[_ROWS], max(group[_OF_FRONT], group[_OF_BACK])
            if group[_SEEN] == rows and group[_TOP] == top:
                continue
            out_ts[k], out_sign[k], out_key[k] = now, -1, group[_KEY]
            out_rows[k], out_top[k] = group[_SEEN], group[_TOP]
            k += np.uint64(group[_SEEN] > 0)
            group[_SEEN], group[_TOP] = rows, top
            touched[changed] = g
            changed += np.uint64(rows > 0)
            if rows == 0:
                _give_up(slots, groups, g, bits)
                group[_NEXT] = np.int64(free)
                free = g
        for t in range(changed):
            group = groups[np.uint64(touched[t])]
            out_ts[k], out_sign[k], out_key[k] = now, 1, group[_KEY]
            out_rows[k], out_top[k] = group[_SEEN], group[_TOP]
            k += one
    return np.int64(k)
