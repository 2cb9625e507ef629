"""Hand-written kernels for COUNT and MAX by group over a sliding window: what this machine could do, were that all it
did.

They know that keys are small whole numbers, that no value is NULL, and that nothing is taken back, and write the
answer's columns into memory as the engine does, netted per instant.
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
    answer: Changes = count_and_max(enters, leaves, auction - least, least, keys, price, until)
    return answer


@njit(cache=True, nogil=True)
def count_and_max(
    enters: Int64Array, leaves: Int64Array, key: Int64Array, least: int, keys: int, price: Int64Array, until: int
) -> Changes:
    """A group is a row of `groups`: [rows, front and back of its deque of bids, stamp, was shown, count and top shown].

    links[i]: the bids before and after i in the deque of its group; -1 is nobody.
    """
    n = len(enters)
    out, out_sign = np.empty((4, 4 * n), np.int64), np.empty(4 * n, np.int8)
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
    return out[0, :k], out_sign[:k], out[1, :k], out[2, :k], out[3, :k]
