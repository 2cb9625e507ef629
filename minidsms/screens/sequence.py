"""In which order a screen looks at columns: a plan as a value. Lee and Lee 2012, section 4.

Columns and regions are numbered as in `screens.asc.Constructs`.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int32Array, Int64Array


@dataclass(frozen=True, slots=True)
class Sequence:
    """order: every column once (the macro-sequence).  arrows: (region, column) where another column than the next in
    the order is looked at after a region (micro-arrows), by region.

    >>> Sequence((1, 0, 2), ((4, 2),)).arrays(6)[1].tolist()
    [-1, -1, -1, -1, 2, -1]
    """

    order: tuple[int, ...]
    arrows: tuple[tuple[int, int], ...] = ()

    def arrays(self, regions: int) -> tuple[Int64Array, Int32Array]:
        """As the kernel takes it."""
        arrows = np.full(regions, -1, np.int32)
        if self.arrows:
            table = np.array(self.arrows, np.int64)
            arrows[table[:, 0]] = table[:, 1]
        return np.array(self.order, np.int64), arrows

    def text(self, names: Listed[str]) -> str:
        """In words."""
        return ", ".join(names[c] for c in self.order) + (f"; {len(self.arrows):,} arrows" if self.arrows else "")
