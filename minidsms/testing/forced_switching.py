"""Plans that change all the time, for tests: whatever runs, the answer must not show it (docs/semantics T5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minidsms.connection import Connection
from minidsms.streamon.forcing import ForcedSwitching


@contextmanager
def forced_switching(db: Connection, every: int = 1, seed: int = 0, plan: Any = None) -> Iterator[None]:
    """Within the block, every adaptive place of every query of the connection switches its plan at each `every`-th
    element: to `plan` where that is legal, else, with None, to a random legal one. Statistics do not count meanwhile.

    The switches stand in the plan log with the reason "forced". The same seed and input give the same switches.
    """
    if every < 1:
        raise ValueError("plans are switched at every element at most")
    before, db.streamon.forcing = db.streamon.forcing, ForcedSwitching(every, seed, plan)
    try:
        yield
    finally:
        db.streamon.forcing = before
