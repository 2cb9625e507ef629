"""What a command of the shell is: its name, what its help says, and what it does.

A command is a line that begins with a dot. Its help ends with examples that run as they stand after the statements of
`.help start`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.shell.words import Word

if TYPE_CHECKING:
    from minidsms.shell.session import Session


@dataclass(frozen=True)
class Arguments:
    """What stands behind a command's name: as words, and as it was written."""

    words: list[Word]
    line: str
    command: Command

    def none(self) -> None:
        """Error where there is something."""
        self.at_most(0)

    def at_most(self, count: int) -> None:
        """Error where there are more words."""
        if len(self.words) > count:
            what = "no argument" if count == 0 else counted(count, "argument")
            raise self.wrong(f'"{self.words[count].text}" is unexpected: the command takes {what}')

    def one(self, what: str) -> Word:
        """The one word. Error where there is none, or more. what: what it would be, in words."""
        if not self.words:
            raise self.wrong(f"{what} is missing")
        self.at_most(1)
        return self.words[0]

    def switch(self, now: bool) -> bool:
        """The one word as on or off; without it, the other of what is."""
        if not self.words:
            return not now
        word = self.one("on or off").text.lower()
        if word not in ("on", "off"):
            raise self.wrong(f'"{word}" is neither on nor off')
        return word == "on"

    def wrong(self, reason: str) -> Error:
        """The error that says how the command is written."""
        return Error(f".{self.command.name}: {reason}\nhelp: {self.command.usage}")


@dataclass(frozen=True)
class Command:
    """See the module.

    usage: how it is written.  summary: one line.  help: the rest, one paragraph.  run: does it.  completes: what the
    words behind it may be: kinds of names ("query", "stream", "file", "mode", "setting", "command", "source"), or
    words in capitals that stand for themselves.
    """

    name: str
    usage: str
    summary: str
    help: str
    run: Callable[[Session, Arguments], None]
    completes: Sequence[str] = ()
    examples: Sequence[str] = ()
