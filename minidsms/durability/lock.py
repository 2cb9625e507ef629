"""One process for a durable folder: a lock that the system gives back when the process ends, however it ends."""

from __future__ import annotations

import os

from minidsms.cql.errors import Error
from minidsms.sinks.locking import try_hold

_NAME = "lock"


class FolderLock:
    """Held from construction to `release`. Error where another connection, here or in another process, holds it."""

    def __init__(self, folder: str) -> None:
        try:
            self._handle: int | None = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise Error(f"the folder {folder!r} cannot be written: {error.strerror or error}") from None
        if try_hold(self._handle) is False:
            holder = os.read(self._handle, 20).decode("ascii", "replace").strip()
            self.release()
            raise Error(
                f"the folder {folder!r} is open already, in process {holder or 'unknown'}\n"
                "help: close that connection; a folder is open in one connection at a time"
            )
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, str(os.getpid()).encode(), 0)
        except BaseException as error:
            self.release()
            if isinstance(error, OSError):
                raise Error(f"the folder {folder!r} cannot be written: {error.strerror or error}") from None
            raise

    def release(self) -> None:
        """Let another connection have the folder. Releasing twice is no error."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
