"""What a child of fork() does with what its parent has open: nothing.

Threads do not come along, a lock may be held by one of them for ever, and files and sockets are shared with the parent:
what the child flushes, publishes or removes would be the parent's. So in the child every connection is closed as it
stands, without its ends.

Invariant: in a child nothing inherited is written, renamed, removed or waited for, nor kept open.  docs/processes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Protocol


class Inherited(Protocol):
    """Something that a child must not touch."""

    def abandon(self) -> None:
        """In the child, right after the fork: forget threads, locks, files, and what was to be done at the end."""


class Numbered(Protocol):
    """An open file or socket."""

    def fileno(self) -> int:
        """Its number."""


_open: weakref.WeakSet[Inherited] = weakref.WeakSet()
_touching_nothing = 0
"""The thread whose next child does not touch what is open."""


def register(each: Inherited) -> None:
    """Let a child abandon this."""
    _watch()
    _open.add(each)


@functools.cache
def _watch() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_abandon_all)


def _abandon_all() -> None:
    if _touching_nothing == threading.get_ident():
        return
    for each in list(_open):
        # One that is half built has nothing to abandon yet; the others must be, whatever happens.
        with contextlib.suppress(Exception):
            each.abandon()
    _open.clear()


@contextlib.contextmanager
def without_abandoning() -> Iterator[None]:
    """A child that this thread forks leaves what it has inherited as it is: it ends without a use of it."""
    global _touching_nothing
    _touching_nothing = threading.get_ident()
    try:
        yield
    finally:
        _touching_nothing = 0


def cut_off(*files: Numbered | None) -> None:
    """Let whatever this process still writes into an inherited file or socket go nowhere, and its peer forget us."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        for file in files:
            with contextlib.suppress(OSError, ValueError):
                if file is not None and file.fileno() >= 0:
                    os.dup2(null, file.fileno(), inheritable=False)
    finally:
        os.close(null)


def keep_whole(lock: threading.Lock | threading.RLock) -> None:
    """Let a fork wait until nobody holds a lock of the process, so that the child finds it free and its data whole."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
