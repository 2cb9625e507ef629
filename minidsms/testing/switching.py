"""Plans and sharing that change while a feed goes on, and queries that are parted from the others: whatever runs, the
answer must not show it (docs/semantics T5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from minidsms.streamon.forcing import ForcedSwitching

if TYPE_CHECKING:
    from minidsms.connection import Connection

Before = Callable[[Any, int, list[Any]], None]
"""Called before each call of a feed, and once after the last: connection, number of the call, running queries."""


def switching(seed: int) -> Before:
    """Before nearly every second call sharing is switched, often several times, so that copies are copied. At times a
    query is given a batch size of its own, which parts it from the others.
    """
    rng = Random(seed)

    def before(db: Any, step: int, queries: list[Any]) -> None:
        for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 1, 2, 3))):
            db.execute(f"SET sharing = {'off' if db.settings['sharing'] == 'on' else 'on'}")
        if queries and rng.random() < 0.05:
            rng.choice(queries).set("batch_size", rng.choice((1, 3, 1000)))

    return before


def in_turn(*calls: Before | None) -> Before | None:
    """All of them, one after the other."""
    given = [call for call in calls if call is not None]

    def before(db: Any, step: int, queries: list[Any]) -> None:
        for call in given:
            call(db, step, queries)

    return before if given else None


@contextmanager
def forced_switching(db: Connection, every: int = 1, seed: int = 0) -> Iterator[None]:
    """Within the block, every adaptive place of every query of the connection switches its plan at each `every`-th
    element, to a random legal one. Statistics do not count meanwhile.

    The switches stand in the plan log with the reason "forced". The same seed and input give the same switches.
    """
    if every < 1:
        raise ValueError("plans are switched at every element at most")
    before, db.streamon.forcing = db.streamon.forcing, ForcedSwitching(every, seed)
    try:
        yield
    finally:
        db.streamon.forcing = before
