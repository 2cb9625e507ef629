"""The processor time that a join takes, without what looks after its plan, or makes machine code.

Asking for it costs more than a microsecond, as much as joining some elements: of small parts one in SAMPLED is timed,
and counts for as many. Invariant: `ns` never falls.
"""

from __future__ import annotations

import time

from minidsms.compile_time import COMPILED

SMALL = 256
"""Elements of a part that is timed always."""
SAMPLED = 8


class JoinClock:
    """ns: of this thread, spent on joining since the beginning."""

    def __init__(self) -> None:
        self.ns = 0
        self._times = 0
        self._begun = 0
        self._parts = 0

    def start(self, elements: int) -> None:
        """So many elements are going to be joined, or some of them."""
        self._times = 1
        if elements < SMALL:
            self._parts += 1
            self._times = 0 if self._parts % SAMPLED else SAMPLED
        if self._times:
            self._begun = time.thread_time_ns() - COMPILED.thread_ns

    def stop(self) -> None:
        """They have been, or some of them."""
        if self._times:
            self.ns += self._times * max(0, time.thread_time_ns() - COMPILED.thread_ns - self._begun)
