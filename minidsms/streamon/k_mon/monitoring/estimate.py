"""k of a constraint, from the distances that it bounds. Babu 2005, section 6.6.3.

k_u, what execution may rely on, begins infinite. When all distances of the last W arrivals were at most k' < k_u, it
becomes k' and a margin (which is looked at eight times a window). As soon as a greater one than k_u is seen it is
infinite again, for W arrivals at least. What is needed to see distances up to k_e = c k_u is kept, and of what would
tell of greater ones a share p, smaller where it lies far back, as long as it may be in a window.

The margin is not the thesis'. Without it, whatever the distances are drawn from, the next one is the greatest of W + 1
with a chance of 1 / (W + 1): where all distances are seen, k_u would be infinite half of the time.

A constraint that is broken in every window for long, or again and again, is watched for one key in 32 only, until those
keep it for 32 windows; and where more than 8192 keys would be remembered at a time, for as many of them: so a stream
that keeps nothing costs next to nothing, and a great k little.

Invariants: after every arrival k_u is no less than every distance seen in the last W arrivals, but for those before an
increase. A distance up to k_e of a key that is watched is always seen. k depends on the rows and their order alone,
never on how they are cut into slices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels import constraint_monitoring as words
from minidsms.streamon.k_mon.contracts import Arrivals, KConstraint, SharedByCopies

HORIZON = 1 << 18
"""Rows after which a sampled row has left its window, where nobody tells."""
BLOCKS = 8
"""Of a window: at the end of each k_u may fall."""
NOWHERE: BoolArray = np.zeros(0, np.bool_)
"""A mask that names no row."""


@dataclass(frozen=True)
class MonitorSettings:
    """growth: c, at least 1.  window: W, in arrivals, rounded up to whole blocks.  chance: p.  threshold: a greater k
    is infinite.

    margin: k_u is so much greater than what was seen, 0 in the thesis.  horizon: rows after which one has left the
    greatest window that it is joined in.
    """

    growth: float
    window: int
    chance: float = 0.01
    threshold: int = 50_000
    margin: float = 0.125
    horizon: int = HORIZON
    seed: int = 0

    def __post_init__(self) -> None:
        if (
            self.growth < 1
            or self.window < 1
            or not 0 <= self.chance <= 1
            or self.threshold < 0
            or self.margin < 0
            or self.horizon < 1
        ):
            raise ValueError(f"{self} has a value out of its range")


class Estimate(SharedByCopies):
    """The state that the kernels walk, and what it tells. See `kernels.constraint_monitoring`."""

    def __init__(self, constraint: KConstraint, settings: MonitorSettings) -> None:
        self.constraint = constraint
        self.settings = settings
        self.state: Int64Array = np.zeros(words.STATE_WORDS, np.int64)
        self.state[[words.K, words.K_KEPT]] = words.INFINITE
        block = max(1, settings.window // BLOCKS)
        self.state[words.NEXT] = block
        self.peaks: Int64Array = np.zeros(-(-settings.window // block), np.int64)
        self.words: Int64Array = np.zeros(words.SETTINGS_WORDS, np.int64)
        for word, value in (
            (words.WINDOW, block * len(self.peaks)),
            (words.BLOCK, block),
            (words.LIMIT, settings.threshold),
            (words.MARGIN, round(settings.margin * 1024)),
            (words.GROWTH, round(settings.growth * 1024)),
            (words.CHANCE, round(settings.chance * 2**32)),
            (words.HORIZON, settings.horizon),
            (words.SEED, settings.seed),
            (words.SPAN, words.INFINITE),
        ):
            self.words[word] = value

    @property
    def k(self) -> int | None:
        """k_u after the last row observed; None: infinite."""
        k = int(self.state[words.K])
        return None if k == words.INFINITE else k

    @property
    def arrived(self) -> int:
        """Rows observed of the stream whose arrivals count."""
        return int(self.state[words.ARRIVED])

    @property
    def increases(self) -> int:
        """How often k_u had to be given up."""
        return int(self.state[words.INCREASES])

    @property
    def is_dormant(self) -> bool:
        """The constraint is not kept, and one key in 32 is watched."""
        return bool(self.state[words.DORMANT])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.state.nbytes + self.peaks.nbytes + self.words.nbytes

    def refuted(self) -> None:
        """A row has come that k_u excluded."""
        if self.k is not None:
            words.give_up(self.state, self.words, self.arrived)


class Unseen:
    """What is new of a stream that several joins show: each row is counted once."""

    def __init__(self) -> None:
        self._next = 0

    def of(self, arrivals: Arrivals) -> Arrivals:
        """The rows that nobody has shown yet."""
        numbers = arrivals.numbers
        if not len(numbers) or numbers[0] >= self._next:
            unseen = arrivals
        else:
            first = int(np.searchsorted(numbers, self._next))
            valid = None if arrivals.valid is None else arrivals.valid[first:]
            unseen = Arrivals(numbers[first:], arrivals.ts[first:], arrivals.values[first:], valid, arrivals.is_ordered)
        if len(numbers):
            self._next = max(self._next, int(numbers[-1]) + 1)
        return unseen
