"""Mode changelog: a line per change, `name  instant  sign  values`.

Of a flood, the first half and the last half of what may be shown between two looks is printed, and how many stood
between: the terminal stays usable whatever the rate.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.shell.modes.mode import Look
from minidsms.shell.modes.rows import Element, cells_of, elements_of, is_number
from minidsms.shell.showing import cell

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query

_WIDEST_PAD = 30


class Changelog:
    """See `mode.Mode`."""

    is_drawn = False

    def __init__(self, query: Query, look: Look) -> None:
        self._name = query.name
        self._schema = query.schema
        self._look = look
        limit = look.limit
        self._first_room = limit - limit // 2 if limit else 0
        self._first: list[Element] = []
        self._last: deque[Element] = deque(maxlen=limit // 2 if limit else None)
        self._count = 0
        self._widths = [len(name) for name in query.schema.names]
        self._is_begun = False

    def follow(self, earlier: Changelog) -> None:
        """Go on below what another has printed, in its columns."""
        self._is_begun = earlier._is_begun
        self._widths = earlier._widths

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """Keep what will be shown."""
        n = len(batch)
        self._count += n
        if not self._look.limit:
            self._last.extend(elements_of(batch, codec))
            return
        taken = min(n, self._first_room - len(self._first))
        if taken > 0:
            self._first += elements_of(batch.slice(0, taken), codec)
        taken = max(taken, 0)
        room = self._last.maxlen or 0
        if taken < n and room:
            self._last.extend(elements_of(batch.slice(max(taken, n - room), n), codec))

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """Show first the last of `count` changes from before the watch."""
        self._last.extend(earlier)
        self._count += count

    def news(self) -> str:
        """A line per change."""
        if not self._count and self._is_begun:
            return ""
        lines = []
        styles = self._look.styles
        if not self._is_begun:
            self._is_begun = True
            names = ", ".join(map(cell, self._schema.names))
            lines.append(styles("dim", f"{self._name}: instant, sign, {names}"))
        lines += map(self._line, self._first)
        between = self._count - len(self._first) - len(self._last)
        if between:
            lines.append(styles("dim", f"{self._name}  .. {counted(between, 'more change')}"))
        lines += map(self._line, self._last)
        self._first.clear()
        self._last.clear()
        self._count = 0
        return "".join(line + "\n" for line in lines)

    def _line(self, element: Element) -> str:
        ts, sign, row = element
        cells = cells_of(row, self._schema, self._look.instants)
        parts = []
        for i, (text, type_) in enumerate(zip(cells, self._schema.types)):
            self._widths[i] = width = max(self._widths[i], min(len(text), _WIDEST_PAD))
            parts.append(text.rjust(width) if is_number(type_) else text.ljust(width))
        styles = self._look.styles
        mark = styles("green", "+") if sign > 0 else styles("red", "-")
        name = styles("dim", self._name)
        return f"{name}  {self._look.instants.show(ts)}  {mark}  {'  '.join(parts)}".rstrip()

    def picture(self, query: Query, height: int) -> list[str]:
        """None: changes are printed."""
        return []

    def summary(self, query: Query) -> str:
        """Nothing is left to say."""
        return ""
