"""Threads beside the engine. Where the system gives none, as in a container that limits them, that is an Error."""

from __future__ import annotations

import threading
from collections.abc import Callable

from minidsms.cql.errors import Error


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
