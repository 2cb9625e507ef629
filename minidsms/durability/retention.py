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

from minidsms.archive.horizon import reach_of
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array

if TYPE_CHECKING:
    from minidsms.durability.kept_state import KeptState
    from minidsms.durability.moment import Moment


class Retention:
    """By input: the instant up to which its elements matter to no query any more.

    whole: names of queries to which all matters, whatever their plans say.  created: of those that go on from their
    operators' state where they have one.  instants: of the elements of an input that are in the log, in any order.
    """

    def __init__(
        self,
        moment: Moment,
        whole: Collection[str],
        created: Collection[str],
        instants: Callable[[str], Int64Array],
    ) -> None:
        self.past = {name: min(each.progress, MAX_INSTANT) for name, each in moment.inputs.items()}
        self.whole: set[str] = set()
        """The queries that need all that their inputs brought."""
        self.states: dict[str, KeptState] = {}
        """Of queries that go on from it."""
        for key, query in moment.queries.items():
            if query.failure is not None and key in created and key not in whole:
                continue  # it answers nothing more
            reach = reach_of(query.logical) if query.is_at_work and key not in whole else None
            if reach is None and query.state is not None and key in created and key not in whole:
                reach, self.states[key] = query.state.reach, query.state
            if reach is not None and any(moment.inputs[name].drops_late for name in reach.rows):
                reach = None  # an element that came late counts in no window
                self.states.pop(key, None)
            if reach is None:
                self.whole.add(query.name)
            for name in query.reads:
                past = MIN_INSTANT
                if reach is not None:
                    past = max(MIN_INSTANT, query.closed_until - reach.ticks)
                    if name in reach.rows:
                        past = min(past, before_last(instants(name), reach.rows[name], query.closed_until))
                self.past[name] = min(past, self.past[name])


def before_last(instants: Int64Array, n: int, until: int) -> int:
    """The instant before those of the last n elements up to an instant."""
    there = instants[instants <= until]
    return MIN_INSTANT if len(there) <= n else int(np.partition(there, len(there) - n)[len(there) - n]) - 1
