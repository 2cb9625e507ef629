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

from minidsms.screens.box import Box

if TYPE_CHECKING:
    from minidsms.engine import Network
    from minidsms.plan.explain import Plan
    from minidsms.plan.sharing import RunningOperators


class Definition(Protocol):
    """What a folded query was made of."""

    def plan(self) -> Plan:
        """What EXPLAIN shows, without a network."""

    def network(self, running: RunningOperators, deliver: Callable[..., None]) -> Network:
        """Its operators, to be run beside those that are running."""

    def expanded(self) -> str:
        """The query with every default written out (docs/semantics D4)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """box: the rows it wants, of the operator that it reads.  columns: those it shows, in its order.

    grow: is told of bytes that wait to be fetched.
    """

    box: Box
    columns: tuple[int, ...]
    definition: Definition
    grow: Callable[[int], None]
