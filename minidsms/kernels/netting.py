"""Netting an instant: which elements stay when equal deletions and insertions of one instant cancel.

Rows are compared where their columns stand (`kernels.addresses`). The instant's deletions are entered in a chained hash
table by row: `heads` (2^m,) int64 holds the position of a chain's first deletion or -1, `chain` (n,) int64 the next
one. An insertion looks for an equal deletion; if there is one, both are struck out and the deletion leaves its chain. A
few deletions are compared one by one instead, where a bit of a word says that one may be equal. An instant uses as many
heads as it has deletions, so the table costs what the instant costs.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.machine_code import Int8s, Int64s, Int64Table, byte_at, helper, int64, kernel, uint64, word_at

_FEW = 16
_STRUCK = -2


@helper(inline=True)
def _word(places: Int64Table, c: int, row: int) -> Any:
    at = places[c, VALUES]
    return uint64(word_at(at, row) if places[c, WIDTH] == 8 else int64(byte_at(at, row)))


@helper(inline=True)
def _bit(places: Int64Table, row: int) -> Any:
    """One of 64 bits, the same for rows that are equal: of the first column and the last."""
    h = uint64(0)
    if len(places) > 0:
        h = _word(places, 0, row) * uint64(0xD6E8FEB86659FD93)
        h ^= _word(places, len(places) - 1, row) * uint64(0x9E3779B97F4A7C15)
    return uint64(1) << (h >> uint64(58))


@helper(typed=True)
def _hash(places: Int64Table, row: int) -> int:
    """A non-negative hash of one row."""
    h = uint64(0x9E3779B97F4A7C15)
    for c in range(len(places)):
        h = (h ^ _word(places, c, row)) * uint64(0xD6E8FEB86659FD93)
        h ^= h >> uint64(32)
    return int(h >> uint64(1))


@helper(typed=True)
def _equal(places: Int64Table, a: int, b: int) -> bool:
    for c in range(len(places)):
        at, valid = places[c, VALUES], places[c, VALID]
        if places[c, WIDTH] == 8:
            if word_at(at, a) != word_at(at, b):
                return False
        elif byte_at(at, a) != byte_at(at, b):
            return False
        if valid != 0 and byte_at(valid, a) != byte_at(valid, b):
            return False
    return True


@kernel
def is_in_order(ts: Int64s, sign: Int8s) -> bool:
    """Instants ascend, and within each deletions come first."""
    for i in range(1, len(ts)):
        if ts[i] < ts[i - 1] or (ts[i] == ts[i - 1] and sign[i] < sign[i - 1]):
            return False
    return True


MIXED = -1
"""What `of_sign` returns where an instant has deletions and insertions, which may cancel."""


@kernel
def of_sign(ts: Int64s, sign: Int8s, is_netted: bool, wanted: int, rows: Int64s) -> int:
    """The elements of the wanted sign (0: of both), into rows (n,), ascending; returns how many they are, or MIXED.

    is_netted: nothing cancels in any instant.
    """
    m = 0
    for i in range(len(ts)):
        # Deletions come first, so an instant has both signs where an insertion follows a deletion.
        if not is_netted and i > 0 and sign[i] > sign[i - 1] and ts[i] == ts[i - 1]:
            return int64(MIXED)
        rows[m] = i
        m += wanted == 0 or sign[i] == wanted
    return int64(m)


@kernel
def net_instants(
    ts: Int64s, sign: Int8s, places: Int64Table, wanted: int, heads: Int64s, chain: Int64s, rows: Int64s
) -> int:
    """The elements that do not cancel within their instant, into rows (n,), ascending; returns how many they are.

    Deletions stand before insertions in an instant.  places (c, PLACE_WORDS): of the columns.  wanted: of which sign
    elements are wanted, 0: of both.  heads: of twice as many places as there are deletions, chain (n,): for the work.
    """
    n, m, first = len(ts), 0, 0
    while first < n:
        now, middle = ts[first], first
        while middle < n and ts[middle] == now and sign[middle] < 0:
            chain[middle] = -1
            middle += 1
        last = middle
        while last < n and ts[last] == now:
            chain[last] = -1
            last += 1
        if middle - first <= _FEW:
            seen = uint64(0)
            for d in range(first, middle if last > middle else first):
                seen |= _bit(places, d)
            for i in range(middle, last):
                d = middle if seen & _bit(places, i) == 0 else first
                while d < middle and (chain[d] == _STRUCK or not _equal(places, d, i)):
                    d += 1
                if d < middle:
                    chain[d] = chain[i] = _STRUCK
        elif last > middle:
            buckets = 8
            while buckets < middle - first:
                buckets *= 2
            heads[:buckets] = -1
            for d in range(first, middle):
                bucket = _hash(places, d) & (buckets - 1)
                chain[d] = heads[bucket]
                heads[bucket] = d
            for i in range(middle, last):
                bucket = _hash(places, i) & (buckets - 1)
                before, d = -1, heads[bucket]
                while d >= 0 and not _equal(places, d, i):
                    before, d = d, chain[d]
                if d >= 0:
                    if before < 0:
                        heads[bucket] = chain[d]
                    else:
                        chain[before] = chain[d]
                    chain[d] = chain[i] = _STRUCK
        for i in range(first if wanted <= 0 else middle, last if wanted >= 0 else middle):
            rows[m] = i
            m += chain[i] != _STRUCK
        first = last
    return m
