"""Locks on the files of sinks, which the system gives back when a process ends, however it ends.

Where there are no such locks (Windows, some network file systems) nothing is held, and nobody's file is touched.
"""

from __future__ import annotations

import contextlib
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


@contextlib.contextmanager
def alone(number: int) -> Iterator[None]:
    """Hold other writers of an open file off, as far as they ask."""
    if fcntl is None:
        yield
        return
    with contextlib.suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_UN)
