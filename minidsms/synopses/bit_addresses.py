"""Bit addresses: rows found by the first bits of the hashes of their columns, side by side, in place of keys.

A *configuration* says how many bits each column has; rows stored under different ones stand side by side, told apart by
a number in the address. A step that knows some of the columns visits one bucket for each value of the bits it does not
know (`kernels.chains`). Works, Rundensteiner and Agu 2012 (AMRI), section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

ADDRESS: tuple[int, ...] = (-(2**31),)
"""Among the keys of an input: the bit address of the row. No column, and no band, has this number."""
NUMBERS = 1 << 14
"""Of configurations: they are given out in turn."""
MOST_CONFIGURATIONS = 8
"""Under which rows of an input are stored at a time: a step goes through all."""
MOST_BITS = 16
"""Of an address: a step that knows none of them visits 2^16 buckets."""


@dataclass(frozen=True)
class Bits:
    """A configuration.  of: how many bits of the address each column gives, in the order of the keys of one column."""

    of: tuple[int, ...]

    @property
    def total(self) -> int:
        """Of the address."""
        return sum(self.of)

    def places(self) -> list[tuple[int, int, int]]:
        """Of each column that has bits its number, where they stand in the address, and how many they are."""
        placed, place = [], 0
        for column, count in enumerate(self.of):
            if count:
                placed.append((column, place, count))
            place += count
        return placed
