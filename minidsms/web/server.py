"""The visualizer of a connection: a server on this machine's loopback, in threads beside the engine's.

Invariant: it listens on the loopback only, and ends with the connection.  docs/visualizer.md.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.extras import missing
from minidsms.process.forking import cut_off, register
from minidsms.process.threads import begin

try:
    import uvicorn
    from starlette.applications import Starlette  # noqa: F401 looked for, so that the error says what is missing
except ImportError as absent:
    raise missing(str(absent.name), "the page", "web") from None

from minidsms.web.access import Guard
from minidsms.web.answers import Answers
from minidsms.web.application import Application
from minidsms.web.clients import Client
from minidsms.web.feeding import Feeding
from minidsms.web.observer import Observer
from minidsms.web.workbench import Workbench

if TYPE_CHECKING:
    from minidsms.connection import Connection

_LOOPBACK = "127.0.0.1"


class Visualizer:
    """Made by `Connection.ui`. url: of the page, with the token that opens it.

    port: 0 takes a free one.  interval_s: seconds between two looks at the engine, at least.
    """

    def __init__(self, db: Connection, port: int = 0, interval_s: float = 1.0) -> None:
        self.feeding = Feeding(db)
        self.observer = Observer(db, interval_s, self.feeding.told)
        self.feeding.changed = self.observer.wake
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((_LOOPBACK, port))
            self._socket.listen(64)
        except (OSError, OverflowError, TypeError) as error:
            self._socket.close()
            self.observer.stop()
            reason = getattr(error, "strerror", None) or error
            raise Error(f"port {port} cannot be opened: {reason}\nhelp: port 0 takes a free one") from None
        self.port: int = self._socket.getsockname()[1]
        self.application = Application(db, self.observer, Workbench(db), Answers(db), self.feeding)
        self.observer.changed = self.application.listeners.tell
        self.observer.is_watched = lambda: len(self.application.listeners) > 0
        self.guard = Guard(self.application.app, self.port)
        self.url = f"http://{_LOOPBACK}:{self.port}/?token={self.guard.token}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                self.guard, lifespan="off", loop="asyncio", http=Client, ws="none", log_config=None, access_log=False,
                server_header=False, timeout_graceful_shutdown=1,
            )
        )  # fmt: skip
        self._thread = threading.Thread(target=self._serve, name="minidsms-web", daemon=True)
        self.is_over = False
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent serves the pages."""
        self.is_over = True
        connections = self._server.server_state.connections
        cut_off(self._socket, *(each.transport.get_extra_info("socket") for each in list(connections)))

    def start(self) -> Visualizer:
        """Serve from now on."""
        try:
            self.observer.start()
            self.feeding.start()
            begin(self._thread)
        except Error:
            self.stop()
            raise
        return self

    def _serve(self) -> None:
        asyncio.run(self._serving())

    async def _serving(self) -> None:
        """Until `stop`; then nobody is connected any more, though an answer may wait to be taken."""
        await self._server.serve([self._socket])
        for each in list(self._server.server_state.connections):
            each.transport.abort()
        await asyncio.sleep(0)  # that closes them

    def open_browser(self) -> None:
        """Show the page, where there is a browser."""
        webbrowser.open(self.url)

    def stop(self) -> None:
        """End: pages that are open see no more. Stopping twice is no error."""
        if self.is_over:
            return
        self.is_over = True
        self.application.is_over = self._server.should_exit = True
        self.application.listeners.tell()
        self.feeding.stop()
        self.observer.stop()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> Visualizer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noopener">the page of this connection</a>'

    def __repr__(self) -> str:
        return f"<Visualizer {'stopped' if self.is_over else self.url}>"
