"""Parts of one piece of work, done side by side by threads that wait for nothing else.

What is divided is divided by rows, and its parts are put together in their order, so that nobody can tell how many
threads there were. It pays where the work leaves the interpreter's lock: kernels and numpy's loops do.

Invariant: when `side_by_side` returns or raises nothing is under way; what a part divides it does by itself, so that
nobody waits for a thread that waits. docs/processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any, Generic, TypeVar

from minidsms.process.forking import register

T = TypeVar("T")

MOST = 16
"""Threads that 'auto' takes."""
TRIED_AFTER, TRIED_EVERY = 4, 32
"""Pieces of work until what is not better is tried again: at first, and at most; each try in vain doubles them."""
NEWEST = 0.25
"""The weight of the last piece in what a way is expected to take, if the one before went that way, too."""
FIRST_TRIES = 2
"""Divided pieces by which that way is judged first, by the quicker one: threads are started for the first."""


def usable_threads(asked: int | str) -> int:
    """What `SET threads` says: a number, or 'auto', the processors that this process may use."""
    if isinstance(asked, int):
        return asked
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST)


class Dividing:
    """Whether dividing pays, by the clock on the wall: other processors may have work of their own.

    Both ways are tried, then the better one is taken, and the other one tried again now and then: soon at first, for a
    processor that was taken may be free again.
    """

    def __init__(self) -> None:
        self._ns: dict[bool, float] = {}
        self._turns = 0
        self._divided = 0
        self._last = {True: 0, False: 0}
        """The last turn of each way."""
        self._is_better = True
        self._pause = TRIED_AFTER
        self._next_try = 2 * TRIED_AFTER

    def pays(self) -> bool:
        """Whether to divide what comes next."""
        self._turns += 1
        if self._divided < FIRST_TRIES or False not in self._ns:
            return self._divided == 0 or False in self._ns
        is_better = self._ns[True] < self._ns[False]
        is_try = self._turns >= self._next_try and is_better is self._is_better
        if is_try or is_better is not self._is_better:
            self._pause = min(2 * self._pause, TRIED_EVERY) if is_try else TRIED_AFTER
            self._next_try = self._turns + self._pause
        self._is_better = is_better
        return is_better is not is_try

    def took(self, is_divided: bool, ns: float) -> None:
        """A row took so many nanoseconds, divided or not."""
        known = self._ns.get(is_divided, ns)
        self._divided += is_divided
        turns = max(1, self._turns - self._last[is_divided])
        self._last[is_divided] = self._turns
        if is_divided and self._divided <= FIRST_TRIES:
            self._ns[True] = min(known, ns)
        else:  # What is known is older the longer the way was not taken.
            self._ns[is_divided] = ns + (1 - NEWEST) ** turns**2 * (known - ns)


class _Part(Generic[T]):
    """A part that a thread has been given, unless the caller takes it back before."""

    result: T

    def __init__(self, work: Callable[[int], T], number: int) -> None:
        self._work, self._number = work, number
        self._begun, self._done = Lock(), Lock()
        self._done.acquire()
        self.error: BaseException | None = None

    def begin(self) -> bool:
        """Whether nobody has begun it before."""
        return self._begun.acquire(blocking=False)

    def run(self) -> None:
        """Do it, unless somebody has begun."""
        if self.begin():
            try:
                self.result = self._work(self._number)
            except BaseException as error:
                self.error = error
            finally:
                self._done.release()

    def wait(self) -> None:
        """Until it is done; called once."""
        self._done.acquire()


class _Pool:
    """Threads of the process, made when they are first wanted. (Those of `concurrent.futures` take three times as long
    to be given something and to be waited for.)
    """

    def __init__(self) -> None:
        self._given: SimpleQueue[_Part[Any]] = SimpleQueue()
        self._size = 0

    def give(self, work: Callable[[int], T], number: int, size: int) -> _Part[T]:
        """Let one of at least `size` threads do a part. RuntimeError where no thread can be had."""
        while self._size < size:
            if not self._size:
                register(self)
            Thread(target=_serve, args=(self._given,), name="minidsms-part", daemon=True).start()
            self._size += 1
        part = _Part(work, number)
        self._given.put(part)
        return part

    def abandon(self) -> None:
        """In a child of fork(): the threads have not come along."""
        self._given, self._size = SimpleQueue(), 0


def _serve(given: SimpleQueue[_Part[Any]]) -> None:
    _THREAD.is_dividing = True
    while True:
        given.get().run()


_POOL = _Pool()
_THREAD = local()
"""is_dividing: at work on a part."""


def is_dividing() -> bool:
    """This thread is at work on a part."""
    return getattr(_THREAD, "is_dividing", False)


def side_by_side(work: Callable[[int], T], parts: int) -> list[T]:
    """What `work` gives of the parts 0, 1, .., the first of which the caller does. Raises what the first one has that
    raises.
    """
    if is_dividing():
        return [work(part) for part in range(parts)]

    given: list[_Part[T]] = []
    _THREAD.is_dividing = True
    try:
        try:
            for part in range(1, parts):
                given.append(_POOL.give(work, part, parts - 1))
        except RuntimeError:  # the interpreter ends, or the system has no more threads
            pass
        try:
            done = [work(0)]
        finally:
            under_way = [each for each in given if not each.begin()]
            for each in under_way:
                each.wait()
        for part, each in enumerate(given, 1):
            if each.error is not None:
                raise each.error
            done.append(each.result if each in under_way else work(part))
        return done + [work(part) for part in range(len(done), parts)]
    finally:
        _THREAD.is_dividing = False
