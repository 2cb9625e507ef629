"""Rows as Python has them: tuples whose values are found by the names of their columns, too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

from minidsms.expressions.timestamps import iso_of_ticks


class Row(tuple[Any, ...]):
    """A row of an answer: equal to the plain tuple, and shown as one but for instants, of which the times are shown;
    `row.page` is its value in the column page.

    A column whose name is no identifier, begins with an underscore, or is another column's too, is found by its place
    alone. Copies and pickles of a row are plain tuples.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    """The names of the columns, as pandas and others look for them."""

    _times: ClassVar[frozenset[int]] = frozenset()
    """The places of the columns of type TIMESTAMP."""
    _tick_ns: ClassVar[int] = 1

    def __repr__(self) -> str:
        if not self._times:
            return tuple.__repr__(self)
        shown = [
            iso_of_ticks(value, self._tick_ns) if i in self._times and value is not None else repr(value)
            for i, value in enumerate(self)
        ]
        return f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"

    def _asdict(self) -> dict[str, Any]:
        """The values by the names of their columns."""
        return dict(zip(self._fields, self))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return tuple, (tuple(self),)


class Change(NamedTuple):
    """One element of an answer: at instant ts the row enters (+1) or leaves (-1); streams only have +1."""

    ts: int
    sign: int
    row: Row


class _TimedChange(Change):
    """Where instants are times, the time is shown; `ts` is a number of ticks all the same."""

    __slots__ = ()
    _tick_ns: ClassVar[int] = 1

    def __repr__(self) -> str:
        return f"Change(ts={iso_of_ticks(self.ts, self._tick_ns)}, sign={self.sign}, row={self.row!r})"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Change, tuple(self)


@cache
def change_type(tick_ns: int) -> type[Change]:
    """The changes whose instants are times of so many nanoseconds a tick."""
    return type("Change", (_TimedChange,), {"__slots__": (), "_tick_ns": tick_ns, "__module__": Change.__module__})


def row_type(names: Sequence[str], times: Collection[int] = (), tick_ns: int = 1) -> type[Row]:
    """The rows that have these columns. times: places of those that are shown as times, of so many nanoseconds."""
    said: dict[str, Any] = {
        name: property(itemgetter(i))
        for i, name in enumerate(names)
        if name.isidentifier() and not name.startswith("_") and names.count(name) == 1
    }
    own = {"__slots__": (), "_fields": tuple(names), "_times": frozenset(times), "_tick_ns": tick_ns}
    return type("Row", (Row,), {**own, **said})
