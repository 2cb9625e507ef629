"""What a change detector is: the plug-and-play protocol of Tsamoura, Gounaris and Manolopoulos 2016, section 3.

Of their state machine, Tune is the constructor, and `observe` makes a transition of every stream of feedback for each
item: Collect feedback and Use feedback where the stream has none yet, else Check; behind a change Get changepoint, and
then Initialize (amnesic detectors) or Adjust feedback (the others).

An item is an estimate of a share: so many of some observations. Observations are numbered by their owner, ascending;
an item says from which number on it was made, and a changepoint is such a number.

Invariant: a stream's changes depend on the items of that stream alone, and are the same whenever they are repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from minidsms.elements import Int64Array

NONE = -1
"""No change."""


@dataclass(frozen=True)
class Tuning:
    """What detectors are made of: for m streams, one at least, else ValueError.

    threshold: when a change is told; None takes the detector's own, raised so that m streams together tell no more
    false changes than one.  training: items that feedback-full detectors learn from; None for their own number.
    confidence: of what they learn.  seed: of what they draw.
    """

    m: int
    threshold: float | None = None
    training: int | None = None
    confidence: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.m < 1:
            raise ValueError("a change detector watches one stream at least")

    def threshold_or(self, own: float) -> float:
        """The threshold, or the detector's own."""
        return own if self.threshold is None else self.threshold

    def training_or(self, own: int) -> int:
        """The items of the training, or the detector's own number."""
        return own if self.training is None else self.training


class ChangeDetectors(Protocol):
    """One detector for each of m streams. A class is made of a `Tuning`, and uses of it what it can."""

    is_amnesic: ClassVar[bool]
    """Behind a change it forgets all it has seen; else only what is older than the changepoint."""

    def initialize(self) -> None:
        """Forget everything: what is observed from now on has another meaning."""

    def observe(self, hits: Int64Array, of: Int64Array, since: Int64Array, now: Int64Array) -> Int64Array:
        """Take t items of each stream, one after the other.

        (t, m) the changepoint of each stream behind each item: observations from that number on are of the time after
        the change; NONE where no change is told.

        hits, of: (t, m) the items, `hits` of `of` observations; no item where `of` is 0.  since: (t, m) the number of
        an item's first observation.  now: (t,) behind each item, the number that the next observation has.
        """
