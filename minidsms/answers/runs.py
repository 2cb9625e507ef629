"""Batches of answers that wait, in which small ones are put together.

Who pushes row by row has an answer of some rows a push. Each would stand in a dozen objects of its own, all of which
the interpreter's garbage collector visits again and again as long as nobody fetches them.
"""

from __future__ import annotations

from minidsms.elements import Batch

_RUN = 16
"""So many small ones become one: with more of them at a time one push in a hundred would wait for it visibly."""
_LARGE = 1 << 12
"""Elements of a batch that stays as it is."""


class Runs:
    """How the end of a list of batches came about. The list is the caller's, who may take others instead."""

    def __init__(self) -> None:
        self._small = 0

    def append(self, batches: list[Batch], batch: Batch) -> bool:
        """Append a batch; whether the last ones, and it, have become one. Amortised O(log elements) for each element.

        >>> import numpy as np
        >>> runs, batches = Runs(), []
        >>> for ts in range(16 * 256 + 3):
        ...     _ = runs.append(batches, Batch(np.array([ts]), None, []))
        >>> [len(batch) for batch in batches]
        [4096, 1, 1, 1]
        """
        batches.append(batch)
        if len(batch.ts) >= _LARGE:
            self._small = 0
            return False
        self._small = 1 if len(batches) == 1 else self._small + 1
        run, is_changed = _RUN, False
        while not self._small % run and len(batches[-1].ts) < _LARGE:
            try:
                whole = Batch.concat(batches[-_RUN:])
            except MemoryError:  # they wait as they are
                break
            batches[-_RUN:] = [whole]
            run, is_changed = run * _RUN, True
        return is_changed
