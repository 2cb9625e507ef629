"""Netting an instant: which elements stay when equal deletions and insertions of one instant cancel.

The instant's deletions are entered in a chained hash table by row: `heads` (2^m,) int64 holds the position of a
chain's first deletion or -1, `chain` (n,) int64 the next one. An insertion looks for an equal deletion; if there is
one, both are struck out and the deletion leaves its chain. A few deletions are compared one by one instead. After
the instant the heads it used are cleared, so the table costs what the instant costs.
"""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import helper, kernel

_FEW = 4


@helper("int64(int64[:,::1], int64)")
def _hash(words: np.ndarray, row: int) -> int:
    """A non-negative hash of one row."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(words.shape[1]):
        h = (h ^ np.uint64(words[row, j])) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    return int(h >> np.uint64(1))


@helper("boolean(int64[:,::1], int64, int64)")
def _equal(words: np.ndarray, a: int, b: int) -> bool:
    same = True
    for j in range(words.shape[1]):
        same = same and words[a, j] == words[b, j]
    return same


@kernel("int64(int64[::1], int8[::1], int64[:,::1], int64[::1], int64[::1], boolean[::1])")
def net_instants(
    ts: np.ndarray,
    sign: np.ndarray,
    words: np.ndarray,
    heads: np.ndarray,
    chain: np.ndarray,
    kept: np.ndarray,
) -> int:
    """Set kept[i] False for elements that cancel within their instant (kept comes all True); returns how many pairs
    did.

    Deletions stand before insertions in an instant; heads are all -1, before and after.
    """
    n = ts.shape[0]
    mask = heads.shape[0] - 1
    pairs = 0
    first = 0
    while first < n:
        middle = first
        while middle < n and ts[middle] == ts[first] and sign[middle] < 0:
            middle += 1
        last = middle
        while last < n and ts[last] == ts[first]:
            last += 1
        if middle - first <= _FEW:
            for i in range(middle, last):
                for d in range(first, middle):
                    if kept[d] and _equal(words, d, i):
                        kept[d] = False
                        kept[i] = False
                        pairs += 1
                        break
        elif last > middle:
            for d in range(first, middle):
                bucket = _hash(words, d) & mask
                chain[d] = heads[bucket]
                heads[bucket] = d
            for i in range(middle, last):
                bucket = _hash(words, i) & mask
                before = np.int64(-1)
                d = heads[bucket]
                while d >= 0 and not _equal(words, d, i):
                    before = d
                    d = chain[d]
                if d >= 0:
                    if before < 0:
                        heads[bucket] = chain[d]
                    else:
                        chain[before] = chain[d]
                    kept[d] = False
                    kept[i] = False
                    pairs += 1
            for d in range(first, middle):
                heads[_hash(words, d) & mask] = -1
        first = last
    return pairs
