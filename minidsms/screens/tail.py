"""The tail of a query that a screen can run: rows of a box, some of their columns, and nothing else.

Select, Project, ISTREAM and Output of such a query keep no state and compute nothing. Behind a screen they are only a
line in its tables: the query is *folded*. It can be unfolded into operators whenever the engine is at rest, and is
where it goes its own way (paused, with settings of its own, archived, sharing off).

Invariant: folded or not, a query answers the same.  docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from minidsms.elements import Batch
from minidsms.screens.box import Box

if TYPE_CHECKING:
    from minidsms.engine.network import Network
    from minidsms.engine.running_query import RunningQuery
    from minidsms.operators.screen import Screen
    from minidsms.plan.explain import Plan
    from minidsms.plan.sharing import RunningOperators
    from minidsms.screens.answers import Portion, Subscription


class Definition(Protocol):
    """What a folded query was made of."""

    @property
    def query(self) -> RunningQuery:
        """The query."""

    def plan(self) -> Plan:
        """What EXPLAIN shows, without a network."""

    def network(self, leading: RunningOperators) -> Network:
        """Its operators behind those that lead to the screen."""


@dataclass(frozen=True, slots=True)
class Tail:
    """box: the rows it wants, of the operator that it reads.  columns: those it shows, in its order.

    grow: is told of bytes that wait to be fetched.
    """

    box: Box
    columns: tuple[int, ...]
    definition: Definition
    grow: Callable[[int], None]


class Folding:
    """Whether a query is folded, and what it has been given while it was. may_fold: nothing speaks against it.

    screen: the one that runs it, or None.
    """

    __slots__ = ("_left", "_results", "_subscription", "may_fold", "screen", "tail")

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.may_fold = True
        self.screen: Screen | None = None
        self._subscription: Subscription | None = None
        self._left: list[Batch | Portion] = []
        self._results = 0

    @property
    def is_folded(self) -> bool:
        """A screen runs it."""
        return self.screen is not None

    def fold(self, screen: Screen) -> None:
        """A screen runs it from now on."""
        self.screen = screen
        self._subscription = screen.fold(self.tail)

    def unfold(self) -> None:
        """The screen runs it no more; what waits goes on waiting here."""
        assert self.screen is not None and self._subscription is not None
        self._results += self._subscription.results
        self._left += self.screen.unfold(self.tail, self._subscription)
        self.screen = self._subscription = None

    @property
    def is_waiting(self) -> bool:
        """There are rows that have not been taken."""
        return bool(self._left) or (self._subscription is not None and self._subscription.is_waiting)

    @property
    def results(self) -> int:
        """Rows it has been given while it was folded."""
        return self._results + (0 if self._subscription is None else self._subscription.results)

    @property
    def left(self) -> list[Batch]:
        """Rows that wait and are held for this query alone, and those beside them."""
        return [each if isinstance(each, Batch) else each.batch for each in self._left]

    def waiting(self) -> tuple[int, int]:
        """(rows, bytes) that wait."""
        rows = sum(len(b) for b in self._left)
        if self._subscription is None:
            return rows, 8 * rows * (1 + len(self.tail.columns))
        more, nbytes = self._subscription.waiting()
        return rows + more, nbytes + 8 * rows * (1 + len(self.tail.columns))

    def take(self) -> list[Batch]:
        """The rows that wait, oldest first; they wait no more. Raises MemoryError, and nothing has changed."""
        taken = [each if isinstance(each, Batch) else each.copied() for each in self._left]
        if self._subscription is not None:
            taken += self._subscription.take()
        self._left = []
        return taken
