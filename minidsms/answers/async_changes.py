"""`async for change in query`: changes as they come, without blocking the event loop.

Whatever thread or task pushes, the loop is woken when the query has delivered. Bounded sources are read in a thread
meanwhile, as iteration does. It ends when the query is closed or has failed, or nothing more can come.
Invariant: changes are given as iteration gives them, each once, in order; those that a loop has not come to when it is
left go on waiting.  docs/python-api.md.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from minidsms.answers.in_hand import InHand
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

    def hand_out(self) -> InHand | None: ...

    def run_sources(self) -> bool: ...


class AsyncChanges:
    """The changes of a query from now on, those that wait first. Raises QueryError once a failed query's last ones have
    been given.

    What it has not given waits again as soon as nobody holds it: an asynchronous generator is ended by the event loop,
    after what its task does next.
    """

    def __init__(self, query: Followed) -> None:
        self._hands: list[InHand] = []
        self._changes = _changes_of(query, self._hands)

    def __aiter__(self) -> AsyncChanges:
        return self

    async def __anext__(self) -> Change:
        return await anext(self._changes)

    async def aclose(self) -> None:
        """Give nothing more."""
        await self._changes.aclose()

    def __del__(self) -> None:
        for hand in self._hands:
            hand.leave()


async def _changes_of(query: Followed, hands: list[InHand]) -> AsyncGenerator[Change, None]:
    """hands: is told the one whose changes are given."""
    loop = asyncio.get_running_loop()
    delivered = asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed, and nobody waits
            loop.call_soon_threadsafe(delivered.set)

    query.stand_alone()
    query.wakers.append(wake)
    try:
        while query.state != "closed":
            delivered.clear()
            try:
                hand = query.hand_out()
            except ClosedError:
                return  # another thread has closed it since
            if hand:
                hands[:] = [hand]
                for change in hand:
                    yield change
                continue
            try:
                if await asyncio.to_thread(query.run_sources):
                    continue
            except ClosedError:
                return
            if not delivered.is_set() and query.has_ended:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(delivered.wait(), _LOOK_S)
    finally:
        query.wakers.remove(wake)
