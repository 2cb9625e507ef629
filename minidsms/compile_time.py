"""The time that kernels have taken to be compiled, at their first call on a machine: no time of whoever called them.

Clocks whose figures decide on plans or are shown take it off. It is kept apart from the compiler, so that whoever reads
it need not load that.
"""

from __future__ import annotations

import time


class CompileTime:
    """Of all threads together. Invariant: neither ever falls."""

    def __init__(self) -> None:
        self.wall_ns = 0
        """As on the clock on the wall."""
        self.thread_ns = 0
        """Of processors."""


COMPILED = CompileTime()
"""Since the process began."""


def wall_ns() -> int:
    """A clock on the wall that stands still while code is compiled."""
    return time.perf_counter_ns() - COMPILED.wall_ns


def thread_ns() -> int:
    """The processor time of this thread, without what compiling took."""
    return time.thread_time_ns() - COMPILED.thread_ns
