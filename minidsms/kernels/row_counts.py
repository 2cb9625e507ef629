"""How often each row of a relation is there: the loop of `synopses.row_counts`.

The structure walked:
  slots   (2^m,) int64   open addressing with linear probing: 0, or an id + 1 below 31 bits of its row's hash
  rows    (cap, w) int64 of id i: how often it is there, then its words (`elements.row_words`); of a free id 0, then the
                         next free one
  meta    (3,) int64     [ids in use, first free id (-1: none), ids ever used]
At most half of the slots are taken. A row that is gone frees its slot, whose followers move back.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.machine_code import Int8s, Int64s, Int64Table, byte_at, helper, int64, kernel, uint64, word_at

BLOCK = 128
"""Rows that are read column by column before they are looked up."""
_MASK_BITS = 62


@helper(inline=True)
def _mixed(h: Any, word: int) -> Any:
    h = (h ^ uint64(word)) * uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> uint64(32))


@helper(inline=True)
def _read(places: Int64Table, first: int, n: int, words: Int64Table) -> Any:
    """The words of n rows from a first one on, and a hash of each behind them."""
    k, width = len(places), words.shape[1] - 2
    for r in range(n):
        for j in range(k, width):
            words[r, j] = 0
        words[r, width] = 0
    for c in range(k):
        values, valid, is_word = places[c, VALUES], places[c, VALID], places[c, WIDTH] == 8
        for r in range(n):
            word = word_at(values, first + r) if is_word else int64(byte_at(values, first + r))
            if valid != 0 and byte_at(valid, first + r) == 0:
                words[r, k + c // _MASK_BITS] |= int64(1) << (c % _MASK_BITS)
                word = int64(0)
            words[r, c] = word
    for r in range(n):
        h = uint64(0x9E3779B97F4A7C15)
        for j in range(width):
            h = _mixed(h, words[r, j])
        words[r, width] = int64(h >> uint64(33))


@helper(inline=True)
def _forget(slots: Int64s, at: int, mask: int) -> Any:
    """Free a slot; those behind it that it kept from their own places move back."""
    hole = at
    at = (at + 1) & mask
    while slots[at] != 0:
        home = (slots[at] >> 32) & mask
        # The follower may fill the hole unless its home lies cyclically in (hole, at].
        if ((at - home) & mask) >= ((at - hole) & mask):
            slots[hole] = slots[at]
            hole = at
        at = (at + 1) & mask
    slots[hole] = 0


@kernel
def count_changes(
    places: Int64Table, sign: Int8s, slots: Int64s, rows: Int64Table, meta: Int64s, words: Int64Table, start: int
) -> int:
    """Count changes from a first one on; returns how many are done: all, or those before a row without a free id.

    places (c, PLACE_WORDS): of the columns.  words (BLOCK, w + 1): for the work.
    """
    n, mask, width = len(sign), len(slots) - 1, words.shape[1] - 2
    while start < n:
        size = min(BLOCK, n - start)
        _read(places, start, size, words)
        # What the rows will ask for is read for all of them first: then nobody waits for one after the other.
        for r in range(size):
            words[r, width + 1] = slots[words[r, width] & mask] & 0xFFFFFFFF
        for r in range(size):
            words[r, width + 1] = rows[max(0, words[r, width + 1] - 1), 0]
        for r in range(size):
            h = words[r, width]
            at = h & mask
            found = int64(-1)
            while slots[at] != 0:
                if slots[at] >> 32 == h:
                    candidate = (slots[at] & 0xFFFFFFFF) - 1
                    j = 0
                    while j < width and rows[candidate, j + 1] == words[r, j]:
                        j += 1
                    if j == width:
                        found = candidate
                        break
                at = (at + 1) & mask
            if found < 0:
                found = meta[1]
                if found >= 0:
                    meta[1] = rows[found, 1]
                elif meta[2] < len(rows):
                    found = meta[2]
                    meta[2] += 1
                else:
                    return start + r
                slots[at] = h << 32 | (found + 1)
                meta[0] += 1
                for j in range(width):
                    rows[found, j + 1] = words[r, j]
                rows[found, 0] = 0
            times = rows[found, 0] + sign[start + r]
            rows[found, 0] = times
            if times == 0:
                _forget(slots, at, mask)
                rows[found, 1] = meta[1]
                meta[1] = found
                meta[0] -= 1
        start += size
    return n


@kernel
def enter_rows(slots: Int64s, rows: Int64Table) -> None:
    """Enter rows, all of which are there, into slots that are all 0."""
    mask = len(slots) - 1
    for i in range(len(rows)):
        h = uint64(0x9E3779B97F4A7C15)
        for j in range(1, rows.shape[1]):
            h = _mixed(h, rows[i, j])
        word = int64(h >> uint64(33))
        at = word & mask
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = word << 32 | (i + 1)
