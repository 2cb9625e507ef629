"""A driver of files that are read into inputs which stay open: more may come when they have ended.

Invariant: a stream whose file has ended holds nobody back: its time goes on with those that are still read, and in the
end every stream has closed the last instant of all, so that everything read is answered. A later file may go on from
there.  docs/semantics T4.
"""

from __future__ import annotations

from collections.abc import Callable

from minidsms.inputs.stream_input import StreamInput
from minidsms.sources.driver import SourceDriver
from minidsms.sources.driver_entry import Entry


class Replay(SourceDriver):
    """See the module; otherwise as `SourceDriver`."""

    def step(self, until: int | None = None, refused: Callable[[], None] = lambda: None) -> bool:
        """Push one more block, and let the time of streams whose files have ended follow."""
        went_on = super().step(until, refused)
        streams = [(e.target, e.ended) for e in self._entries if isinstance(e.target, StreamInput)]
        running = [target.progress for target, ended in streams if not ended]
        seen = [target.greatest_ts for target, _ in streams if target.greatest_ts is not None]
        if running or seen:
            level = min(running) if running else max(seen)
            for target, ended in streams:
                if ended:
                    target.heartbeat(level)
        return went_on

    def leave(self) -> None:
        """Nobody else reads what is left: the sources are closed."""
        for entry in self._entries:
            entry.source.close()

    def _finish(self, entry: Entry) -> None:
        """The input stays open; `step` moves its time on."""
