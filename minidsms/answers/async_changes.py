"""`async for change in query`: changes as they come, without blocking the event loop.

Whatever thread or task pushes, the loop is woken when the query has delivered. Bounded sources are read in a thread
meanwhile, as iteration does. It ends when the query is closed or has failed, or nothing more can come.
Invariant: changes are given as iteration gives them, each once, in order; those that a loop has not come to go on
waiting.  docs/python-api.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol
from weakref import ref

from minidsms.answers.in_hand import Loop
from minidsms.cql.errors import ClosedError
from minidsms.engine.running_query import Change
from minidsms.process.threads import no_thread

_LOOK_S = 0.2
"""Seconds between two looks whether the query has ended, which nobody tells."""


class Followed(Protocol):
    """A query whose changes are waited for. wakers: called when something has been delivered."""

    wakers: list[Callable[[], None]]

    @property
    def state(self) -> str: ...

    @property
    def has_ended(self) -> bool: ...

    def stand_alone(self) -> None: ...

    def hand_out(self, loop: Loop) -> Iterator[Change] | None: ...

    @property
    def has_sources(self) -> bool: ...

    def run_sources(self) -> bool: ...


class AsyncChanges:
    """The changes of a query from now on, those that wait first. Raises QueryError once a failed query's last ones have
    been given.
    """

    __slots__ = ("__anext__", "__weakref__", "_query", "_readings", "aclose", "loop")

    def __init__(self, query: Followed) -> None:
        self._query, self.loop = query, Loop()
        self._readings: list[asyncio.Future[bool]] = []
        self.begin()

    def begin(self) -> None:
        """Go on with a generator that has not ended."""
        changes = _changes_of(self._query, ref(self), self._readings)
        self.__anext__ = changes.__anext__  # a method would call it for each change
        self.aclose = changes.aclose

    def __aiter__(self) -> AsyncChanges:
        return self


async def _changes_of(
    query: Followed, held: ref[AsyncChanges], readings: list[asyncio.Future[bool]]
) -> AsyncGenerator[Change, None]:
    """held: what gives its changes. Whoever drops that ends the loop; the event loop ends the generator later.
    readings: as of `_read`.
    """
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    delivered = asyncio.Event()

    def wake() -> None:
        if not delivered.is_set():
            with contextlib.suppress(RuntimeError):  # the loop has been closed, and nobody waits
                delivered.set() if threading.get_ident() == thread else loop.call_soon_threadsafe(delivered.set)

    query.stand_alone()
    query.wakers.append(wake)
    try:
        while query.state != "closed":
            delivered.clear()
            try:
                portion = query.hand_out(_loop_of(held))
            except ClosedError:
                return  # another thread has closed it since
            if portion is not None:
                for change in portion:
                    yield change
                continue
            try:
                if query.has_sources and await _read(query, readings):
                    continue
            except ClosedError:
                return
            if not delivered.is_set() and query.has_ended:
                return
            looking = loop.call_later(_LOOK_S, delivered.set)
            try:
                await delivered.wait()
            finally:
                looking.cancel()
    except (asyncio.CancelledError, GeneratorExit) as end:
        changes = held()
        if changes is not None:
            if isinstance(end, GeneratorExit):
                changes.loop = Loop()  # it is at no change any more
            else:
                changes.begin()  # who has waited for a while only, as by `asyncio.wait_for`, asks again
        raise
    finally:
        query.wakers.remove(wake)


def _loop_of(held: ref[AsyncChanges]) -> Loop:
    changes = held()
    return Loop() if changes is None else changes.loop


async def _read(query: Followed, readings: list[asyncio.Future[bool]]) -> bool:
    """`run_sources`, in a thread. readings: the one that is under way: who is cancelled leaves it there, with what it
    gives or raises, for who asks again.
    """
    loop = asyncio.get_running_loop()
    if not readings or readings[0].get_loop() is not loop:
        try:
            readings[:] = [loop.run_in_executor(None, contextvars.copy_context().run, query.run_sources)]
        except RuntimeError as error:
            raise no_thread(error) from None
    reading = readings[0]
    await asyncio.wait([reading])
    readings.clear()
    return reading.result()
