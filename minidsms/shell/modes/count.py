"""Mode count: how many changes have come while the query was watched, on one line redrawn in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from minidsms.counted import counted
from minidsms.shell.modes.mode import Look
from minidsms.shell.modes.rows import Element

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query


class CountMode:
    """See `mode.Mode`."""

    is_drawn = True

    def __init__(self, query: Query, look: Look) -> None:
        self._look = look
        self._entered = 0
        self._left = 0
        self._last_ts: int | None = None

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """Count."""
        left = 0 if batch.sign is None else int(np.count_nonzero(batch.sign < 0))
        self._left += left
        self._entered += len(batch) - left
        self._last_ts = int(batch.ts[-1])

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """Nothing: what came before the watch is not counted."""

    def news(self) -> str:
        """None: the line is drawn in place."""
        return ""

    def picture(self, query: Query, height: int) -> list[str]:
        """The line."""
        return [self._line(query)]

    def summary(self, query: Query) -> str:
        """The line at the end."""
        return self._line(query) + "\n"

    def _line(self, query: Query) -> str:
        if query.kind == "relation":
            told = f"{counted(self._entered, 'row')} entered, {self._left:,} left"
        else:
            told = counted(self._entered, "element")
        when = "" if self._last_ts is None else f", the last at {self._look.instants.show(self._last_ts)}"
        return f"{query.name}: {told}{when}"
