"""Finding rows that a constraint let go, by their keys: sorted runs on disk, a small Bloom filter in memory for each.

A *run* is `index` (2, m): keys in their order, and the numbers of the rows that have them. Its filter is blocked: a key
sets five bits of one block of 512 (Putze, Sanders and Singler 2007). At eight bits a key about one in thirty that is
not in is looked for in vain, which takes a binary search.
"""

from __future__ import annotations

from minidsms.machine_code import helper, int64, kernel, uint64

BLOCK_WORDS = 8
"""Words of a block."""

_RUN = "int64[:, ::1]"


@kernel("void(int64[::1], uint64[::1])")
def hash_keys(keys, hashes):  # type: ignore[no-untyped-def]
    """Bits that tell nothing of the keys; as in Murmur3's finaliser."""
    for i in range(len(keys)):
        x = uint64(keys[i]) + uint64(0x9E3779B97F4A7C15)
        x ^= x >> uint64(33)
        x *= uint64(0xFF51AFD7ED558CCD)
        x ^= x >> uint64(33)
        x *= uint64(0xC4CEB9FE1A85EC53)
        hashes[i] = x ^ (x >> uint64(33))


@helper(inline=True)
def _block(bits, h):  # type: ignore[no-untyped-def]
    blocks = uint64(len(bits) // BLOCK_WORDS)
    return ((h >> uint64(32)) * blocks >> uint64(32)) * uint64(BLOCK_WORDS)


@kernel("void(uint64[::1], uint64[::1])")
def add_hashes(bits, hashes):  # type: ignore[no-untyped-def]
    """Put keys into a filter. bits: (8 b,) words of b blocks."""
    for h in hashes:
        base = _block(bits, h)
        rest = h * uint64(0x9E3779B97F4A7C15)
        for n in range(5):
            at = (rest >> uint64(19 + 9 * n)) & uint64(511)
            bits[base + (at >> uint64(6))] |= uint64(1) << (at & uint64(63))


@helper(inline=True)
def _may_have(bits, h):  # type: ignore[no-untyped-def]
    base = _block(bits, h)
    rest = h * uint64(0x9E3779B97F4A7C15)
    found = uint64(1)
    for n in range(5):
        at = (rest >> uint64(19 + 9 * n)) & uint64(511)
        found &= bits[base + (at >> uint64(6))] >> (at & uint64(63))
    return found != uint64(0)


@kernel(f"int64(uint64[::1], {_RUN}, int64[::1], uint64[::1], int64[::1])")
def probe_run(bits, index, keys, hashes, found):  # type: ignore[no-untyped-def]
    """Write the numbers of the rows that have one of these keys into `found`; returns how many there are, which may be
    more than fit.  O(keys), and log m for each that the filter lets pass."""
    m = index.shape[1]
    count = int64(0)
    for i in range(len(keys)):
        if _may_have(bits, hashes[i]):
            low, high = int64(0), int64(m)
            while low < high:
                middle = (low + high) >> 1
                if index[0, middle] < keys[i]:
                    low = middle + 1
                else:
                    high = middle
            while low < m and index[0, low] == keys[i]:
                if count < len(found):
                    found[count] = index[1, low]
                count += 1
                low += 1
    return count


@kernel(f"int64(uint64[::1], {_RUN}, int64, int64[::1], uint64[::1], int64[::1])")
def probe_young(bits, entries, held, keys, hashes, found):  # type: ignore[no-untyped-def]
    """The same of a run that is still being collected, in no order. held: its entries."""
    count = int64(0)
    for i in range(len(keys)):
        if _may_have(bits, hashes[i]):
            for x in range(held):
                if entries[0, x] == keys[i]:
                    if count < len(found):
                        found[count] = entries[1, x]
                    count += 1
    return count


@kernel(f"int64({_RUN}, {_RUN}, int64, {_RUN})")
def merge_runs(one, other, first, into):  # type: ignore[no-untyped-def]
    """Merge two runs, without the rows numbered below `first`; returns the entries."""
    a, b, held = int64(0), int64(0), int64(0)
    while a < one.shape[1] or b < other.shape[1]:
        if b == other.shape[1] or (a < one.shape[1] and one[0, a] <= other[0, b]):
            key, row = one[0, a], one[1, a]
            a += 1
        else:
            key, row = other[0, b], other[1, b]
            b += 1
        if row >= first:
            into[0, held], into[1, held] = key, row
            held += 1
    return held
