"""Instants still to come at which rows of a window leave.

Invariant: the instants are ascending, each stands once, and there are at most as many as the window has different ts.
docs/semantics S2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from minidsms.elements import AnyArray, Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.windows import merge_instants
from minidsms.synopses.stub import NO_INSTANTS


def distinct(ts: Int64Array) -> Int64Array:
    """Each instant of a nondecreasing run once."""
    if len(ts) < 2:
        return ts
    is_new = np.empty(len(ts), np.bool_)
    is_new[0] = True
    np.not_equal(ts[1:], ts[:-1], out=is_new[1:])
    return ts[is_new]


def union(left: Int64Array, right: Int64Array) -> Int64Array:
    """The instants of two nondecreasing runs, ascending, each once."""
    if not len(left) or not len(right):
        return distinct(left if len(left) else right)
    out = np.empty(len(left) + len(right), np.int64)
    return out[: merge_instants(normal(left), normal(right), out)]


class PendingInstants:
    """A first-in-first-out run of instants: an array, of which what stands before `_start` has passed."""

    def __init__(self) -> None:
        self._instants = NO_INSTANTS
        self._start = 0
        self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    def put(self, instants: Int64Array) -> None:
        """Append a nondecreasing run; none of it is below the last one put."""
        new = distinct(instants)
        if self._stop > self._start and len(new) and new.item(0) == self._instants.item(self._stop - 1):
            new = new[1:]
        n = len(new)
        if self._stop + n > len(self._instants):
            held = self._instants[self._start : self._stop]
            self._instants = np.empty(max(64, 2 * (len(held) + n)), np.int64)
            self._instants[: len(held)] = held
            self._start, self._stop = 0, len(held)
        self._instants[self._stop : self._stop + n] = new
        self._stop += n

    def take(self, until: int) -> Int64Array:
        """Remove and return the instants up to `until`."""
        start, stop = self._start, self._stop
        if start == stop or self._instants.item(start) > until:
            return NO_INSTANTS
        held = self._instants[start:stop]
        n = int(held.searchsorted(until, "right"))
        self._start += n
        return held[:n].copy()

    @property
    def nbytes(self) -> int:
        return self._instants.nbytes

    def live_codes(self) -> Iterator[Int64Array]:
        """No TEXT is kept."""
        return iter(())

    def arrays(self) -> dict[str, AnyArray]:
        """The instants still to come."""
        return {"instants": self._instants[self._start : self._stop].copy()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self._instants = state["instants"].astype(np.int64)
        self._start, self._stop = 0, len(self._instants)
