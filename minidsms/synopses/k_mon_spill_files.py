"""The file of what is out of memory: without a name, so that nothing is left of it however the process ends.

It stands in the temporary folder of the machine (`TMPDIR`), and is there as soon as something is written. Extents of it
are given out and taken back; the file is as long as what is given out needs.

Invariant: extents that are given out do not overlap, and free ones next to each other are one.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
from bisect import bisect_left
from typing import IO

import numpy as np

from minidsms.elements import Int64Array

_STEP = 1 << 17
"""Words by which the file grows, at least."""


class SpillFile:
    """Words in extents."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._words: Int64Array = np.zeros(0, np.int64)
        """The file, as far as it is mapped."""
        self._length = 0
        self._end = 0
        """Words up to the end of the last extent."""
        self._free: list[tuple[int, int]] = []
        """The extents before that which are free: (first word, words), in their order."""

    @property
    def nbytes(self) -> int:
        """Bytes given out."""
        return 8 * (self._end - sum(size for _, size in self._free))

    @property
    def words(self) -> Int64Array:
        """All of the file; not in memory, but for what is read. It holds until the next `allocate` or `release`."""
        if len(self._words) < self._length:
            assert self._file is not None
            self._words = np.frombuffer(mmap.mmap(self._file.fileno(), 8 * self._length), np.int64)
        return self._words

    def allocate(self, size: int) -> int:
        """Give out an extent of so many words; returns its first. Raises OSError where there is no room for it."""
        for n, (at, free) in enumerate(self._free):
            if free >= size:
                self._free[n : n + 1] = [(at + size, free - size)] if free > size else []
                return at
        at, end = self._end, self._end + size
        if end > self._length:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="minidsms-k-mon-", buffering=0)  # noqa: SIM115 closed with what holds it
            try:
                self._lengthen(max(end, self._length + max(_STEP, self._length // 4)))
            except OSError:
                self._lengthen(end)
        self._end = end
        return at

    def _lengthen(self, length: int) -> None:
        """Make the file so many words long; there is room for what is written into them. Raises OSError, as it was."""
        assert self._file is not None
        number = self._file.fileno()
        try:
            _take_room(number, 8 * self._length, 8 * length)
        except OSError:
            os.ftruncate(number, 8 * self._length)
            raise
        self._length = length

    def write(self, at: int, words: Int64Array) -> None:
        """Write into an extent. Raises OSError where that fails."""
        assert self._file is not None
        left = memoryview(np.ascontiguousarray(words).tobytes())
        place = 8 * at
        while left:
            done = os.pwrite(self._file.fileno(), left, place)
            left, place = left[done:], place + done

    def release(self, at: int, size: int) -> None:
        """Take an extent back."""
        n = bisect_left(self._free, (at, 0))
        if n < len(self._free) and self._free[n][0] == at + size:
            size += self._free.pop(n)[1]
        if n and sum(self._free[n - 1]) == at:
            at, size = self._free[n - 1][0], self._free[n - 1][1] + size
            n -= 1
            self._free.pop(n)
        if at + size < self._end:
            self._free.insert(n, (at, size))
            return
        self._end = at
        if self._file is not None and self._end < self._length // 4 and self._length > _STEP:
            self._words = np.zeros(0, np.int64)  # what is cut off must not be looked at
            self._length = max(_STEP, 2 * self._end)
            with contextlib.suppress(OSError):  # it is longer than it need be, then
                os.ftruncate(self._file.fileno(), 8 * self._length)

    def close(self) -> None:
        """Give up everything."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what was in it is no longer wanted
                self._file.close()
        self.__init__()  # type: ignore[misc]

    def in_other_files(self) -> SpillFile:
        """A copy, in a file of its own. Raises OSError where there is no room for it."""
        made = SpillFile()
        if self._end:
            made.allocate(self._end)
            try:
                for at in range(0, self._end, _STEP):
                    made.write(at, self.words[at : min(at + _STEP, self._end)])
            except BaseException:
                made.close()
                raise
            made._free = list(self._free)
        return made


def _take_room(number: int, begin: int, end: int) -> None:
    """Lengthen a file from `begin` to `end` bytes, of which the disk must have them. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(number, begin, end - begin)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
    os.ftruncate(number, end)  # where the system cannot, a write may find that there is none
