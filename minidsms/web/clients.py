"""The connections of the page's clients: so many at a time, none of which is waited for longer than is needed to ask.

Any process of this machine can connect, whether it has the token or not, and each connection holds a descriptor.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CLIENTS = 128
"""Connections: browsers open up to six for each page."""
PATIENCE_S = 10.0
"""So long a client may take over a request."""


class Client(H11Protocol):
    """A connection, as `uvicorn` speaks with it. Idle behind an answer it is closed earlier, by `uvicorn` itself."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Turn away who is one too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CLIENTS:
            transport.abort()
        else:
            self._watch()

    def handle_events(self) -> None:
        """Take what a client has sent, also while it was answered."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Hang up in a while where a request has not come, or half of it."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._forget()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(PATIENCE_S, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
