"""Bloom filters in blocks of a cache line: a key sets six bits of one block of 512.

At twelve bits a key about one key in two hundred that is not in is said to be, at ten one in a hundred, at eight one in
forty. Several filters may stand in one array. Bloom 1970; Putze, Sanders and Singler 2007 (blocked filters).
"""

from __future__ import annotations

from typing import Any

from minidsms.machine_code import Bools, Int64s, Uint64s, helper, int64, kernel, uint64

BLOCK_WORDS = 8
"""Words of a block."""


@helper(inline=True)
def spread(key: int) -> Any:
    """Bits that tell nothing of the key; as in Murmur3's finaliser."""
    x = uint64(key) + uint64(0x9E3779B97F4A7C15)
    x ^= x >> uint64(33)
    x *= uint64(0xFF51AFD7ED558CCD)
    x ^= x >> uint64(33)
    x *= uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> uint64(33))


@helper(inline=True)
def _block(first: int, end: int, h: Any) -> Any:
    """Where the block of a key stands; h: its bits, spread.  The filter is [first, end) of its array."""
    blocks = uint64((end - first) // BLOCK_WORDS)
    return int64(((h >> uint64(32)) * blocks >> uint64(32)) * uint64(BLOCK_WORDS)) + first


@helper(inline=True)
def set_bits(bits: Uint64s, first: int, end: int, h: Any) -> None:
    """Put a key into the filter in bits[first:end]."""
    base = _block(first, end, h)
    rest = h * uint64(0x9E3779B97F4A7C15)
    for n in range(6):
        at = int64((rest >> uint64(10 + 9 * n)) & uint64(511))
        bits[base + (at >> 6)] |= uint64(1) << uint64(at & 63)


@helper(inline=True)
def may_have(bits: Uint64s, first: int, end: int, h: Any) -> Any:
    """Whether a key may be in the filter in bits[first:end]."""
    base = _block(first, end, h)
    rest = h * uint64(0x9E3779B97F4A7C15)
    found = uint64(1)
    for n in range(6):
        at = int64((rest >> uint64(10 + 9 * n)) & uint64(511))
        found &= bits[base + (at >> 6)] >> uint64(at & 63)
    return found != uint64(0)


@kernel
def bloom_add(bits: Uint64s, keys: Int64s) -> None:
    """Put keys in. bits: (8 b,) words of b blocks."""
    for i in range(len(keys)):
        set_bits(bits, 0, len(bits), spread(keys[i]))


@kernel
def bloom_test(bits: Uint64s, keys: Int64s, found: Bools) -> None:
    """Set found[i] where keys[i] may be in."""
    for i in range(len(keys)):
        if may_have(bits, 0, len(bits), spread(keys[i])):
            found[i] = True
