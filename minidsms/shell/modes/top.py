"""Mode top: the N rows with the greatest (or least) values in a column; of a stream, of all that came while watched."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from minidsms.answers.rows import Row
from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.shell.modes.mode import Look, ModeSpec
from minidsms.shell.modes.rows import Element, sort_key, table_lines

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query

_AT_ONCE = 8192
"""Rows of a stream that are decoded before the best are chosen again."""


class TopMode:
    """See `mode.Mode`. Error where the query has no such column, or several."""

    is_drawn = True

    def __init__(self, query: Query, look: Look, spec: ModeSpec) -> None:
        self._look = look
        self._spec = spec
        self._column = _find(query, spec.column)
        self._is_relation = query.kind == "relation"
        self._best: list[Row] = []
        self._count = 0

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """Keep the best rows of a stream; a relation is asked when it is drawn."""
        self._count += len(batch)
        if self._is_relation:
            return
        for start in range(0, len(batch), _AT_ONCE):
            rows = codec.rows(batch.slice(start, min(start + _AT_ONCE, len(batch))))
            self._best = self._choose(self._best + rows)

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """Elements from before the watch: those that were kept compete."""
        self._count += count
        if not self._is_relation:
            self._best = self._choose(self._best + [row for _, _, row in earlier])

    def _choose(self, rows: list[Row]) -> list[Row]:
        """The best rows, best first; those without a value last."""
        at = self._column
        valued = [row for row in rows if row[at] is not None]
        valued.sort(key=sort_key)
        valued.sort(key=lambda row: row[at], reverse=not self._spec.ascending)
        missing = [row for row in rows if row[at] is None]
        return (valued + missing)[: self._spec.count]

    def news(self) -> str:
        """None: the table is drawn in place."""
        return ""

    def picture(self, query: Query, height: int) -> list[str]:
        """The table, cut to the height."""
        return self._draw(query)[: max(height, 4)]

    def summary(self, query: Query) -> str:
        """The table at the end."""
        return "\n".join(self._draw(query)) + "\n"

    def _draw(self, query: Query) -> list[str]:
        if self._is_relation:
            rows = query.snapshot()
            best, of = self._choose(rows), counted(len(rows), "row")
            when = f" at {self._look.instants.show(query.closed_until)}"
        else:
            best, of, when = self._best, counted(self._count, "element"), ""
        title = f"{query.name}{when}: {self._spec} (of {of})"
        return table_lines(title, best, query.schema, self._look.instants)


def _find(query: Query, column: str) -> int:
    names = [name.lower() for name in query.schema.names]
    found = [i for i, name in enumerate(names) if name == column.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise Error(f'{query.name} has {len(found)} columns named "{column}"\nhelp: give one of them a name with AS')
    near = difflib.get_close_matches(column.lower(), names, 1)
    hint = f'did you mean "{near[0]}"?' if near else f"{query.name} has: {', '.join(query.schema.names)}"
    raise Error(f'{query.name} has no column "{column}"\nhelp: {hint}')
