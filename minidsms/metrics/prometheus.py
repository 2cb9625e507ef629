"""Metrics for Prometheus, by its own client library. docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.extras import library
from minidsms.metrics.figures import figures

if TYPE_CHECKING:
    from minidsms.connection import Connection

PREFIX = "minidsms"


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


def serve(db: Connection, port: int = 9464, address: str = "127.0.0.1") -> Callable[[], None]:
    """Answer /metrics on this machine's loopback; returns what ends it. address: another one opens it to others."""
    client = _client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(Collector(db))
    try:
        server, thread = client.start_http_server(port, address, registry)
    except (OSError, OverflowError, RuntimeError) as error:  # the last where the system gives no thread
        raise Error(f"port {port} cannot be opened: {error}") from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
