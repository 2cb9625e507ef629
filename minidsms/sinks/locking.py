"""Locks on the files of sinks, which the system gives back when a process ends, however it ends.

Where there are no such locks (Windows, some network file systems) nothing is held, and nobody's file is touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]


def try_hold(number: int) -> bool | None:
    """Lock an open file for as long as it is open; False where another process has it, None where nobody can know."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return None


def is_at(path: str, number: int) -> bool:
    """Whether a path still names an open file: a lock on one that has been removed or replaced keeps nobody off. Raises
    OSError where nobody can know.
    """
    try:
        there = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return os.path.samestat(there, os.fstat(number))


MOST_S = 10.0
"""How long a writer is waited for; one that keeps a file for itself does not let go."""


@contextlib.contextmanager
def alone(number: int) -> Iterator[None]:
    """Hold other writers of an open file off, as far as they ask. Raises OSError where one does not let go."""
    if fcntl is None:
        yield
        return
    end_s = time.monotonic() + MOST_S
    while try_hold(number) is False:
        if time.monotonic() > end_s:
            raise OSError(errno.EBUSY, "a connection with a folder writes it alone")
        time.sleep(0.001)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_UN)
