"""The input of a stream that the engine writes itself.

Invariant: nobody else writes it or moves its time. Its instants are the connection's clock's, and an instant is closed
as soon as it has been published, so that queries over it answer at once.  docs/sys-stream.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.cql.catalog import StreamDef
from minidsms.cql.errors import Error, MemoryLimitError
from minidsms.dictionary import TextDictionary
from minidsms.inputs.stream_input import StreamInput

if TYPE_CHECKING:
    from minidsms.limits.admission import Admission


class SystemInput(StreamInput):
    """skipped: publications that the memory limit did not admit."""

    is_system = True

    def __init__(
        self,
        definition: StreamDef,
        dictionary: TextDictionary,
        tick_ns: int,
        clock: Callable[[], int],
        admission: Admission,
    ) -> None:
        super().__init__(definition, dictionary, tick_ns, clock, admission)
        self.skipped = 0

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
            self.skipped += 1
            return False
        self.complete(now, self.begin(now))
        return True
