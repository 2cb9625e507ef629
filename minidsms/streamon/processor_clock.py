"""The processor time that a plan takes, without what looks after it, or makes machine code.

The clock on the wall would count other processes too. Asking for processor time costs more than a microsecond, as much
as joining or filtering some elements: of small parts one in SAMPLED is timed, and counts for as many.
Invariant: `ns` never falls.
"""

from __future__ import annotations

import threading
import time

from minidsms.machine_code.compile_time import COMPILED

SMALL = 256
"""Elements of a part that is timed always."""
SAMPLED = 32


class ProcessorClock:
    """ns: of this thread, and what others have spent on its parts (who divides them adds it), since the beginning."""

    def __init__(self) -> None:
        self.ns = 0
        self._times = 0
        self._begun = self._thread = 0
        self._parts = 0

    def start(self, elements: int) -> bool:
        """The plan is going to run on so many elements, or some of them; whether that is timed."""
        self._times = 1
        if elements < SMALL:
            self._parts += 1
            if self._parts % SAMPLED:
                self._times = 0
                return False
            self._times = SAMPLED
        self._thread = threading.get_ident()
        self._begun = time.thread_time_ns() - COMPILED.thread_ns
        return True

    def stop(self) -> None:
        """It has run; in parts of two threads, which happens where a reader had no room, it counts for nothing."""
        if self._times and threading.get_ident() == self._thread:
            self.ns += self._times * max(0, time.thread_time_ns() - COMPILED.thread_ns - self._begun)
