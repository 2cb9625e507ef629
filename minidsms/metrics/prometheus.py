"""Metrics for Prometheus, by its own client library. docs/metrics.md."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.extras import library
from minidsms.metrics.figures import figures
from minidsms.process.forking import cut_off, register
from minidsms.sources.tcp_source import MOST_CLIENTS, shut

if TYPE_CHECKING:
    from minidsms.connection import Connection

PREFIX = "minidsms"
_PATIENCE_S = 10.0
"""So long a client may send nothing of its request, or take over the answer."""
_log = logging.getLogger("minidsms.metrics")


def _client() -> Any:
    library("prometheus_client.core", "/metrics", "metrics")
    return library("prometheus_client", "/metrics", "metrics")


class Collector:
    """For a registry of prometheus_client: `REGISTRY.register(Collector(db))`. Read when it is scraped."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._core = _client().core

    def describe(self) -> list[Any]:
        """Nothing beforehand: what there is changes with the connection."""
        return []

    def collect(self) -> Iterator[Any]:
        """What there is now; nothing once the connection has been closed."""
        for metric in figures(self._db):
            family = self._core.CounterMetricFamily if metric.is_total else self._core.GaugeMetricFamily
            labels = [metric.label] if metric.label else None
            made = family(f"{PREFIX}_{metric.name}", metric.about, labels=labels, unit=metric.unit)
            for label, value in metric.values.items():
                made.add_metric([label] if metric.label else [], value)
            yield made


def exposition(db: Connection) -> tuple[bytes, str]:
    """The metrics as text, and its media type."""
    client = _client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(Collector(db))
    return client.generate_latest(registry), client.CONTENT_TYPE_LATEST


def _bound(server: Any) -> set[socket.socket]:
    """Let a server take so many clients at a time, for each of which it has a thread, and wait so long for one; those
    that are connected.
    """
    clients: set[socket.socket] = set()

    def is_taken(client: socket.socket, address: Any) -> bool:
        if len(clients) >= MOST_CLIENTS:
            return False
        clients.add(client)
        return True

    def end(client: socket.socket, end_it: Callable[[socket.socket], None] = server.shutdown_request) -> None:
        clients.discard(client)
        end_it(client)

    def tell(client: socket.socket, address: Any) -> None:
        _log.info("a client of /metrics has gone, or asked for nothing", exc_info=True)

    server.verify_request, server.shutdown_request, server.handle_error = is_taken, end, tell
    handler = server.RequestHandlerClass
    server.RequestHandlerClass = type(handler.__name__, (handler,), {"timeout": _PATIENCE_S})
    return clients


class _Serving:
    """A server of /metrics; called, it ends. In a child of fork() it answers nobody: the port is the parent's."""

    def __init__(self, server: Any, thread: threading.Thread) -> None:
        self._server: Any = server
        self._thread = thread
        server.serving = self  # whoever does not keep this has a server all the same
        self._clients = _bound(server)
        register(self)

    def abandon(self) -> None:
        """In a child of fork()."""
        server, self._server = self._server, None
        cut_off(server)

    def __call__(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            self._thread.join()
            for client in list(self._clients):
                shut(client)


def serve(db: Connection, port: int = 9464, address: str = "127.0.0.1") -> Callable[[], None]:
    """Answer /metrics on this machine's loopback; returns what ends it. address: another one opens it to others."""
    client = _client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(Collector(db))
    try:
        server, thread = client.start_http_server(port, address, registry)
    except (OSError, OverflowError, RuntimeError) as error:  # the last where the system gives no thread
        raise Error(f"port {port} cannot be opened: {error}") from None

    return _Serving(server, thread)
