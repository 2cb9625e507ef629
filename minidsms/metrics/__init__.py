"""Figures of a connection for those who operate it: Prometheus, OpenTelemetry, health. docs/metrics.md.

Nothing of it is imported with the package.
"""

from __future__ import annotations

from minidsms.metrics.health import health
from minidsms.metrics.open_telemetry import observe
from minidsms.metrics.prometheus import Collector, serve

__all__ = ["Collector", "health", "observe", "serve"]
