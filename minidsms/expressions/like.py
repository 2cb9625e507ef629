"""LIKE patterns: % stands for any text, _ for one character; case counts.

A pattern is cut at its %s into pieces; the first and last are anchored, each other one is taken at its leftmost place.
That is complete, because a piece further left never takes room from a later one, and needs no backtracking: it costs at
most len(text) * len(pattern) whatever the pattern (patterns may come from strangers).
"""

from __future__ import annotations

from collections.abc import Callable

_ANY = None
"""A piece is a text, or characters among which this entry stands for an arbitrary one."""

Piece = str | tuple[str | None, ...]


def matcher(pattern: str, escape: str = "") -> Callable[[str], bool]:
    """Whether a text matches the pattern. escape: the character that makes the next one ordinary, or "".

    An escape character at the very end stands for itself.

    >>> [matcher("a%_c")(t) for t in ("abc", "ac", "axxc")]
    [True, False, True]
    """
    pieces = _pieces(pattern, escape)
    if len(pieces) == 1:
        (only,) = pieces
        return lambda text: len(text) == len(only) and _at(only, text, 0)
    first, *middle, last = pieces

    def matches(text: str) -> bool:
        end = len(text) - len(last)
        if end < len(first) or (first and not _at(first, text, 0)) or (last and not _at(last, text, end)):
            return False
        position = len(first)
        for piece in middle:
            position = _find(piece, text, position, end)
            if position < 0:
                return False
            position += len(piece)
        return True

    return matches


def fixed_beginning(pattern: str, escape: str = "") -> tuple[str, bool] | None:
    """(what a text must begin with, whether that is all of it) where the pattern says nothing else; else None.

    >>> fixed_beginning("ab%"), fixed_beginning("ab"), fixed_beginning("a_b%"), fixed_beginning("%b")
    (('ab', False), ('ab', True), None, None)
    """
    first, *others = _pieces(pattern, escape)
    return (first, not others) if isinstance(first, str) and not any(others) else None


def _pieces(pattern: str, escape: str) -> list[Piece]:
    pieces: list[list[str | None]] = [[]]
    i = 0
    while i < len(pattern):
        character = pattern[i]
        if escape and character == escape and i + 1 < len(pattern):
            i += 1
            pieces[-1].append(pattern[i])
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(_ANY if character == "_" else character)
        i += 1
    # Empty pieces between two %s match everywhere.
    inner = [p for p in pieces[1:-1] if p]
    kept = [pieces[0], *inner, pieces[-1]] if len(pieces) > 1 else pieces
    return [tuple(p) if _ANY in p else "".join(c for c in p if c is not None) for p in kept]


def _at(piece: Piece, text: str, start: int) -> bool:
    if isinstance(piece, str):
        return text.startswith(piece, start)
    return all(wanted is _ANY or wanted == text[start + i] for i, wanted in enumerate(piece))


def _find(piece: Piece, text: str, start: int, end: int) -> int:
    """The first place of the piece in text[start:end], or -1."""
    if isinstance(piece, str):
        return text.find(piece, start, end)
    for position in range(start, end - len(piece) + 1):
        if _at(piece, text, position):
            return position
    return -1
