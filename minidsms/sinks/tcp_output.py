"""Lines over TCP: to a server we connect to, or to every client that connects to us.

Back-pressure: what a server does not take yet blocks the engine, up to a timeout. A client of ours that does not keep
up is not waited for: it is cut off when too much waits for it, and that is told.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import deque

from minidsms.cql.errors import Error
from minidsms.process.forking import cut_off, register
from minidsms.process.threads import begin
from minidsms.sources.addresses import TcpAddress
from minidsms.sources.tcp_source import MOST_CLIENTS, accepted, cannot_connect, listen

_CONNECT_S = 10.0
_LINGER_S = 5.0
_LOOK_S = 1.0
"""How long what waits may stand there where the system had no memory to wake the thread."""


class TcpWriter:
    """Sends to one server. timeout_s: how long it may take nothing before the sink is given up."""

    def __init__(self, address: TcpAddress, timeout_s: float) -> None:
        self._name = f"{address.host}:{address.port}"
        try:
            self._socket = socket.create_connection((address.host, address.port), _CONNECT_S)
        except OSError as error:
            reason = str(cannot_connect(address.host, address.port, error)).split("\n")[0]
            raise Error(f"{reason}\nhelp: start the other side first") from None
        self._socket.settimeout(timeout_s)
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent speaks with the server."""
        cut_off(self._socket)

    def write(self, data: bytes) -> None:
        """Send lines."""
        try:
            self._socket.sendall(data)
        except TimeoutError:
            reason = f"{self._name} has taken nothing for {self._socket.gettimeout():g} seconds"
            raise Error(f"{reason}\nhelp: WITH (timeout = ..) says how long to wait") from None
        except OSError as error:
            raise Error(f"{self._name} takes no more lines: {error.strerror or error}") from None

    def publish(self) -> None:
        """Say that this was all."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._socket.close()

    def discard(self) -> None:
        """Break off."""
        self._socket.close()


class _Client:
    """A client and what waits to be sent to it."""

    def __init__(self, connected: socket.socket, name: str) -> None:
        self.socket = connected
        self.name = name
        self.waiting: deque[memoryview] = deque()
        self.bytes = 0

    def add(self, data: bytes) -> None:
        if data:
            self.waiting.append(memoryview(data))
            self.bytes += len(data)

    def first(self, lock: threading.Lock) -> memoryview | None:
        with lock:
            return self.waiting[0] if self.waiting else None

    def take(self, sent: int) -> None:
        self.bytes -= sent
        if self.waiting:  # nothing waits where everything was given up meanwhile
            first = self.waiting.popleft()
            if sent < len(first):
                self.waiting.appendleft(first[sent:])


class TcpServer:
    """Sends to all clients what comes after they have connected. most_bytes: what may wait for one of them."""

    def __init__(self, address: TcpAddress, most_bytes: int) -> None:
        self._listening = listen(address)
        host, port = self._listening.getsockname()[:2]
        self.address: tuple[str, int] = (host, port)
        self.shown = f"tcp-listen://{host}:{port}" if ":" not in host else f"tcp-listen://[{host}]:{port}"
        self.notes: deque[str] = deque(maxlen=100)
        self._most_bytes = most_bytes
        self._header = b""
        self._clients: dict[socket.socket, _Client] = {}
        self._lock = threading.Lock()
        self._is_closing = False
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._thread = threading.Thread(target=self._run, name=f"minidsms {self.shown}", daemon=True)

        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent serves the clients."""
        cut_off(self._listening, self._wake, self._woken, *self._clients)

    def greet(self, header: bytes) -> None:
        """What each client is told first; from now on clients are let in."""
        self._header = header
        begin(self._thread)

    def write(self, data: bytes) -> None:
        """Let lines wait for every client."""
        with self._lock:
            for client in self._clients.values():
                client.add(data)
        self._ring()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not (self._is_closing and not self._waiting()):
                for key, _ in selector.select(_LOOK_S):
                    if key.fileobj is self._listening:
                        self._accept(selector)
                    elif key.fileobj is self._woken:
                        with contextlib.suppress(OSError):
                            self._woken.recv(4096)
                    else:
                        self._exchange(selector, key.fileobj)  # type: ignore[arg-type]
                self._watch(selector)
        for client in self._clients.values():
            client.socket.close()
        self._close()

    def _close(self) -> None:
        for each in (self._listening, self._wake, self._woken):
            each.close()

    def _waiting(self) -> bool:
        with self._lock:
            return any(c.waiting for c in self._clients.values())

    def _accept(self, selector: selectors.BaseSelector) -> None:
        found = accepted(self._listening)
        if found is None:
            return
        connected, peer = found
        connected.setblocking(False)
        client = _Client(connected, f"{peer[0]}:{peer[1]}")
        with self._lock:
            if len(self._clients) >= MOST_CLIENTS:
                self.notes.append(f"client {client.name} was turned away: {MOST_CLIENTS} are connected")
                connected.close()
                return
            client.add(self._header)
            self._clients[connected] = client
        selector.register(connected, selectors.EVENT_READ)
        self.notes.append(f"client {client.name} has connected")

    def _watch(self, selector: selectors.BaseSelector) -> None:
        """Ask for room only where something waits; cut off who lags too far."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            if client.bytes > self._most_bytes:
                self._drop(selector, client, f"has been cut off: {client.bytes:,} bytes waited for it")
                continue
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.waiting else 0)
            if selector.get_key(client.socket).events != events:
                selector.modify(client.socket, events)

    def _exchange(self, selector: selectors.BaseSelector, connected: socket.socket) -> None:
        """Send what waits; a client says nothing, but that it goes."""
        client = self._clients[connected]
        try:
            with contextlib.suppress(BlockingIOError):
                if not connected.recv(4096):
                    self._drop(selector, client, "has gone")
                    return
            while (first := client.first(self._lock)) is not None:
                sent = connected.send(first)
                with self._lock:
                    client.take(sent)
        except BlockingIOError:
            return
        except OSError:
            self._drop(selector, client, "has gone")

    def _drop(self, selector: selectors.BaseSelector, client: _Client, why: str) -> None:
        selector.unregister(client.socket)
        with self._lock:
            del self._clients[client.socket]
        client.socket.close()
        self.notes.append(f"client {client.name} {why}")

    def publish(self) -> None:
        """Send what waits, for a few seconds at most, and close."""
        self._end()
        if self._thread.is_alive():
            self._thread.join(_LINGER_S)
        self.discard()

    def discard(self) -> None:
        """Close at once."""
        with self._lock:
            for client in self._clients.values():
                client.waiting.clear()
        self._end()
        if self._thread.ident is None:
            self._close()
        else:
            self._thread.join(_LINGER_S)

    def _end(self) -> None:
        self._is_closing = True
        self._ring()
