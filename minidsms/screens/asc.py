"""Attribute selection constructs: per column whom each region admits.

A region has a bitmap of the filters that it cannot refute; a filter that does not use the column stands in all of them.

Invariant: bit j of a region's bitmap is set exactly if the values of the region are in filter j's box.
Lee and Lee 2012, definition 1 and section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.kernels.screening import Asc, set_bits
from minidsms.screens.box import Box
from minidsms.screens.domains import Domains


class Constructs:
    """The ASCs of a set of boxes; box j is bit j.

    size: bits.  qub: (p, words) uint64, which filters use a column.  bits: (regions, words), all columns one after the
    other.  arrays: for the kernel.
    """

    def __init__(self, boxes: Sequence[Box], domains: Domains) -> None:
        self.domains = domains
        self.columns = domains.columns
        self.places = np.arange(len(boxes), dtype=np.int64)
        used: list[list[int]] = [[] for _ in self.columns]
        runs: list[tuple[int, int, int]] = []
        number = {column: i for i, column in enumerate(self.columns)}
        for j, box in enumerate(boxes):
            for column, values in box.columns:
                c = number[column]
                used[c].append(j)
                at = int(domains.first[c])
                runs += [(j, at + first, at + last) for first, last in domains.regions[c].runs(values)]
        self.everybody = bitmap(range(len(boxes)), len(boxes))
        self.size = 64 * len(self.everybody)
        self.qub = np.zeros((len(self.columns), len(self.everybody)), np.uint64)
        self.bits = np.zeros((domains.size, len(self.everybody)), np.uint64)
        for c, users in enumerate(used):
            self.qub[c] = bitmap(users, len(boxes))
            self.bits[domains.first[c] : domains.first[c + 1]] = self.everybody & ~self.qub[c]
        if runs:
            set_bits(self.bits, *np.ascontiguousarray(np.array(runs, np.int64).T))
        self.arrays = Asc(*domains.tables, self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes of tables and bitmaps."""
        return self.domains.nbytes + self.bits.nbytes + self.qub.nbytes


def bitmap(filters: Sequence[int], size: int) -> np.ndarray:
    """(words,) uint64 with the bits of these filters set."""
    flags = np.zeros((size + 63) // 64 * 64, np.bool_)
    flags[list(filters)] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)
