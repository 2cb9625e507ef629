"""Columns in which no two rows of a relation agree at one instant: keys, declared or by construction.

A declared key is that of a stream or relation. By construction groups differ in what they are grouped by, rows of
DISTINCT in all columns, and the last rows of `[PARTITION BY k ROWS 1]` in k: each node says so (`Node.known_keys`).
NULLs do not count: rows that agree in a key may do so in a NULL, by which nothing is joined (docs/semantics R2).

Invariant: what is said of a relation holds at every instant, of one with a declared key as far as that is true;
from instant to instant rows with one key may follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql.scalar import ColumnRef, Expr

Key = frozenset[int]
"""Columns, by number."""


def key_among(keys: Iterable[Key], columns: Sequence[int]) -> Key | None:
    """The first key that lies within the columns by which a relation is joined; else the first of all."""
    found = list(keys)
    return next((key for key in found if key <= set(columns)), found[0] if found else None)


def shown_by(keys: Iterable[Key], exprs: Sequence[Expr]) -> list[Key]:
    """The keys all whose columns are among these expressions, by their numbers there."""
    places = {e.index: i for i, e in reversed(list(enumerate(exprs))) if isinstance(e, ColumnRef)}
    return [frozenset(places[c] for c in key) for key in keys if all(c in places for c in key)]


def declared(key: Sequence[int]) -> list[Key]:
    """The key of a declaration, where it has one."""
    return [frozenset(key)] if key else []
