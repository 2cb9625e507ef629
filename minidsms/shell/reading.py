"""Reading what the command line names: files of text, instants."""

from __future__ import annotations

import os
import sys

from minidsms.cql.errors import Error
from minidsms.cql.times import NotATime, iso_ticks

_MOST_BYTES = 16 << 20


def read_text(path: str) -> str:
    """The text of a file of statements, "-" being the standard input. Error where it cannot be read."""
    try:
        if path == "-":
            if sys.stdin is None:
                raise Error("the standard input is closed")
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Error(f"cannot read {path!r}: {reason}") from None
    if len(data) > _MOST_BYTES:
        raise Error(f"{path!r} has more than {_MOST_BYTES:,} bytes: that is no file of statements")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Error(f"{path!r} is no UTF-8 text: line {line} has the byte 0x{data[error.start]:02x}") from None


def read_statements(path: str) -> str:
    """The text of a file of CQL. Error where it cannot be read, or is a STREAM script."""
    from minidsms.cql.stream_script import is_stream_script

    text = read_text(path)
    if is_stream_script(text):
        raise Error(f"{path!r} is a STREAM script\nhelp: minidsms run {path}")
    return text


def text_or_file(told: str) -> str:
    """Statements, or the text of the file that is named: no statement is one word. Error where it cannot be read."""
    return read_text(told) if os.path.exists(told) or len(told.split()) == 1 else told


def read_instant(text: str, tick_ns: int, asked: str = "--until") -> int:
    """An instant: ticks, or an ISO time in UTC. Error where it is neither. asked: what it was given to."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return iso_ticks(text, tick_ns)
    except NotATime as error:
        raise Error(f"{asked}: {error}\nhelp: give ticks, or a time such as 2013-01-31T12:00:00") from None


def read_commit(text: str | None) -> int | str | None:
    """A commit of an archive: its number, or a time."""
    return int(text) if text is not None and text.isdigit() else text
