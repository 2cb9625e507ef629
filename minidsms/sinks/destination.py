"""A file that appears whole or not at all.

Invariant: until `publish` nothing stands under the path that did not stand there before; the temporary file lies beside
it, so that the rename is one step of the file system, and is on the disk before: also after a crash of the machine
there is the old file or the new one, whole. What is no regular file (a pipe, a device) is written directly.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections import deque
from typing import IO, Any, cast

from minidsms.archive.atomic import sync_folder
from minidsms.cql.errors import Error
from minidsms.process.forking import cut_off, register
from minidsms.process.interrupts import held
from minidsms.sinks.unfinished import begin, remove_abandoned


class Destination:
    """One file being written. notes: what ended processes had left in its folder, which has been removed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: deque[str] = deque(maxlen=100)
        # Through a link the file it points to is replaced, not the link.
        self._target = os.path.realpath(path)
        self._is_direct = os.path.exists(path) and not os.path.isfile(path)
        self._temporary = ""
        try:
            if self._is_direct:
                # A pipe waits for who reads it.
                file = cast("IO[bytes]", open(path, "wb"))  # noqa: SIM115 closed with what holds it
            else:
                with held:
                    self.notes.extend(remove_abandoned(os.path.dirname(self._target)))
                    self._temporary, file = begin(self._target)
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from None
        self.file: IO[bytes] = file
        register(self)

    @property
    def is_hidden(self) -> bool:
        """What is written is not to be seen before it is published."""
        return not self._is_direct

    def write(self, data: Any) -> None:
        """Append bytes."""
        try:
            self.file.write(data)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            raise cannot_write(self.path, error) from None

    def publish(self) -> None:
        """Put the file in its place. What can be waited for there is the disk only."""
        with held:
            self._publish()

    def _publish(self) -> None:
        try:
            self.file.flush()
            if not self._is_direct:
                os.fsync(self.file.fileno())
            self.file.close()
            if not self._is_direct:
                os.replace(self._temporary, self._target)
        except OSError as error:
            self.discard()
            raise cannot_write(self.path, error) from None
        if not self._is_direct:
            # Some file systems cannot do it; the file is whole there, too.
            with contextlib.suppress(OSError):
                sync_folder(os.path.dirname(self._target))

    def abandon(self) -> None:
        """In a child of fork(): the parent writes the file, publishes or removes it."""
        cut_off(self.file)
        self._is_direct = True

    def discard(self) -> None:
        """Remove the temporary file."""
        with contextlib.suppress(OSError):
            self.file.close()
        if not self._is_direct:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)


def cannot_write(path: str, error: Exception) -> Error:
    """The error for a file that cannot be written."""
    if isinstance(error, FileNotFoundError):
        folder = os.path.dirname(path) or "."
        made = f"mkdir -p {shlex.quote(folder)} makes it" if folder.isprintable() else "make it first"
        hint = f"{made}; relative paths start at {os.getcwd()}"
        return Error(f"cannot write {path!r}: there is no folder {folder!r}\nhelp: {hint}")
    if isinstance(error, IsADirectoryError):
        return Error(f"cannot write {path!r}: it is a folder\nhelp: name a file in it")
    if isinstance(error, PermissionError):
        return Error(f"cannot write {path!r}: permission denied")
    return Error(f"cannot write {path!r}: {str(error)[:200]}")
