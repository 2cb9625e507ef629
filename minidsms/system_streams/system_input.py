"""The input of a stream that the engine writes itself.

Invariant: nobody else writes it or moves its time. Its instants are the connection's clock's, and an instant is closed
as soon as it has been published, so that queries over it answer at once.  docs/sys-stream.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error, MemoryLimitError
from minidsms.inputs.stream_input import StreamInput

if TYPE_CHECKING:
    pass


class SystemInput(StreamInput):
    """What the engine publishes; what the memory limit does not admit is left out."""

    is_system = True

    def push(self, data: Any, *how: Any, **options: Any) -> int:
        """Refused: Error."""
        raise Error(f"{self.definition.name} is written by the engine; declare a stream of your own to push into")

    def advance(self, ts: Any) -> None:
        """Refused: Error."""
        raise Error(f"the time of {self.definition.name} is the connection's clock; it takes no heartbeats")

    def publish(self, columns: Mapping[str, Sequence[Any]]) -> bool:
        """Write rows at the clock's present instant, which closes it; False where nothing could be written.

        columns: all but the first, which is the instant.
        """
        if self.ended:
            return False
        now = self._now()
        n = len(next(iter(columns.values())))
        try:
            # All of the publication or none of it, and never an error in the caller's push.
            super().push({self.schema[0].name: [now] * n, **columns})
        except (MemoryLimitError, MemoryError):
            return False
        self.complete(now, self.begin(now))
        return True
