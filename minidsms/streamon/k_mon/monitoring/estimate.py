"""k of a constraint, from the distances that it bounds. Babu 2005, section 6.6.3.

k_u, what execution may rely on, begins infinite. When all distances of the last W arrivals were at most k' < k_u, it
becomes k' and a margin (which is looked at eight times a window). As soon as a greater one than k_u is seen it is
infinite again, for W arrivals at least. What is needed to see distances up to k_e = c k_u is kept, and of what would
tell of greater ones a share p, smaller where it lies far back, as long as it may be in a window.

The margin is not the thesis'. Without it, whatever the distances are drawn from, the next one is the greatest of W + 1
with a chance of 1 / (W + 1): where all distances are seen, k_u would be infinite half of the time.

Where all who use k notice a row that it excluded, it is infinite only for the rest of an eighth of W, unless it has had
to be given up again and again; then it is what was seen. By how much such a row is too late is not known: it is taken
for twice as late. So a constraint of a slow stream is not lost for long.

Where k_u has to be given up again and again, W shows too few distances to tell. Then the greatest is remembered for
longer, which is not the thesis' either. k_u and W are a detector of change, `Bound`, whose training is W.

A constraint that is broken in every window for long, or again and again, is tried now and then only: on one key in 32,
for 32 windows, or until it is broken again; and less and less often. Where more than 4096 keys would be remembered at a
time, as many of them are watched. And where whoever uses k notices himself what comes too late, one key in 8 is watched
of a constraint that is kept for long, and for most of the time none: k stands while nobody looks, a k that is too great
the longer the more often it was found again, and one that is too small until it is refuted. So a stream that keeps
nothing costs next to nothing, and others little. All this is not the thesis'.

Invariants: after every arrival k_u is no less than every distance seen in the last W arrivals, but for those before an
increase. A distance up to k_e of a key that is watched is always seen. As long as `need` is not called k depends on the
rows and their order alone, never on how they are cut into slices.  `notice` moves only when rows are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.kernels import constraint_estimates as kernels
from minidsms.kernels.bounds import INFINITE, BoundState
from minidsms.kernels.constraint_estimates import EstimateSettings, EstimateState, Tracked
from minidsms.machine_code import record_in, words_of
from minidsms.operators.adaptivity import SharedByCopies
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint
from minidsms.streamon.change_detection.bound import Bound
from minidsms.streamon.change_detection.contracts import Tuning

HORIZON = 1 << 18
"""Rows after which a sampled row has left its window, where nobody tells."""
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
    """The state that the kernels walk, and what it tells. See `Monitor` and `kernels.constraint_estimates`."""

    def __init__(self, constraint: KConstraint, settings: MonitorSettings) -> None:
        self.constraint = constraint
        self.settings = settings
        self.unseen, self.unseen_parents = Unseen(), Unseen()
        self._parents_unshown = False
        self._needs: dict[int, tuple[int, bool]] = {}
        self.detector = Bound(Tuning(1, settings.margin, settings.window))
        self.detector.settings.limit = settings.threshold
        self.bound = record_in(BoundState, self.detector.states, 0)
        self.state = EstimateState(k_kept=INFINITE)
        self.told = EstimateSettings(
            growth=round(settings.growth * 1024),
            chance=round(settings.chance * 2**32),
            horizon=settings.horizon,
            seed=settings.seed,
            span=INFINITE,
        )

    @property
    def tracked(self) -> Tracked:
        """As kernels take it."""
        detector = self.detector
        return Tracked(self.bound, self.state, detector.peaks[0], detector.settings, self.told)

    @property
    def k(self) -> int | None:
        """k_u after the last row observed; None: infinite."""
        k = self.bound.value
        return None if k == INFINITE else k

    @property
    def arrived(self) -> int:
        """Rows observed of the stream whose arrivals count."""
        return self.bound.arrived

    @property
    def increases(self) -> int:
        """How often k_u had to be given up."""
        return self.bound.increases

    @property
    def asleep_until(self) -> int:
        """The number of the first row that it is to be shown; those before may be left out."""
        left = self.state.asleep - self.bound.arrived
        return self.unseen.next + left if left > 0 else 0

    @property
    def attention(self) -> str:
        """How it looks at rows now."""
        if self.bound.arrived < self.state.asleep:
            return "given up" if self.state.is_dormant else "resting"
        shift = self.state.shift
        return f"1 in {1 << shift}" if shift else "all"

    def _new(self, arrivals: Arrivals) -> Arrivals:
        """The rows that nobody has shown yet. Those that were left out before are counted by their numbers."""
        bound, state = self.bound, self.state
        if bound.arrived < state.asleep:
            self._parents_unshown = True
            left_out = self.unseen.gap_before(arrivals)
            bound.arrived = min(state.asleep, bound.arrived + left_out)
        return self.unseen.of(arrivals)

    def _new_parents(self, parents: Arrivals) -> Arrivals:
        """The same of the other stream of a join, after those of its own."""
        if self._parents_unshown and len(parents.numbers):
            self.state.parents += self.unseen_parents.gap_before(parents)
            self._parents_unshown = False
        return self.unseen_parents.of(parents)

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """A user has no use for k above `most`. may_sample: it notices by itself when k is too small."""
        self._needs[id(user)] = most, may_sample
        self._limit()

    def below(self, k: int, number: int | None = None) -> int | None:
        """Nothing is known of an order."""
        return None

    def leave(self, user: object) -> None:
        """The user asks no more."""
        self._needs.pop(id(user), None)
        self._limit()

    def _limit(self) -> None:
        needs = self._needs.values()
        most = max((most for most, _ in needs), default=self.settings.threshold)
        self.detector.settings.limit = min(most, self.settings.threshold)
        may_sample = bool(needs) and all(may_sample for _, may_sample in needs)
        if not may_sample and self.state.rest:
            # Somebody believes k who would not notice that it is wrong: let it be looked at first.
            kernels.forget(self.tracked)
        self.told.may_sample = may_sample

    @property
    def nbytes(self) -> int:
        records = self.bound, self.state, self.told
        return sum(words_of(record).nbytes for record in records) + self.detector.peaks.nbytes

    def notice(self, number: int) -> None:
        bound, state = self.bound, self.state
        now = awake_at(bound.arrived, state.asleep, self.unseen, number)
        if now is not None:
            state.asleep = now
            bound.after = now if state.is_dormant else now + bound.value
            bound.next = now + self.detector.settings.block

    def refuted(self) -> None:
        """A row has come that k_u excluded. Where all who use k notice that, it is more than twice as great soon."""
        if self.k is not None:
            kernels.refute(self.tracked, self.arrived)


class Unseen:
    """What is new of a stream that several joins show: each row is counted once."""

    def __init__(self) -> None:
        self.next = 0
        """The least number that nobody has shown."""

    def of(self, arrivals: Arrivals) -> Arrivals:
        """The rows that nobody has shown yet."""
        first = len(arrivals.numbers) - self.count(arrivals.numbers)
        self.skip(arrivals.numbers)
        if first == 0:
            return arrivals
        valid = None if arrivals.valid is None else arrivals.valid[first:]
        return Arrivals(
            arrivals.numbers[first:], arrivals.ts[first:], arrivals.values[first:], valid, arrivals.is_ordered
        )

    def count(self, numbers: Int64Array) -> int:
        """How many of these nobody has shown."""
        if not len(numbers) or numbers[0] >= self.next:
            return len(numbers)
        return len(numbers) - int(np.searchsorted(numbers, self.next))

    def gap_before(self, arrivals: Arrivals) -> int:
        """Numbers that nobody has shown between the last row and these."""
        return max(0, int(arrivals.numbers[0]) - self.next) if len(arrivals.numbers) else 0

    def skip(self, numbers: Int64Array) -> None:
        """They have been shown."""
        if len(numbers):
            self.next = max(self.next, int(numbers[-1]) + 1)


def awake_at(arrived: int, asleep: int, unseen: Unseen, number: int) -> int | None:
    """The arrival from which on to look again, of a monitor that sleeps up to another one; None: it does not sleep.

    number: of the stream's next row.
    """
    return None if arrived >= asleep else min(asleep, arrived + max(0, number - unseen.next))
