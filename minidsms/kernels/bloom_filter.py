"""A Bloom filter with one hash function over keys of one or more words (Bloom 1970).

The bits stand in 64-bit words; a key's bit is named by the highest bits of its mixed hash (Murmur3's fmix64, word by
word), so that any run of keys spreads evenly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from minidsms.elements import Int64Array
from minidsms.kernels.hashing import hash_of_row
from minidsms.machine_code import Int64Table, Uint64s, helper, int64, kernel, uint64

UInt64Array = npt.NDArray[np.uint64]


@helper(inline=True)
def _place(keys: Int64Array, i: int, shift: Any) -> Any:
    """Which bit is key i's."""
    return uint64(hash_of_row(keys, i)) >> shift


@kernel
def add_keys(keys: Int64Table, begin: int, end: int, bits: Uint64s, log2_bits: int) -> int:
    """Set the bits of the keys [begin, end); how many of them were not set before.

    bits: (2 ** log2_bits / 64,), log2_bits at least 6.
    """
    shift = uint64(64 - log2_bits)
    new = 0
    for i in range(begin, end):
        place = _place(keys, i, shift)
        bit = uint64(1) << (place & uint64(63))
        word = int64(place >> uint64(6))
        if not bits[word] & bit:
            bits[word] |= bit
            new += 1
    return new


@kernel
def count_absent(keys: Int64Table, bits: Uint64s, log2_bits: int) -> int:
    """How many of the keys have a bit that is not set. bits: as of `add_keys`."""
    shift = uint64(64 - log2_bits)
    absent = 0
    for i in range(keys.shape[0]):
        place = _place(keys, i, shift)
        if not bits[int64(place >> uint64(6))] & (uint64(1) << (place & uint64(63))):
            absent += 1
    return absent
