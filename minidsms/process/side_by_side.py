"""Parts of one piece of work, done side by side by threads that wait for nothing else.

What is divided is divided by rows, and its parts are put together in their order, so that nobody can tell how many
threads there were. It pays where the work leaves the interpreter's lock: kernels and numpy's loops do.

Invariant: when `side_by_side` returns or raises nothing is under way; what a part divides it does by itself, so that
nobody waits for a thread that waits. docs/processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from minidsms.process.forking import register

T = TypeVar("T")

MOST = 16
"""Threads that 'auto' takes."""
TRIED_EVERY = 16
"""Pieces of work between two tries of what is not better."""
NEWEST = 0.25
"""The weight of the last piece in what a way is expected to take."""


def usable_threads(asked: int | str) -> int:
    """What `SET threads` says: a number, or 'auto', the processors that this process may use."""
    if isinstance(asked, int):
        return asked
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST)


class Dividing:
    """Whether dividing pays, by the clock on the wall: other processors may have work of their own.

    Both ways are tried, then the better one is taken, and the other one tried again now and then.
    """

    def __init__(self) -> None:
        self._ns: dict[bool, float] = {}
        self._turns = 0

    def pays(self) -> bool:
        """Whether to divide what comes next."""
        self._turns += 1
        untried = [way for way in (True, False) if way not in self._ns]
        if untried:
            return untried[0]
        is_better = self._ns[True] < self._ns[False]
        return is_better if self._turns % TRIED_EVERY else not is_better

    def took(self, is_divided: bool, ns: float) -> None:
        """A row took so many nanoseconds, divided or not."""
        known = self._ns.get(is_divided, ns)
        self._ns[is_divided] = known + NEWEST * (ns - known)


class _Pool:
    """Threads of the process, made when they are first wanted."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._size = 0

    def submit(self, work: Callable[[int], T], part: int, size: int) -> Future[T]:
        """Let one of at least `size` threads do a part. RuntimeError where no thread can be had."""
        if self._threads is None or self._size < size:
            if self._threads is not None:
                self._threads.shutdown(wait=False)  # what it has been given it finishes
            self._threads, self._size = ThreadPoolExecutor(size, "minidsms-part"), size
            register(self)
        return self._threads.submit(work, part)

    def abandon(self) -> None:
        """In a child of fork(): the threads have not come along."""
        self._threads, self._size = None, 0


_POOL = _Pool()
_THREAD = threading.local()
"""is_dividing: at work on a part."""


def side_by_side(work: Callable[[int], T], parts: int) -> list[T]:
    """What `work` gives of the parts 0, 1, .., the first of which the caller does. Raises what the first one has that
    raises.
    """
    if getattr(_THREAD, "is_dividing", False):
        return [work(part) for part in range(parts)]

    def alone(part: int) -> T:
        _THREAD.is_dividing = True
        try:
            return work(part)
        finally:
            _THREAD.is_dividing = False

    given: list[Future[T]] = []
    try:
        try:
            for part in range(1, parts):
                given.append(_POOL.submit(alone, part, parts - 1))
        except RuntimeError:  # the interpreter ends, or the system has no more threads
            pass
        done = [alone(0)]
    finally:
        begun = [future for future in given if not future.cancel()]
        wait(begun)
    for part, future in enumerate(given, 1):
        done.append(alone(part) if future.cancelled() else future.result())
    return done + [alone(part) for part in range(len(done), parts)]
