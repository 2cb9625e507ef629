"""Mode table: what the relation holds now, redrawn in place; of a stream, its last elements."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from minidsms.answers.rows import Row
from minidsms.counted import counted
from minidsms.elements import Field, Schema, Type
from minidsms.shell.modes.mode import Look
from minidsms.shell.modes.rows import Element, elements_of, sort_key, table_lines

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query

_FRAME = 3
"""Lines of a table that are no rows: the title, the names, the rule."""


class TableMode:
    """See `mode.Mode`."""

    is_drawn = True

    def __init__(self, query: Query, look: Look) -> None:
        self._look = look
        self._is_relation = query.kind == "relation"
        self._last: deque[Element] = deque(maxlen=look.limit or None)
        self._count = 0

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """A stream's last elements are kept; a relation is asked when it is drawn."""
        self._count += len(batch)
        if not self._is_relation:
            most = self._last.maxlen
            n = len(batch)
            self._last.extend(elements_of(batch if most is None else batch.slice(max(0, n - most), n), codec))

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """Elements from before the watch."""
        self._count += count
        if not self._is_relation:
            self._last.extend(earlier)

    def news(self) -> str:
        """None: the table is drawn in place."""
        return ""

    def picture(self, query: Query, height: int) -> list[str]:
        """The table, cut to the height."""
        return self._draw(query, max(1, height - _FRAME))

    def summary(self, query: Query) -> str:
        """The table at the end, with as many rows as the limit allows."""
        return "\n".join(self._draw(query, None)) + "\n"

    def _draw(self, query: Query, room: int | None) -> list[str]:
        limit = self._look.limit
        most = limit if room is None else min(limit, room) if limit else room
        return self._relation(query, most) if self._is_relation else self._stream(query, most)

    def _relation(self, query: Query, most: int) -> list[str]:
        rows = query.snapshot() if query.order else sorted(query.snapshot(), key=sort_key)
        shown, left_out = cut(rows, most)
        title = f"{query.name} at {self._look.instants.show(query.closed_until)} ({counted(len(rows), 'row')})"
        return table_lines(title, shown, query.schema, self._look.instants, left_out)

    def _stream(self, query: Query, most: int) -> list[str]:
        shown = list(self._last)[-most:] if most else list(self._last)
        rows = [(self._look.instants.show(ts), *row) for ts, _, row in shown]
        schema = Schema((Field("_ts", Type.TEXT), *query.schema.fields))
        kept = f", the last {len(rows):,}" if len(rows) < self._count else ""
        return table_lines(f"{query.name} ({counted(self._count, 'element')}{kept})", rows, schema, self._look.instants)


def cut(rows: list[Row], most: int) -> tuple[list[Row], int]:
    """The first rows, and how many are left out, which takes a line itself. most: 0 for all."""
    if not most or len(rows) <= most:
        return rows, 0
    kept = max(0, most - 1)
    return rows[:kept], len(rows) - kept
