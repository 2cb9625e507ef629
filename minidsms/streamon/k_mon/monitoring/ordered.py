"""OA(k) on an attribute: rows that come more than k after another have no lesser value.

OAP(k) and OAC(k) are the same constraint on a join's parent and child stream. The scrambling distance of a row is how
many arrivals ago the maximum rose above its value. Babu 2005, definition 6.8.1, section 6.8.3.

Invariant: the rises of the maximum are known back to k_e arrivals, or to the threshold while k is infinite.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels.arrays import normal
from minidsms.kernels.constraint_monitoring import DONE, last_step, observe_order
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint
from minidsms.streamon.k_mon.monitoring.estimate import NOWHERE, Estimate, MonitorSettings

DEFAULTS = MonitorSettings(growth=1.2, window=1000)
"""Section 6.8.4."""

_STEPS = 256


class OrderedMonitor(Estimate):
    """Estimates k of OA(k). p means nothing here: whatever is out of order is seen."""

    def __init__(self, constraint: KConstraint, settings: MonitorSettings = DEFAULTS) -> None:
        super().__init__(constraint, settings)
        self._steps: Int64Array = np.zeros((2, _STEPS), np.int64)

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The stream's next rows. Where words have no order k stays infinite."""
        if not arrivals.is_ordered:
            return
        arrivals = self._new(arrivals)
        state = self.state
        state.at_parent = 0
        given = (normal(arrivals.values), NOWHERE if arrivals.valid is None else normal(arrivals.valid))
        while observe_order(*given, self.tracked, self._steps) != DONE:
            kept = self._kept()
            self._steps = np.zeros((2, 2 * self._steps.shape[1]), np.int64)
            self._steps[:, : kept.shape[1]] = kept
            state.oldest = 0

    def below(self, k: int, number: int | None = None) -> int | None:
        """Under OA(k) no row to come has a lesser word than this: the maximum k rows ago. None: that says nothing.

        k: k_u, or a lesser one.  number: the rows to come are those from this number on, though others have shown
        some of them already.  The thesis' max_{k + 1} (section 6.8.2).
        """
        ahead = 0 if number is None else max(0, self.unseen.next - number)
        oldest, live = self.state.oldest, self.state.live
        place = last_step(self._steps, oldest, live, self.arrived - ahead - k)
        return int(self._steps[0, place]) if place >= 0 else None

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._steps.nbytes

    def _kept(self) -> Int64Array:
        """(2, m): values and arrivals at which the maximum rose, oldest first."""
        oldest, live = self.state.oldest, self.state.live
        kept: Int64Array = self._steps[:, np.arange(oldest, oldest + live) & (self._steps.shape[1] - 1)]
        return kept
