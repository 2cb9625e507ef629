"""Blocks of a file made ready by threads while the engine works on those before them.

Reading and parsing release the interpreter's lock nearly all of their time, so a second core does them beside the
engine. Threads take blocks one after the other, under a lock, and make batches of them side by side; who reads gets
them in the file's order.

Invariant: what is read, and in which order, does not depend on the threads: an error comes out where its block would
have. At most `_AHEAD` blocks are begun and not taken. Threads end with the blocks, at an error, and with `close`.
docs/design, point 10; the rule of one engine lock is not touched: nothing here knows the engine.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from minidsms.cql.errors import Error
from minidsms.process.threads import begun, end_at_exit

_AHEAD = 4
_WORKERS = 2

Raw = TypeVar("Raw")
Made = TypeVar("Made")


class ReadAhead(Generic[Raw, Made]):
    """Iterates over what `make` gives for each of `blocks`, in their order.

    blocks: asked by one thread at a time.  make: called in any thread and order; it depends on its argument alone.
    """

    def __init__(self, blocks: Iterator[Raw], make: Callable[[Raw], Made]) -> None:
        self._blocks = blocks
        self._make = make
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._begun = 0
        self._taken = 0
        self._made: dict[int, Made | BaseException] = {}
        self._end: int | None = None
        self._is_closed = False
        self._threads: list[threading.Thread] = []

    def __iter__(self) -> Iterator[Made]:
        """The blocks made; starts the threads. To be gone through once."""
        with contextlib.suppress(Error):
            for i in range(_WORKERS):
                self._threads.append(begun(self._work, f"minidsms-read-ahead-{i}"))
        if not self._threads:  # the system gives none
            yield from map(self._make, self._blocks)
            return
        end_at_exit(self)
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(self._is_answered)
                    if self._is_closed or self._taken == self._end:
                        return
                    made = self._made.pop(self._taken)
                    self._taken += 1
                    self._changed.notify_all()
                if isinstance(made, BaseException):
                    raise made
                yield made
        finally:
            self.close()

    def _is_answered(self) -> bool:
        """Who reads need not wait."""
        return self._is_closed or self._taken in self._made or self._taken == self._end

    def abandon(self) -> None:
        """In a child of fork(): the parent's threads read."""
        self._changed = threading.Condition()
        self._is_closed = True
        self._threads = []

    def close(self) -> None:
        """End the threads, whatever is left."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while True:
            with self._taking:
                number = self._next_number()
                if number is None:
                    return
                try:
                    raw = next(self._blocks)
                except StopIteration:
                    self._stop_at(number)
                    return
                except BaseException as error:
                    self._put(number, error)
                    self._stop_at(number + 1)
                    return
            try:
                made: Made | BaseException = self._make(raw)
            except BaseException as error:
                made = error
            self._put(number, made)

    def _next_number(self) -> int | None:
        """The number of the next block, once there is room for it; None where no more is wanted."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._end is not None or self._begun - self._taken < _AHEAD
            )
            if self._is_closed or self._end is not None:
                return None
            self._begun += 1
            return self._begun - 1

    def _put(self, number: int, made: Made | BaseException) -> None:
        with self._changed:
            self._made[number] = made
            self._changed.notify_all()

    def _stop_at(self, number: int) -> None:
        with self._changed:
            self._end = number
            self._changed.notify_all()
