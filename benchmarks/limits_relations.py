"""Hand-written kernels for the outer join and for the join with a relation: what this machine could do, were the query
all it did.

They know that keys are small numbers, that no value is NULL, that auctions are unique by id and a currency has one
rate, and write the answer's columns into memory as the engine does, netted per instant.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.feeds import Feeds, Int64Array

_RANGE = 10_000
_STAMPS = 4096  # rows are compared only where the low bits of a price say that they may be equal


@njit(cache=True, nogil=True)
def outer_join(
    ts: Int64Array, auction: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, until: int
) -> tuple[Int64Array, npt.NDArray[np.int8], Int64Array, Int64Array, npt.NDArray[np.bool_]]:
    """Every auction of ten seconds with its bids of ten seconds: (ts, sign, id, price, price is NULL).

    state[x]: is in the window, bids in the window, is shown alone, newest bid; older: the bid before it.
    """
    n, m = len(ts), len(ats)
    state = np.zeros((max(auction.max(), id_.max()) + 1, 4), np.int64)
    state[:, 3] = -1
    older = np.empty(n, np.int64)
    size = 4 * (n + m)
    out, out_sign, out_null = np.empty((3, size), np.int64), np.empty(size, np.int8), np.zeros(size, np.bool_)
    gone, touched = np.empty((2, size), np.int64), np.empty(2 * (n + m), np.int64)
    stamp = np.full(_STAMPS, -1, np.int64)
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
            return out[0, :k], out_sign[:k], out[1, :k], out[2, :k], out_null[:k]
        first, d, t = k, 0, 0
        b_was = b_lo
        while a_lo < a and ats[a_lo] + _RANGE == now:
            x = id_[a_lo]
            state[x, 0] = 0
            touched[t] = x
            t, a_lo = t + 1, a_lo + 1
            p = state[x, 3]
            while p >= b_was:
                gone[0, d], gone[1, d] = x, price[p]
                d, p = d + 1, older[p]
        while b_lo < b and ts[b_lo] + _RANGE == now:
            x = auction[b_lo]
            state[x, 1] -= 1
            touched[t] = x
            t += 1
            if state[x, 0]:
                gone[0, d], gone[1, d] = x, price[b_lo]
                d += 1
            b_lo += 1
        while a < m and ats[a] == now:
            x = id_[a]
            state[x, 0] = 1
            touched[t] = x
            t, a = t + 1, a + 1
            p = state[x, 3]
            while p >= b_lo:
                out[0, k], out[1, k], out[2, k], out_sign[k] = now, x, price[p], 1
                stamp[price[p] & (_STAMPS - 1)] = now
                k, p = k + 1, older[p]
        while b < n and ts[b] == now:
            x = auction[b]
            state[x, 1] += 1
            older[b], state[x, 3] = state[x, 3], b
            touched[t] = x
            t += 1
            if state[x, 0]:
                out[0, k], out[1, k], out[2, k], out_sign[k] = now, x, price[b], 1
                stamp[price[b] & (_STAMPS - 1)] = now
                k += 1
            b += 1
        entered, kept = k, 0
        for j in range(d):
            again = False
            if stamp[gone[1, j] & (_STAMPS - 1)] == now:
                for y in range(first, entered):
                    if out[1, y] == gone[0, j] and out[2, y] == gone[1, j]:
                        entered -= 1
                        out[1, y], out[2, y] = out[1, entered], out[2, entered]
                        again = True
                        break
            if not again:
                gone[0, kept], gone[1, kept] = gone[0, j], gone[1, j]
                kept += 1
        k = entered
        for j in range(kept):
            out[0, k], out[1, k], out[2, k], out_sign[k] = now, gone[0, j], gone[1, j], -1
            k += 1
        for j in range(t):
            x = touched[j]
            alone = np.int64(state[x, 0] == 1 and state[x, 1] == 0)
            if alone != state[x, 2]:
                out[0, k], out[1, k], out[2, k], out_sign[k], out_null[k] = now, x, 0, 2 * alone - 1, True
                state[x, 2] = alone
                k += 1


def relation(feeds: Feeds, until: int) -> tuple[Int64Array | None, ...]:
    """Every bid with the rate of its currency: (ts, None, auction, price, rate)."""
    rates, bid = feeds["rates"], feeds["bid"]
    assert rates.sign is not None
    out = rated(
        rates.ts, rates.sign, rates.array("currency"), rates.array("rate"),
        bid.ts, bid.array("auction"), bid.array("price"), bid.array("currency"), until,
    )  # fmt: skip
    return out[0], None, out[1], out[2], out[3]


@njit(cache=True, nogil=True)
def rated(
    rts: Int64Array, sign: Int64Array, currency: Int64Array, rate: Int64Array,
    ts: Int64Array, auction: Int64Array, price: Int64Array, money: Int64Array, until: int,
) -> Int64Array:  # fmt: skip
    """What was there one tick ago leaves, and an equal row that enters is no news: `alive` holds the last instant's."""
    n = len(ts)
    present = np.zeros(currency.max() + 1, np.int64)
    out = np.empty((4, n), np.int64)
    alive, was = np.empty((3, n), np.int64), np.empty((3, n), np.int64)
    stamp = np.full(_STAMPS, -1, np.int64)
    i = r = k = alive_count = 0
    last = np.int64(-1)
    while i < n and ts[i] <= until:
        now = ts[i]
        while r < len(rts) and rts[r] <= now:
            if sign[r] > 0:
                present[currency[r]] = rate[r]
            r += 1
        before = alive_count if last == now - 1 else 0
        alive, was = was, alive
        alive_count = 0
        while i < n and ts[i] == now:
            x, p, q = auction[i], price[i], present[money[i]]
            alive[0, alive_count], alive[1, alive_count], alive[2, alive_count] = x, p, q
            alive_count += 1
            again = False
            if before and stamp[p & (_STAMPS - 1)] >= now - 1:
                for y in range(before):
                    if was[0, y] == x and was[1, y] == p and was[2, y] == q:
                        before -= 1
                        was[0, y], was[1, y], was[2, y] = was[0, before], was[1, before], was[2, before]
                        again = True
                        break
            stamp[p & (_STAMPS - 1)] = now
            if not again:
                out[0, k], out[1, k], out[2, k], out[3, k] = now, x, p, q
                k += 1
            i += 1
        last = now
    return out[:, :k]
