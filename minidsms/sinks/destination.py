"""A file that appears whole or not at all.

Invariant: until `publish` nothing stands under the path that did not stand there before; the temporary file lies beside
it, so that the rename is one step of the file system. What is no regular file (a pipe, a device) is written directly.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import IO, Any, cast

from minidsms.cql.errors import Error


class Destination:
    """One file being written."""

    def __init__(self, path: str) -> None:
        self.path = path
        # Through a link the file it points to is replaced, not the link.
        self._target = os.path.realpath(path)
        self._is_direct = os.path.exists(path) and not os.path.isfile(path)
        self._temporary = ""
        if not self._is_direct:
            folder, name = os.path.split(self._target)
            self._temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.part")
        try:
            file = open(self._temporary or path, "wb" if self._is_direct else "xb")  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise cannot_write(path, error) from None
        self.file: IO[bytes] = cast("IO[bytes]", file)

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
        """Put the file in its place."""
        try:
            self.file.close()
            if not self._is_direct:
                os.replace(self._temporary, self._target)
        except OSError as error:
            self.discard()
            raise cannot_write(self.path, error) from None

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
        hint = f"relative paths start at {os.getcwd()}"
        return Error(f"cannot write {path!r}: there is no folder {folder!r}\nhelp: {hint}")
    if isinstance(error, IsADirectoryError):
        return Error(f"cannot write {path!r}: it is a folder\nhelp: name a file in it")
    if isinstance(error, PermissionError):
        return Error(f"cannot write {path!r}: permission denied")
    return Error(f"cannot write {path!r}: {str(error)[:200]}")
