"""The keys of rows of which nothing will come: No components without the columns that no one asks for.

Whoever has such a key need not wait (Babu 2005, section 6.3.1). A key is forgotten when its row would have left its
window.

Invariant: of each side whose columns are a key, the dead keys stand in `cells` from NO_BASE on (layout:
`kernels.k_mon_reduction`), all in their buckets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minidsms.elements import Int64Array, Type
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.k_mon_join import CLOCK, LENGTH, PART, PARTS_END, RANGE, ROWS, STREAM, TOTAL, UNIQUE
from minidsms.kernels.k_mon_reduction import (
    NO_BASE,
    NO_CAPACITY,
    NO_CLOCK,
    NO_CLUSTER,
    NO_COUNT,
    NO_HEADS,
    NO_KEY,
    NO_SHIFT,
    NO_WORDS,
)
from minidsms.synopses.k_mon_rows import KMonRows

_LEAST_CAPACITY = 16


class DeadKeys:
    """rows: whose keys they are, and whose figures say what has left its window.

    sides_of: of each stream, the sides whose columns are a key of it.
    """

    def __init__(self, rows: KMonRows) -> None:
        self._rows = rows
        m = len(rows.sides)
        self.figures: Int64Array = np.zeros((m, NO_WORDS), np.int64)
        self.sides_of = [
            [s for s in range(m) if rows.sides[s, STREAM] == i and rows.sides[s, UNIQUE]]
            for i in range(len(rows.figures))
        ]
        self._strides = (NO_KEY + rows.sides[:, PARTS_END] - rows.sides[:, PART]).tolist()
        self._linked: Int64Array = np.zeros(m, np.int64)
        self._allocate([_LEAST_CAPACITY if rows.sides[s, UNIQUE] else 0 for s in range(m)])

    def __len__(self) -> int:
        return int(self.figures[:, NO_COUNT].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.cells.nbytes + self.heads.nbytes

    def view(self, s: int) -> Int64Array:
        """The dead keys of a side, (m, NO_KEY + words); not a copy."""
        base, count, stride = int(self.figures[s, NO_BASE]), int(self.figures[s, NO_COUNT]), self._strides[s]
        return self.cells[base : base + count * stride].reshape(count, stride)

    def add(self, s: int, clock: Int64Array, words: Int64Array) -> None:
        """Rows of side s are dead. clock: (m,) their instants, or numbers.  words: (m, columns of the side)."""
        count, more = int(self.figures[s, NO_COUNT]), len(clock)
        if count + more > self.figures[s, NO_CAPACITY]:
            held = [self.view(t).copy() for t in range(len(self.figures))]
            capacities = self.figures[:, NO_CAPACITY].tolist()
            capacities[s] = 1 << (count + more).bit_length()
            self._refill(held, capacities)
        self.figures[s, NO_COUNT] = count + more
        new = self.view(s)[count:]
        new[:, NO_CLOCK], new[:, NO_CLUSTER], new[:, NO_KEY:] = clock, -1, words
        self._link()

    def expire(self, until: int) -> None:
        """Forget the keys of rows that have left their windows at `until`."""
        self.keep([self._present(s, until) for s in range(len(self.figures))])

    def keep(self, kept: list[np.ndarray[Any, Any]]) -> None:
        """Keep these of each side."""
        if all(k.all() for k in kept):
            return
        held = [self.view(s)[k] for s, k in enumerate(kept)]
        capacities = [
            max(_LEAST_CAPACITY, 1 << (2 * len(h)).bit_length()) if self._rows.sides[s, UNIQUE] else 0
            for s, h in enumerate(held)
        ]
        self._refill(held, capacities)

    def _present(self, s: int, until: int) -> np.ndarray[Any, Any]:
        figures = self._rows.figures[self._rows.sides[s, STREAM]]
        clock = self.view(s)[:, NO_CLOCK]
        if figures[CLOCK] == RANGE:
            return clock > until - figures[LENGTH]  # type: ignore[no-any-return]
        if figures[CLOCK] == ROWS:
            return clock >= figures[TOTAL] - figures[LENGTH]  # type: ignore[no-any-return]
        return np.ones(len(clock), np.bool_)

    def _refill(self, held: list[Int64Array], capacities: list[int]) -> None:
        self._allocate(capacities)
        for s, keys in enumerate(held):
            self.figures[s, NO_COUNT] = len(keys)
            self.view(s)[:] = keys
        self._link()

    def _link(self) -> None:
        reduction.link_dead(self.figures, self._rows.sides, self.cells, self.heads, self._linked)

    def _allocate(self, capacities: list[int]) -> None:
        cells = heads = 0
        for s, capacity in enumerate(capacities):
            buckets = max(_LEAST_CAPACITY, capacity)
            self.figures[s, [NO_BASE, NO_COUNT, NO_CAPACITY, NO_HEADS, NO_SHIFT]] = (
                cells, 0, capacity, heads, 65 - buckets.bit_length(),
            )  # fmt: skip
            cells += capacity * self._strides[s]
            heads += buckets if capacity else 0
        self.cells: Int64Array = np.zeros(cells, np.int64)
        self.heads: np.ndarray[Any, np.dtype[np.int32]] = np.full(max(heads, 1), -1, np.int32)
        self._linked[:] = 0

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held."""
        for e, edge in enumerate(self._rows.edges):
            for k in (0, 1):
                schema = self._rows.schemas[edge.ends[k]]
                for p, pair in enumerate(edge.columns):
                    if schema[pair[k]].type is Type.TEXT:
                        yield self.view(2 * e + k)[:, NO_KEY + p].copy()

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state, side by side."""
        return {f"side{s}": self.view(s) for s in range(len(self.figures))}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else."""
        held = [arrays[f"side{s}"].copy() for s in range(len(self.figures))]
        self._refill(held, [
            max(_LEAST_CAPACITY, 1 << (2 * len(h)).bit_length()) if self._rows.sides[s, UNIQUE] else 0
            for s, h in enumerate(held)
        ])  # fmt: skip
