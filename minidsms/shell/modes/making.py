"""Which class shows which mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.shell.modes.changelog import Changelog
from minidsms.shell.modes.count import CountMode
from minidsms.shell.modes.lines import LinesMode
from minidsms.shell.modes.mode import Look, Mode, ModeSpec
from minidsms.shell.modes.table import TableMode
from minidsms.shell.modes.top import TopMode

if TYPE_CHECKING:
    from minidsms.query import Query


def make_mode(spec: ModeSpec, query: Query, look: Look) -> Mode:
    """The mode for a query. Error where it does not fit the query."""
    match spec.name:
        case "table":
            return TableMode(query, look)
        case "top":
            return TopMode(query, look, spec)
        case "count":
            return CountMode(query, look)
        case "csv" | "jsonl":
            return LinesMode(query, look, "csv" if spec.name == "csv" else "json")
        case _:
            return Changelog(query, look)
