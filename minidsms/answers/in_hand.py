"""The first of the answers that wait, decoded in portions and given to loops over the query change by change.

Invariant: what no loop has come to waits, before what came since; whoever asks next is given it, another loop or
`fetch`. Loops take changes without the engine's lock, all from one iterator of a list.
docs/python-api.md, docs/durability.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint

from minidsms.answers.results import ResultCodec
from minidsms.answers.rows import Change
from minidsms.answers.waiting import after, parts_of
from minidsms.elements import Batch

_PORTION = 1 << 11
"""Changes that are decoded together: in the processor's caches when the loop comes to them."""


class Loop:
    """A loop over a query, which holds this as long as it may be at a change: Python may free an iterator anywhere,
    amid a call of the engine, and no step of Python should be taken then.

    since: the position of the first change that it may be at; -1 before it has asked.
    """

    __slots__ = ("__weakref__", "since")

    def __init__(self) -> None:
        self.since = -1


class InHand:
    """begin: the position of the first of its changes, where a folder keeps answers.  before: those just before, which
    loops may still be at.
    """

    __slots__ = ("_batches", "_before", "_changes", "_decoded", "_n", "_parts", "begin")

    def __init__(self, batches: list[Batch], begin: int, before: list[Batch]) -> None:
        self._batches, self.begin, self._before = batches, begin, before
        self._n = sum(map(len, batches))
        self._decoded = 0
        self._parts = parts_of(batches, _PORTION)
        self._changes: Iterator[Change] = iter(())

    @property
    def is_large(self) -> bool:
        """It holds more than loops are given at once."""
        return self._n > _PORTION

    @property
    def left(self) -> int:
        """How many no loop has come to."""
        return self._n - self._decoded + length_hint(self._changes)

    def portion(self, codec: ResultCodec) -> Iterator[Change]:
        """The next changes, for all loops. Where they cannot be decoded, nothing has changed."""
        if not length_hint(self._changes):
            changes: list[Change] = []
            try:
                for part in self._parts:
                    changes += codec.changes(part)
                    if len(changes) >= _PORTION:
                        break
            except BaseException:
                self._parts = parts_of(after(self._batches, self._decoded), _PORTION)
                raise
            self._changes = iter(changes)
            self._decoded += len(changes)
        return self._changes

    @property
    def batches(self) -> list[Batch]:
        """All that it holds."""
        return [*self._before, *self._batches]

    def rest(self) -> list[Batch]:
        """What no loop has come to."""
        return after(self._batches, self._n - self.left)

    def kept(self, since: int) -> list[Batch]:
        """What stands at this position and behind it."""
        if since >= self.begin:
            return after(self._batches, since - self.begin)
        behind = sum(map(len, self._before)) - (self.begin - since)
        return [*(after(self._before, behind) if behind > 0 else self._before), *self._batches]

    def held(self, since: int) -> int:
        """How many stand at this position and behind it, or no loop has come to."""
        before = min(self.begin - since, sum(map(len, self._before)))
        return max(self.left, self._n + before)

    def give_up(self) -> list[Batch]:
        """The rest; loops are given nothing more of it."""
        left = len(list(self._changes))  # in one step: other threads' loops may be at it
        rest = after(self._batches, self._decoded - left)
        self._n = self._decoded
        return rest
