"""Bands: columns of two inputs whose difference has bounds, and the cells by which a step finds who may lie in one.

A band `least <= a - b <= most` cuts the numbers into cells as wide as it is. Where b is moved by `least`, a row of b in
cell c meets only rows of a in the cells c and c + 1, a row of a in c only rows of b in c - 1 and c: so a step that no
equality links probes two tags instead of all rows; where two bands bound the same inputs, the four of both together.

A difference with one bound, `a - b <= most`, cuts them into cells of as many rows each (an `Order` of
`kernels.access_methods.cells`): a row of b, moved by `most`, meets rows of a in its own cell and those before, a row of
a those of b in its own and behind.

Invariant: cells leave out no pair for which the condition is TRUE, or fails; which of those met are in the band is for
the condition to say, above the join (docs/semantics R4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from minidsms.elements import Type
from minidsms.joins.equal_columns import Attribute
from minidsms.kernels.access_methods.cells import Cells, CellsInOrder, Order

LARGEST_BOUND = 2**61
"""Constants that add up to this are not taken for a band: sums of values far from the ends of 64 bits might fail."""
LARGEST = 2.0**40
"""Beyond so many cells from zero FLOATs are too coarse for a band."""
_WIDER, _MARGIN = 1.01, 0.005
"""FLOATs are rounded: cells are wider than the band, with a margin of so much of a cell at either end."""


@dataclass(frozen=True)
class Band:
    """least <= a - b <= most; least is -inf where there is one bound.  is_whole: all of it is of 64-bit integers, ticks
    among them.  greatest: what the constants that it is computed from add up to at most.
    """

    a: Attribute
    b: Attribute
    least: float
    most: float
    is_whole: bool
    greatest: float = 0.0

    @property
    def is_order(self) -> bool:
        """It has one bound."""
        return self.least == -math.inf

    def cells(self, types: Mapping[Attribute, Type]) -> Iterator[tuple[Attribute, Cells | CellsInOrder]]:
        """The cells of both columns.  types: theirs."""
        order = Order(self.is_whole)
        for of in (self.a, self.b):
            is_float = types[of] is Type.FLOAT
            if self.is_order:
                shift, greatest = (0.0, 0.0) if of == self.a else (self.most, self.greatest)
                yield of, CellsInOrder(of[1], order, shift, greatest, is_float)
            else:
                yield of, Cells.of(of[1], *self.cell(of), self.is_whole, is_float)

    def cell(self, of: Attribute) -> tuple[float, float]:
        """(shift, width): the cell of a value v of one of the two columns is (v + shift) / width, rounded down."""
        if self.is_whole:
            return (0 if of == self.a else self.least), max(self.most - self.least, 1)
        width = _WIDER * (self.most - self.least)
        return (0.0 if of == self.a else self.least - _MARGIN * width), width

    def text(self, columns: Sequence[Sequence[str]], inputs: Sequence[str] = ()) -> str:
        """`A.x - B.y from -5 to 5`, `A.t - B.t up to -1`."""
        prefixes = [f"{name}." for name in inputs] or [""] * len(columns)
        a, b = (prefixes[i] + columns[i][c] for i, c in (self.a, self.b))
        return f"{a} - {b} up to {self.most:g}" if self.is_order else f"{a} - {b} from {self.least:g} to {self.most:g}"


def band_of(
    a: Attribute, b: Attribute, least: float, most: float, is_whole: bool, greatest: float = 0.0
) -> Band | None:
    """The band, None where cells cannot tell who lies in it.  greatest: see `Band`."""
    able = max(abs(most), greatest) < LARGEST_BOUND
    if least != -math.inf and is_whole:
        able = able and abs(least) < LARGEST_BOUND
    elif least != -math.inf:
        able = able and most - least > 0 and max(abs(least), abs(most), greatest) < LARGEST * (most - least)
    return Band(a, b, least, most, is_whole, greatest) if able else None
