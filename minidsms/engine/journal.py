"""What a connection tells of each change, so that a folder may keep it (`minidsms.durability.log_writer`).

Invariant: what is told before a change has been kept when the call returns; where that fails, it raises, and nothing
has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minidsms.durability.input_journal import InputJournal
    from minidsms.durability.segments import Part
    from minidsms.elements import Batch, BoolArray, Int64Array, Schema
    from minidsms.engine.running_query import RunningQuery
    from minidsms.operators.operator import Failure
    from minidsms.values.dictionary import TextDictionary

_NOTHING = contextlib.nullcontext()


class Journal:
    """Of a connection in memory: it keeps nothing."""

    keeps_answers = False
    """Answers that nobody has taken stay when the process ends."""

    @property
    def may_publish(self) -> bool:
        """What the engine measures may be told now."""
        return True

    def entry(self, kind: str, rows: Sequence[Part] = (), **fields: Any) -> contextlib.AbstractContextManager[None]:
        """What the context changes is kept as one. rows: behind what the fields say."""
        return _NOTHING

    def append(self, **fields: Any) -> None:
        """The call does this next."""

    def commit(self) -> None:
        """Answers are about to be seen: what they were made of stays."""

    def of_input(self, name: str, schema: Schema, dictionary: TextDictionary, is_relation: bool) -> InputJournal | None:
        """What a new stream or relation tells of its elements; None: nothing."""
        return None

    def note_advance(self, ts: int, key: str | None) -> None:
        """A heartbeat is going to be taken. key: of the only input that it is for."""

    def note_shed(self, rows: Int64Array, kept: BoolArray | None) -> None:
        """Of these rows of a push, (n,), those are stored, (n,); None: all."""

    def note_taken(self, query: RunningQuery, until: int) -> Callable[[], None]:
        """Answers before this position of the query's need not be kept. What takes that back, as long as nothing else
        has been noted.
        """
        return _forget_nothing

    def note_left_taken(self, rules: str) -> None:
        """The answers of a table's queries whose rows are gone need not be kept."""

    def note_failure(self, query: RunningQuery, failure: Failure) -> None:
        """A query has failed."""

    def ending_of(self, query: RunningQuery) -> tuple[Failure, int] | None:
        """Where a query that is going to run failed when it ran before, and how many answers it had given."""
        return None

    def cut_short(self, error: BaseException) -> None:
        """An exception has come out of a step."""

    def following(self) -> contextlib.AbstractContextManager[None]:
        """The context registers and ends queries because rows of a table have come or gone."""
        return _NOTHING

    def end(self, query: RunningQuery, leave: Callable[[Sequence[Batch]], None]) -> None:
        """A query of a table's row is about to be closed. leave: see `Database.end_followed`."""

    def forget(self, query: RunningQuery) -> None:
        """A query has been closed."""


def _forget_nothing() -> None:
    """Nothing has been noted."""
