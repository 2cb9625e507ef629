"""Modes csv and jsonl: every change as a line of the format that files have, `_ts` and `_sign` first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.shell.modes.mode import Look
from minidsms.shell.modes.rows import Element
from minidsms.sinks.lines import lines_of
from minidsms.sinks.opening import line_format

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query
    from minidsms.sinks.lines import LineFormat


class LinesMode:
    """See `mode.Mode`. Nothing is left out, so what is not asked for is kept until `news` gives it.

    format: csv or json.
    """

    is_drawn = False

    def __init__(self, query: Query, look: Look, format: str) -> None:
        self._make = line_format(format)
        self._schema = query.schema
        self._format: LineFormat | None = None
        self._waiting: list[bytes] = []

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """Write the lines."""
        assert self._format is not None
        self._waiting.append(lines_of(self._format, batch))

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """The header; lines begin with the watch."""
        self._format = self._make(self._schema, codec)
        self._waiting.append(self._format.header())

    def news(self) -> str:
        """The lines since the last call."""
        waiting, self._waiting = self._waiting, []
        return b"".join(waiting).decode()

    def picture(self, query: Query, height: int) -> list[str]:
        """None: lines are printed."""
        return []

    def summary(self, query: Query) -> str:
        """Nothing is left to say."""
        return ""
