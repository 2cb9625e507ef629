"""Kernels that only count: the physical limit of one core of this machine.

They know that keys are small whole numbers, that no value is NULL and that an auction's number is unique; they keep a
window's state, but write no row, take nothing back and net nothing. What they give is what `counting` compares: how
many rows the answer has, and the sums of its columns.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.feeds import Int64Array

_RANGE, _SLIDE = 10_000, 2_000
_PANES = _RANGE // _SLIDE
_SHORT_RANGE = 2_500


@njit(cache=True, nogil=True)
def filter_(auction: Int64Array, price: Int64Array) -> tuple[int, int, int]:
    """auction % 123 = 0: (rows, sum of auction, sum of price)."""
    rows = auctions = prices = 0
    for i in range(len(auction)):
        passes = auction[i] % 123 == 0
        rows += passes
        auctions += auction[i] * passes
        prices += price[i] * passes
    return rows, auctions, prices


@njit(cache=True, nogil=True)
def filters10(columns: tuple[Int64Array, ...], rounds: Int64Array, order: Int64Array) -> tuple[int, int, int]:
    """The ten filters in an order, until one says no: (rows, sum of the first column, sum of the last)."""
    rows = first = last = 0
    for i in range(len(columns[0])):
        passes = True
        for j in order:
            x = columns[j][i]
            for _ in range(rounds[j]):
                x = (x * 48271 + 11) % 2147483647
            if x % 1000 >= 500:
                passes = False
                break
        if passes:
            rows += 1
            first += columns[0][i]
            last += columns[9][i]
    return rows, first, last


@njit(cache=True, nogil=True)
def winagg(ts: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> tuple[int, int, int, int]:
    """Every window's groups: (rows, sums of auction, COUNT(*) and MAX(price)), by panes of a slide.

    counts[p], tops[p]: of a pane by auction, of which only [lows[p], highs[p]) is not 0.
    """
    keys = auction.max() + 1
    counts, tops = np.zeros((_PANES, keys), np.int64), np.zeros((_PANES, keys), np.int64)
    lows, highs = np.zeros(_PANES, np.int64), np.zeros(_PANES, np.int64)
    rows = auctions = members = greatest = i = 0
    for boundary in range(-(-ts[0] // _SLIDE) * _SLIDE, until + 1, _SLIDE):
        p = (boundary // _SLIDE) % _PANES
        counts[p, lows[p] : highs[p]] = 0
        tops[p, lows[p] : highs[p]] = 0
        low, high = keys, 0
        while i < len(ts) and ts[i] <= boundary:
            g = auction[i]
            counts[p, g] += 1
            tops[p, g] = max(tops[p, g], price[i])
            low, high = min(low, g), max(high, g + 1)
            i += 1
        lows[p], highs[p] = min(low, high), high
        low = keys
        for q in range(_PANES):
            if lows[q] < highs[q]:
                low = min(low, lows[q])
        for g in range(low, highs.max()):
            n = top = 0
            for q in range(_PANES):
                n += counts[q, g]
                top = max(top, tops[q, g])
            if n:
                rows += 1
                auctions += g
                members += n
                greatest += top
    return rows, auctions, members, greatest


@njit(cache=True, nogil=True)
def running(ts: Int64Array, auction: Int64Array, price: Int64Array, until: int) -> tuple[int, int, int, int]:
    """At every bid its group's state: (bids, sums of auction, COUNT(*) and MAX(price)).

    front[g], back[g]: of the deque of bids that may still be the greatest; behind[i]: the next in it, before[i] the
    one before; -1 is nobody.
    """
    n, keys = len(ts), auction.max() + 1
    count = np.zeros(keys, np.int64)
    front, back = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
    before, behind = np.empty(n, np.int64), np.empty(n, np.int64)
    auctions = members = greatest = i = left = 0
    while i < n and ts[i] <= until:
        now, first = ts[i], i
        while ts[left] + _RANGE <= now:
            g = auction[left]
            count[g] -= 1
            if front[g] == left:
                front[g] = behind[left]
                if front[g] < 0:
                    back[g] = -1
                else:
                    before[front[g]] = -1
            left += 1
        while i < n and ts[i] == now:
            g = auction[i]
            count[g] += 1
            last = back[g]
            while last >= 0 and price[last] <= price[i]:
                last = before[last]
            before[i], behind[i] = last, -1
            if last < 0:
                front[g] = i
            else:
                behind[last] = i
            back[g] = i
            i += 1
        for j in range(first, i):
            g = auction[j]
            auctions += g
            members += count[g]
            greatest += price[front[g]]
    return i, auctions, members, greatest


@njit(cache=True, nogil=True)
def join(
    ts: Int64Array, key: Int64Array, price: Int64Array, ats: Int64Array, id_: Int64Array, seller: Int64Array, until: int
) -> tuple[int, int, int, int]:
    """Pairs that meet: (pairs, sums of auction, price and seller)."""
    n, m = len(ts), len(ats)
    keys = max(key.max(), id_.max()) + 1
    newest, older = np.full(keys, -1, np.int64), np.empty(n, np.int64)
    auction = np.full(keys, -1, np.int64)
    pairs = auctions = prices = sellers = a = b = 0
    while b < n or a < m:
        if a < m and (b == n or ats[a] <= ts[b]):
            if ats[a] > until:
                break
            auction[id_[a]] = a
            p = newest[id_[a]]
            while p >= 0 and ts[p] + _RANGE > ats[a]:
                pairs += 1
                auctions += id_[a]
                prices += price[p]
                sellers += seller[a]
                p = older[p]
            a += 1
        else:
            if ts[b] > until:
                break
            older[b] = newest[key[b]]
            newest[key[b]] = b
            p = auction[key[b]]
            if p >= 0 and ats[p] + _RANGE > ts[b]:
                pairs += 1
                auctions += key[b]
                prices += price[b]
                sellers += seller[p]
            b += 1
    return pairs, auctions, prices, sellers


@njit(cache=True, nogil=True)
def mjoin3(
    rts: Int64Array, ra: Int64Array, sts: Int64Array, sa: Int64Array, sb: Int64Array, tts: Int64Array, tb: Int64Array,
    until: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Triples that meet: (triples, sums of a and b). Chains of rows by key, the newest first."""
    nr, ns, nt = len(rts), len(sts), len(tts)
    keys_a, keys_b = max(ra.max(), sa.max()) + 1, max(sb.max(), tb.max()) + 1
    r_of, s_of_a = np.full(keys_a, -1, np.int64), np.full(keys_a, -1, np.int64)
    t_of, s_of_b = np.full(keys_b, -1, np.int64), np.full(keys_b, -1, np.int64)
    r_next, t_next = np.empty(nr, np.int64), np.empty(nt, np.int64)
    s_next_a, s_next_b = np.empty(ns, np.int64), np.empty(ns, np.int64)
    triples = sum_a = sum_b = r = s = t = r_lo = s_lo = t_lo = 0
    last = np.int64(until + 1)
    while True:
        now = min(rts[r] if r < nr else last, sts[s] if s < ns else last, tts[t] if t < nt else last)
        if now > until:
            return triples, sum_a, sum_b
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
                    triples, sum_a, sum_b = triples + 1, sum_a + ra[r], sum_b + sb[p]
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
                    triples, sum_a, sum_b = triples + 1, sum_a + sa[s], sum_b + sb[s]
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
                    triples, sum_a, sum_b = triples + 1, sum_a + sa[p], sum_b + tb[t]
                    q = r_next[q]
                p = s_next_b[p]
            t += 1
