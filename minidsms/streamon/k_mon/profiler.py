"""The Profiler of state reduction: how many bytes a join holds, and how many it would hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minidsms.joins.join import Join


class ReductionProfiler:
    """held: bytes of the join, and of streams' stores those that only it claims.  reduced: what was found to matter of
    them in a trial.
    """

    def __init__(self, join: Join) -> None:
        self._join = join
        self.held = self.reduced = 0

    def measure(self) -> None:
        """Add up what is held."""
        join = self._join
        self.held = sum(int(each.nbytes) for each in join.synopses()) + join.index.claimed_nbytes

    def statistics(self) -> Mapping[str, Any]:
        """Bytes."""
        return {"held": self.held, "reduced": self.reduced}
