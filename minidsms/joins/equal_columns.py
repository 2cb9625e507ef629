"""Which columns of a join's inputs are equal in all its results: the classes that its equalities make.

Invariant: equal are those columns that a chain of equalities connects, and no others.  Babu 2005, section 5.2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Attribute = tuple[int, int]
"""An input and its column."""

Equality = tuple[Attribute, Attribute]
"""Two columns that must be equal."""


class EqualColumns:
    """Columns, by what is known to be equal to them (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[Attribute, Attribute] = {}

    def root(self, column: Attribute) -> Attribute:
        """The least column known to be equal."""
        while (parent := self._parents.get(column, column)) != column:
            column = parent
        return column

    def join(self, a: Attribute, b: Attribute) -> bool:
        """They are equal; whether that was not known."""
        least, other = sorted((self.root(a), self.root(b)))
        self._parents[other] = least
        return least != other

    def join_all(self, columns: Sequence[Attribute]) -> None:
        """They are equal to each other."""
        for column in columns[1:]:
            self.join(columns[0], column)


def classes_of(equalities: Iterable[Equality]) -> tuple[tuple[Attribute, ...], ...]:
    """The (input, column) that the equalities make equal to each other, each class and all of them sorted.

    >>> classes_of([((0, 0), (1, 0)), ((2, 1), (1, 0)), ((0, 2), (2, 3))])
    (((0, 0), (1, 0), (2, 1)), ((0, 2), (2, 3)))
    """
    known = EqualColumns()
    columns: dict[Attribute, None] = {}
    for a, b in equalities:
        known.join(a, b)
        columns.update({a: None, b: None})
    members: dict[Attribute, list[Attribute]] = {}
    for column in sorted(columns):
        members.setdefault(known.root(column), []).append(column)
    return tuple(map(tuple, members.values()))


def equalities_text(
    equalities: Sequence[Equality], columns: Sequence[Sequence[str]], inputs: Sequence[str] = ()
) -> str:
    """The equalities in words; those that make several columns equal as one.

    columns: the names of the columns of each input.  inputs: their names, where they have any.

    >>> equalities_text([((0, 0), (1, 0)), ((1, 1), (2, 1)), ((2, 0), (1, 0))], [["a", "b"]] * 3, ["R", "S", "T"])
    'R.a = S.a = T.a AND S.b = T.b'
    """
    prefixes = [f"{name}." for name in inputs] or [""] * len(columns)
    classes = {place: each for each in classes_of(equalities) for place in each}
    told: dict[tuple[Attribute, ...], Sequence[Attribute]] = {}
    for pair in equalities:
        whole = classes[pair[0]]
        told.setdefault(whole, pair if len(whole) == 2 else whole)
    return " AND ".join(" = ".join(prefixes[i] + columns[i][c] for i, c in each) for each in told.values())
