"""Which elements of the log still matter, at a moment when the engine is at rest.

A query's answers after its last closed instant F follow from the elements after F less its reach, as many of the last
as its ROWS windows hold, the content of its relations from there on, and its inputs' progress (`archive/horizon.py`).
Where aggregates and DISTINCT read all that came, their state is kept instead (`kept_state.py`). Where a plan has no
reach, all that its inputs brought matters: PARTITION windows, other UNBOUNDED ones, RSTREAM, windows over derived
streams.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from minidsms.archive.horizon import Reach, reach_of
from minidsms.durability.kept_state import KeptState, kept_state
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.inputs.stream_input import StreamInput

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


class Retention:
    """By input: the instant up to which its elements matter to no query any more.

    whole: names of queries to which all matters, whatever their plans say.  instants: of the elements of an input that
    are in the log, in any order.  created: names of queries whose operators' state can be kept: one entry creates them.
    """

    def __init__(
        self, db: Connection, whole: Collection[str], created: Collection[str], instants: Callable[[str], Int64Array]
    ) -> None:
        self.past: dict[str, int] = {}
        self.whole: set[str] = set()
        """The queries that need all that their inputs brought."""
        self.states: dict[str, KeptState] = {}
        """Of queries that go on from their operators' state."""
        for each in db.inputs:
            if each.journal is not None:
                self.past[each.definition.name.lower()] = min(each.progress, MAX_INSTANT)
        names = {id(each): each.definition.name.lower() for each in db.inputs}
        for key, query in db.queries.items():
            reach = None if key in whole else _reach(query)
            if reach is None and key not in whole and key in created and _is_at_work(query):
                state = kept_state(query)
                if state is not None:
                    reach, self.states[key] = state.reach, state
            if reach is not None and any(drops_late(db, name) for name in reach.rows):
                reach = None  # an element that came late counts in no window
                self.states.pop(key, None)
            if reach is None:
                self.whole.add(query.name)
            for read in (*query.network.streams, *query.network.relations):
                name = names[id(read)]
                past = MIN_INSTANT
                if reach is not None:
                    past = max(MIN_INSTANT, query.closed_until - reach.ticks)
                    if name in reach.rows:
                        past = min(past, before_last(instants(name), reach.rows[name], query.closed_until))
                self.past[name] = min(past, self.past[name])


def _reach(query: Query) -> Reach | None:
    """What matters to a query of its past; None: all."""
    return reach_of(query.logical) if _is_at_work(query) else None


def _is_at_work(query: Query) -> bool:
    """It has answered, and will."""
    return query.failure is None and query.closed_until != MIN_INSTANT


def drops_late(db: Connection, name: str) -> bool:
    """Of an input elements may be dropped because of those that came before them."""
    target = db.stream_input(name)
    return isinstance(target, StreamInput) and target.definition.late_drop


def before_last(instants: Int64Array, n: int, until: int) -> int:
    """The instant before those of the last n elements up to an instant."""
    there = instants[instants <= until]
    return MIN_INSTANT if len(there) <= n else int(np.partition(there, len(there) - n)[len(there) - n]) - 1
