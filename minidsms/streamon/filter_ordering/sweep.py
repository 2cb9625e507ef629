"""Sweep: as A-Greedy, but looking at one filter at a time, in stages.

A stage looks at the filter at one position: is there a place before it where it would drop more per time than what
stands there? If so it moves there and the stage ends; else it ends with its last profile tuple. The stages go round the
positions from the second to the last.

Invariant: on the profile tuples of the stage the order satisfies the Sweep Invariant up to alpha (definition 4.4.1),
once the stage is half over. Babu 2005, section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.routes import Order
from minidsms.kernels.filter_ordering import Stage, View, observe_one
from minidsms.streamon.contracts import Evaluate, Float64Array, OrderStatistics, Wanted
from minidsms.streamon.filter_ordering.matrix_view_ordering import MatrixViewOrdering
from minidsms.streamon.filter_ordering.profile_window import (
    as_profile,
    checked_order,
    cost_of,
)


class Sweep(MatrixViewOrdering):
    """See `OrderingAlgorithm`. Of the matrix view the diagonal and a column are kept (figure 4.9 (a)).

    position: the one that the present stage looks at.  seen: profile tuples of the stage.
    """

    default_window: ClassVar[int] = 500

    def __init__(
        self,
        n: int,
        order: Sequence[int] | None = None,
        window: int | None = None,
        alpha: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(n, order, window, alpha, seed)
        # A stage begins with an empty view: one drop by a filter behind would be a violation where few tuples reach.
        self.window.enough = max(self.window.enough, self.window.capacity // 2)
        self.position = min(1, n - 1)
        self.seen = 0
        self._found: Int64Array = np.zeros(2, np.int64)
        self._moved: tuple[Order, int, UInt8Array] | None = None
        """Of the last stage that moved its filter: the order it had, the filter, its profile tuples."""

    def wanted(self) -> Wanted:
        """The filter that the stage looks at."""
        if len(self.view.order) == 1:
            return Wanted(Evaluate.NOTHING)
        return Wanted(Evaluate.ONE, int(self.view.order[self.position]))

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        """See `OrderingAlgorithm`.  O(n) per profile tuple.

        Rows behind the end of the stage are used if the next one looks at the same filter; on others, what it looks at
        was not evaluated.
        """
        if len(self.view.order) == 1:
            return None
        before, wanted = self.order, self.wanted()
        bits, times = as_profile(drops, costs)
        while len(bits) and self.wanted() == wanted:
            bits = bits[self._observe_in_stage(bits, times) :]
        return None if self.order == before else self.order

    def _observe_in_stage(self, bits: UInt8Array, times: Int64Array) -> int:
        """Take tuples in up to the end of the stage; how many."""
        view = self.view
        of = View(view.order, view.counts)
        window = self.window
        stage = Stage(self.position, self.seen, self._found)
        observe_one(bits, times, window.bundle, of, self.alpha, window.enough, stage)
        taken, violated = self._found.tolist()
        self.seen += taken
        if violated >= 0:
            self._move_to(violated)
        elif self.seen == self.window.capacity:
            self._begin_stage()
        return int(taken)

    def _move_to(self, place: int) -> None:
        """The filter of the stage moves forward; those between move back by one."""
        before, order = self.order, self.view.order
        profiled = order[self.position]
        order[place + 1 : self.position + 1] = order[place : self.position].copy()
        order[place] = profiled
        self._moved = (before, int(profiled), self._bits_of_stage())
        self._begin_stage()

    def _begin_stage(self) -> None:
        """The next position."""
        self.view.counts[:] = 0
        self.seen = 0
        self.position = self.position + 1 if self.position + 1 < len(self.view.order) else 1

    def _bits_of_stage(self) -> UInt8Array:
        """The profile tuples of the stage: the last `seen` of the ring."""
        last = int(self.window.place[0])
        slots = np.arange(last - self.seen, last) % self.window.capacity
        return self.window.bits[slots].copy()

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`. A new stage begins: its profile tuples must come from this order."""
        self.view.order[:] = checked_order(len(self.view.order), order)
        self._moved = None
        if len(self.view.order) > 1:
            self._begin_stage()

    def expected_cost(self, order: Sequence[int]) -> float | None:
        """See `OrderingAlgorithm`. Known of orders that differ from the present one, or the one before it, in the
        place of the filter that was looked at.
        """
        told = [(self.order, int(self.view.order[self.position]), self._bits_of_stage())]
        if self._moved is not None and self.seen < self.window.enough:
            told.insert(0, self._moved)
        for before, profiled, bits in told:
            place = before.index(profiled)
            if _differ_in_place(before, tuple(order), profiled) and order.index(profiled) <= place:
                return cost_of(bits, self.window.averages, order)
        return None

    def describe(self) -> OrderStatistics:
        """See `OrderingAlgorithm`. The drop rates are those of the stage, up to the filter that it looks at."""
        full = self.window.statistics(self.order)
        diagonal = self.view.counts.diagonal()
        rates: list[float | None] = [None] * len(diagonal)
        left = self.seen
        for i in range(self.position + 1):
            rates[i] = diagonal[i] / left if left else None
            left -= int(diagonal[i])
        return OrderStatistics(full.order, tuple(rates), full.costs, self.seen)


def _differ_in_place(first: Order, second: Order, filter: int) -> bool:
    """Are they the same but for the place of one filter?"""
    return [f for f in first if f != filter] == [f for f in second if f != filter]
