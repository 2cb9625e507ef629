"""The file of a query with INTO, while the query runs in a durable connection.

It stands beside its place under a hidden name, as long as it grows, and takes its place when the query ends. What the
log says of it is a mark: so many answers, in so many bytes, which were synced before. Opening the folder again cuts the
file off at its mark; the answers behind it come again, and are written again.

Invariant: the file holds every answer before its mark once, and what stands behind is nobody's to rely on.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from minidsms.archive.atomic import sync_folder
from minidsms.cql.errors import Error
from minidsms.process.interrupts import held
from minidsms.sinks.locking import try_hold


@dataclass(frozen=True)
class Mark:
    """How far a file of answers is on disk. path: its place, absolute.  until: answers.  nbytes: of the file."""

    path: str
    until: int
    rows: int
    nbytes: int


def hidden(path: str) -> str:
    """Where the file is until it takes its place."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:200]}.kept")


class KeptFile:
    """What a `LineSink` writes to. nbytes: where it goes on; 0 for a new file. Error where that cannot be."""

    def __init__(self, path: str, nbytes: int) -> None:
        self.shown = path
        self._is_new = nbytes == 0
        self._hidden = hidden(path)
        flags = os.O_RDWR | (os.O_CREAT if self._is_new else 0)
        try:
            self._handle: int | None = os.open(self._hidden, flags, 0o644)
        except OSError as error:
            raise Error(f"cannot write {path!r}: {error.strerror or error}") from None
        try:
            if try_hold(self._handle) is False:
                raise Error(f"cannot write {path!r}: another query or connection is writing it")
            if os.fstat(self._handle).st_size < nbytes:
                raise Error(f"cannot go on with {path!r}: {self._hidden!r} has become shorter")
            os.ftruncate(self._handle, nbytes)
            os.lseek(self._handle, nbytes, os.SEEK_SET)
            if self._is_new:
                sync_folder(os.path.dirname(path))
        except BaseException as error:
            self.leave()
            if isinstance(error, OSError):
                raise Error(f"cannot write {path!r}: {error.strerror or error}") from None
            raise

    def write(self, data: bytes) -> None:
        """Add whole lines. Error where the disk does not take them."""
        assert self._handle is not None
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise Error(f"cannot write {self.shown!r}: {error.strerror or error}") from None

    def sync(self) -> None:
        """Return when what was written is on disk. Raises OSError."""
        assert self._handle is not None
        os.fsync(self._handle)
        self._is_new = False

    def publish(self) -> None:
        """Take the place. Error where that cannot be."""
        try:
            self.sync()
            os.replace(self._hidden, self.shown)
            sync_folder(os.path.dirname(self.shown))
        except OSError as error:
            raise Error(f"cannot write {self.shown!r}: {error.strerror or error}") from None
        finally:
            self.leave()

    def leave(self) -> None:
        """Close the file as it is, to be gone on with."""
        with held:  # an interrupt must not come between the two
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)

    def discard(self) -> None:
        """Leave it, and nothing of a new one."""
        try:
            if self._is_new and self._handle is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._hidden)
        finally:
            self.leave()
