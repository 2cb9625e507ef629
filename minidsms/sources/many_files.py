"""Several files as one bounded source: those a pattern names, one after the other, in the order of their names.

Invariant: one file is open at a time, and what it could not read is told before the next is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minidsms.elements import Schema
from minidsms.inputs.rejected import RejectedRows
from minidsms.sources.source import Pace, Source


class ManyFiles:
    """paths: not empty.  open_one: opens one of them as a source."""

    pace = Pace()

    def __init__(self, path: str, paths: Sequence[str], schema: Schema, open_one: Callable[[str], Source]) -> None:
        self.path = path
        self.schema = schema
        self.rejected = RejectedRows()
        self.first_line: int | None = None
        self._paths, self._open_one = list(paths), open_one
        self.bytes_total = sum(os.path.getsize(each) for each in paths)
        self._behind = 0
        self._current: Source | None = open_one(self._paths[0])

    @property
    def bytes_read(self) -> int:
        """Bytes of all files consumed so far."""
        return self._behind + (0 if self._current is None else self._current.bytes_read)

    def read(self) -> Iterator[Any]:
        """The rows of all files."""
        for i in range(len(self._paths)):
            source = self._current if i == 0 else self._open_one(self._paths[i])
            assert source is not None
            self._current, told = source, 0
            for batch in source.read():
                told = self._tell_rejected(source, told)
                self.first_line = source.first_line
                yield batch
            self._tell_rejected(source, told)
            self._current = None
            self._behind += source.bytes_total

    def close(self) -> None:
        """Give up the file that is open."""
        if self._current is not None:
            self._current.close()

    def _tell_rejected(self, source: Source, told: int) -> int:
        new = source.rejected.count - told
        kept = list(source.rejected)[-new:] if new else []
        self.rejected.skip(new - len(kept))
        for row, reason in kept:
            self.rejected.add(row, reason)
        return source.rejected.count
