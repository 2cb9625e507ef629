"""A file that lines are added to as they come, for those who read it while it grows.

Invariant: whole lines are written in one call each, so that a reader never sees a line of which the rest is not coming;
what stood there stays, and what was written stays when the sink is given up.
"""

from __future__ import annotations

import os
from typing import IO, cast

from minidsms.sinks.destination import cannot_write


def is_empty(path: str) -> bool:
    """There is nothing in the file, or no file: a header has its place."""
    try:
        return os.path.getsize(path) == 0
    except OSError:
        return True


class AppendOutput:
    """One file being added to."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = cast("IO[bytes]", open(path, "ab", buffering=0))  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from None

    def write(self, data: bytes) -> None:
        """Add lines."""
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except (OSError, ValueError) as error:
            raise cannot_write(self.path, error) from None

    def publish(self) -> None:
        """Let it be on the disk."""
        try:
            if os.path.isfile(self.path):  # a pipe has no disk
                os.fsync(self._file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from None
        finally:
            self._file.close()

    def discard(self) -> None:
        """What is written is written."""
        self._file.close()
