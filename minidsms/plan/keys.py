"""Columns in which no two rows of a relation agree at one instant: keys, declared or by construction.

A declared key is that of a stream or relation. By construction groups differ in what they are grouped by, rows of
DISTINCT in all columns, and the last rows of `[PARTITION BY k ROWS 1]` in k. NULLs do not count: rows that agree in a
key may do so in a NULL, by which nothing is joined (docs/semantics R2).

Invariant: what is said here of a relation holds at every instant, of one with a declared key as far as that is true;
from instant to instant rows with one key may follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node, WindowKind
from minidsms.cql.catalog import Catalog
from minidsms.plan.logical import Entering, GroupBy, SemiJoin

Key = frozenset[int]
"""Columns, by number."""


def keys_of(node: Node, catalog: Catalog) -> list[Key]:
    """Keys of what the node gives, those first that hold by construction."""
    match node:
        case bound.BaseStream():
            return _declared(catalog.streams[node.name.lower()].key)
        case bound.BaseRelation():
            return _declared(catalog.relations[node.name.lower()].key)
        case bound.Window(spec=spec) if spec.kind is WindowKind.PARTITION and spec.rows == 1:
            return [frozenset(spec.keys), *keys_of(node.input, catalog)]
        case bound.Window() | bound.Filter() | Entering():
            return keys_of(node.input, catalog)
        case SemiJoin():
            return keys_of(node.left, catalog)
        case bound.Project():
            return shown_by(keys_of(node.input, catalog), node.exprs)
        case GroupBy():
            return [frozenset(range(len(node.keys)))]
        case bound.Distinct():
            return [frozenset(range(len(node.schema))), *keys_of(node.input, catalog)]
        case bound.SetOperation(all=False):
            return [frozenset(range(len(node.schema)))]
        case _:
            return []


def key_among(keys: Iterable[Key], columns: Sequence[int]) -> Key | None:
    """The first key that lies within the columns by which a relation is joined; else the first of all."""
    found = list(keys)
    return next((key for key in found if key <= set(columns)), found[0] if found else None)


def shown_by(keys: Iterable[Key], exprs: Sequence[Expr]) -> list[Key]:
    """The keys all whose columns are among these expressions, by their numbers there."""
    places = {e.index: i for i, e in reversed(list(enumerate(exprs))) if isinstance(e, bound.ColumnRef)}
    return [frozenset(places[c] for c in key) for key in keys if all(c in places for c in key)]


def _declared(key: tuple[int, ...]) -> list[Key]:
    return [frozenset(key)] if key else []
