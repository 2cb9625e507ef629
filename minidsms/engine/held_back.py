"""Why a query seems stuck: which input holds its time back, and what waits for it.

A query answers up to its frontier, the least progress of its streams (docs/semantics T4). Elements beyond it wait in
the streams' stores. Where they do, the stream of the least progress is what they wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.counted import counted
from minidsms.elements import MIN_INSTANT
from minidsms.engine.network import Network
from minidsms.inputs.stream_input import StreamInput
from minidsms.synopses.stream_store import StreamStore


@dataclass(frozen=True)
class HeldBack:
    """stream: of the least progress, here given.  waiting: elements that wait for it, the latest at instant until."""

    stream: str
    progress: int
    waiting: int
    until: int

    @property
    def behind(self) -> int:
        """Ticks between what is closed and the latest element that waits."""
        return self.until - self.progress if self.progress > MIN_INSTANT else 0

    def __str__(self) -> str:
        shown = f"is at {self.progress}" if self.progress > MIN_INSTANT else "has shown nothing yet"
        waiting = f"{counted(self.waiting, 'element')} of other inputs {'waits' if self.waiting == 1 else 'wait'}"
        return (
            f"time is held back by stream {self.stream}, which {shown}: {waiting}, up to instant {self.until}; "
            f"push into {self.stream}, or advance it"
        )


def held_back(network: Network) -> HeldBack | None:
    """What holds a query's time back, or None where nothing waits for another input."""
    streams = [s for s in network.streams if isinstance(s, StreamInput)]
    open_ = [s for s in streams if not s.ended]
    if len(streams) < 2 or not open_:
        return None
    slowest = min(open_, key=lambda s: s.progress)
    waiting, until = 0, MIN_INSTANT
    for source in network.sources:
        n = source.waiting()
        store = getattr(source, "store", None)
        if n and not (isinstance(store, StreamStore) and slowest.store.feeds(store)):
            last = source.ts_of_waiting(n - 1)
            # What stands at the open instant of its own stream waits for that stream, not for another.
            if last > slowest.progress + 1:
                waiting += n
                until = max(until, last)
    return HeldBack(slowest.definition.name, slowest.progress, waiting, until) if waiting else None
