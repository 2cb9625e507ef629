"""Bloom filters in blocks of a cache line: a key sets six bits of one block of 512.

At twelve bits a key about one key in two hundred that is not in is said to be. Bloom 1970; Putze, Sanders and Singler
2007 (blocked filters).
"""

from __future__ import annotations

from minidsms.machine_code import helper, kernel, uint64

_SIGNATURE = "uint64[::1], int64[::1]"


@helper(inline=True)
def _mixed(x):  # type: ignore[no-untyped-def]
    x ^= x >> uint64(33)
    x *= uint64(0xFF51AFD7ED558CCD)
    x ^= x >> uint64(33)
    x *= uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> uint64(33))


@kernel(f"void({_SIGNATURE})")
def bloom_add(bits, keys):  # type: ignore[no-untyped-def]
    """Put keys in. bits: (8 b,) words of b blocks."""
    blocks = uint64(len(bits) // 8)
    for key in keys:
        h = _mixed(uint64(key) + uint64(0x9E3779B97F4A7C15))
        base = (h % blocks) * uint64(8)
        h = _mixed(h + uint64(1))
        for n in range(6):
            at = (h >> uint64(9 * n)) & uint64(511)
            bits[base + (at >> uint64(6))] |= uint64(1) << (at & uint64(63))


@kernel(f"void({_SIGNATURE}, boolean[::1])")
def bloom_test(bits, keys, found):  # type: ignore[no-untyped-def]
    """Set found[i] where keys[i] may be in."""
    blocks = uint64(len(bits) // 8)
    for i in range(len(keys)):
        h = _mixed(uint64(keys[i]) + uint64(0x9E3779B97F4A7C15))
        base = (h % blocks) * uint64(8)
        h = _mixed(h + uint64(1))
        is_in = True
        for n in range(6):
            at = (h >> uint64(9 * n)) & uint64(511)
            is_in &= (bits[base + (at >> uint64(6))] >> (at & uint64(63))) & uint64(1) != uint64(0)
        if is_in:
            found[i] = True
