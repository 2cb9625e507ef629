"""Hashes of rows written as int64 words (`elements.row_words`).

A hash is only a hint: whoever looks a row up by it compares the words too. The mixing is Murmur3's 64-bit finaliser,
word by word (Appleby, MurmurHash3, fmix64).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel, uint64


@helper(inline=True)
def hash_of_row(words: Int64Table, i: int) -> Any:
    """The hash of row i."""
    h = uint64(0x9E3779B97F4A7C15)
    for j in range(words.shape[1]):
        h ^= uint64(words[i, j])
        h ^= h >> uint64(33)
        h *= uint64(0xFF51AFD7ED558CCD)
        h ^= h >> uint64(33)
        h *= uint64(0xC4CEB9FE1A85EC53)
        h ^= h >> uint64(33)
    return int64(h)


@kernel
def _hash_rows(words: Int64Table, out: Int64s) -> None:
    for i in range(len(words)):
        out[i] = hash_of_row(words, i)


def hash_rows(words: Int64Array) -> Int64Array:
    """One hash per row, (n,).

    words: (n, w) C-contiguous int64.
    """
    out = np.empty(len(words), np.int64)
    _hash_rows(words, out)
    return out
