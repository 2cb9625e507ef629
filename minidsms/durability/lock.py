"""One process for a durable folder: a lock that the system gives back when the process ends, however it ends."""

from __future__ import annotations

import os
import time

from minidsms.cql.errors import Error, saying
from minidsms.process.ended import has_ended
from minidsms.sinks.locking import try_hold

_NAME = "lock"
_MOST_S = 2.0
"""How long a child is waited for whose parent has ended: it lets go of the lock at once, when it comes to run."""


class FolderLock:
    """Held from construction to `release`. Error where another connection, here or in another process, holds it."""

    def __init__(self, folder: str) -> None:
        with saying(f"the folder {folder!r} cannot be written"):
            self._handle: int | None = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + _MOST_S
        while (held := try_hold(self._handle)) is False and self._is_behind() and time.monotonic() < deadline:
            time.sleep(0.005)
        if held is False:
            holder = self._holder()
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

    def _holder(self) -> str:
        """The process that has written its number."""
        assert self._handle is not None
        os.lseek(self._handle, 0, os.SEEK_SET)
        return os.read(self._handle, 20).decode("ascii", "replace").strip()

    def _is_behind(self) -> bool:
        """Whether who holds it is a child of the process that took it, which has ended."""
        holder = self._holder()
        return holder.isdecimal() and has_ended(int(holder))

    def release(self) -> None:
        """Let another connection have the folder. Releasing twice is no error."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
