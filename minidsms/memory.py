"""What a connection holds, in bytes, and the limit it keeps to. docs/design, point 10.

Invariants: what would pass `memory_limit` is refused before anything is changed; the dictionary never holds more than
twice the texts that were in use when it was last swept, or 100,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from minidsms.cql.errors import MemoryLimitError
from minidsms.elements import Int64Array, Type

if TYPE_CHECKING:
    from minidsms.connection import Connection


_SWEEP_AT = 100_000


class MemoryAccount:
    """The account of one connection."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._sweep_at = _SWEEP_AT

    @property
    def nbytes(self) -> int:
        """Bytes held by streams, relations and operators."""
        held = sum(each.nbytes for each in self._db.inputs)
        return held + sum(group.nbytes for group in self._db.groups.all)

    def admit(self, nbytes: int) -> None:
        """Refuse a push that would pass the limit: MemoryLimitError."""
        limit = self._db.settings["memory_limit"]
        if limit is None:
            return
        held = self.nbytes
        if held + nbytes > limit:
            # Rings keep their size for a while after what filled them has gone; now it is needed.
            for each in self._db.inputs:
                shrink: Callable[[], None] | None = getattr(each.store, "shrink", None)
                if shrink is not None:
                    shrink()
            held = self.nbytes
        if held + nbytes > limit:
            raise MemoryLimitError(
                f"{held:,} bytes are held and {nbytes:,} more would pass the memory_limit of {limit:,}; "
                "push less at once, advance the streams that hold time back, or SET memory_limit"
            )

    def sweep(self) -> None:
        """Let the dictionary drop the codes nobody holds, when it has grown enough. Called while the engine rests."""
        dictionary = self._db.dictionary
        if len(dictionary) > self._sweep_at:
            dictionary.sweep(self._live_codes())
            self._sweep_at = max(_SWEEP_AT, 2 * len(dictionary))

    def _live_codes(self) -> Iterator[Int64Array]:
        """Every array of TEXT codes that something still holds."""
        for each in self._db.inputs:
            yield from each.live_codes()
        for group in self._db.groups.all:
            yield from group.live_codes()
        for query in self._db.queries.values():
            for batch in query.live_batches():
                for i, type_ in enumerate(query.schema.types):
                    if type_ is Type.TEXT:
                        yield batch.column(i).values  # type: ignore[misc]
