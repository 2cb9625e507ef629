"""The time that kernels have taken to be compiled, or loaded where they are kept: no time of whoever called them first.

Clocks whose figures decide on plans or are shown take it off, so that neither a cold start nor a warm one looks like a
dear plan. It is kept apart from the compiler, so that whoever reads it need not load that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class CompileTime:
    """Of all threads together. Invariant: neither ever falls."""

    def __init__(self) -> None:
        self.wall_ns = 0
        """As on the clock on the wall."""
        self.thread_ns = 0
        """Of processors."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done within as compiling or loading; blocks within others count once."""
        wall_before, thread_before = self.wall_ns, self.thread_ns
        began, thread_began = time.perf_counter_ns(), time.thread_time_ns()
        try:
            yield
        finally:
            self.wall_ns = max(self.wall_ns, wall_before + time.perf_counter_ns() - began)
            self.thread_ns = max(self.thread_ns, thread_before + time.thread_time_ns() - thread_began)


COMPILED = CompileTime()
"""Since the process began."""


def wall_ns() -> int:
    """A clock on the wall that stands still while code is compiled or loaded."""
    return time.perf_counter_ns() - COMPILED.wall_ns


def monotonic() -> float:
    """`wall_ns` in seconds."""
    return wall_ns() / 1e9


def thread_ns() -> int:
    """The processor time of this thread, without what compiling and loading took."""
    return time.thread_time_ns() - COMPILED.thread_ns
