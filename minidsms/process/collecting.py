"""Python's collector of cyclic garbage waits while much is made that all stays: rows for the caller, the engine's
modules.

None of it is garbage, but each new share of it lets the collector look at all that there is once more: a fetch of a
million changes took three times as long, loading the modules a sixth more.
"""

from __future__ import annotations

import gc
from types import TracebackType


class Uncollected:
    """A section in which nothing is collected; after it, if it was so before.

    >>> with Uncollected():
    ...     gc.isenabled()
    False
    """

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._was_enabled:
            gc.enable()
