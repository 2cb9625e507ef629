"""The Executor of state reduction: a join that keeps the rows of its windows, or only those that can still matter.

What reduces it is given the rows that the windows hold, in the order they came; what it puts out for them has been put
out before. From then on it knows all that answers to come depend on (`operators.k_mon_join`).

Invariant: what the join puts out does not depend on the plan (docs/semantics T5).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from minidsms.elements import Batch

if TYPE_CHECKING:
    from minidsms.joins.join import Join
    from minidsms.operators.k_mon_join import KMonJoin
    from minidsms.plan.adaptivity import Reducing


class ReductionExecutor:
    """join: over streams.  reducing: of what would reduce it.  why_not: said when there was none."""

    def __init__(self, join: Join, reducing: Reducing) -> None:
        self.join = join
        self.why_not = ""
        self._reducing = reducing
        self._prepared: KMonJoin | None = None

    @property
    def plan(self) -> bool:
        """Only rows that can still matter are kept."""
        return self.join.plan.is_reduced

    @property
    def can_switch(self) -> bool:
        """The join holds what has come up to its progress, and there may be something that reduces it."""
        return not (self.plan or self.why_not or self.join.is_in_a_slice or self.join.is_immediate)

    def prepare(self, most_results: int | None = None) -> KMonJoin | None:
        """What would reduce the join, given the rows it holds, for `switch`; None where there is none, or there are
        more results than so many for each row.
        """
        made = self._reducing(self.join.inputs)
        if isinstance(made, str):
            self.why_not = made
            return None
        rows = self.join.held_rows()
        left = most_results * sum(map(len, rows)) if most_results is not None else None
        batches: list[Batch | None] = [batch if len(batch) else None for batch in rows]
        for found in made.process(batches, self.join.progress):
            if left is not None:
                left -= len(found)
                if left < 0:
                    made.close()
                    return None
        made.collect(self.join.progress)
        self._prepared = made
        return made

    def give_up(self) -> None:
        """What was prepared is not wanted."""
        if self._prepared is not None:
            self._prepared.close()
        self._prepared = None

    def switch(self, plan: bool) -> None:
        """Keep only rows that can still matter from now on."""
        assert plan, "rows that have gone do not come back"
        made = self._prepared or self.prepare()
        if made is None:
            return  # `why_not` says why
        made.stands_for, self._prepared = self.join, None
        self.join.take_reduced(made)

    def is_legal(self, plan: object) -> bool:
        """As it is, or reduced where that can be."""
        return isinstance(plan, bool) and (plan == self.plan or (plan and self.can_switch))

    def random_plan(self, rng: Random) -> bool:
        """Either, as long as there are two."""
        return self.plan or (self.can_switch and rng.random() < 0.5)

    def plan_text(self, plan: bool) -> str:
        """In words."""
        return "rows that can still matter" if plan else "all rows of the windows"

    def spent(self) -> tuple[float, int]:
        """Elements, twice: what counts here is room."""
        elements = self.join.counters.elements_in
        return float(elements), elements
