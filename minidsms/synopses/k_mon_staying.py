"""Rows that stay, though by one of their sides no row is to come: by them a broken constraint reaches what has gone.

Where the constraint of a side is broken after all, the rows that were let go beside such a row, because nothing was to
come beyond it, are needed again. Of each side the keys of the rows that were ever closed by it, and are still held,
stand in a Bloom filter, made anew whenever rows go.

Invariant: a row that is held, and by whose side nothing more was expected when others went, is known by that side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.k_mon_bloom import bloom_add, bloom_test

_BITS_PER_KEY = 12
Bits = np.ndarray[Any, np.dtype[np.uint64]]


class StayingKeys:
    """sides: how many there are."""

    def __init__(self, sides: int) -> None:
        self._filters: list[Bits | None] = [None] * sides

    @property
    def nbytes(self) -> int:
        return sum(bits.nbytes for bits in self._filters if bits is not None)

    def renew(self, side: int, known: Int64Array) -> None:
        """Nobody has any other than these keys by a side."""
        bits: Bits | None = None
        if len(known):
            bits = np.zeros(8 * -(-len(known) * _BITS_PER_KEY // 512), np.uint64)
            bloom_add(bits, known)
        self._filters[side] = bits

    def test(self, side: int, keys: Int64Array) -> BoolArray:
        """Which keys a row that was closed by the side may have."""
        found: BoolArray = np.zeros(len(keys), np.bool_)
        bits = self._filters[side]
        if bits is not None:
            bloom_test(bits, normal(keys), found)
        return found

    def filter_of(self, side: int) -> Bits:
        """That of a side, of no words where nobody was closed by it."""
        bits = self._filters[side]
        return _EMPTY if bits is None else bits

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {f"bits{s}": bits for s, bits in enumerate(self._filters) if bits is not None}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self._filters = [arrays[f"bits{s}"].copy() if f"bits{s}" in arrays else None for s in range(len(self._filters))]

    def live_codes(self) -> Sequence[Int64Array]:
        """No codes can be read back."""
        return ()


_EMPTY: Bits = np.zeros(0, np.uint64)
