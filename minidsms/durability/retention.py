"""Which elements of the log still matter, at a moment when the engine is at rest.

A query's answers after its last closed instant F follow from the elements after F less its horizon, the content of its
relations from there on, and its inputs' progress (`archive/horizon.py`). Where a plan has no horizon, all that its
inputs brought matters: ROWS, PARTITION and UNBOUNDED windows, RSTREAM, windows over derived streams.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from minidsms.archive.horizon import horizon
from minidsms.elements import MAX_INSTANT, MIN_INSTANT

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


class Retention:
    """By input: the instant up to which its elements matter to no query any more.

    whole: names of queries to which all matters, whatever their plans say.
    """

    def __init__(self, db: Connection, whole: Collection[str] = ()) -> None:
        self.past: dict[str, int] = {}
        self.whole: set[str] = set()
        """The queries that need all that their inputs brought."""
        for each in db.inputs:
            if each.journal is not None:
                self.past[each.definition.name.lower()] = min(each.progress, MAX_INSTANT)
        names = {id(each): each.definition.name.lower() for each in db.inputs}
        for key, query in db.queries.items():
            past = MIN_INSTANT if key in whole else _past_of(query)
            if past == MIN_INSTANT:
                self.whole.add(query.name)
            for read in (*query.network.streams, *query.network.relations):
                name = names[id(read)]
                self.past[name] = min(past, self.past[name])


def _past_of(query: Query) -> int:
    """The instant up to which nothing matters to a query."""
    reach = None if query.failure is not None else horizon(query.logical)
    if reach is None or query.closed_until == MIN_INSTANT:
        return MIN_INSTANT
    return max(MIN_INSTANT, query.closed_until - reach)
