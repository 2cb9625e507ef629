"""Colours of what is typed, from CQL's own lexer; of a command, its name and its words.

Invariant: the pieces put together are the text, whatever has been typed: what the lexer refuses is shown as it is.
"""

from __future__ import annotations

from minidsms.cql import lexer
from minidsms.cql.errors import CqlError
from minidsms.shell.splitting import Input, split

_KINDS = {
    "IDENT": "name",
    "NUMBER": "number",
    "TEXT": "text",
    "UNIT": "keyword",
    "STREAM_OPERATOR": "operator",
    "COMPARISON": "symbol",
    "EQUAL": "symbol",
}
_SYMBOLS = frozenset({"LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "DOT", "STAR", "PLUS", "MINUS", "SLASH", "PERCENT"})

Piece = tuple[str, str]
"""(kind, text). kind: keyword, operator (ISTREAM and its like), name, number, text, symbol, comment, command, or ""."""


def highlight(text: str) -> list[Piece]:
    """The text in pieces.

    >>> highlight("SELECT a -- all")
    [('keyword', 'SELECT'), ('', ' '), ('name', 'a'), ('comment', ' -- all')]
    """
    pieces: list[Piece] = []
    at = 0
    for each in split(text):
        pieces += _between(text[at : each.start])
        pieces += _command(each.text) if each.is_command else _statement(text, each)
        at = each.start + len(each.text)
    return [*pieces, *_between(text[at:])]


def _between(text: str) -> list[Piece]:
    """Blanks, comments and semicolons."""
    if not text:
        return []
    return [("comment" if "--" in text or "#" in text else "", text)]


def _command(line: str) -> list[Piece]:
    name, blank, rest = line.partition(" ")
    return [("command", name), *([("", blank + rest)] if blank else [])]


def _statement(text: str, each: Input) -> list[Piece]:
    start, end = each.start, each.start + len(each.text)
    pieces: list[Piece] = []
    at = start
    try:
        found = list(lexer.statements(text, start, end))
    except CqlError as error:
        # What stands before the place the lexer stops at is still worth its colours.
        stop = error.span[0] if error.span is not None else start
        try:
            found = list(lexer.statements(text, start, stop)) if start < stop else []
        except CqlError:
            found = []
    for statement in found:
        for token in statement.tokens:
            first, last = int(token.start_pos or 0), int(token.end_pos or 0)
            pieces += _between(text[at:first])
            pieces.append((_kind(token.type), text[first:last]))
            at = last
    rest = text[at:end]
    if rest.lstrip()[:1] in ("'", '"'):
        return [*pieces, ("text", rest)]
    return [*pieces, *_between(rest)]


def _kind(type_: str) -> str:
    if type_ in _KINDS:
        return _KINDS[type_]
    return "symbol" if type_ in _SYMBOLS or type_ == "CONCAT" else "keyword"


def in_lines(pieces: list[Piece]) -> list[list[Piece]]:
    """The pieces of each line, without the newlines."""
    lines: list[list[Piece]] = [[]]
    for kind, text in pieces:
        first, *others = text.split("\n")
        if first:
            lines[-1].append((kind, first))
        for other in others:
            lines.append([(kind, other)] if other else [])
    return lines
