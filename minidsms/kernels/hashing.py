"""Hashes of rows and keys written as int64 words (`elements.row_words`).

A hash is only a hint: whoever looks a row up by it compares the words too. The mixing is Murmur3's 64-bit finaliser,
word by word (Appleby, MurmurHash3, fmix64).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import BoolArray, Column, Int8Array, Int64Array, row_words
from minidsms.machine_code import int64, kernel, uint64


@kernel("void(int64[:, ::1], int64, int64[::1])")
def _hash_rows(words: Int64Array, width: int, out: Int64Array) -> None:
    for i in range(len(words)):
        h = uint64(0x9E3779B97F4A7C15)
        for j in range(width):
            h ^= uint64(words[i, j])
            h ^= h >> uint64(33)
            h *= uint64(0xFF51AFD7ED558CCD)
            h ^= h >> uint64(33)
            h *= uint64(0xC4CEB9FE1A85EC53)
            h ^= h >> uint64(33)
        out[i] = int64(h)


def hash_rows(words: Int64Array, width: int | None = None) -> Int64Array:
    """One hash per row of the first `width` words (default: all), (n,).

    words: (n, w) C-contiguous int64.
    """
    out = np.empty(len(words), np.int64)
    _hash_rows(words, words.shape[1] if width is None else width, out)
    return out


def key_tags(
    columns: Sequence[Column], n: int, null_safe: bool = False
) -> tuple[Int64Array, Int64Array | None, BoolArray | None]:
    """What an index keeps of n keys: (tags, words, nulls).

    null_safe: NULL is a key like others; the words then end with a mask of the NULLs, and nulls is None.
    tags: (n,) int64; of a single word the key itself, so that equal tags are equal keys.  words: (n, w) for w > 1
    words, whose tags are hashes, else None.  nulls: (n,) True where a column is NULL, or None when none is.
    """
    if not columns:
        return np.zeros(n, np.int64), None, None
    if null_safe:
        words = row_words(columns)
        return hash_rows(words), words, None
    nulls: BoolArray | None = None
    for column in columns:
        if column.valid is not None and not column.valid.all():
            nulls = ~column.valid if nulls is None else nulls | ~column.valid
    if len(columns) == 1:
        return normal(columns[0].words()), None, nulls
    words = np.empty((n, len(columns)), np.int64)
    for j, column in enumerate(columns):
        words[:, j] = column.words()
    return hash_rows(words), words, nulls


def normal(array: Int64Array) -> Int64Array:
    """The array as kernels take it: contiguous and writable; a copy only where it is not."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


def normal_signs(sign: Int8Array | None, n: int) -> Int8Array:
    """Signs written out, contiguous and writable."""
    if sign is None:
        return np.ones(n, np.int8)
    return sign if sign.flags.c_contiguous and sign.flags.writeable else sign.copy()
