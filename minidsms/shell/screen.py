"""Where the shell writes: results, notes and errors.

Invariant: texts that come here are harmless already, except `raw` lines, which are made so on a terminal.
"""

from __future__ import annotations

import sys
from typing import Protocol

from minidsms.shell.styles import Styles


class Screen(Protocol):
    """styles: of results; notes and errors are dressed by the screen itself."""

    styles: Styles

    @property
    def width(self) -> int | None:
        """Columns that tables may take; None: as many as they need."""

    def write(self, text: str) -> None:
        """Results, with their newlines, as they are."""

    def raw(self, text: str) -> None:
        """Lines of data for other programs."""

    def note(self, text: str) -> None:
        """A word to a person at the keyboard; nobody else needs it."""

    def warn(self, text: str) -> None:
        """Something that may not be meant."""

    def error(self, text: str) -> None:
        """What went wrong, beginning with "error: "."""

    def flush(self) -> None:
        """Let everything be seen."""


def cut_to(line: str, width: int) -> str:
    """The line, cut to so many cells of the terminal.

    >>> cut_to("abcdef", 4)
    'ab..'
    """
    if len(line) <= width and line.isascii():
        return line
    from prompt_toolkit.utils import get_cwidth

    if get_cwidth(line) <= width:
        return line
    kept, used = [], 0
    for character in line:
        used += get_cwidth(character)
        if used > width - 2:
            break
        kept.append(character)
    return "".join(kept) + ".."


class PlainScreen:
    """Results to the standard output, warnings and errors to the standard error, notes nowhere."""

    width: int | None = None

    def __init__(self, styles: Styles, error_styles: Styles) -> None:
        self.styles = styles
        self._error_styles = error_styles
        from minidsms.shell.showing import StandardOutput

        self._output = StandardOutput("-")

    def write(self, text: str) -> None:
        """To the standard output."""
        sys.stdout.write(text)

    def raw(self, text: str) -> None:
        """To the standard output, byte for byte where it is no terminal."""
        self._output.write(text.encode())

    def note(self, text: str) -> None:
        """Nobody is there to read it."""

    def warn(self, text: str) -> None:
        """To the standard error."""
        self._complain(f"warning: {text}")

    def error(self, text: str) -> None:
        """To the standard error."""
        self._complain(text)

    def _complain(self, text: str) -> None:
        sys.stdout.flush()
        print(self._error_styles.error(text), file=sys.stderr, flush=True)

    def flush(self) -> None:
        """Flush the standard output."""
        sys.stdout.flush()
