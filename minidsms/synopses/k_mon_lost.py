"""The keys of rows that went for good because of constraints: who comes with one may miss a result.

Of a row twenty-four bits of a Bloom filter are kept until it would have left its window, for each side by which a
broken constraint would have needed it; where many rows go, of one key in eight. So rows that come for one that went are
counted, or estimated, with one in some thousands that comes for none (`SET k_mon = 'lossy'`; Babu 2005, section 6.1.6:
false negatives).

Invariant: a filter is given up when the last of its rows has left its window; it takes rows of an eighth of that at
most, lest those that came first be remembered for much longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels.k_mon_bloom import bloom_add, bloom_test

_FIRST_KEYS = 1024
_MOST_KEYS = 1 << 14
_BITS_PER_KEY = 24
_SHARE = 8
"""Of the keys of all but the first rows one in so many is remembered, and counts as many."""


class _Filter:
    """keys: room for so many.  held: how many there are.  oldest, newest: clocks of the first row, and the greatest.
    share: it knows one key in so many.
    """

    def __init__(self, keys: int) -> None:
        self.bits: np.ndarray[Any, np.dtype[np.uint64]] = np.zeros(8 * -(-keys * _BITS_PER_KEY // 512), np.uint64)
        self.keys = keys
        self.share = 1 if keys == _FIRST_KEYS else _SHARE
        self.held = 0
        self.oldest = self.newest = -(2**63)


class LostKeys:
    """windows: of each side, for how long rows of its stream stay, in the units of their clock; None: for good."""

    def __init__(self, windows: Sequence[int | None]) -> None:
        self._spans = [None if window is None else window // 8 for window in windows]
        self._filters: list[list[_Filter]] = [[] for _ in windows]

    @property
    def nbytes(self) -> int:
        return sum(f.bits.nbytes for filters in self._filters for f in filters)

    def add(self, side: int, keys: Int64Array, clock: Int64Array) -> None:
        """Rows of a side's stream go. keys: of the side.  clock: the rows' instants or numbers."""
        filters, span = self._filters[side], self._spans[side]
        if filters and span is not None and len(keys) and int(clock[0]) - filters[-1].oldest > span:
            # As large as what the last one came to hold.
            full = filters[-1]
            filters.append(_Filter(full.keys if 4 * full.held > full.keys else max(_FIRST_KEYS, full.keys // 4)))
        while len(keys):
            if not filters or filters[-1].held == filters[-1].keys:
                filters.append(_Filter(min(_MOST_KEYS, 4 * filters[-1].keys) if filters else _FIRST_KEYS))
            last = filters[-1]
            if last.share > 1:
                chosen = _is_chosen(keys)
                keys, clock = keys[chosen], clock[chosen]
                if not len(keys):
                    break
            room = last.keys - last.held
            bloom_add(last.bits, np.ascontiguousarray(keys[:room]))
            if not last.held:
                last.oldest = int(clock[0])
            last.held += min(room, len(keys))
            last.newest = max(last.newest, int(clock[:room].max()))
            keys, clock = keys[room:], clock[room:]

    def count(self, side: int, keys: Int64Array) -> int:
        """How many of the keys rows have that went."""
        total = 0
        for share in (1, _SHARE):
            asked = np.ascontiguousarray(keys if share == 1 else keys[_is_chosen(keys)])
            found = np.zeros(len(asked), np.bool_)
            for each in self._filters[side]:
                if each.share == share:
                    bloom_test(each.bits, asked, found)
            total += share * int(np.count_nonzero(found))
        return total

    def expire(self, side: int, present: int) -> None:
        """Forget the rows that would have left their window: those with a lesser clock."""
        self._filters[side] = [f for f in self._filters[side] if f.newest >= present]

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        state: dict[str, np.ndarray[Any, Any]] = {}
        for s, filters in enumerate(self._filters):
            for n, each in enumerate(filters):
                state[f"bits{s}.{n}"] = each.bits
                state[f"figures{s}.{n}"] = np.array([each.keys, each.held, each.oldest, each.newest], np.int64)
        return state

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        for s in range(len(self._filters)):
            self._filters[s] = []
            while (name := f"{s}.{len(self._filters[s])}") and f"bits{name}" in arrays:
                keys, held, oldest, newest = arrays[f"figures{name}"].tolist()
                each = _Filter(keys)
                each.bits, each.held = arrays[f"bits{name}"].copy(), held
                each.oldest, each.newest = oldest, newest
                self._filters[s].append(each)

    def live_codes(self) -> Sequence[Int64Array]:
        """No codes can be read back."""
        return ()


def _is_chosen(keys: Int64Array) -> BoolArray:
    """One key in _SHARE, by a hash: the same ones whenever they come."""
    chosen: BoolArray = ((keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(61)) == 0
    return chosen
