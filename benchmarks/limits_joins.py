"""Hand-written kernels for the joins: what this machine could do, were the query all it did.

They know that keys are small numbers, that no value is NULL and that auctions are unique by id, and write the answer's
columns into memory as the engine does. ISTREAM's netting is part of the answer: what leaves and enters equal at one
instant is taken out again. `join_hashed` knows nothing of the keys.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.feeds import Int64Array

_RANGE = 10_000
_SHORT_RANGE = 2_500


@njit(cache=True, nogil=True)
def _cancelled(out: Int64Array, gone: Int64Array, first: int, k: int, d: int) -> int:
    """Take the d rows of `gone` out of out[:, first:k], once each; returns the new k."""
    for j in range(d):
        for p in range(first, k):
            if (out[1:, p] == gone[1:, j]).all():
                k -= 1
                out[:, p] = out[:, k]
                break
    return k


@njit(cache=True, nogil=True)
def join_windows(
    ts: Int64Array, key: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, seller: Int64Array,
    window: int, until: int,
) -> Int64Array:  # fmt: skip
    """bid and auction of `window` ticks each on the auction: (ts, auction, price, seller)."""
    n, m = len(ts), len(ats)
    bids = np.full(max(key.max(), id_.max()) + 1, -1, np.int64)
    older = np.empty(n, np.int64)
    auction = np.full(len(bids), -1, np.int64)
    out = np.empty((4, 2 * n + 16), np.int64)
    gone = np.empty((4, 4096), np.int64)
    stamp = np.full(4096, -1, np.int64)  # by the low bits of the price: a filter before rows are compared
    k = b = a = b_lo = a_lo = 0
    while b < n or a < m:
        now = min(ts[b] if b < n else ats[a], ats[a] if a < m else ts[b])
        if now > until:
            break
        first, b_was, a_was, b_hi = k, b_lo, a_lo, b
        while b_lo < b and ts[b_lo] + window <= now:
            b_lo += 1
        while a_lo < a and ats[a_lo] + window <= now:
            a_lo += 1
        while b < n and ts[b] == now:
            older[b] = bids[key[b]]
            bids[key[b]] = b
            p = auction[key[b]]
            if p >= a_lo:
                out[0, k], out[1, k], out[2, k], out[3, k] = now, key[b], price[b], seller[p]
                stamp[price[b] & 4095] = now
                k += 1
            b += 1
        while a < m and ats[a] == now:
            auction[id_[a]] = a
            p = bids[id_[a]]
            while p >= b_lo:
                out[0, k], out[1, k], out[2, k], out[3, k] = now, id_[a], price[p], seller[a]
                stamp[price[p] & 4095] = now
                k += 1
                p = older[p]
            a += 1
        if k == first:
            continue
        d = 0
        for p in range(b_was, b_lo):
            # Bids leave at the instant itself: what left in between met no insertion.
            if ts[p] + window == now and stamp[price[p] & 4095] == now:
                q = auction[key[p]]
                if q >= 0 and ats[q] + window >= now and ats[q] < now:
                    gone[1, d], gone[2, d], gone[3, d] = key[p], price[p], seller[q]
                    d += 1
        for q in range(a_was, a_lo):
            if ats[q] + window == now:
                p = bids[id_[q]]
                while p >= b_lo:
                    if p < b_hi and stamp[price[p] & 4095] == now:
                        gone[1, d], gone[2, d], gone[3, d] = id_[q], price[p], seller[q]
                        d += 1
                    p = older[p]
        if d:
            k = _cancelled(out, gone, first, k, d)
    return out[:, :k]


def join(
    ts: Int64Array, key: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, seller: Int64Array, until: int
) -> tuple[Int64Array | None, ...]:
    """bid and auction of 10 seconds each on the auction: (ts, None, auction, price, seller)."""
    out = join_windows(ts, key, price, ats, id_, seller, _RANGE, until)
    return out[0], None, out[1], out[2], out[3]


@njit(inline="always")
def _bucket(key: int, buckets: int) -> int:
    return ((key * 0x9E3779B97F4A7C15) >> 32) & (buckets - 1)


@njit(cache=True, nogil=True)
def _join_hashed(
    ts: Int64Array, key: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, seller: Int64Array, until: int
) -> Int64Array:
    """As `join_windows`, by hash: of each window the heads of its buckets, and of each row the next older one there."""
    n, m = len(ts), len(ats)
    bids, auctions = np.full(1 << 17, -1, np.int64), np.full(1 << 14, -1, np.int64)
    bid_older, auction_older = np.empty(n, np.int64), np.empty(m, np.int64)
    out = np.empty((4, 2 * n + 16), np.int64)
    gone = np.empty((4, 4096), np.int64)
    stamp = np.full(4096, -1, np.int64)
    k = b = a = b_lo = a_lo = 0
    while b < n or a < m:
        now = min(ts[b] if b < n else ats[a], ats[a] if a < m else ts[b])
        if now > until:
            break
        first, b_was, a_was, b_hi, a_hi = k, b_lo, a_lo, b, a
        while b_lo < b and ts[b_lo] + _RANGE <= now:
            b_lo += 1
        while a_lo < a and ats[a_lo] + _RANGE <= now:
            a_lo += 1
        while b < n and ts[b] == now:
            h = _bucket(key[b], len(bids))
            bid_older[b] = bids[h]
            bids[h] = b
            p = auctions[_bucket(key[b], len(auctions))]
            while p >= a_lo:
                if id_[p] == key[b]:
                    out[0, k], out[1, k], out[2, k], out[3, k] = now, key[b], price[b], seller[p]
                    stamp[price[b] & 4095] = now
                    k += 1
                p = auction_older[p]
            b += 1
        while a < m and ats[a] == now:
            h = _bucket(id_[a], len(auctions))
            auction_older[a] = auctions[h]
            auctions[h] = a
            p = bids[_bucket(id_[a], len(bids))]
            while p >= b_lo:
                if key[p] == id_[a]:
                    out[0, k], out[1, k], out[2, k], out[3, k] = now, id_[a], price[p], seller[a]
                    stamp[price[p] & 4095] = now
                    k += 1
                p = bid_older[p]
            a += 1
        if k == first:
            continue
        d = 0
        for p in range(b_was, b_lo):
            if ts[p] + _RANGE == now and stamp[price[p] & 4095] == now:
                q = auctions[_bucket(key[p], len(auctions))]
                while q >= a_was:
                    if id_[q] == key[p] and q < a_hi and ats[q] + _RANGE >= now:
                        gone[1, d], gone[2, d], gone[3, d] = key[p], price[p], seller[q]
                        d += 1
                    q = auction_older[q]
        for q in range(a_was, a_lo):
            if ats[q] + _RANGE == now:
                p = bids[_bucket(id_[q], len(bids))]
                while p >= b_lo:
                    if key[p] == id_[q] and p < b_hi and stamp[price[p] & 4095] == now:
                        gone[1, d], gone[2, d], gone[3, d] = id_[q], price[p], seller[q]
                        d += 1
                    p = bid_older[p]
        if d:
            k = _cancelled(out, gone, first, k, d)
    return out[:, :k]


def join_hashed(
    ts: Int64Array, key: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, seller: Int64Array, until: int
) -> tuple[Int64Array | None, ...]:
    """As `join`, knowing nothing of the keys."""
    out = _join_hashed(ts, key, price, ats, id_, seller, until)
    return out[0], None, out[1], out[2], out[3]


@njit(cache=True, nogil=True)
def _mjoin3(
    rts: Int64Array, ra: Int64Array, sts: Int64Array, sa: Int64Array, sb: Int64Array, tts: Int64Array, tb: Int64Array,
    until: int,
) -> Int64Array:  # fmt: skip
    nr, ns, nt = len(rts), len(sts), len(tts)
    keys_a, keys_b = max(ra.max(), sa.max()) + 1, max(sb.max(), tb.max()) + 1
    r_of, s_of_a = np.full(keys_a, -1, np.int64), np.full(keys_a, -1, np.int64)
    t_of, s_of_b = np.full(keys_b, -1, np.int64), np.full(keys_b, -1, np.int64)
    r_next, t_next = np.empty(nr, np.int64), np.empty(nt, np.int64)
    s_next_a, s_next_b = np.empty(ns, np.int64), np.empty(ns, np.int64)
    out = np.empty((3, 2 * (nr + ns + nt) + 16), np.int64)
    gone = np.empty((3, 4096), np.int64)
    r = s = t = r_lo = s_lo = t_lo = k = 0
    last = np.int64(2**62)
    while r < nr or s < ns or t < nt:
        now = min(rts[r] if r < nr else last, sts[s] if s < ns else last, tts[t] if t < nt else last)
        if now > until:
            break
        first, r_was, s_was, t_was = k, r_lo, s_lo, t_lo
        r_hi, s_hi, t_hi = r, s, t
        while r_lo < r and rts[r_lo] + _SHORT_RANGE <= now:
            r_lo += 1
        while s_lo < s and sts[s_lo] + _SHORT_RANGE <= now:
            s_lo += 1
        while t_lo < t and tts[t_lo] + _SHORT_RANGE <= now:
            t_lo += 1
        while r < nr and rts[r] == now:
            r_next[r] = r_of[ra[r]]
            r_of[ra[r]] = r
            p = s_of_a[ra[r]]
            while p >= s_lo:
                q = t_of[sb[p]]
                while q >= t_lo:
                    out[0, k], out[1, k], out[2, k] = now, ra[r], sb[p]
                    k += 1
                    q = t_next[q]
                p = s_next_a[p]
            r += 1
        while s < ns and sts[s] == now:
            s_next_a[s], s_next_b[s] = s_of_a[sa[s]], s_of_b[sb[s]]
            s_of_a[sa[s]] = s_of_b[sb[s]] = s
            p = r_of[sa[s]]
            while p >= r_lo:
                q = t_of[sb[s]]
                while q >= t_lo:
                    out[0, k], out[1, k], out[2, k] = now, sa[s], sb[s]
                    k += 1
                    q = t_next[q]
                p = r_next[p]
            s += 1
        while t < nt and tts[t] == now:
            t_next[t] = t_of[tb[t]]
            t_of[tb[t]] = t
            p = s_of_b[tb[t]]
            while p >= s_lo:
                q = r_of[sa[p]]
                while q >= r_lo:
                    out[0, k], out[1, k], out[2, k] = now, sa[p], tb[t]
                    k += 1
                    q = r_next[q]
                p = s_next_b[p]
            t += 1
        if k == first:
            continue
        # What left at this instant: only rows whose columns an insertion has can cancel it.
        d = 0
        for x in range(first, k):
            a, b = out[1, x], out[2, x]
            again = False
            for y in range(first, x):
                again |= out[1, y] == a and out[2, y] == b
            if again:
                continue
            p = s_of_a[a]
            while p >= s_was:
                if p < s_hi and sb[p] == b and sts[p] + _SHORT_RANGE >= now:
                    i = r_of[a]
                    while i >= r_was:
                        j = t_of[b]
                        while j >= t_was and i < r_hi:
                            was = j < t_hi and rts[i] + _SHORT_RANGE >= now and tts[j] + _SHORT_RANGE >= now
                            if was and (p < s_lo or i < r_lo or j < t_lo):
                                gone[1, d], gone[2, d] = a, b
                                d += 1
                            j = t_next[j]
                        i = r_next[i]
                p = s_next_a[p]
        if d:
            k = _cancelled(out, gone, first, k, d)
    return out[:, :k]


def mjoin3(
    rts: Int64Array, ra: Int64Array, sts: Int64Array, sa: Int64Array, sb: Int64Array, tts: Int64Array, tb: Int64Array,
    until: int,
) -> tuple[Int64Array | None, ...]:  # fmt: skip
    """R(a), S(a, b), T(b) of 2500 ticks each: (ts, None, a, b)."""
    out = _mjoin3(rts, ra, sts, sa, sb, tts, tb, until)
    return out[0], None, out[1], out[2]
