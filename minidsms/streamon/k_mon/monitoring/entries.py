"""The keys a monitor waits for, or has met: a table that takes the size of what it holds.

Invariant: at most five slots of eight are taken; SMALLEST are there at least.  Babu 2005, sections 6.6.3, 6.7.2.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.constraint_monitoring import EMPTY, SMALLEST, Table, move_entries


class Entries:
    """keys, marks, born: a slot each, see `kernels.constraint_monitoring`."""

    def __init__(self) -> None:
        self._make(SMALLEST)

    def resize(self, live: int) -> None:
        """Make the table fit so many entries, those there are, with some room for more."""
        old = self.table
        slots = SMALLEST
        while slots < 2 * live:
            slots *= 2
        self._make(slots)
        move_entries(old, self.table)

    @property
    def table(self) -> Table:
        """As monitors' kernels take them, with room to sort them out."""
        return Table(self.keys, self.marks, self.born, np.empty((3, len(self.keys)), np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.keys.nbytes + self.marks.nbytes + self.born.nbytes

    def _make(self, slots: int) -> None:
        self.keys: Int64Array = np.zeros(slots, np.int64)
        self.marks: Int64Array = np.full(slots, EMPTY, np.int64)
        self.born: Int64Array = np.zeros(slots, np.int64)
