"""In which order a screen looks at columns: plans as values. Lee and Lee 2012, section 4.

Columns and regions are numbered as in `screens.domains.Domains`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidsms.kernels.screening import Looks


@dataclass(frozen=True, slots=True)
class Sequence:
    """order: every column once (the macro-sequence).  arrows: (region, column) where another column than the next in
    the order is looked at after a region (micro-arrows), by region.

    >>> Sequence((1, 0, 2), ((4, 2),)).arrays(6)[1].tolist()
    [-1, -1, -1, -1, 2, -1]
    """

    order: tuple[int, ...]
    arrows: tuple[tuple[int, int], ...] = ()
    kind: ClassVar[str] = "order"

    def arrays(self, regions: int) -> Looks:
        """As the kernel takes it."""
        arrows = np.full(regions, -1, np.int32)
        if self.arrows:
            table = np.array(self.arrows, np.int64)
            arrows[table[:, 0]] = table[:, 1]
        return Looks(np.array(self.order, np.int64), arrows)

    def text(self, names: Listed[str]) -> str:
        """In words."""
        return ", ".join(names[c] for c in self.order) + (f"; {len(self.arrows):,} arrows" if self.arrows else "")


@dataclass(frozen=True, slots=True)
class Homes:
    """By which column each of thousands of boxes stands (`screens.homes`). of: by box, a column that it asks.

    >>> Homes((1, 0, 1)).text(["k", "v"])
    'v 2, k 1'
    """

    of: tuple[int, ...]
    kind: ClassVar[str] = "at home"

    @property
    def order(self) -> tuple[int, ...]:
        """The columns where some box is at home, most of them first."""
        return tuple(c for c, _ in Counter(self.of).most_common())

    @property
    def arrows(self) -> tuple[()]:
        """None: every home is looked at."""
        return ()

    def text(self, names: Listed[str]) -> str:
        """In words."""
        return ", ".join(f"{names[c]} {n:,}" for c, n in Counter(self.of).most_common())
