"""Blocks of lines between the thread that waits for them and the one that reads them.

Invariant: at most BOUND_BYTES wait, and one block more; beyond that `put` blocks, the thread stops reading, and the
sender's own buffers fill. Blocks of one origin stay in order, and neighbours of one origin are joined when they are
taken: a slow reader gets large blocks, a quick one gets them at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from minidsms.cql.errors import Error
from minidsms.sources.blocks import Block

BOUND_BYTES = 4 << 20

Origin = TypeVar("Origin")


class Inbox(Generic[Origin]):
    """A bounded queue of (origin, block)."""

    def __init__(self, bound_bytes: int = BOUND_BYTES) -> None:
        self._bound = bound_bytes
        self._blocks: deque[tuple[Origin, Block]] = deque()
        self.waiting_bytes = 0
        """Bytes that wait to be taken."""
        self._change = threading.Condition()
        self._bell: Callable[[], None] = lambda: None
        self._failure: Error | None = None
        self._is_ended = False
        self.is_closed = False

    def ring(self, bell: Callable[[], None]) -> None:
        """Ring this bell when something is put, or the end comes."""
        self._bell = bell

    def put(self, origin: Origin, *blocks: Block) -> bool:
        """Let blocks wait; blocks while too much waits. False when nobody will take any more."""
        return all([self._put(origin, block) for block in blocks]) and not self.is_closed

    def _put(self, origin: Origin, block: Block) -> bool:
        with self._change:
            while self.waiting_bytes >= self._bound and not self.is_closed:
                self._change.wait()
            if self.is_closed:
                return False
            self._blocks.append((origin, block))
            self.waiting_bytes += len(block.data)
        self._bell()
        return True

    def take(self) -> tuple[Origin, Block] | None:
        """The next block, joined with those of the same origin behind it; None where none waits."""
        with self._change:
            if not self._blocks:
                return None
            origin, block = self._blocks.popleft()
            data = [block.data]
            line = block.first_line + block.data.count(b"\n")
            while self._blocks and not block.is_broken:
                after, more = self._blocks[0]
                if after is not origin or more.is_broken or more.first_line != line:
                    break
                data.append(more.data)
                line += more.data.count(b"\n")
                self._blocks.popleft()
            self.waiting_bytes -= sum(map(len, data))
            self._change.notify_all()
        return origin, Block(b"".join(data), block.first_line, block.is_broken, block.start)

    def end(self, failure: Error | None = None) -> None:
        """Nothing more will be put."""
        with self._change:
            self._is_ended, self._failure = True, failure
        self._bell()

    def take_failure(self) -> Error | None:
        """Why it ended, told once and after everything that waited."""
        with self._change:
            failure = None
            if not self._blocks:
                failure, self._failure = self._failure, None
            return failure

    @property
    def has_ended(self) -> bool:
        """Nothing waits and nothing will."""
        with self._change:
            return self._is_ended and not self._blocks and self._failure is None

    def close(self) -> None:
        """Nobody takes any more: whoever waits to put is let go."""
        with self._change:
            self.is_closed = True
            self._blocks.clear()
            self.waiting_bytes = 0
            self._change.notify_all()
