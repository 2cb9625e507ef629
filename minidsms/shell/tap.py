"""A tap: the sink through which the shell sees a query's answers, watched or not.

Invariant: what nobody watches is not kept, but for the last few changes, with which a watch begins.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from minidsms.shell.modes.rows import Element, elements_of

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch, Schema
    from minidsms.shell.modes.mode import Mode

KEPT = 20
"""Changes of a query that a later watch begins with."""


class Tap:
    """A sink (see `minidsms.sinks.sink`). mode: what is shown the batches, or None while nobody watches."""

    def __init__(self) -> None:
        self.path = "-"
        self.rows = 0
        self.mode: Mode | None = None
        self._unseen: deque[Element] = deque(maxlen=KEPT)
        self._unseen_count = 0
        self._codec: ResultCodec | None = None

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Note how to decode."""
        self._codec = codec
        if self.mode is not None:
            self.mode.begin(codec, [], 0)

    def write(self, batch: Batch) -> None:
        """Show the batch, or keep its end."""
        assert self._codec is not None
        n = len(batch)
        self.rows += n
        if self.mode is not None:
            self.mode.take(batch, self._codec)
            return
        self._unseen_count += n
        self._unseen.extend(elements_of(batch.slice(max(0, n - KEPT), n), self._codec))

    def show(self, mode: Mode | None) -> None:
        """Watch in a mode, beginning with what no other has seen; None: no longer."""
        self.mode = mode
        if mode is not None:
            assert self._codec is not None
            mode.begin(self._codec, list(self._unseen), self._unseen_count)
            self._unseen.clear()
            self._unseen_count = 0

    def close(self) -> None:
        """Nothing is held."""

    def discard(self) -> None:
        """Nothing is held."""
