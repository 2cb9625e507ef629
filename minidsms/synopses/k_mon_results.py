"""The results of a join that hold, each until the first of its rows leaves its window.

A result is a row of words in a place; a heap for each clock knows which ends next: heap 0 by instants, one more for
each window that counts rows, by its arrival numbers. So the rows that made it may be gone long before it ends. Babu
2005, section 6.3.2.

Invariant: a place is free when no heap holds it; a result stands in every heap by which it can end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minidsms.elements import Int64Array, Schema
from minidsms.kernels.k_mon_keys import ResultArrays
from minidsms.kernels.k_mon_results import IS_ALIVE, REFERENCES, RESULT

_LEAST_CAPACITY = 64


class KeptResults:
    """schema: of a result, a word per column, behind which the mask of NULLs stands.  heaps: how many clocks there
    are.
    """

    def __init__(self, schema: Schema, heaps: int) -> None:
        self._width = len(schema)
        self._texts = schema.coded
        self.sizes: Int64Array = np.zeros(heaps, np.int64)
        self.rows, self.keys, self.places = self._allocated(_LEAST_CAPACITY)
        self.free: Int64Array = np.arange(_LEAST_CAPACITY - 1, -1, -1, dtype=np.int64)
        self.top = _LEAST_CAPACITY

    def __len__(self) -> int:
        """Places taken."""
        return len(self.rows) - self.top

    @property
    def bundle(self) -> ResultArrays:
        """As the kernels take it; other arrays after a change of size."""
        return ResultArrays(self.rows, self.free, self.keys, self.places, self.sizes)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.free.nbytes + self.keys.nbytes + self.places.nbytes

    def grow(self) -> None:
        """Twice the room."""
        self._resize(2 * len(self.rows))

    def settle(self) -> None:
        """Give up room that is mostly empty."""
        if len(self.rows) > 1024 and len(self) * 4 < len(self.rows):
            self._resize(max(_LEAST_CAPACITY, 1 << (2 * len(self)).bit_length()))

    def words(self) -> Int64Array:
        """The results that hold, (m, width + 1)."""
        held = (self.rows[:, REFERENCES] > 0) & (self.rows[:, IS_ALIVE] != 0)
        return self.rows[held, RESULT:]

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held: also of rows that stand in no window any more."""
        held = self.words()
        yield from (held[:, i] for i in self._texts)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {"rows": self.rows, "free": self.free[: self.top], "keys": self.keys, "places": self.places,
                "sizes": self.sizes}  # fmt: skip

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.rows, self.keys, self.places = (arrays[name].copy() for name in ("rows", "keys", "places"))
        self.sizes[:] = arrays["sizes"]
        self.top = len(arrays["free"])
        self.free = np.zeros(len(self.rows), np.int64)
        self.free[: self.top] = arrays["free"]

    def _allocated(self, capacity: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        heaps = (len(self.sizes), capacity)
        return (
            np.zeros((capacity, RESULT + self._width + 1), np.int64),
            np.zeros(heaps, np.int64),
            np.zeros(heaps, np.int64),
        )

    def _resize(self, capacity: int) -> None:
        """Move the results to places from 0 on; heaps keep their order."""
        taken = np.flatnonzero(self.rows[:, REFERENCES] > 0)
        old, keys, places = self.rows, self.keys, self.places
        moved = np.zeros(len(old), np.int64)
        moved[taken] = np.arange(len(taken))
        self.rows, self.keys, self.places = self._allocated(capacity)
        self.rows[: len(taken)] = old[taken]
        for h, size in enumerate(self.sizes):
            self.keys[h, :size] = keys[h, :size]
            self.places[h, :size] = moved[places[h, :size]]
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int64)
        self.top = capacity - len(taken)
