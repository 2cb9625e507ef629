"""The words of a command line: separated by blanks, quoted where they contain some.

Invariant: a quoted word is told from a bare one, so that FROM may be a keyword and 'from' a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from minidsms.cql.errors import Error

_WORD = re.compile(
    r"""'(?P<single>[^']*(?:''[^']*)*)'|"(?P<double>[^"]*(?:""[^"]*)*)"|(?P<bare>[^\s'",]+)|(?P<comma>,)"""
)


@dataclass(frozen=True)
class Word:
    """text: without its quotes.  start: where it begins in the line."""

    text: str
    start: int
    is_quoted: bool = False

    def says(self, keyword: str) -> bool:
        """It is this keyword, in any case."""
        return not self.is_quoted and self.text.upper() == keyword


def words_of(line: str) -> list[Word]:
    """The words of a line. Error where a quote is not closed.

    >>> [w.text for w in words_of("S FROM 'my file.csv' SPEED 10")]
    ['S', 'FROM', 'my file.csv', 'SPEED', '10']
    """
    words = []
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        match = _WORD.match(line, at)
        if match is None:
            raise Error(f"a quote is not closed: {line[at:]}")
        kind = str(match.lastgroup)
        text = match[kind]
        if kind != "bare" and kind != "comma":
            quote = line[at]
            text = text.replace(quote + quote, quote)
        words.append(Word(text, at, kind in ("single", "double")))
        at = match.end()
    return words
