"""Metrics for OpenTelemetry, by its own API; which SDK exports them is the program's affair. docs/metrics.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from minidsms.extras import library
from minidsms.metrics.figures import Metric, figures, labels_of

if TYPE_CHECKING:
    from minidsms.connection import Connection

_KEPT_S = 0.5
_UNITS = {"seconds": "s", "bytes": "By", "": "1"}


def observe(db: Connection, meter: Any = None) -> None:
    """Let a meter observe the connection. meter: None takes the one that the program's provider gives `minidsms`."""
    metrics = library("opentelemetry.metrics", "observe()", "metrics")
    given = metrics.get_meter("minidsms") if meter is None else meter

    present = _Present(db)

    def reading(name: str) -> Callable[[Any], Iterable[Any]]:
        def read(options: Any) -> Iterable[Any]:
            found = [metric for metric in present() if metric.name == name]
            return [metrics.Observation(v, labels_of(m, label)) for m in found for label, v in m.values.items()]

        return read

    for metric in figures(db):
        make = given.create_observable_counter if metric.is_total else given.create_observable_gauge
        make(f"minidsms.{metric.name}", [reading(metric.name)], _UNITS[metric.unit], metric.about)


class _Present:
    """The metrics as they are, read once for all instruments of an export."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._read_s = -_KEPT_S
        self._metrics: list[Metric] = []

    def __call__(self) -> list[Metric]:
        now = time.monotonic()
        if now - self._read_s > _KEPT_S:
            self._read_s, self._metrics = now, figures(self._db)
        return self._metrics
