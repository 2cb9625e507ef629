"""Work that is not waited for, done by a thread in the background of the engine.

Making text of columns and writing it to a file that appears whole when it is closed; counting the rows of a relation
that somebody may ask for: it releases the interpreter's lock nearly all of its time, so a second core does it while the
engine goes on. Only for work of which nobody can tell when it was done: whoever looks waits (`settle`).

Invariants: work is done in the order in which it was given; at most `_MOST_WAITING` pieces wait, then the giver does;
after an error nothing more is done, and the error comes out of the next `do` or of `finish`. Once `finish` or `close`
has returned nothing is under way.  docs/design, point 10: the thread takes no lock of the engine and knows none of its
state.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from minidsms.cql.errors import Error
from minidsms.process.threads import begun, end_at_exit

_MOST_WAITING = 3
FEWEST_ROWS = 4096
"""Less work than so many rows bring is done at once, where nothing waits: handing it over would cost more."""


class Background:
    """A queue of work. Its thread is made with the first work that is worth it, and ends with `finish` or `close`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_working = False
        self._is_over = False
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def do(self, work: Callable[[], None], rows: int) -> None:
        """Do the work, now or soon. rows: how many it brings. Raises what earlier work has raised, once."""
        self._raise()
        if (rows < FEWEST_ROWS and not self._is_busy()) or not self._has_thread():
            work()
            return
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _MOST_WAITING or self._error is not None)
            self._waiting.append(work)
            self._changed.notify_all()
        self._raise()

    def _has_thread(self) -> bool:
        """There is a thread, or is from now on; False where the system gives none: then nothing waits."""
        if self._thread is None:
            try:
                self._thread = begun(self._run, "minidsms-background")
            except Error:
                return False
            end_at_exit(self)
        return True

    def settle(self) -> None:
        """Wait until nothing is under way; an error stays to be told."""
        if self._thread is not None:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_busy())

    def finish(self) -> None:
        """Do what waits, and end. Raises what the work has raised, unless that has been told."""
        self._end()
        self._raise()

    def close(self) -> None:
        """End without what waits, and without its errors."""
        with self._changed:
            self._waiting.clear()
        self._end()
        self._error = None

    def abandon(self) -> None:
        """In a child of fork(): the parent's thread does the work."""
        self._changed = threading.Condition()
        self._waiting.clear()
        self._is_working, self._thread = False, None

    def _is_busy(self) -> bool:
        return bool(self._waiting) or self._is_working

    def _raise(self) -> None:
        if self._error is not None and not self._is_busy():
            error, self._error = self._error, None
            raise error

    def _end(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._is_over = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._is_over)
                if not self._waiting:
                    return
                work = self._waiting.popleft()
                self._is_working = True
                self._changed.notify_all()
            try:
                if self._error is None:
                    work()
            except BaseException as error:
                self._error = error
            with self._changed:
                if self._error is not None:
                    self._waiting.clear()
                self._is_working = False
                self._changed.notify_all()
