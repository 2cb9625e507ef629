"""Threads beside the engine: how they begin, and end before the interpreter does. Where the system gives none, as in a
container that limits them, that is an Error.
"""

from __future__ import annotations

import atexit
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from minidsms.cql.errors import Error
from minidsms.process.forking import register


def begun(work: Callable[[], object], name: str) -> threading.Thread:
    """A thread at work, which does not keep the program from ending. Error where there can be none."""
    return begin(threading.Thread(target=work, name=name, daemon=True))


def begin(thread: threading.Thread) -> threading.Thread:
    """Let a thread begin. Error where the system gives none."""
    try:
        thread.start()
    except RuntimeError as error:
        raise no_thread(error) from None
    return thread


def no_thread(error: RuntimeError) -> Error:
    """The error where the system gives none."""
    return Error(f"no thread can be started: {error}\nhelp: let the process have more threads")


class Ends(Protocol):
    """Something with threads."""

    def close(self) -> None:
        """End them."""

    def abandon(self) -> None:
        """In a child of fork(), which has none of them: forget them."""


_live: weakref.WeakSet[Ends] = weakref.WeakSet()


def end_at_exit(worker: Ends) -> None:
    """Let its threads end before the interpreter does, which would tear them out of whatever they are in."""
    _watch_exit()
    _live.add(worker)
    register(worker)


@functools.cache
def _watch_exit() -> None:
    atexit.register(_end_all)


def _end_all() -> None:
    for worker in list(_live):
        worker.close()
