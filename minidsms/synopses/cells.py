"""Cells of a column: numbers that rows close to each other share, as a key of an indexed window (`joins.bands`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.cells import take_cells
from minidsms.machine_code import Float64s


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
