"""The processor time that a join takes, without what looks after its plan, or makes machine code.

Asking for it costs some microseconds where processor and caches have done something else since, as much as joining
some elements: of small parts one in SAMPLED is timed, of others while nobody needs the time one in CALM, and counts for
as many. Invariant: `ns` never falls.
"""

from __future__ import annotations

import time

from minidsms.compile_time import COMPILED

SMALL = 256
"""Elements of a part that is timed always."""
SAMPLED = 8
CALM = 4


class JoinClock:
    """ns: of this thread, spent on joining since the beginning."""

    def __init__(self) -> None:
        self.ns = 0
        self._times = 0
        self._begun = 0
        self._parts = self._calm_parts = 0

    def start(self, elements: int, is_calm: bool = False) -> None:
        """So many elements are going to be joined, or some of them. is_calm: nobody waits for what they take."""
        self._times = 1
        if elements < SMALL:
            self._parts += 1
            self._times = 0 if self._parts % SAMPLED else SAMPLED
        elif is_calm:
            self._calm_parts += 1
            self._times = 0 if self._calm_parts % CALM else CALM
        if self._times:
            self._begun = time.thread_time_ns() - COMPILED.thread_ns

    def stop(self) -> None:
        """They have been, or some of them."""
        if self._times:
            self.ns += self._times * max(0, time.thread_time_ns() - COMPILED.thread_ns - self._begun)
