"""One writer for an archive: a lock that the system gives back when its process ends, however it ends.

Where there are no such locks (Windows, some network file systems) nothing keeps a second writer off.
"""

from __future__ import annotations

import contextlib
import os

from minidsms.archive.storage import LOCAL, Storage
from minidsms.cql.errors import Error, saying
from minidsms.process.forking import register
from minidsms.sinks.locking import is_at, try_hold

_NAME = ".lock"


class Lock:
    """Held from construction to `release`. Error where another writer, here or in another process, holds it."""

    def __init__(self, folder: str) -> None:
        from minidsms.archive.format import readable

        self._path = os.path.join(folder, _NAME)
        with saying(f"cannot write the archive {folder!r}"):
            self._handle: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        if try_hold(self._handle) is False:
            self.release()
            raise Error(
                f"the archive {folder!r} is being written by somebody else\n"
                "help: close that connection, or name another folder"
            )
        try:
            with readable(folder):
                found = leftovers(LOCAL, folder)
            for entry in found:
                with contextlib.suppress(OSError):
                    os.unlink(entry)
        except BaseException:
            self.release()
            raise
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): only the parent holds it."""
        self.release()

    def is_held(self) -> bool:
        return self._handle is not None and is_at(self._path, self._handle)

    def release(self) -> None:
        """Let another writer have it. Releasing twice is no error."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def leftovers(storage: Storage, folder: str) -> list[str]:
    """The half-written files of a writer that is no more."""
    from minidsms.archive.format import is_partition
    from minidsms.archive.log import FOLDER
    from minidsms.archive.unlogged import replacements

    here = storage.entries(folder)
    found = [f"{folder}/{e.name}" for e in here if _is_unfinished(e.name)]
    for inner in here:
        if (is_partition(inner.name) or inner.name == FOLDER) and inner.is_folder:
            path = f"{folder}/{inner.name}"
            kept = {r.temporary for r in replacements(path)}
            names = [e.name for e in storage.entries(path)]
            found += [f"{path}/{name}" for name in names if _is_unfinished(name) and name not in kept]
    return found


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") and name.endswith(".part")
