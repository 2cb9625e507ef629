"""Python's collector of cyclic garbage waits while many rows are made that are all given to the caller.

None of them is garbage, but each new share of them lets it look at all that there is once more: a fetch of a million
changes took three times as long.
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
