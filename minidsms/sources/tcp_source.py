"""Lines over TCP: from a server we connect to, or from clients that connect to us.

Each connection is an origin: its lines stay in order, those of several clients are interleaved by arrival. What the
engine cannot take yet stays in the sockets, whose senders then wait.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from typing import Any

from minidsms.cql.errors import Error
from minidsms.process.forking import cut_off, register
from minidsms.sources.addresses import TcpAddress
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines

_RECEIVE_BYTES = 1 << 18
_CONNECT_S = 10.0
_REST_S = 0.05
MOST_CLIENTS = 64


class TcpReader:
    """Connects and reads. retry_s: connect again after so long when refused or cut off; None: the end is the end."""

    def __init__(self, address: TcpAddress, retry_s: float | None) -> None:
        self._address = address
        self._retry_s = retry_s
        self._stopped = threading.Event()
        self._socket = None if retry_s is not None else self._connect()
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent reads."""
        cut_off(self._socket)

    def _connect(self) -> socket.socket:
        host, port = self._address.host, self._address.port
        try:
            connected = socket.create_connection((host, port), _CONNECT_S)
        except OSError as error:
            raise cannot_connect(host, port, error) from None
        connected.settimeout(None)
        return connected

    def run(self, source: LiveLines) -> None:
        """Read until the other side closes; with retry_s, again and again."""
        while not self._stopped.is_set():
            try:
                if self._socket is None:
                    self._socket = self._connect()
                    if self._stopped.is_set():  # meanwhile, when there was nothing to be shut
                        return
                self._read(source, self._socket)
                source.note("the other side has closed the connection")
            except (Error, OSError) as error:
                if self._stopped.is_set():
                    return
                if self._retry_s is None:
                    raise
                source.note(str(error).split("\n")[0])
            finally:
                self.close()
            if self._retry_s is None or self._stopped.wait(self._retry_s):
                return

    @staticmethod
    def _read(source: LiveLines, connected: socket.socket) -> None:
        rows, cutter = source.rows(source.path), LineCutter()
        while True:
            try:
                data = connected.recv(_RECEIVE_BYTES)
            except OSError:
                source.inbox.put(rows, *cutter.end(is_broken=True))
                raise
            if not data:
                source.inbox.put(rows, *cutter.end())
                return
            if not source.inbox.put(rows, *cutter.feed(data)):
                return

    def stop(self) -> None:
        self._stopped.set()
        shut(self._socket)

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class TcpListener:
    """Listens and reads what clients send. clients: end after so many have come and gone; None: never."""

    def __init__(self, address: TcpAddress, clients: int | None) -> None:
        self._clients = clients
        self._listening = listen(address)
        self.address: tuple[str, int] = self._listening.getsockname()[:2]
        self._wake, self._woken = socket.socketpair()
        self._open: dict[socket.socket, tuple[str, LineRows, LineCutter]] = {}
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent serves the clients."""
        cut_off(self._listening, self._wake, self._woken, *self._open)

    def run(self, source: LiveLines) -> None:
        """Read from all clients until `clients` have gone."""
        open_clients = self._open
        come = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not source.inbox.is_closed and (self._clients is None or come < self._clients or open_clients):
                for key, _ in selector.select():
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if sock is self._listening:
                        client = self._accept(source, open_clients, come)
                        if client is not None:
                            come += 1
                            selector.register(client, selectors.EVENT_READ)
                    elif sock is self._woken:
                        return
                    elif not self._receive(source, sock, *open_clients[sock][1:]):
                        selector.unregister(sock)
                        source.note(f"client {open_clients.pop(sock)[0]} has gone")
                        sock.close()

    def _accept(
        self, source: LiveLines, clients: dict[socket.socket, tuple[str, LineRows, LineCutter]], come: int
    ) -> socket.socket | None:
        found = accepted(self._listening)
        if found is None:
            return None
        client, peer = found
        name = f"{peer[0]}:{peer[1]}"
        if len(clients) >= MOST_CLIENTS or come == self._clients:
            source.note(f"client {name} was turned away: {len(clients)} are connected")
            client.close()
            return None
        client.setblocking(False)
        clients[client] = (name, source.rows(f"{source.path}, client {name}"), LineCutter())
        source.note(f"client {name} has connected")
        return client

    @staticmethod
    def _receive(source: LiveLines, client: socket.socket, rows: LineRows, cutter: LineCutter) -> bool:
        """Take what a client has sent; False when it has gone."""
        try:
            data = client.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            source.inbox.put(rows, *cutter.end(is_broken=True))
            return False
        source.inbox.put(rows, *(cutter.feed(data) if data else cutter.end()))
        return bool(data)

    def stop(self) -> None:
        self._wake.close()  # wakes as well as a byte does, and needs no memory
        self._listening.close()

    def close(self) -> None:
        """Turn the clients away, and listen no more."""
        for sock in (*self._open, self._listening, self._wake, self._woken):
            sock.close()


def listen(address: TcpAddress) -> socket.socket:
    """A socket that listens. Error where the port is taken."""
    listening = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host, address.port))
        listening.listen(MOST_CLIENTS)
    except OSError as error:
        listening.close()
        reason = f"cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        raise Error(f"{reason}\nhelp: choose another port; port 0 takes a free one") from None
    return listening


def accepted(listening: socket.socket) -> tuple[socket.socket, Any] | None:
    """The next client, and where it is; None where it has gone, or this process may open no more files: it goes on to
    wait then, and is not asked for again at once.
    """
    try:
        return listening.accept()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            time.sleep(_REST_S)
        return None


def cannot_connect(host: str, port: int, error: OSError) -> Error:
    """The error for a server that does not answer."""
    hint = "start the other side first, or let it be tried again with WITH (retry = 1 SECOND)"
    return Error(f"cannot connect to {host}:{port}: {error.strerror or error}\nhelp: {hint}")


def shut(connected: socket.socket | None) -> None:
    """Break a connection off, so that who waits on it wakes up."""
    if connected is not None:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
