"""Which elements of the log still matter, at a moment when the engine is at rest.

A query's answers after its last closed instant F follow from the elements after F less its reach, as many of the last
as its ROWS windows hold, the content of its relations from there on, its inputs' progress, and the state of those of
its operators that have kept it (`archive/horizon.py`, `kept_state.py`). Where a plan has no reach, all that its inputs
brought matters; where it has failed, nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array

if TYPE_CHECKING:
    from minidsms.durability.kept_state import KeptState
    from minidsms.durability.moment import Moment


class Retention:
    """By input: the instant up to which its elements matter to no query any more.

    whole: by query, why all matters to it, whatever its plan says.  created: the queries that go on from their
    operators' state where they have one.  instants: of the elements of an input that are in the log, in any order,
    as far as a query sees them.
    """

    def __init__(
        self,
        moment: Moment,
        whole: Mapping[str, str],
        created: Collection[str],
        instants: Callable[[str, str], Int64Array],
    ) -> None:
        self.past = {name: min(each.progress, MAX_INSTANT) for name, each in moment.inputs.items()}
        self.whole: dict[str, str] = {}
        """The queries that need all that their inputs brought, and why."""
        self.states: dict[str, KeptState] = {}
        """Of queries that go on from it."""
        for key, query in moment.queries.items():
            if query.failure is not None and key in created and key not in whole:
                continue  # it answers nothing more
            state = query.state
            reason = whole.get(key, state.reach.whole)
            if not reason and state.operators and key not in created:
                reason = "its state is told with its creation, which is one with that of others"
            if reason:
                self.whole[query.name] = reason
            elif state.operators:
                self.states[key] = state
            for name in query.reads:
                past = MIN_INSTANT
                if not reason and query.has_begun:
                    past = max(MIN_INSTANT, query.closed_until - state.reach.ticks)
                    if name in state.reach.rows:
                        past = min(past, before_last(instants(name, key), state.reach.rows[name], query.closed_until))
                self.past[name] = min(past, self.past[name])


def before_last(instants: Int64Array, n: int, until: int) -> int:
    """The instant before those of the last n elements up to an instant."""
    there = instants[instants <= until]
    return MIN_INSTANT if len(there) <= n else int(np.partition(there, len(there) - n)[len(there) - n]) - 1
