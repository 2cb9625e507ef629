"""Hand-written kernels for EXCEPT and for the newest rows of each partition: what this machine could do, were the query
all it did.

They know that keys are small numbers and that no value is NULL, and write the answer's columns into memory as the
engine does, netted per instant.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.feeds import Int64Array

_RANGE = 10_000
_ROWS = 10


@njit(cache=True, nogil=True)
def except_(
    ts: Int64Array, bidder: Int64Array, ats: Int64Array, seller: Int64Array, until: int
) -> tuple[Int64Array, npt.NDArray[np.int8], Int64Array]:
    """The bidders of ten seconds who sold nothing in them."""
    n, m = len(ts), len(ats)
    keys = max(bidder.max(), seller.max()) + 1
    held = np.zeros((keys, 3), np.int64)  # bids, sales, is shown
    touched = np.empty(2 * (n + m), np.int64)
    out_ts, out_sign = np.empty(2 * (n + m), np.int64), np.empty(2 * (n + m), np.int8)
    out_key = np.empty(2 * (n + m), np.int64)
    b = a = b_lo = a_lo = k = 0
    while True:
        now = until + 1
        if b < n:
            now = min(now, ts[b])
        if a < m:
            now = min(now, ats[a])
        if b_lo < b:
            now = min(now, ts[b_lo] + _RANGE)
        if a_lo < a:
            now = min(now, ats[a_lo] + _RANGE)
        if now > until:
            return out_ts[:k], out_sign[:k], out_key[:k]
        t = 0
        while b_lo < b and ts[b_lo] + _RANGE == now:
            held[bidder[b_lo], 0] -= 1
            touched[t] = bidder[b_lo]
            t, b_lo = t + 1, b_lo + 1
        while a_lo < a and ats[a_lo] + _RANGE == now:
            held[seller[a_lo], 1] -= 1
            touched[t] = seller[a_lo]
            t, a_lo = t + 1, a_lo + 1
        while b < n and ts[b] == now:
            held[bidder[b], 0] += 1
            touched[t] = bidder[b]
            t, b = t + 1, b + 1
        while a < m and ats[a] == now:
            held[seller[a], 1] += 1
            touched[t] = seller[a]
            t, a = t + 1, a + 1
        for i in range(t):
            x = touched[i]
            shown = np.int64(held[x, 0] > 0 and held[x, 1] == 0)
            if shown != held[x, 2]:
                out_ts[k], out_sign[k], out_key[k] = now, 2 * shown - 1, x
                held[x, 2] = shown
                k += 1


@njit(cache=True, nogil=True)
def partition(
    ts: Int64Array, auction: Int64Array, price: Int64Array, until: int
) -> tuple[Int64Array, npt.NDArray[np.int8], Int64Array, Int64Array]:
    """The ten newest bids on each auction; rings[x]: the places of its bids, in a circle."""
    n = len(ts)
    keys = auction.max() + 1
    rings = np.empty((keys, _ROWS), np.int64)
    arrived = np.zeros(keys, np.int64)
    out, out_sign = np.empty((3, 2 * n), np.int64), np.empty(2 * n, np.int8)
    gone = np.empty(n, np.int64)
    i = k = 0
    while i < n and ts[i] <= until:
        now, first, d = ts[i], k, 0
        while i < n and ts[i] == now:
            x = auction[i]
            place = arrived[x] % _ROWS
            if arrived[x] >= _ROWS:
                gone[d] = rings[x, place]
                d += 1
            rings[x, place] = i
            arrived[x] += 1
            out[0, k], out[1, k], out[2, k], out_sign[k] = now, x, price[i], 1
            i, k = i + 1, k + 1
        entered = k
        for j in range(d):
            x, p = auction[gone[j]], price[gone[j]]
            again = False
            for y in range(first, entered):
                if out_sign[y] == 1 and out[1, y] == x and out[2, y] == p:
                    # Equal rows came and went at this instant: neither shows. The last one takes the empty place.
                    entered, k = entered - 1, k - 1
                    out[1, y], out[2, y] = out[1, entered], out[2, entered]
                    out[1, entered], out[2, entered], out_sign[entered] = out[1, k], out[2, k], out_sign[k]
                    again = True
                    break
            if not again:
                out[0, k], out[1, k], out[2, k], out_sign[k] = now, x, p, -1
                k += 1
    return out[0, :k], out_sign[:k], out[1, :k], out[2, :k]
