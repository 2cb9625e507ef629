"""What is new of many queries at once, for callbacks that take all of it in one call.

Invariant: looking for news costs what is new, not how many queries there are: queries with operators say so when they
are given something, and of folded ones their screens know.  docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minidsms.engine.group import Group
from minidsms.engine.running_query import Change, RunningQuery

Told = Callable[[list[tuple[Any, list[Change]]]], Any]


class News:
    """groups: gives those of the connection."""

    def __init__(self, groups: Callable[[], Iterable[Group]]) -> None:
        self._groups = groups
        self.is_wanted = False
        """There is a callback of many queries."""
        self._callbacks: list[tuple[Told, Callable[[Any], bool]]] = []
        self._noted: dict[str, RunningQuery] = {}
        self._others: set[Told] = set()

    def want(self, fn: Told, wants: Callable[[Any], bool]) -> None:
        """Tell fn of the queries that it wants, from now on."""
        self._callbacks.append((fn, wants))
        self.is_wanted = True

    def forget(self, fn: Told) -> None:
        """Tell fn of nothing more."""
        self._callbacks = [each for each in self._callbacks if each[0] is not fn]
        self._others.discard(fn)
        self.is_wanted = bool(self._callbacks)

    def note_other(self, fn: Told) -> None:
        """There is something that fn knows of itself: it is to be called."""
        self._others.add(fn)

    def note(self, query: RunningQuery) -> None:
        """A query has been given something, and that is wanted."""
        self._noted[query.name] = query

    def take(self) -> list[tuple[Told, list[tuple[RunningQuery, list[Change]]]]]:
        """(callback, what it is to be told), without those of whom nothing is new; the rows wait no more.

        Queries that have callbacks or a sink of their own are left to these.
        """
        fresh, self._noted = self._noted, {}
        others, self._others = self._others, set()
        for group in self._groups():
            for screen in group.screens:
                for definition in screen.answers.news():
                    fresh[definition.query.name] = definition.query
        left = [q for q in fresh.values() if q.sink is None and not q.callbacks() and q.is_waiting]
        told: list[tuple[Told, list[tuple[RunningQuery, list[Change]]]]] = [(fn, []) for fn, _ in self._callbacks]
        for query in left:
            wanted = [news for (_, news), (_, wants) in zip(told, self._callbacks) if wants(query)]
            changes = query.take() if wanted else []
            for news in wanted:
                news.append((query, changes))
        return [(fn, news) for fn, news in told if news or fn in others]
