"""Hashes of rows and keys written as int64 words (`elements.row_words`).

A hash is only a hint: whoever looks a row up by it compares the words too. The mixing is Murmur3's 64-bit finaliser,
word by word (Appleby, MurmurHash3, fmix64).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import BoolArray, Column, Int8Array, Int64Array
from minidsms.kernels.mixing import mixed
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


@kernel("void(int64[:, ::1], int64[::1])")
def _combine(words: Int64Array, out: Int64Array) -> None:
    for i in range(len(words)):
        h = int64(1)
        for j in range(words.shape[1]):
            h = mixed(h, words[i, j])
        out[i] = h


def combined(words: Int64Array) -> Int64Array:
    """The tag of a key of several columns, as `kernels.access_methods.hashes` gives it, (n,)."""
    out = np.empty(len(words), np.int64)
    _combine(words, out)
    return out


def key_tags(columns: Sequence[Column], n: int) -> tuple[Int64Array, Int64Array, BoolArray | None]:
    """What an index keeps of n keys: (tags, words, nulls).

    tags: (n,) int64; of a single column the key itself, so that equal tags are equal keys.  words: (n, w), to be
    compared where tags are of several columns; w is 0 elsewhere.  nulls: (n,) True where a column is NULL, or None when
    none is.
    """
    nulls: BoolArray | None = None
    for column in columns:
        if column.valid is not None and not column.valid.all():
            nulls = ~column.valid if nulls is None else nulls | ~column.valid
    if len(columns) == 1:
        return normal(columns[0].words()), np.zeros((n, 0), np.int64), nulls
    words = np.empty((n, len(columns)), np.int64)
    for j, column in enumerate(columns):
        words[:, j] = column.words()
    return combined(words), words, nulls


def normal(array: Int64Array) -> Int64Array:
    """The array as kernels take it: contiguous and writable; a copy only where it is not."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


def normal_signs(sign: Int8Array | None, n: int) -> Int8Array:
    """Signs written out, contiguous and writable."""
    if sign is None:
        return np.ones(n, np.int8)
    return sign if sign.flags.c_contiguous and sign.flags.writeable else sign.copy()
