"""The keys of rows of which nothing will come: No components without the columns that no one asks for.

Whoever has such a key need not wait (Babu 2005, section 6.3.1). A key is forgotten when its row would have left its
window, or up to a 2^29th of the window earlier.

Invariant: of each side whose columns are a key, the dead keys stand in `keys` and `marks` from `words_at` and `first`
on (layout: `kernels.k_mon_reduction`), all in their buckets. Clocks are coarser than instants where a window is long,
and known up to multiples of 2^31, so that they fit into half a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels import k_mon_reduction as reduction
from minidsms.kernels.k_mon_keys import DeadFigures, DeadKeyArrays
from minidsms.kernels.k_mon_reduction import CLOCK_MASK, NO_CLOCK, NO_CLUSTER, NO_MARKS
from minidsms.kernels.k_mon_rows import RANGE, ROWS
from minidsms.machine_code import rows_of
from minidsms.synopses.k_mon_rows import KMonRows, key_hash

Int32Array = np.ndarray[Any, np.dtype[np.int32]]

_LEAST_CAPACITY = 16
_CLOCK_BITS = 29


class DeadKeys:
    """rows: whose keys they are, and whose figures say what has left its window.

    sides_of: of each stream, the sides whose columns are, or may turn out to be, a key of it.
    """

    def __init__(self, rows: KMonRows, may_find_keys: bool = False) -> None:
        self._rows = rows
        m = len(rows.sides)
        self.figures = rows_of(DeadFigures, m)
        could_be = (rows.sides["unique"] != 0) | may_find_keys
        self.sides_of = [
            [s for s in range(m) if rows.sides["stream"][s] == i and could_be[s]] for i in range(len(rows.figures))
        ]
        self._words = (rows.sides["parts_end"] - rows.sides["part"]).tolist()
        lengths = rows.figures["length"][rows.sides["stream"]].tolist()
        self._coarseness = [max(0, length.bit_length() - _CLOCK_BITS) for length in lengths]
        self._linked: Int64Array = np.zeros(m, np.int64)
        self._removed: list[list[Int64Array]] = [[] for _ in range(m)]
        """Of each side, hashes of the keys to be forgotten."""
        self._allocate([0] * m)

    def __len__(self) -> int:
        return int(self.figures["count"].sum())

    @property
    def bundle(self) -> DeadKeyArrays:
        """As the kernels take it; other arrays after a change of size."""
        return DeadKeyArrays(self.figures, self.keys, self.marks, self.heads)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.marks.nbytes + self.heads.nbytes

    def nbytes_of_key(self, s: int) -> int:
        """Bytes that a dead key of a side takes."""
        return 8 * int(self._words[s]) + 4 * (NO_MARKS + 1)

    def keys_of(self, s: int) -> Int64Array:
        """The dead keys of a side, (m, words); not a copy."""
        base, count, words = int(self.figures["words_at"][s]), int(self.figures["count"][s]), self._words[s]
        return self.keys[base : base + count * words].reshape(count, words)

    def clusters_of(self, s: int, now: int) -> tuple[BoolArray, Int64Array]:
        """Which of a side's dead keys somebody has asked for, and how many rows have come since; now: rows so far."""
        counters = self._marks_of(s)[NO_CLUSTER].astype(np.int64)
        return counters >= 0, (now - counters) & CLOCK_MASK

    def add(self, s: int, clock: Int64Array, words: Int64Array) -> None:
        """Rows of side s are dead. clock: (m,) their instants, or numbers.  words: (m, columns of the side)."""
        count, more = int(self.figures["count"][s]), len(clock)
        if count + more > self.figures["capacity"][s]:
            capacities = self.figures["capacity"].tolist()
            capacities[s] = _roomy(count + more)
            self._refill([np.ones(n, np.bool_) for n in self.figures["count"]], capacities)
        self.figures["count"][s] = count + more
        self.keys_of(s)[count:] = words
        marks = self._marks_of(s)
        marks[NO_CLOCK, count:], marks[NO_CLUSTER, count:] = (clock >> self._coarseness[s]) & CLOCK_MASK, -1
        self._link()

    def remove(self, s: int, hashes: Int64Array) -> None:
        """Rows of a relation that were dead are deleted; `settle` forgets a key of each. hashes: of their keys."""
        self._removed[s].append(hashes)

    def settle(self) -> None:
        """Forget the keys of what has been removed."""
        if any(self._removed):
            self.keep([_staying(self.keys_of(s), removed) for s, removed in enumerate(self._removed)])
            self._removed = [[] for _ in self._removed]

    def expire(self, until: int) -> None:
        """Forget the keys of rows that have left their windows at `until`."""
        self.keep([self._present(s, until) for s in range(len(self.figures))])

    def keep(self, kept: list[BoolArray]) -> None:
        """Keep these of each side."""
        if all(k.all() for k in kept):
            return
        self._refill(kept, [_roomy(int(np.count_nonzero(k))) for k in kept])

    def _present(self, s: int, until: int) -> BoolArray:
        figures = self._rows.streams[self._rows.sides["stream"][s]]
        clock = self._marks_of(s)[NO_CLOCK].astype(np.int64)
        # Of a window of rows the oldest has the number total - length.
        now = until if figures.clock == RANGE else figures.total - 1
        if figures.clock not in (RANGE, ROWS):
            return np.ones(len(clock), np.bool_)
        bits = self._coarseness[s]
        span = figures.length >> bits
        return np.asarray((((now >> bits) - clock) & CLOCK_MASK) < span)

    def _marks_of(self, s: int) -> Int32Array:
        first, count = int(self.figures["first"][s]), int(self.figures["count"][s])
        return self.marks[:, first : first + count]

    def _refill(self, kept: list[BoolArray], capacities: list[int]) -> None:
        """Keep these of each side, with room for so many."""
        sides = range(len(self.figures))
        held = [(self.keys_of(s)[kept[s]], self._marks_of(s)[:, kept[s]]) for s in sides]
        self._fill(held, capacities)

    def _fill(self, held: Sequence[tuple[Int64Array, Int32Array]], capacities: list[int]) -> None:
        """Hold these keys and marks of each side, with room for so many."""
        self._allocate(capacities)
        for s, (keys, marks) in enumerate(held):
            self.figures["count"][s] = len(keys)
            self.keys_of(s)[:] = keys
            self._marks_of(s)[:] = marks
        self._link()

    def _link(self) -> None:
        reduction.link_dead(self.figures, self._rows.sides, self.keys, self.marks, self.heads, self._linked)

    def _allocate(self, capacities: list[int]) -> None:
        words = first = heads = 0
        for s, capacity in enumerate(capacities):
            buckets = 1 << (max(capacity, _LEAST_CAPACITY) - 1).bit_length()
            self.figures[s] = (words, 0, capacity, heads, 65 - buckets.bit_length(), first)
            words += capacity * self._words[s]
            first += capacity
            heads += buckets if capacity else 0
        self.keys: Int64Array = np.zeros(words, np.int64)
        self.marks: Int32Array = np.zeros((NO_MARKS, first), np.int32)
        self.heads: Int32Array = np.full(max(heads, 1), -1, np.int32)
        self._linked[:] = 0

    def live_codes(self) -> Iterable[Int64Array]:
        for e, edge in enumerate(self._rows.edges):
            for k in (0, 1):
                schema = self._rows.schemas[edge.ends[k]]
                for p, pair in enumerate(edge.columns):
                    if schema[pair[k]].type.is_coded:
                        yield self.keys_of(2 * e + k)[:, p].copy()

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state, side by side."""
        self.settle()
        sides = range(len(self.figures))
        return {f"keys{s}": self.keys_of(s) for s in sides} | {f"marks{s}": self._marks_of(s) for s in sides}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        held = [(arrays[f"keys{s}"].copy(), arrays[f"marks{s}"].copy()) for s in range(len(self.figures))]
        self._fill(held, [_roomy(len(keys)) for keys, _ in held])


def _staying(keys: Int64Array, removed: list[Int64Array]) -> BoolArray:
    """All keys, (n, words), but one for each that is removed."""
    kept = np.ones(len(keys), np.bool_)
    if not removed or not len(keys):
        return kept
    values, counts = np.unique(np.concatenate(removed), return_counts=True)
    hashes = key_hash(keys)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)  # among equal ones
    at = np.minimum(np.searchsorted(values, ordered), len(values) - 1)
    kept[order] = (values[at] != ordered) | (place >= counts[at])
    return kept


def _roomy(count: int) -> int:
    return max(_LEAST_CAPACITY, count + count // 4) if count else 0
