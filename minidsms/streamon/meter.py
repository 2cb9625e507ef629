"""What an Executor's plan has cost: counted by whoever hands it its tuples, once for all that adapts it."""

from __future__ import annotations

from typing import Protocol


class Meter(Protocol):
    """Invariant: neither figure falls."""

    @property
    def elements(self) -> int:
        """Passed since the beginning."""

    def spent(self) -> tuple[float, int]:
        """Cost units, nanoseconds where time is measured, and elements, since the beginning."""
