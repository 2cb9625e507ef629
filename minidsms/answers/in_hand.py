"""Changes that an iterator has taken of a query and gives one by one.

Invariant: what an iterator that is left behind (by `break`, or an exception) has not given waits again, before what
came since. Python may free an iterator anywhere, amid a call of the engine; so it is only noted that it is over.
docs/python-api.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minidsms.answers.rows import Change
from minidsms.elements import Batch


class InHand:
    """batches: that were taken.  changes: of these, as they are given.  given: how many have been.  is_over: no more
    will be.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.changes: list[Change] = []
        self.given = 0
        self.is_over = False

    def __iter__(self) -> Iterator[Change]:
        try:
            for change in self.changes:
                self.given += 1
                yield change
        finally:
            self.leave()

    def leave(self) -> None:
        """Give nothing more."""
        self.is_over = True
        self.changes.clear()

    @property
    def left(self) -> int:
        """How many wait again."""
        return sum(map(len, self.batches)) - self.given if self.is_over else 0

    def rest(self) -> list[Batch]:
        """What has not been given."""
        passed, rest = self.given, []
        for batch in self.batches:
            if passed < len(batch):
                rest.append(batch.slice(passed, len(batch)) if passed else batch)
            passed = max(0, passed - len(batch))
        return rest
