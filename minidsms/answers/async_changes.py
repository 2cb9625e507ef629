"""`async for change in query`: changes as they come, without blocking the event loop.

Whatever thread or task pushes, the loop is woken when the query has delivered. Bounded sources are read in a thread
meanwhile, as iteration does. It ends when the query is closed or has failed, or nothing more can come.
Invariant: changes are given as iteration gives them, each once, in order; those that a loop has not come to go on
waiting.  docs/python-api.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Protocol

from minidsms.answers.in_hand import Loop
from minidsms.cql.errors import ClosedError
from minidsms.engine.running_query import Change

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


class UntilDropped:
    """The changes of a loop that is over as soon as nobody holds them."""

    __slots__ = ("__anext__", "_loops", "aclose")

    def __init__(self, changes: AsyncGenerator[Change, None], loops: list[Loop]) -> None:
        self._loops = loops
        self.__anext__ = changes.__anext__  # a method would call it for each change
        self.aclose = changes.aclose

    def __aiter__(self) -> UntilDropped:
        return self

    def __del__(self) -> None:
        # The event loop ends an asynchronous generator later, after what its task does next.
        self._loops.clear()


async def changes_of(query: Followed, own: list[Loop]) -> AsyncGenerator[Change, None]:
    """The changes of a query from now on, those that wait first. Raises QueryError once a failed query's last ones have
    been given. own: its loop, until nobody holds it.
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
                portion = query.hand_out(own[0] if own else Loop())
            except ClosedError:
                return  # another thread has closed it since
            if portion is not None:
                for change in portion:
                    yield change
                continue
            try:
                if query.has_sources and await asyncio.to_thread(query.run_sources):
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
    finally:
        own.clear()
        query.wakers.remove(wake)
