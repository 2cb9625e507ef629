"""Hand-written kernels for the queries without joins and groups: what this machine could do, were the query all it did.

They know that no value is NULL and nothing overflows, and write the answer's columns into memory as the engine does.
"""

from __future__ import annotations

import numpy as np
from numba import njit, vectorize

from benchmarks.feeds import Int64Array


@vectorize(["int64(int64, int64)"], cache=True)
def chain_hash(x: int, rounds: int) -> int:
    """H of docs in benchmarks/sql: so many rounds of a congruential generator."""
    for _ in range(rounds):
        x = (x * 48271 + 11) % 2147483647
    return x


@njit(cache=True, nogil=True)
def filter_kernel(ts: Int64Array, auction: Int64Array, price: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """auction % 123 = 0."""
    n = len(ts)
    out_ts, out_auction, out_price = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    k = 0
    for i in range(n):
        out_ts[k], out_auction[k], out_price[k] = ts[i], auction[i], price[i]
        k += auction[i] % 123 == 0
    return out_ts[:k], out_auction[:k], out_price[:k]


@njit(cache=True, nogil=True)
def filters_kernel(
    ts: Int64Array, columns: tuple[Int64Array, ...], rounds: Int64Array, order: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Ten filters, the j-th being order[j], evaluated until one says no; gives the first and the last column."""
    n = len(ts)
    out_ts, first, last = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    k = 0
    for i in range(n):
        passes = True
        for j in order:
            x = columns[j][i]
            for _ in range(rounds[j]):
                x = (x * 48271 + 11) % 2147483647
            if x % 1000 >= 500:
                passes = False
                break
        if passes:
            out_ts[k], first[k], last[k] = ts[i], columns[0][i], columns[9][i]
            k += 1
    return out_ts[:k], first[:k], last[:k]


@njit(cache=True, nogil=True)
def distinct_kernel(
    ts: Int64Array, key: Int64Array, window: int, until: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """When keys come into a range window and leave it; keys are small numbers."""
    n = len(ts)
    held = np.zeros(key.max() + 1, np.int64)
    changed = np.zeros(key.max() + 1, np.int64)
    touched = np.empty(2 * n, np.int64)
    out_ts, out_sign, out_key = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    arrived = left = k = 0
    while True:
        now = until + 1
        if arrived < n:
            now = ts[arrived]
        if left < arrived and ts[left] + window < now:
            now = ts[left] + window
        if now > until:
            return out_ts[:k], out_sign[:k], out_key[:k]
        m = 0
        while left < arrived and ts[left] + window == now:
            changed[key[left]] -= 1
            touched[m] = key[left]
            m += 1
            left += 1
        while arrived < n and ts[arrived] == now:
            changed[key[arrived]] += 1
            touched[m] = key[arrived]
            m += 1
            arrived += 1
        for sign in (-1, 1):
            for t in range(m):
                x = touched[t]
                before, after = held[x], held[x] + changed[x]
                if (before > 0 and after == 0 and sign == -1) or (before == 0 and after > 0 and sign == 1):
                    out_ts[k], out_sign[k], out_key[k] = now, sign, x
                    k += 1
                    held[x] = after
                    changed[x] = 0
        for t in range(m):
            held[touched[t]] += changed[touched[t]]
            changed[touched[t]] = 0
