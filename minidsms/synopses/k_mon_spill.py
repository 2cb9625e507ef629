"""Rows that a constraint says will not matter, kept out of memory until it turns out otherwise.

Constraints are found, not declared, and may break. What they let go is written to files, and in memory stays a small
filter of the keys by which a broken constraint would bring a row back into play: those of the sides that the constraint
had closed (Babu 2005, section 6.1.6). A row whose key comes all the same is found again.

Invariant: a row stands here, or in memory; whoever asks by a key under which it went finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.synopses.k_mon_spill_files import SpillFile
from minidsms.synopses.k_mon_spill_index import SpillIndex
from minidsms.synopses.k_mon_spill_log import RowLog

Closed = np.ndarray[Any, np.dtype[np.int64]]
"""(m,) masks: bit n is set where a row is to be found by the n-th side of its stream."""

_GONE_NBYTES = 32
"""Of the number of a row that has come back."""


class Spill:
    """Rows of n streams out of memory.

    sides: how many each stream has.  clock_at: the place of the clock in its rows.  texts: those of codes of TEXT.
    """

    def __init__(self, sides: Sequence[int], clock_at: Sequence[int], texts: Sequence[Sequence[int]]) -> None:
        self._texts = [list(places) for places in texts]
        self._clock_at = list(clock_at)
        self._file = SpillFile()
        self._logs = [RowLog(self._file) for _ in sides]
        self._indexes = [[SpillIndex(self._file) for _ in range(n)] for n in sides]
        self._gone: list[set[int]] = [set() for _ in sides]
        """Of each stream, the rows of its log that have come back."""
        self.written = 0
        """Rows put in, ever."""
        self.returned = 0
        """Rows found again, ever."""

    def __len__(self) -> int:
        return sum(self.held(i) for i in range(len(self._logs)))

    def held(self, i: int) -> int:
        """Rows of one stream; among them may be some that have left their window."""
        return self._logs[i].end - self._logs[i].first - len(self._gone[i])

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(each.nbytes for each in self._every_index()) + _GONE_NBYTES * sum(map(len, self._gone))

    @property
    def file_nbytes(self) -> int:
        """Bytes in files."""
        return self._file.nbytes

    def reserve(self, i: int, count: int, width: int) -> None:
        """Make room for so many rows of a stream, which `put` takes. Raises OSError where there is none."""
        self._logs[i].reserve(count, width)

    def put(self, i: int, rows: Int64Array, keys: Int64Array, closed: Closed) -> None:
        """Take rows of a stream. rows: (m, stride).  keys: (sides, m): a hash of each side's columns."""
        if not len(rows):
            return
        log = self._logs[i]
        self.written += len(rows)
        first = log.append(rows, int(rows[:, self._clock_at[i]].max()))
        for n, index in enumerate(self._indexes[i]):
            at = np.flatnonzero((closed >> n) & 1)
            index.add(keys[n, at], at + first, log.first)

    def find(self, i: int, side: int, keys: Int64Array, present: int) -> Int64Array | None:
        """Take back the rows of a stream that are found by these keys of its side (counted from 0), or None.

        present: the least clock of a row that is still in its window.
        """
        log, gone = self._logs[i], self._gone[i]
        numbers = self._indexes[i][side].find(keys, log.first)
        if gone:
            numbers = numbers[[int(n) not in gone for n in numbers]]
        if not len(numbers):
            return None
        gone.update(numbers.tolist())
        rows = stacked(log.read(numbers))
        rows = rows[rows[:, self._clock_at[i]] >= present]
        self.returned += len(rows)
        return rows if len(rows) else None

    def take_all(self, present: Sequence[int]) -> list[Int64Array | None]:
        """Take back all rows of each stream that are still in its window; none are here then. present: see `find`."""
        taken: list[Int64Array | None] = []
        for i, log in enumerate(self._logs):
            rows: Int64Array | None = None
            if self.held(i):
                stays = np.ones(log.end - log.first, np.bool_)
                stays[[n - log.first for n in self._gone[i]]] = False
                rows = stacked(log.all())[stays]
                rows = rows[rows[:, self._clock_at[i]] >= present[i]]
                self.returned += len(rows)
            taken.append(rows)
        self.close()
        return taken

    def first_words(self, i: int) -> Iterator[Int64Array]:
        """The first word of each row of a stream, in pieces; only a piece at a time is in memory."""
        gone = np.array(sorted(self._gone[i]), np.int64) - self._logs[i].first
        begin = 0
        for rows in self._logs[i].all():
            low, high = np.searchsorted(gone, (begin, begin + len(rows)))
            yield np.delete(rows[:, 0], gone[low:high] - begin)
            begin += len(rows)

    def expire(self, i: int, present: int) -> None:
        """Give up the rows of a stream whose clocks lie below `present`, where they stand together."""
        log = self._logs[i]
        if log.expire(present):
            self._gone[i] = {n for n in self._gone[i] if n >= log.first}
            for index in self._indexes[i]:
                index.expire(log.first)

    def close(self) -> None:
        """Give up everything."""
        for log in self._logs:
            log.close()
        for index in self._every_index():
            index.close()
        self._file.close()
        self._gone = [set() for _ in self._logs]

    def _every_index(self) -> Iterable[SpillIndex]:
        for indexes in self._indexes:
            yield from indexes

    # ------------------------------------------------------------------------------------------------------ state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state: every stream's rows, keys and closed sides."""
        state: dict[str, np.ndarray[Any, Any]] = {}
        for i, log in enumerate(self._logs):
            if not self.held(i):
                continue
            rows = stacked([np.array(piece) for piece in log.all()])
            keys = np.zeros((len(self._indexes[i]), len(rows)), np.int64)
            closed = np.zeros(len(rows), np.int64)
            for n, index in enumerate(self._indexes[i]):
                entries = index.entries(log.first)
                keys[n, entries[1] - log.first] = entries[0]
                closed[entries[1] - log.first] |= 1 << n
            stays = np.ones(len(rows), np.bool_)
            stays[[n - log.first for n in self._gone[i]]] = False
            state[f"rows{i}"], state[f"keys{i}"], state[f"closed{i}"] = rows[stays], keys[:, stays], closed[stays]
        return state

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.close()
        for i in range(len(self._logs)):
            if f"rows{i}" in arrays:
                self.put(i, arrays[f"rows{i}"], arrays[f"keys{i}"], arrays[f"closed{i}"])

    def live_codes(self) -> Iterable[Int64Array]:
        for i, places in enumerate(self._texts):
            for rows in self._logs[i].all() if places else ():
                for place in places:
                    yield np.array(rows[:, place])


def stacked(pieces: Sequence[Int64Array]) -> Int64Array:
    """Rows below each other. Those from before a column came to have NULLs lack the word that says so: it is 0."""
    width = max(rows.shape[1] for rows in pieces)
    return np.concatenate([r if r.shape[1] == width else np.pad(r, ((0, 0), (0, width - r.shape[1]))) for r in pieces])
