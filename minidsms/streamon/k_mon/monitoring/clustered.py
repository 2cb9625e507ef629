"""CA(k) on an attribute: between two rows of one value there are at most k of others.

Of each value met the thesis' C_v is kept: the number of the arrival at which the value would have come first, had all
its rows come in a row up to the last one. So the distance of the first and the latest is the number of arrivals less
C_v. Babu 2005, definition 6.7.1, sections 6.7.2 and 6.7.3.

Invariant: a value is remembered until k_e rows of others have come since its first.
"""

from __future__ import annotations

from minidsms.kernels.arrays import normal
from minidsms.kernels.constraint_monitoring import DONE, observe_clusters
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint
from minidsms.streamon.k_mon.monitoring.entries import Entries
from minidsms.streamon.k_mon.monitoring.estimate import NOWHERE, Estimate, MonitorSettings

DEFAULTS = MonitorSettings(growth=1.2, window=1000)
"""Section 6.7.4."""


class ClusteredMonitor(Estimate):
    """Estimates k of CA(k)."""

    def __init__(self, constraint: KConstraint, settings: MonitorSettings = DEFAULTS) -> None:
        super().__init__(constraint, settings)
        self.told.can_rest = 1
        self._entries = Entries()

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The stream's next rows."""
        arrivals = self._new(arrivals)
        state, entries = self.state, self._entries
        state.at_parent = 0
        given = (normal(arrivals.values), NOWHERE if arrivals.valid is None else normal(arrivals.valid))
        while observe_clusters(*given, self.tracked, entries.table) != DONE:
            entries.resize(state.live)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._entries.nbytes
