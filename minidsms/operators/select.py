"""Select: the rows for which a condition is TRUE. Babu 2005, table 2.1; adaptively ordered, figure 4.10."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.elements import Batch
from minidsms.operators.adaptivity import Condition
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue

if TYPE_CHECKING:
    from minidsms.operators.screen import Screen
    from minidsms.screens.box import Box

Explain = Callable[[Batch, int], str]
"""(batch, row) -> which expression failed there, and why."""


class Select(Operator):
    """Passes the elements whose row satisfies the condition; both signs alike, so that a deletion follows its
    insertion.
    """

    name = "Select"
    is_stateless = True
    acts_on_time = False

    def __init__(
        self,
        input: Queue,
        condition: Condition,
        explain: Explain,
        detail: str,
        box: Box | None = None,
    ) -> None:
        """box: what a screen may know of the condition."""
        super().__init__((input,), input.schema)
        self.box = box
        self.screen: Screen | None = None
        self._looked_at: Box | None = None
        self._condition = condition
        self._explain = explain
        self._detail = detail

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return ()
        if self.screen is not None and self.is_screened:
            # Only rows that satisfy the condition come.
            return (batch,)
        kept, failed = self._condition.run(batch)
        if failed is not None:
            self.fail(int(batch.ts[failed]), self._explain(batch, failed))
        if kept is None:
            return (batch,)
        return (batch.take(kept),) if len(kept) else ()

    @property
    def is_screened(self) -> bool:
        """A screen says all that the condition says."""
        return self.screen is not None and self._looked_at is not None and self._looked_at.is_all

    def stand_behind(self, screen: Screen | None, box: Box | None = None) -> None:
        """Be given only rows of this box, its own or more, from now on; None: all again."""
        self.screen, self._looked_at = screen, box

    def adaptations(self) -> tuple[Any, ...]:
        return self._condition.adaptations()

    def describe(self) -> Description:
        counters = self.counters
        selectivity = counters.elements_out / counters.elements_in if counters.elements_in else None
        parts = self._condition.describe()
        if self.screen is not None and self._looked_at is not None:
            names = ", ".join(self.schema[c].name for c, _ in self._looked_at.columns)
            parts = (f"screened by {names}", *(() if self.is_screened else parts))
        return Description(self.name, self._detail, {"selectivity": selectivity}, parts)
