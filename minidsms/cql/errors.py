"""Every exception minidsms raises, and how an error in a text is shown.

`Error` is the root; nothing else escapes a public call. An error says where it is, why, and what to do instead, and no
password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minidsms.cql.masking import masked

MOST_SHOWN = 1200
"""Characters of one part of an error; what is longer is cut in the middle."""


class Error(Exception):
    """The root of all errors of minidsms. Its text holds no control characters, and is never long."""

    def __init__(self, message: object = "") -> None:
        super().__init__(_printable(str(message)))


class CqlError(Error):
    """A CQL text that cannot be run.

    position: (line, column), both from 1, of the first offending character, or None.  caret: the line with a marker
    under it.  hint: a way out, or "".
    """

    def __init__(
        self, reason: str, text: str = "", span: tuple[int, int] | None = None, note: str = "", hint: str = ""
    ) -> None:
        """span: (start, end) character offsets in text; note stands behind the marker (candidates, for example)."""
        self.reason, _, way_out = masked(reason).partition("\nhelp: ")
        self.text = text
        self.span = span
        self.note = note
        self.hint = masked(hint) or way_out
        self.position: tuple[int, int] | None = None
        self.caret = ""
        if span is not None and text:
            start = max(0, min(span[0], len(text)))
            line = text.count("\n", 0, start) + 1
            begin = text.rfind("\n", 0, start) + 1
            end = text.find("\n", begin)
            source = text[begin : end if end >= 0 else len(text)]
            column = start - begin
            width = max(1, min(span[1] - start, len(source) - column))
            self.position = (line, column + 1)
            self.caret = _show_line(line, source, column, width, note)
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [f"error: {_part(self.reason, MOST_SHOWN // 2)}"]
        if self.caret:
            parts.append(self.caret)
        elif self.note:
            parts.append(f"  {_part(self.note)}")
        if self.hint:
            parts.append(f"help: {_part(self.hint, MOST_SHOWN // 2)}")
        return "\n".join(parts)


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Raise Error where the system refuses something: `what`, and its reason."""
    try:
        yield
    except OSError as error:
        raise Error(f"{what}: {error.strerror or error}") from None


def in_words(error: BaseException) -> str:
    """What an error says; of one that is none of ours also what it is."""
    return str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def quoted(name: object, most: int = 60) -> str:
    """A name in quotes, as an error shows one: on one line, printable and short, whatever it is.

    >>> quoted("speed"), quoted("a\\nb"), quoted("x" * 70, 10)
    ('"speed"', '"a\\\\nb"', '"xxxxxxxxxx.."')
    """
    text = masked((name if isinstance(name, str) else str(name))[: most + 1000])
    written = _printable(text[: most + 1]).replace("\n", "\\n")
    return f'"{written}"' if len(text) <= most else f'"{written[:most]}.."'


def one_line(name: str) -> str:
    """A name as an error shows it that is known to be short: on one line.

    >>> one_line("a\\nb")
    'a\\\\nb'
    """
    return name.replace("\n", "\\n")


def shown(path: str, most: int = 200) -> str:
    """A path as Python writes it, cut where it is long."""
    written = repr(masked(path))
    return written if len(written) <= most else f"{written[:most]}..'"


def _printable(text: str, most: int = MOST_SHOWN) -> str:
    """Text with control characters written out, cut where it is long: a query's text is data and must not drive a
    terminal.
    """
    if len(text) > 8 * most:  # it is masked as a whole, as far as it is shown
        text = f"{text[: 4 * most]}{text[-4 * most :]}"
    text = masked(text)
    if len(text) > most:
        text = f"{text[: most - most // 4]} .. {text[4 - most // 4 :]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else f"\\x{ord(c):02x}" for c in text)


def _part(text: str, most: int = MOST_SHOWN) -> str:
    """A reason, a note or a hint: on one line, whatever names stand in it, but for a hint behind a reason."""
    return "\nhelp: ".join(_printable(part, most).replace("\n", "\\n") for part in text.split("\nhelp: "))


def _show_line(line: int, source: str, column: int, width: int, note: str) -> str:
    """The source line with ^^^ under the place; long lines are cut to a window around it."""
    begin = max(0, column - 1000)
    source, column = source[begin : begin + 2000], column - begin
    width = len(masked(source[: column + width]))
    column = len(masked(source[:column]))
    width = max(1, width - column)
    shown = "".join(c if c.isprintable() else " " for c in masked(source))
    start = max(0, column - 70)
    cut = shown[start : start + 140]
    column -= start
    if start:
        cut = f"..{cut[2:]}"
    if start + 140 < len(shown) and column + width < 138:
        cut = f"{cut[:-2]}.."
    shown = cut
    width = max(1, min(width, len(shown) - column))
    number = str(line)
    marker = " " * column + "^" * width + (f" {_part(note)}" if note else "")
    return f"  {number} | {shown}\n  {' ' * len(number)} | {marker}"


class DataError(Error):
    """Pushed data that does not fit the stream or relation: types, shapes, NULL timestamps, a deletion of no row.

    row: the position in the pushed data of the row to blame, or None.
    """

    row: int | None = None


class LateElementError(DataError):
    """An element at or before the progress of its stream, or a relation change at or before a closed instant."""


class QueryError(Error):
    """A query stopped at an instant: an overflow, a scalar subquery of several rows, a user function that raised.

    Its answers before that instant stand; `ts` is the instant.
    """

    def __init__(self, reason: str, ts: int | None = None) -> None:
        self.reason = reason
        self.ts = ts
        shown = _printable(reason)
        super().__init__(shown if ts is None else f"at instant {ts}: {shown}")


class ClosedError(Error):
    """A call on a connection or query that has been closed."""


class MemoryLimitError(Error):
    """`memory_limit` would be passed."""


class TimeLimitError(Error):
    """`statement_timeout` has passed."""


class QueueFullError(Error):
    """`push(.., block=False)`: more would wait for a query than its queues may hold; nothing has been taken."""
