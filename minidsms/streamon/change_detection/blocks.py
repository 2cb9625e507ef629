"""From profile tuples to items of change detectors: conditional drop rates of disjoint blocks.

A stream of items is a place of the matrix view: d(j | i), the share of the tuples reaching position i of the order that
the filter at position j, not before i, drops. A block is so many profile tuples; a stream whose position few of them
reach waits with its item until it has as many observations as a block has tuples, so that items are estimates of alike
quality. Tsamoura, Gounaris and Manolopoulos 2016, section 6.

Invariant: a profile tuple counts in one item of each stream whose position it reaches, and in no other.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.routes import Order
from minidsms.machine_code import Int64s, Int64Table, Uint8Table, kernel
from minidsms.streamon.contracts import Evaluate

WHOLE = 64
"""With more filters only the first row of the matrix view and its diagonal are watched."""


@kernel
def _count(
    bits: Uint8Table, streams: Int64Table, pending: Int64Table, hits: Int64Table, of: Int64Table, since: Int64Table,
    numbers: Int64s,
) -> None:  # fmt: skip
    """Blocks of profile tuples (t * size, n) to items (t, m).

    streams (3, m or n): the filter of each position; then, of each stream, the position i that a tuple must reach and
    the filter at position j, i ascending.  pending (3, m): hits, observations and first number of the items that are
    not complete.  numbers: size, and that of the first tuple.
    """
    size, number = numbers[0], numbers[1]
    n, m = bits.shape[1], hits.shape[1]
    for t in range(hits.shape[0]):
        for row in range(t * size, (t + 1) * size):
            first = 0
            while first < n and bits[row, streams[0, first]] == 0:
                first += 1
            for s in range(m):
                if streams[1, s] > first:
                    break
                pending[1, s] += 1
                pending[0, s] += bits[row, streams[2, s]]
        for s in range(m):
            since[t, s] = pending[2, s]
            if pending[1, s] >= size:
                hits[t, s], of[t, s] = pending[0, s], pending[1, s]
                pending[0, s], pending[1, s] = 0, 0
                pending[2, s] = number + (t + 1) * size
            else:
                hits[t, s], of[t, s] = 0, 0


class Blocks:
    """size: profile tuples of a block.  evaluate: what is known of profile tuples; where not all filters are asked, the
    diagonal is.

    places: (i, j) of each stream, i ascending.
    """

    def __init__(self, n: int, size: int, evaluate: Evaluate) -> None:
        if evaluate is not Evaluate.ALL:
            places = [(i, i) for i in range(n)]
        elif n > WHOLE:
            places = [(0, j) for j in range(n)] + [(i, i) for i in range(1, n)]
        else:
            places = [(i, j) for i in range(n) for j in range(i, n)]
        self.places = tuple(places)
        self.size = size
        m = len(places)
        self._streams: Int64Array = np.zeros((3, max(m, n)), np.int64)
        self._streams[1, :m] = [i for i, _ in places]
        self._filters = np.array([j for _, j in places])
        self._pending: Int64Array = np.zeros((3, m), np.int64)

    def clear(self, number: int) -> None:
        """Begin again with the profile tuple of this number."""
        self._pending[:2] = 0
        self._pending[2] = number

    def items(
        self, bits: UInt8Array, order: Order, number: int
    ) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Take t blocks (t * size, n) in: the arguments of `ChangeDetectors.observe`. number: of the first tuple."""
        t, m = len(bits) // self.size, len(self.places)
        by_position = np.array(order, np.int64)
        self._streams[0, : len(order)] = by_position
        self._streams[2, :m] = by_position[self._filters]
        hits, of, since = (np.empty((t, m), np.int64) for _ in range(3))
        _count(bits, self._streams, self._pending, hits, of, since, np.array([self.size, number], np.int64))
        return hits, of, since, number + self.size * np.arange(1, t + 1)

    def name(self, stream: int) -> str:
        """d(j | i) with positions counted from 1, as the papers write it."""
        i, j = self.places[stream]
        return f"d({j + 1}|{i})"
