"""The settings of content-based routing, as they are when a query is registered."""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.settings import SettingValues


@dataclass(frozen=True)
class RoutingOptions:
    """mode: off, auto or content.  buckets: d of a classifier.  rate: P, sample: R, memory: of s, gain: gamma, None for
    what is beyond chance; these of mode content. Content-Based Routing, table 2.
    """

    mode: str
    buckets: int
    rate: float
    sample: int
    memory: float
    gain: float | None

    @classmethod
    def of(cls, settings: SettingValues) -> RoutingOptions:
        """Read the settings."""
        return cls(
            str(settings["routing"]),
            int(settings["routing_buckets"]),
            float(settings["routing_rate"]),
            int(settings["routing_sample"]),
            float(settings["routing_memory"]),
            settings["routing_gain"],
        )
