"""Callbacks: telling the application what is new, and taking what it pushes meanwhile.

Invariants: callbacks run outside the engine's lock and one at a time; every change is told once, in order, unless its
query is closed before; what a callback pushes waits until all have been told, and then is taken in the order of the
calls, without growing Python's stack. An exception in a callback takes nothing from the others: it comes out of the
call that brought the change, after everything has been told and taken.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from minidsms.process.interrupts import held, let_through, passing

if TYPE_CHECKING:
    from minidsms.answers.news import News
    from minidsms.engine.running_query import RunningQuery
    from minidsms.process.interrupts import EngineLock


class Callbacks:
    """The turn of the callbacks of one connection.

    lock: the engine's.  queries: gives those that may have something to tell.  news: for callbacks of many queries.
    """

    def __init__(self, lock: EngineLock, queries: Callable[[], Sequence[RunningQuery]], news: News) -> None:
        self._lock = lock
        self._news = news
        self._queries = queries
        self._turn = threading.Lock()
        self._due = False
        self._thread: int | None = None
        self._deferred: deque[Callable[[], Any]] = deque()

    def are_calling(self) -> bool:
        """This call comes from a callback: it has to wait its turn."""
        return self._thread is not None and self._thread == threading.get_ident()

    def defer(self, call: Callable[[], Any]) -> None:
        """Let a call from a callback wait until all have been told."""
        self._deferred.append(call)

    def forget(self) -> None:
        """The connection has closed: nothing is taken any more."""
        self._deferred.clear()

    def tell(self) -> None:
        """Tell what waits. Whoever finds another thread or a callback at it leaves the word that there is more."""
        with held:
            self._tell()

    def _tell(self) -> None:
        self._due = True
        failed: Exception | None = None
        while self._due and self._turn.acquire(blocking=False):
            try:
                self._due = False
                for query in self._queries():
                    failed = self._tell_one(query, failed)
                failed = self._tell_all(failed)
                while self._deferred:
                    let_through()
                    try:
                        self._deferred.popleft()()
                    except Exception as error:
                        failed = failed or error
            finally:
                self._turn.release()
        if failed is not None:
            raise failed

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody is told anything meanwhile, and what has been taken has been told; then what waits is. Not for a
        callback.
        """
        with self._turn:
            yield
        if self._due:
            self.tell()

    def _tell_all(self, failed: Exception | None) -> Exception | None:
        """Tell those that are told of many queries at once."""
        if not self._news.is_wanted:
            return failed
        let_through()
        with self._lock:
            told = self._news.take()
        failed = self._call(told, failed)
        for query in {query for _, news in told for query, _ in news}:
            query.note_told()
        return failed

    def _tell_one(self, query: RunningQuery, failed: Exception | None) -> Exception | None:
        with self._lock:
            # Under the lock: another thread may deliver, or reclaim the texts of what has been taken.
            query.take_for_callbacks()
        untold = query.untold
        while untold:
            let_through()
            change = untold.popleft()
            failed = self._call(zip(query.callbacks(), repeat(change)), failed)
        query.note_told()
        return failed

    def _call(self, calls: Iterable[tuple[Callable[[Any], Any], Any]], failed: Exception | None) -> Exception | None:
        """Call the functions, each with what it is told. What interrupts one takes nothing from the others either."""
        interrupt: BaseException | None = None
        self._thread = threading.get_ident()
        for fn, told in calls:
            try:
                with passing:
                    fn(told)
            except Exception as error:
                failed = failed or error
            except BaseException as error:
                interrupt = interrupt or error
        self._thread = None
        if interrupt is not None:
            raise interrupt
        return failed

    @classmethod
    def raised(cls, error: BaseException) -> bool:
        """Whether an exception that a call raises is one of a callback, so that the call has done all of its work."""
        frames = traceback.walk_tb(error.__traceback__)
        return isinstance(error, Exception) and any(frame.f_code is cls._call.__code__ for frame, _ in frames)
