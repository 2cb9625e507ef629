"""What an Executor's plan has cost: counted by whoever hands it its tuples, once for all that adapts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from minidsms.joins.join import Join


class Meter(Protocol):
    """Invariant: neither figure falls."""

    @property
    def elements(self) -> int:
        """Passed since the beginning."""

    def spent(self) -> tuple[float, int]:
        """Cost units, nanoseconds where time is measured, and elements, since the beginning."""


class JoinExecutor:
    """What the Executors of joins have alike. names: of the inputs, for plans in words.  meter: of the join."""

    def __init__(self, join: Join, names: Sequence[str], meter: Meter) -> None:
        self.join = join
        self.names = tuple(names)
        self._meter = meter

    def spent(self) -> tuple[float, int]:
        """Nanoseconds of joining, or slots inspected and tuples where time is not measured; elements taken."""
        return self._meter.spent()
