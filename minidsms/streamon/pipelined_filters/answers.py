"""Do answers to changes pay? What they have taken, against what the orders they brought have saved.

An answer costs some hundred microseconds, whatever filters cost: where these are cheap and changes frequent, it brings
back less than it takes, and most are left out. What an order saves is told by the profile that it rests on, for as long
as conditions stay; filters that are timed apart promise more than they keep.
Invariant: answers take half of what they are told to have saved, a small share of the time, and ANSWERS_NS at most.
"""

from __future__ import annotations

from collections.abc import Callable

ANSWERS_NS, ANSWERS_SHARE = 1_000_000, 0.04
"""What answers may take, so much at first, of the time spent in the filters, ..."""
ANSWERS_SAVED = 0.5
"""... and of what they have saved."""


class Answers:
    """spent_ns: on profiles that answered changes, and on choosing by them."""

    def __init__(self) -> None:
        self.spent_ns = 0
        self._is_due = False
        self._saved_ns = 0.0
        self._saving = 0.0
        """Nanoseconds per tuple, from tuple `_since` on."""
        self._since = 0

    def changed(self, tuples: int) -> None:
        """Conditions have changed: what the last answer saves is over. tuples: that have passed so far."""
        self._saved_ns = self.saved_ns(tuples)
        self._saving, self._since = 0.0, tuples

    def begin(self) -> None:
        """The next profile is an answer."""
        self._is_due = True

    def profiled(self, took_ns: int, saving: Callable[[], float], tuples: int) -> None:
        """A profile has taken so long.  saving: ns per tuple that the order, taken or confirmed by it, is expected to
        save.
        """
        if self._is_due:
            self._is_due = False
            self.spent_ns += took_ns
            self.changed(tuples)
            self._saving = saving()

    def saved_ns(self, tuples: int) -> float:
        """Until now, as far as profiles told right."""
        return self._saved_ns + self._saving * (tuples - self._since)

    def pay(self, time_ns: int, tuples: int) -> bool:
        """They have not taken more than they may. time_ns: spent in the filters so far."""
        return self.spent_ns <= ANSWERS_NS + ANSWERS_SHARE * time_ns + ANSWERS_SAVED * self.saved_ns(tuples)
