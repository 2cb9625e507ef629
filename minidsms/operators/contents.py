"""Operators that know the relation they put out: what lets a query show it without keeping it again.

Invariant: while the engine is at rest, `contents` is the relation at the last closed instant, also after a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from minidsms.elements import Batch


@runtime_checkable
class KnowsContents(Protocol):
    """An ability of aggregates, DISTINCT and the set operators."""

    def contents(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning)."""
        ...


Contents = Callable[[], Batch]
