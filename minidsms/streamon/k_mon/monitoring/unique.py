"""KEY on an attribute: no two rows of a stream agree in it; joins by it are many-one (Babu 2005, section 6.2).

A declared key begins as one; another attribute becomes one when no value has come twice for W arrivals, W doubling with
each time that it turned out to be none. The first W arrivals are all looked at, afterwards one value in 64, chosen by a
hash, so that a value that is looked at is looked at whenever it comes; and the joins tell what they find. An attribute
that is no key is tried now and then, more and more seldom; and a key whose users notice themselves that a value comes
twice is looked at now and then only.

How many rows of a value have come before another is what a detector of change, `Bound`, keeps at 0.

Invariant: k is 0 or infinite, and depends on the rows and their order alone.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels import unique_keys as words
from minidsms.kernels.arrays import normal
from minidsms.kernels.bounds import ARRIVED, BOUND, FROM, INCREASES
from minidsms.operators.adaptivity import SharedByCopies
from minidsms.operators.k_mon.contracts import Arrivals, KConstraint
from minidsms.streamon.change_detection.bound import Bound
from minidsms.streamon.change_detection.contracts import Tuning
from minidsms.streamon.k_mon.monitoring.estimate import NOWHERE, Unseen, awake_at

WINDOW = 500
"""W, as for RIDS (section 6.6.4)."""

_PLACES = 1024
_SHARE_BITS = 6


class UniqueMonitor(SharedByCopies):
    """Tells whether an attribute is a key. window: W."""

    def __init__(self, constraint: KConstraint, window: int = WINDOW) -> None:
        self.constraint = constraint
        self.is_declared = False
        self.detector = Bound(Tuning(1, 0.0, window), state_words=words.STATE_WORDS)
        self.state: Int64Array = self.detector.state[0]
        self.state[[words.NEED, words.WINDOW]] = window
        self.state[words.SHARE] = _SHARE_BITS
        self._keys: Int64Array = np.zeros(_PLACES, np.int64)
        self._at: Int64Array = np.zeros(_PLACES, np.int64)
        self._unseen = Unseen()
        self._notices: dict[int, bool] = {}

    @property
    def k(self) -> int | None:
        """0: a key; None: none."""
        return 0 if self._is_key else None

    @property
    def _is_key(self) -> bool:
        return bool(self.state[BOUND] == 0)

    @property
    def increases(self) -> int:
        """How often it ceased to be one."""
        return int(self.state[INCREASES])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.state.nbytes + self._keys.nbytes + self._at.nbytes

    def declare(self) -> None:
        """Somebody says that it is one: it is taken for one until a value comes twice."""
        if not self.is_declared:
            self.is_declared = True
            if not self.increases:
                self.state[BOUND] = 0

    @property
    def attention(self) -> str:
        """How it looks at rows now."""
        state = self.state
        if state[ARRIVED] < state[words.ASLEEP]:
            return "resting" if self._is_key else "given up"
        return f"1 in {1 << _SHARE_BITS}" if state[ARRIVED] >= state[words.WINDOW] else "all"

    @property
    def asleep_until(self) -> int:
        """The number of the first row that it is to be shown; those before may be left out."""
        left = int(self.state[words.ASLEEP] - self.state[ARRIVED])
        return self._unseen.next + left if left > 0 else 0

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """It is a key for all, or none. may_sample: the user notices by himself what comes twice."""
        self._notices[id(user)] = may_sample
        self._allow_rests()

    def below(self, k: int, number: int | None = None) -> int | None:
        """Nothing is known of an order."""
        return None

    def leave(self, user: object) -> None:
        """The user asks no more."""
        self._notices.pop(id(user), None)
        self._allow_rests()

    def _allow_rests(self) -> None:
        state = self.state
        state[words.MAY_REST] = bool(self._notices) and all(self._notices.values())
        if self._is_key and not state[words.MAY_REST]:
            state[words.ASLEEP] = min(state[words.ASLEEP], state[ARRIVED])

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The stream's next rows."""
        state = self.state
        if state[ARRIVED] < state[words.ASLEEP]:
            left_out = self._unseen.gap_before(arrivals)
            state[ARRIVED] = min(state[words.ASLEEP], state[ARRIVED] + left_out)
        arrivals = self._unseen.of(arrivals)
        if len(arrivals.values):
            valid = NOWHERE if arrivals.valid is None else normal(arrivals.valid)
            words.observe_keys(normal(arrivals.values), valid, self.state, self._keys, self._at)

    def notice(self, number: int) -> None:
        """See `Monitor`."""
        state, now = self.state, awake_at(self.state[ARRIVED], self.state[words.ASLEEP], self._unseen, number)
        if now is not None:
            state[words.ASLEEP] = state[words.AWAKE] = now
            if not self._is_key:
                state[FROM] = now

    def refuted(self) -> None:
        """A join has found a value that came twice."""
        words.note_repeat(self.state)
