"""A number with its noun, as messages name it."""

from __future__ import annotations


def counted(n: int, one: str, more: str = "") -> str:
    """So many of a thing. more: the plural, where it is not the singular with an s.

    >>> counted(1, "row"), counted(20000, "row"), counted(0, "query", "queries")
    ('1 row', '20,000 rows', '0 queries')
    """
    return f"{n:,} {one if n == 1 else more or one + 's'}"
