"""RIDS(k) on a many-one join S' -> S: a row's child has come before it, or comes within k arrivals on S.

The join distance of a parent and its child is the number of S rows after the parent up to the child, 0 if the child
came first. Of the parents that wait for one child the first is remembered, by its key and the number of S rows before
it. A parent that has left its window waits no more: how far its child is makes no difference to a join, so that only
distances within the window count, as in the thesis, which looks at the rows that its join holds. Babu 2005, definition
6.6.1, sections 6.2 and 6.6.3.

Invariant: a parent that waits is remembered for k_e arrivals on S at least, or as long as it stands in its window.
"""

from __future__ import annotations

from minidsms.elements import BoolArray
from minidsms.kernels.arrays import normal
from minidsms.kernels.constraint_monitoring import DONE, References, observe_references
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint
from minidsms.streamon.k_mon.monitoring.entries import Entries
from minidsms.streamon.k_mon.monitoring.estimate import NOWHERE, Estimate, MonitorSettings

DEFAULTS = MonitorSettings(growth=1.0, window=500)
"""Section 6.6.4."""


class RidsMonitor(Estimate):
    """Estimates k of RIDS(k); the arrivals that count are those of the child stream S."""

    def __init__(self, constraint: KConstraint, settings: MonitorSettings = DEFAULTS) -> None:
        super().__init__(constraint, settings)
        horizon = settings.horizon
        if constraint.window is not None:
            by_time, horizon = constraint.window
            self.told.by_time, self.told.span = by_time, horizon
        self.told.horizon = 2 * horizon
        self.told.can_rest = 1
        self._entries = Entries()

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The next rows of S and, in the same instants, of S'; within one the parents come first."""
        assert parents is not None
        children, parents = self._new(arrivals), self._new_parents(parents)
        settled: BoolArray = NOWHERE if parents.valid is None else ~parents.valid
        state, entries = self.state, self._entries
        state.at_parent = state.at_child = 0
        given = References(
            normal(parents.values),
            normal(parents.ts),
            settled,
            normal(children.values),
            normal(children.ts),
            NOWHERE if children.valid is None else normal(children.valid),
        )
        while observe_references(given, self.tracked, entries.table) != DONE:
            entries.resize(state.live)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._entries.nbytes
