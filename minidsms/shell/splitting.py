"""What has been typed, cut into inputs: statements of CQL, which end with a semicolon, and commands, a line each.

A line whose first character is a dot and which begins no statement's further line is a command. Quotes and comments
are respected: a semicolon in a text ends nothing.

Invariant: the inputs and what is left out between them (blanks, comments, semicolons) are the whole text, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PART = re.compile(
    r"""(?P<space>\s+|--[^\n]*|\#[^\n]*)
    |(?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)
    |(?P<unclosed>['"`])
    |(?P<end>;)
    |(?P<other>[^\s;'"`#-]+|-)
    """,
    re.VERBOSE,
)
_COMMAND = re.compile(r"\.[^\n]*")


@dataclass(frozen=True)
class Input:
    """A command or a statement. text: without the semicolon.  start: where it begins in the whole.

    is_complete: it has its semicolon; a command always is complete.
    """

    text: str
    start: int
    is_command: bool
    is_complete: bool = True


def split(text: str) -> Iterator[Input]:
    """The inputs of a text, in order.

    >>> [(i.text, i.is_command, i.is_complete) for i in split(".timer on\\nSHOW STREAMS; SELECT 'a;b'")]
    [('.timer on', True, True), ('SHOW STREAMS', False, True), ("SELECT 'a;b'", False, False)]
    """
    at = 0
    while True:
        at = _skip_blank(text, at)
        if at >= len(text):
            return
        if text[at] == ";":
            at += 1
            continue
        command = _COMMAND.match(text, at)
        if command is not None:
            yield Input(command.group().rstrip(), at, True)
            at = command.end()
            continue
        end, is_complete = _statement_end(text, at)
        yield Input(text[at:end].rstrip(), at, False, is_complete)
        at = end + 1


def is_complete(text: str) -> bool:
    """Nothing is missing at the end: Enter may run it."""
    return all(each.is_complete for each in split(text))


def _skip_blank(text: str, at: int) -> int:
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match.lastgroup != "space":
            break
        at = match.end()
    return at


def _statement_end(text: str, at: int) -> tuple[int, bool]:
    """Where the statement's semicolon stands, or where the text ends."""
    while at < len(text):
        match = _PART.match(text, at)
        assert match is not None, "every character belongs to a part"
        if match.lastgroup == "end":
            return at, True
        if match.lastgroup == "unclosed":
            return len(text), False
        at = match.end()
    return len(text), False
