"""The contracts of StreaMon: what an ordering algorithm is, and what it is asked.

Filters have numbers 0 to n - 1, those of the query as written; an order is a permutation of them, the first to be
evaluated first. Costs are nanoseconds per tuple, so that an order's expected cost is its unit-time cost up to the
stream's rate (Babu 2005, sections 3.1 and 4.2).

Invariant: an ordering algorithm sees statistics only, never rows; whatever order it gives, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from minidsms.elements import BoolArray
from minidsms.expressions.routes import Order

Float64Array = npt.NDArray[np.float64]


class Evaluate(Enum):
    """Which filters are evaluated on a profile tuple beyond the first, in the algorithm's order, that drops it."""

    NOTHING = "nothing"
    """No profile tuples are wanted at all (Static)."""
    ALL = "all"
    """Every filter (A-Greedy, Independent, Optimal)."""
    ONE = "one"
    """The filter `Wanted.filter`, whatever its place (Sweep)."""
    NEXT = "next"
    """The filter that follows, in the order, the one that drops the tuple (LocalSwaps)."""


@dataclass(frozen=True)
class Wanted:
    """What to evaluate on the next profile tuples. filter: a filter's number, for Evaluate.ONE only."""

    evaluate: Evaluate
    filter: int = -1


@dataclass(frozen=True)
class OrderStatistics:
    """What an algorithm knows about its order, for EXPLAIN ANALYZE and the plan log.

    order: as it stands.  drop_rates: d(i | i - 1) by position: the share of the profiled tuples reaching position i
    that its filter drops, None where the window cannot say.  costs: ns per tuple by position, None where unmeasured.
    profiled: profile tuples in the window.
    """

    order: Order
    drop_rates: tuple[float | None, ...]
    costs: tuple[float | None, ...]
    profiled: int


@dataclass(frozen=True)
class Change:
    """A change of the streams.

    rate: d(j|i), positions counted from 1 as the papers do.  filter: the number of the one at position j.  before,
    after: the share, of the tuples on both sides of the changepoint.  since: the number of the first one behind it.
    at: that of the next one when the change was told.  is_counted: execution told it, and these are tuples of the
    stream; else a detector told it, and they are profile tuples.
    """

    rate: str
    filter: int
    before: float | None
    after: float | None
    since: int
    at: int
    is_counted: bool = False


class KnowsChanges(Protocol):
    """Who can say what has changed last."""

    @property
    def changes(self) -> int:
        """How often the streams have changed."""

    @property
    def last_change(self) -> Change | None:
        """The last time, if what changed is known."""


@runtime_checkable
class DetectsChanges(Protocol):
    """An ordering algorithm that looks for changes itself. `streamon.change_detection.monitored`."""

    changes: int
    """How often the streams have changed, as it was told or found out."""
    last_change: Change | None
    """The last one it found out; None if others have told it of another since."""

    def notice(self) -> None:
        """The streams have changed, others have found: all profile tuples are out of date."""


@runtime_checkable
class DrawsOrders(Protocol):
    """An ordering algorithm that goes by what execution counts, and draws an order for every block of tuples."""

    def draw(self) -> Order:
        """The order of the next block."""

    def count(self, order: Order, reached: Sequence[int]) -> None:
        """A block has run.  reached: (n + 1,) its tuples that reached each place of the order, and the end."""


class OrderingAlgorithm(Protocol):
    """Keeps the order of n commutative filters good, from profile tuples (Babu 2005, chapter 4).

    A class is made as `Algorithm(n, order=None, window=None, alpha=None, seed=0)`: order is the one to begin with
    (default: as written), None takes `default_window` and `default_alpha`.
    Invariant: the same calls give the same orders; the orders after one call of m rows and after m calls of one row
    with the same costs are equal, as long as `wanted()` did not change between them.
    """

    @property
    def default_rate(self) -> float:
        """Share of the dropped tuples to profile (table 4.1)."""

    @property
    def default_window(self) -> int:
        """Profile tuples that the window holds (table 4.1)."""

    @property
    def default_alpha(self) -> float:
        """Thrashing-avoidance parameter (table 4.1)."""

    @property
    def order(self) -> Order:
        """The order to use now."""

    def wanted(self) -> Wanted:
        """What to evaluate on the next profile tuples. Asked before every call of `observe`."""

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """Take profile tuples in, oldest first; the new order when it changed, else None.

        drops: (m, n), True where the filter of that number drops the tuple. Each row has at least one True: tuples
        that pass every filter are no profile tuples. What `wanted()` did not ask for is False; a filter in front of
        the first that drops the tuple has always been evaluated. The rows were made under the order and the
        `wanted()` of the time of the call: rows that follow a change within the call may be ignored.
        costs: (n,) mean ns per tuple measured over these rows, NaN where a filter was not evaluated.
        """

    def adopt(self, order: Sequence[int]) -> None:
        """Go on from this order: it was forced, pinned, or found in the plan log. The profile window stays."""

    def keep_last(self, profiled: int) -> None:
        """Forget all profile tuples but the last so many: the streams have changed before these."""

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """Mean ns that a tuple of the profile window costs under an order (equation 4.1); None where the window
        does not tell.
        """

    def describe(self) -> OrderStatistics:
        """The order with its conditional drop rates and costs."""
