"""Colours of the shell's own texts. Data is made harmless before; only what stands here adds escape sequences."""

from __future__ import annotations

import os
import re
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_SEQUENCE = re.compile("\x1b\\[[0-9;]*m")


class Styles:
    """Dresses text, or leaves it alone where there is no colour."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, style: str, text: str) -> str:
        """The text in a style: bold, dim, red, green, yellow or cyan.

        >>> Styles(False)("red", "no")
        'no'
        """
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text

    def error(self, text: str) -> str:
        """An error's message: its first word in red, its help in cyan."""
        if not self.colour:
            return text
        lines = []
        for line in text.split("\n"):
            for word, style in (("error:", "red"), ("help:", "cyan"), ("warning:", "yellow")):
                if line.startswith(word):
                    line = self(style, word) + line[len(word) :]
            lines.append(line)
        return "\n".join(lines)


def plain(text: str) -> str:
    """The text without the sequences `Styles` adds."""
    return _SEQUENCE.sub("", text)


def wants_colour(choice: str, file: TextIO) -> bool:
    """Whether to colour what goes to a file. choice: auto, always or never; NO_COLOR counts under auto."""
    if choice != "auto":
        return choice == "always"
    return file.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
