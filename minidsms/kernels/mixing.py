"""Where a key stands: the mixing of words and the buckets that the kernels' indexes share.

Invariant: indexes that are built by one kernel and probed by another agree, since all of them ask here.
"""

from __future__ import annotations

from typing import Any

from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64


@helper(inline=True)
def bucket(tag: int, shift: int) -> Any:
    """Of 2^(64 - shift) buckets that of a tag: an odd multiplier spreads runs of small integers."""
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


@helper(inline=True)
def mixed(h: int, word: int) -> Any:
    """A word of a key mixed into what its former words gave; as in Murmur3's finaliser."""
    x = (uint64(h) ^ uint64(word)) * uint64(0xFF51AFD7ED558CCD)
    x ^= x >> uint64(32)
    x *= uint64(0xC4CEB9FE1A85EC53)
    return int64(x ^ (x >> uint64(29)))


@helper(inline=True)
def address_part(word: int, shift: int, place: int) -> Any:
    """The bits that a word gives to a bit address: the first 64 - shift of its hash, moved to their place."""
    return int64((uint64(mixed(int64(1), word)) >> uint64(shift)) << uint64(place))


@helper(typed=True)
def bucket_of_row(words: Int64Table, row: int, buckets: Int64s) -> int:
    """Of len(buckets) buckets, a power of two, that of a row of words (n, w), each mixed in by multiply and shift."""
    h = 0
    for c in range(words.shape[1]):
        h = (h ^ words[row, c]) * -7046029254386353131
        h ^= (h >> 32) & 0xFFFFFFFF
    return h & (len(buckets) - 1)
