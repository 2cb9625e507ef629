"""Modes: the ways in which the answers of a query are shown while they come.

A mode sees every batch of the answer, at the moment it is delivered. What it wants printed it gives as `news`; what is
to be redrawn in place as a `picture`; what is left to say when everything has come as a `summary`.

Invariant: however much comes, what a mode keeps is bounded by the rows it may show.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from minidsms.cql.errors import Error

if TYPE_CHECKING:
    from minidsms.answers.results import ResultCodec
    from minidsms.elements import Batch
    from minidsms.query import Query
    from minidsms.shell.instants import Instants
    from minidsms.shell.modes.rows import Element
    from minidsms.shell.styles import Styles
    from minidsms.shell.words import Word

MODES = {
    "changelog": "every change on a line: + enters, - leaves, with its instant",
    "table": "the rows of the relation now, redrawn in place; of a stream its last rows",
    "top": "top N BY column: the N rows with the greatest values (ASC: the least)",
    "count": "how many changes have come",
    "csv": "comma-separated lines with _ts and _sign",
    "jsonl": "an object per line with _ts and _sign",
}


@dataclass(frozen=True)
class ModeSpec:
    """A mode as it was asked for. count, column, ascending: of top."""

    name: str
    count: int = 10
    column: str = ""
    ascending: bool = False

    def __str__(self) -> str:
        if self.name != "top":
            return self.name
        return f"top {self.count} BY {self.column}" + (" ASC" if self.ascending else "")


@dataclass(frozen=True)
class Look:
    """How things are shown: colours, instants, and how many rows or changes at once (0: all)."""

    styles: Styles
    instants: Instants
    limit: int


class Mode(Protocol):
    """See the module. Made by `watching.Watches` for one query. is_drawn: it has pictures."""

    is_drawn: bool

    def begin(self, codec: ResultCodec, earlier: list[Element], count: int) -> None:
        """The watch begins. earlier: the last of the `count` changes that came before it and nobody has watched."""

    def take(self, batch: Batch, codec: ResultCodec) -> None:
        """The next elements of the answer; called under the engine's lock."""

    def news(self) -> str:
        """Lines to print, of what came since the last call; "" where there are none."""

    def picture(self, query: Query, height: int) -> list[str]:
        """At most `height` lines (at least 4) that stand in place of the last picture; [] where the mode has none."""

    def summary(self, query: Query) -> str:
        """What is to be printed when everything has come and no picture was shown."""


def read_mode(words: list[Word]) -> ModeSpec:
    """The mode that words name, such as `top 5 BY mean`. Error with a way out where they name none."""
    name = words[0].text.lower()
    name = {"json": "jsonl", "ndjson": "jsonl", "log": "changelog", "box": "table"}.get(name, name)
    if name not in MODES:
        near = difflib.get_close_matches(name, MODES, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"modes are {', '.join(MODES)}"
        raise Error(f'unknown mode "{words[0].text}"\nhelp: {hint}')
    rest = words[1:]
    if name != "top":
        if rest:
            raise Error(f'mode {name} takes nothing behind it, but "{rest[0].text}" stands there\nhelp: .mode {name}')
        return ModeSpec(name)
    count = 10
    if rest and rest[0].text.isdigit() and int(rest[0].text) > 0:
        count = int(rest.pop(0).text)
    order = rest[2].text.upper() if len(rest) == 3 else "DESC"
    if len(rest) not in (2, 3) or not rest[0].says("BY") or order not in ("ASC", "DESC"):
        raise Error("a top mode names a column\nhelp: for example: .mode top 5 BY speed, or .mode top 5 BY speed ASC")
    return ModeSpec("top", count, rest[1].text, order == "ASC")
