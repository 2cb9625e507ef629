"""A file that lines are added to as they come, for those who read it while it grows.

Invariants: the file ends with a whole line, whatever fails and however often: what a write could not finish is cut off
again, as is the half line that an ended process has left; what stood there before stays, and what was written stays
when the sink is given up.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections import deque
from typing import IO, cast

from minidsms.process.forking import cut_off, register
from minidsms.sinks.destination import cannot_write
from minidsms.sinks.locking import alone

_log = logging.getLogger("minidsms.sinks")
_BLOCK = 1 << 16


def is_empty(path: str) -> bool:
    """There is nothing in the file, or no file: a header has its place."""
    try:
        return os.path.getsize(path) == 0
    except OSError:
        return True


class AppendOutput:
    """One file being added to. notes: what was found to be mended."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: deque[str] = deque(maxlen=100)
        try:
            self._file = cast("IO[bytes]", open(path, "ab", buffering=0))  # noqa: SIM115 closed with what holds it
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from None
        try:
            self._is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
            if self._is_regular:
                with alone(self._file.fileno()):
                    self._mend()
        except OSError as error:
            self.discard()
            raise cannot_write(path, error) from None
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent adds to the file."""
        cut_off(self._file)
        self._is_regular = False

    def _mend(self) -> None:
        """Let the file end with a whole line."""
        number, end = self._file.fileno(), self._size()
        whole = end_of_last_line(self.path, end)
        if whole is None or whole == end:
            return
        if whole == 0:  # names of columns, written by hand
            self._file.write(b"\n")
            return
        os.ftruncate(number, whole)
        note = f"{self.path} ended in the middle of a line: its last {end - whole:,} bytes were cut off"
        _log.warning(note)
        self.notes.append(note)

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def write(self, data: bytes) -> None:
        """Add whole lines: all of them, or none where the disk does not take them."""
        try:
            if not self._is_regular:
                self._add(data)
                return
            with alone(self._file.fileno()):
                start = self._size()
                try:
                    self._add(data)
                except BaseException:
                    if start < self._size() < start + len(data):
                        os.ftruncate(self._file.fileno(), start)
                    raise
        except (OSError, ValueError) as error:
            raise cannot_write(self.path, error) from None

    def _add(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def publish(self) -> None:
        """Let it be on the disk."""
        try:
            try:
                if self._is_regular:  # a pipe has no disk
                    os.fsync(self._file.fileno())
            finally:
                self._file.close()
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def discard(self) -> None:
        """What is written is written."""
        with contextlib.suppress(OSError):
            self._file.close()


def end_of_last_line(path: str, end: int) -> int | None:
    """Where the last whole line of the first `end` bytes ends, 0 where there is none; None where it may not be read."""
    try:
        with open(path, "rb") as file:
            while end > 0:
                start = max(0, end - _BLOCK)
                file.seek(start)
                found = file.read(end - start).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
                end = start
            return 0
    except PermissionError:
        return None
