"""One process for a durable folder: a lock that the system gives back when the process ends, however it ends.

It is a lock on a file that holds the number of the process. Somebody may remove or replace that file, alone or with the
folder, and a file system may let go of the lock: then another process can open the folder. `check` sees it before
anything is written, and from then on nothing is.
"""

from __future__ import annotations

import os
import time

from minidsms.cql.errors import Error, saying
from minidsms.process.ended import has_ended
from minidsms.sinks.locking import is_at, try_hold

_NAME = "lock"
_MOST_S = 2.0
"""How long a child is waited for whose parent has ended: it lets go of the lock at once, when it comes to run."""

LOOK_S = 0.01
"""Before every entry it would cost a tenth of what the shortest push costs."""


class FolderLock:
    """Held from construction to `release`. Error where another connection, here or in another process, holds it."""

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, _NAME)
        self._number = str(os.getpid())
        self._looked_s = 0.0
        self.is_lost = False
        """`check` has found it so."""
        with saying(f"the folder {folder!r} cannot be written"):
            self._handle: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + _MOST_S
        while (held := try_hold(self._handle)) is False and self._is_behind() and time.monotonic() < deadline:
            time.sleep(0.005)
        if held is False:
            holder = self._holder()
            self.release()
            raise Error(
                f"the folder {folder!r} is open already, in process {holder or 'unknown'}\n"
                "help: close that connection; a folder is open in one at a time, and a running program is looked into "
                "by db.ui and metrics"
            )
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, self._number.encode(), 0)
            self.check()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError):
                raise Error(f"the folder {folder!r} cannot be written: {error.strerror or error}") from None
            raise

    def look(self) -> None:
        """`check`, unless that has been done a moment ago."""
        if self.is_lost or time.monotonic() >= self._looked_s + LOOK_S:
            self.check()

    def check(self) -> None:
        """Error where the folder is no longer this connection's, or nobody can know."""
        if self._handle is None:
            return  # it has been let go of
        self._looked_s = time.monotonic()
        if not self.is_lost:
            with saying(f"the lock of the folder {self._folder!r} cannot be read"):
                self.is_lost = not is_at(self._path, self._handle) or self._holder() != self._number
        if self.is_lost:
            raise Error(
                f"the folder {self._folder!r} is no longer this connection's: its lock has been removed or replaced, "
                "and another process may have opened it\n"
                "help: nothing more is written; close the connection, and open the folder again if nobody else has it"
            )

    def _holder(self) -> str:
        """The process that has written its number."""
        assert self._handle is not None
        return os.pread(self._handle, 20, 0).decode("ascii", "replace").strip()

    def _is_behind(self) -> bool:
        """Whether who holds it is a child of the process that took it, which has ended."""
        holder = self._holder()
        return holder.isdecimal() and has_ended(int(holder))

    def release(self) -> None:
        """Let another connection have the folder. Releasing twice is no error."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
