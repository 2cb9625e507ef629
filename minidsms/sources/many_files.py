"""Several files as one bounded source: those a pattern or a folder names, one after the other, in the order of their
names.

Invariant: one file is open at a time, and what it could not read is told before the next is opened.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minidsms.cql.errors import Error, shown
from minidsms.elements import Schema
from minidsms.sources.source import BaseSource, GoesOn, Source


class ManyFiles(BaseSource):
    """paths: not empty.  open_one: opens one of them as a source."""

    def __init__(self, path: str, paths: Sequence[str], schema: Schema, open_one: Callable[[str], Source]) -> None:
        super().__init__(path, schema)
        self.rejected_before = 0
        self._paths, self._open_one = list(paths), open_one
        self._i, self._current = 0, open_one(self._paths[0])
        # Files are not asked for their sizes before their turn: they count alike.
        self._each = max(1, self._current.bytes_total)
        self.bytes_total = len(self._paths) * self._each

    @property
    def bytes_read(self) -> int:
        """Bytes of all files consumed so far."""
        of_current = self._current.bytes_read / max(1, self._current.bytes_total)
        return int((self._i + of_current) * self._each)

    @property
    def position(self) -> Any:
        """See `GoesOn`: how many files are behind, the open one, and the place in it."""
        within = self._current.position if isinstance(self._current, GoesOn) else None
        return {"behind": self._behind(self._i), "file": self._paths[self._i], "in": within}

    def _behind(self, i: int) -> list[int]:
        """By what the files before one are known again: how many, and their names."""
        return [i, zlib.crc32("\0".join(self._paths[:i]).encode())]

    def go_on(self, position: Any) -> str:
        """See `GoesOn`. Error where the files before it are not those that were read."""
        i = position["behind"][0]
        if self._paths[i : i + 1] != [position["file"]] or self._behind(i) != position["behind"]:
            where = f"up to {shown(position['file'])}, where reading stopped"
            raise Error(
                f"{shown(self.path)}: {where}, there are other files now\n"
                "help: give new files names that come after those that have been read"
            )
        if i:
            self._current.close()
            self._i, self._current = i, self._open_one(self._paths[i])
        return self._current.go_on(position["in"]) if isinstance(self._current, GoesOn) else ""

    def read(self) -> Iterator[Any]:
        """The rows of all files."""
        while True:
            source, told = self._current, 0
            for batch in source.read():
                before = source.rejected_before if isinstance(source, GoesOn) else 0
                self.rejected_before = self.rejected.count + before - told
                told = self._tell_rejected(source, told)
                self.first_line = source.first_line
                yield batch
            self._tell_rejected(source, told)
            if self._i + 1 == len(self._paths):
                return
            self._current, self._i = self._open_one(self._paths[self._i + 1]), self._i + 1

    def close(self) -> None:
        """Give up the file that is open."""
        self._current.close()

    def _tell_rejected(self, source: Source, told: int) -> int:
        new = source.rejected.count - told
        kept = list(source.rejected)[-new:] if new else []
        self.rejected.skip(new - len(kept))
        for row, reason in kept:
            self.rejected.add(row, reason)
        return source.rejected.count
