"""Rows as Python has them: tuples whose values are found by the names of their columns, too."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, ClassVar


class Row(tuple[Any, ...]):
    """A row of an answer: equal to the plain tuple, and shown as one; `row.page` is its value in the column page.

    A column whose name is no identifier, begins with an underscore, or is another column's too, is found by its place
    alone. Copies and pickles of a row are plain tuples.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    """The names of the columns, as pandas and others look for them."""

    def _asdict(self) -> dict[str, Any]:
        """The values by the names of their columns."""
        return dict(zip(self._fields, self))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return tuple, (tuple(self),)


def row_type(names: Sequence[str]) -> type[Row]:
    """The rows that have these columns."""
    said = {
        name: property(itemgetter(i))
        for i, name in enumerate(names)
        if name.isidentifier() and not name.startswith("_") and names.count(name) == 1
    }
    return type("Row", (Row,), {"__slots__": (), "_fields": tuple(names), **said})
