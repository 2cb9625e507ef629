"""Operators that know the relation they put out: what lets a query show it without keeping it again.

Invariant: while the engine is at rest, `contents` is the relation at the last closed instant, also after a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from minidsms.elements import Batch, Choice


@runtime_checkable
class KnowsContents(Protocol):
    """An ability of aggregates, DISTINCT and the set operators."""

    lineage: int

    def contents(self) -> Batch:
        """The rows that are put out at present, as insertions (ts of no meaning)."""


class PresentContents:
    """The present rows of a relation: those of an operator, through projections that only choose columns.

    choices: what each projection chooses, the last one first.
    """

    def __init__(self, operator: KnowsContents, choices: Sequence[Choice] = ()) -> None:
        self.operator = operator
        self._choices = choices

    def __call__(self) -> Batch:
        """The rows, as insertions (ts of no meaning)."""
        batch = self.operator.contents()
        for choice in reversed(self._choices):
            batch = batch.select(choice)
        return batch
