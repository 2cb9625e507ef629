"""Cells of a column: numbers that rows close to each other share, as a key of an indexed window (`joins.bands`).

Where a difference is bounded from both sides cells are as wide as that. Where it is bounded from one side, cells are
those of an `Order`: of as many rows each, whatever lies beyond a cell is in the cells beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import AnyArray, Column, Int64Array
from minidsms.kernels.cells import take_cells, take_cells_in_order
from minidsms.machine_code import Float64s

ROWS_OF_A_CELL = 16
MOST_CELLS = 128
"""Of an order: a step visits all on one side."""
SAMPLED = 4_096
"""Values that say where the cells of an order end."""
LEAST_BETWEEN_FITS = 64
"""Elements after which cells of an order follow the rows held, at least; else as many as rows are held."""

Key = tuple[int, ...]
"""A key of an input: its column, or several, whose hash it is; none: every row has the same. Negative: cells."""


@dataclass(frozen=True, eq=False)
class Cells:
    """column: of the window.  whole: shift, width and whether the column is of FLOATs.  real: shift and width where
    cells are counted in FLOATs, else empty.
    """

    column: int
    whole: Int64Array
    real: Float64s

    @classmethod
    def of(cls, column: int, shift: float, width: float, is_whole: bool, is_float: bool) -> Cells:
        """The cell of v is (v + shift) / width, rounded down; is_whole: in integers."""
        shift_and_width = [shift, width]
        if is_whole:
            return cls(column, np.array([*map(int, shift_and_width), is_float], np.int64), np.zeros(0))
        return cls(column, np.array([0, 1, is_float], np.int64), np.array(shift_and_width, np.float64))

    def take(self, nodes: Int64Array, base: int, mask: int, slots: Int64Array) -> bool:
        """Make cells of the column's words in the nodes of these slots; whether there was an integer near the ends of
        64 bits, where arithmetic may fail: its row must meet all others.
        """
        return bool(take_cells(nodes, nodes.view(np.float64), base, mask, slots, self.whole, self.real))


class Order:
    """Where the cells of two columns end, which are compared after one of them was moved: as many rows in each.

    least: the least values of the cells but the first, ascending.
    """

    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole
        self.least: AnyArray = np.zeros(0, np.int64 if is_whole else np.float64)

    @property
    def last(self) -> int:
        """The number of the last cell."""
        return len(self.least)

    def fit(self, values: Iterable[AnyArray]) -> None:
        """Cells for rows of these values."""
        known = np.sort(np.concatenate([np.zeros(0, self.least.dtype), *values]))
        cells = min(MOST_CELLS, len(known) // ROWS_OF_A_CELL)
        self.least = np.unique(known[np.arange(1, cells) * len(known) // max(cells, 1)])


@dataclass(frozen=True, eq=False)
class CellsInOrder:
    """column: of the window.  order: what the cells are of.  shift: added to the values.  greatest: of the constants
    that it was computed from, by which FLOATs are rounded; 0 where there are none.  is_float: the column is of FLOATs.
    """

    column: int
    order: Order
    shift: float
    greatest: float
    is_float: bool

    def values(self, column: Column) -> AnyArray:
        """What the rows of a column are ordered by; some of them, where there are many."""
        every = slice(None, None, max(1, len(column) // SAMPLED))
        present = column.values[every] if column.valid is None else column.values[every][column.valid[every]]
        if self.order.is_whole:
            return present.astype(np.int64) + int(self.shift)
        return present.astype(np.float64) + self.shift

    def take(self, nodes: Int64Array, base: int, mask: int, slots: Int64Array) -> bool:
        """As of `Cells`."""
        order, nothing = self.order, np.zeros(0)
        shift = int(self.shift) if order.is_whole else 0
        whole = np.array([shift, 0, self.is_float], np.int64)
        real = nothing if order.is_whole else np.array([self.shift, self.greatest], np.float64)
        least = (order.least, nothing) if order.is_whole else (np.zeros(0, np.int64), order.least)
        return bool(take_cells_in_order(nodes, nodes.view(np.float64), base, mask, slots, whole, real, *least))


def elements_until_fit(rows: int) -> int:
    """After so many elements cells in order follow windows of so many rows again."""
    return max(LEAST_BETWEEN_FITS, rows)


def with_cells(patterns: Sequence[Key]) -> tuple[Key, ...]:
    """The patterns behind the keys of the cells that they are made of."""
    return (*((c,) for c in sorted({c for key in patterns for c in key if c < 0})), *patterns)
