"""Comparing answers: how many changes, and a sum over them that does not depend on their order.

A change weighs its signed multiplicity, so that an answer that lists a row twice and one that says "two of them" agree.
The count shows what such a sum hides: an insertion and a deletion that should have been netted.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

UInt64Array = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_OF_NULL = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Fingerprint:
    """changes: how many.  checksum: their weighted sum of hashes, modulo 2^64."""

    changes: int
    checksum: int

    def __str__(self) -> str:
        return f"{self.changes:,} changes, checksum {self.checksum:016x}"


def fingerprint(answer: pa.Table) -> Fingerprint:
    """answer: `_ts`, `_sign` (of multiplicity 1 or more), then the columns, in order; their names do not matter."""
    signs = answer.column(1).to_numpy().astype(np.int64)
    hashes = _mixed(np.zeros(len(signs), np.uint64), answer.column(0))
    for i in range(2, answer.num_columns):
        hashes = _mixed(hashes, answer.column(i))
    return Fingerprint(int(np.abs(signs).sum()), int((hashes * signs.view(np.uint64)).sum(dtype=np.uint64)))


def _mixed(hashes: UInt64Array, column: pa.ChunkedArray) -> UInt64Array:
    """The hashes with one more column in each."""
    mixed = (hashes ^ _words(column)) * _FACTOR
    return mixed ^ (mixed >> np.uint64(29))


def _words(column: pa.ChunkedArray) -> UInt64Array:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        coded = column.combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        texts = [zlib.crc32(t.encode()) for t in coded.dictionary.to_pylist()]
        return np.array(texts, np.uint64)[coded.indices.to_numpy(zero_copy_only=False)]
    null = column.is_null().to_numpy()
    words = pc.fill_null(column, 0).cast(pa.int64()).to_numpy().view(np.uint64)
    return np.where(null, _OF_NULL, words) if null.any() else words


def as_answer(
    ts: npt.NDArray[np.int64], sign: npt.NDArray[np.int8] | None, *columns: npt.NDArray[np.generic] | pa.Array
) -> pa.Table:
    """A kernel's output as a table; sign None: insertions only. Copies nothing but the signs left out."""
    signs = np.ones(len(ts), np.int8) if sign is None else sign
    arrays = [pa.array(ts), pa.array(signs), *(c if isinstance(c, pa.Array) else pa.array(c) for c in columns)]
    return pa.Table.from_arrays(arrays, names=["_ts", "_sign", *(f"c{i}" for i in range(len(columns)))])
