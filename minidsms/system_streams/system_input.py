"""The input of a stream that the engine writes itself.

Invariant: nobody else writes it or moves its time. Its instants are the connection's clock's, and an instant is closed
as soon as it has been published, so that queries over it answer at once.  docs/sys-stream.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minidsms.cql.errors import Error
from minidsms.inputs.stream_input import StreamInput


class SystemInput(StreamInput):
    """What the engine publishes; what the memory limit does not admit is left out."""

    def push(self, data: Any, *how: Any, **options: Any) -> int:
        """Refused: Error."""
        raise Error(f"{self.definition.name} is written by the engine; declare a stream of your own to push into")

    def push_row(self, row: tuple[Any, ...], *how: Any, **options: Any) -> int:
        """Refused: Error."""
        return self.push(row)

    def advance(self, ts: Any) -> None:
        """Refused: Error."""
        raise Error(f"the time of {self.definition.name} is the connection's clock; it takes no heartbeats")

    def publish(self, columns: Mapping[str, Sequence[Any]]) -> bool:
        """Write rows at the clock's present instant, which closes it; False where nothing could be written.

        columns: all but the first, which is the instant.
        """
        if self.ended:
            return False
        n = len(next(iter(columns.values())))
        try:
            now = self._now()
            # All of the publication or none of it, and never an error in the caller's push.
            self.publish_again({self.schema[0].name: [now] * n, **columns}, now)
        except (Error, MemoryError):
            return False
        return True

    def publish_again(self, columns: Any, now: int) -> None:
        """Write what was published up to an instant, as a folder keeps it."""
        if isinstance(columns, tuple):
            super().push_row(columns, None)
        else:
            super().push(columns)
        self.complete(now, self.begin(now))

    def pass_over(self, ts: int) -> None:
        """What was published up to ts matters to nobody."""
        self.complete(ts, self.begin(ts))
        self.greatest_ts = ts if self.greatest_ts is None else max(ts, self.greatest_ts)
