"""Joins over streams with ranges keep fewer rows when memory gets short: `SET state_reduction = 'auto'`.

A plan is whether the join keeps only rows that can still matter; which these are says `streamon.k_mon`. What is not
kept does not come back, so the change is for good.
"""

from __future__ import annotations

from collections.abc import Iterable

from minidsms.streamon.loop import adaptations_of

TECHNIQUE = "state reduction"
"""As the plan log calls it."""


def reduce_state(operators: Iterable[object], instant: int) -> bool:
    """Memory is short: ask the joins among these for what can still matter of their rows; whether one keeps only that
    from now on.
    """
    places = [place for place in adaptations_of(operators) if place.technique == TECHNIQUE]
    return any([place.reconsider(instant) for place in places])
