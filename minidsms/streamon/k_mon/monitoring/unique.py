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
from minidsms.kernels.arrays import normal
from minidsms.kernels.bounds import BoundState
from minidsms.kernels.unique_keys import KeyState, WatchedKeys, note_repeat, observe_keys
from minidsms.machine_code import record_in, words_of
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
    """Tells whether an attribute is a key. See `Monitor`. window: W."""

    def __init__(self, constraint: KConstraint, window: int = WINDOW) -> None:
        self.constraint = constraint
        self.is_declared = False
        self.detector = Bound(Tuning(1, 0.0, window))
        self.bound = record_in(BoundState, self.detector.states, 0)
        self.state = KeyState(need=window, window=window, share=_SHARE_BITS)
        self._keys: Int64Array = np.zeros(_PLACES, np.int64)
        self._at: Int64Array = np.zeros(_PLACES, np.int64)
        self._unseen = Unseen()
        self._notices: dict[int, bool] = {}

    @property
    def _watched(self) -> WatchedKeys:
        return WatchedKeys(self.bound, self.state, self._keys, self._at)

    @property
    def k(self) -> int | None:
        """0: a key; None: none."""
        return 0 if self._is_key else None

    @property
    def _is_key(self) -> bool:
        return self.bound.value == 0

    @property
    def increases(self) -> int:
        """How often it ceased to be one."""
        return self.bound.increases

    @property
    def nbytes(self) -> int:
        return words_of(self.bound).nbytes + words_of(self.state).nbytes + self._keys.nbytes + self._at.nbytes

    def declare(self) -> None:
        """Somebody says that it is one: it is taken for one until a value comes twice."""
        if not self.is_declared:
            self.is_declared = True
            if not self.increases:
                self.bound.value = 0

    @property
    def attention(self) -> str:
        """How it looks at rows now."""
        bound, state = self.bound, self.state
        if bound.arrived < state.asleep:
            return "resting" if self._is_key else "given up"
        return f"1 in {1 << _SHARE_BITS}" if bound.arrived >= state.window else "all"

    @property
    def asleep_until(self) -> int:
        """The number of the first row that it is to be shown; those before may be left out."""
        left = self.state.asleep - self.bound.arrived
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
        state.may_rest = bool(self._notices) and all(self._notices.values())
        if self._is_key and not state.may_rest:
            state.asleep = min(state.asleep, self.bound.arrived)

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """The stream's next rows."""
        bound, state = self.bound, self.state
        if bound.arrived < state.asleep:
            left_out = self._unseen.gap_before(arrivals)
            bound.arrived = min(state.asleep, bound.arrived + left_out)
        arrivals = self._unseen.of(arrivals)
        if len(arrivals.values):
            valid = NOWHERE if arrivals.valid is None else normal(arrivals.valid)
            observe_keys(normal(arrivals.values), valid, self._watched)

    def notice(self, number: int) -> None:
        bound, state = self.bound, self.state
        now = awake_at(bound.arrived, state.asleep, self._unseen, number)
        if now is not None:
            state.asleep = state.awake = now
            if not self._is_key:
                bound.after = now

    def refuted(self) -> None:
        """A join has found a value that came twice."""
        note_repeat(self._watched)
