"""Memory for what waits to be written, so that the engine's thread need not wait for any.

Elements that wait for a file are copies of the engine's columns. Into memory that is new a copy takes several times as
long as into memory that was there: the system hands it out page by page, and empties each. So a thread asks for blocks
ahead, touches them, and makes those ready again whose elements have been written.

Invariant: a block is used again when no array looks at it any more. The engine's thread copies, the other prepares;
neither waits for the other: where no block is ready, a copy gets memory of its own.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import Any

import numpy as np

from minidsms.cql.errors import Error
from minidsms.process.threads import begun, end_at_exit

BLOCK_BYTES = 8 << 20
"""Memory is asked for in large pieces, which the system maps by large pages where it can."""
LEAST_BYTES = 1 << 15
"""Copies of less stand for themselves."""
MOST_BLOCKS = 36
_LEAST_BLOCKS = 4
_LISTED = 4
"""References to a block that no array looks at: of two lists, of the loop, of the call that counts them."""
_ALIGNMENT = 64

Array = np.ndarray[Any, np.dtype[Any]]


class Buffers:
    """Blocks for the columns of an archiver: the more, the more copies have found none.

    idle_s: after so long without a copy what is not in use goes back to the system, but for the block begun last.
    """

    def __init__(self, idle_s: float, most_blocks: int = MOST_BLOCKS) -> None:
        self._idle_s = idle_s
        self._most_blocks = most_blocks
        self._ready: deque[Array] = deque()
        self._used: list[Array] = []
        """Among them the one that is being filled."""
        self._block: Array = np.zeros(0, np.uint8)
        self._end = 0
        """Bytes of it that are given out."""
        self._missing_bytes = 0
        self._copies = 0
        self._is_due = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held, whether in use or not."""
        return BLOCK_BYTES * (len(self._ready) + len(self._used))

    def copy(self, array: Array) -> Array:
        """A copy of a column, into which nobody else writes. For one thread at a time."""
        if not LEAST_BYTES <= array.nbytes <= BLOCK_BYTES:
            return array.copy()
        self._copies += 1
        if self._end + array.nbytes > len(self._block):
            self._prepare_soon()
            if not self._ready:
                self._missing_bytes += array.nbytes
                return array.copy()
            self._block, self._end = self._ready.popleft(), 0
            self._used.append(self._block)
        made: Array = self._block[self._end : self._end + array.nbytes].view(array.dtype)
        made[:] = array
        self._end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return made

    def close(self) -> None:
        """End the thread."""
        self._is_over = True
        self._is_due.set()
        if self._thread is not None:
            self._thread.join()

    def abandon(self) -> None:
        """In a child of fork(): nothing is copied any more."""
        self._is_over, self._thread = True, None

    def _prepare_soon(self) -> None:
        if self._thread is None:
            try:
                self._thread = begun(self._run, "minidsms archive buffers")
            except Error:
                return  # copies get memory of their own
            end_at_exit(self)
        self._is_due.set()

    # ----------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        copies = 0
        while not self._is_over:
            if self._is_due.wait(self._idle_s if self.nbytes > BLOCK_BYTES else None):
                self._is_due.clear()
                self._prepare()
            elif copies == self._copies:
                self._release()
            copies = self._copies

    def _prepare(self) -> None:
        """Make blocks ready, used and new ones."""
        self._take_back()
        wanted = min(_LEAST_BLOCKS + 2 * self._missing_bytes // BLOCK_BYTES, self._most_blocks)
        while len(self._ready) + len(self._used) < wanted and not self._is_over:
            block = np.empty(BLOCK_BYTES, np.uint8)
            block.fill(0)  # touches it, without the interpreter's lock
            self._ready.append(block)

    def _take_back(self) -> None:
        """Make ready what no array looks at any more."""
        for block in list(self._used):
            if block is not self._block and sys.getrefcount(block) <= _LISTED:
                del self._used[next(n for n, used in enumerate(self._used) if used is block)]
                self._ready.append(block)

    def _release(self) -> None:
        """Nothing comes: give to the system what is not in use."""
        self._missing_bytes = 0
        self._take_back()
        self._ready.clear()
