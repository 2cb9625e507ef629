"""What the planner asks of whoever changes plans while they run: StreaMon, which stands above it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

from minidsms.elements import Schema
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filters import TupleFilter
from minidsms.operators.adaptivity import Condition
from minidsms.operators.operator import Operator
from minidsms.queues import Queue
from minidsms.screens.screening import OrdersLookUps
from minidsms.settings import SettingValues

if TYPE_CHECKING:
    from minidsms.joins.join import Join
    from minidsms.operators.k_mon_join import KMonJoin, Surroundings
    from minidsms.plan.logical import ReducedJoin


Reducing = Callable[[Sequence[Queue]], "KMonJoin | str"]
"""What does the work of a join over the same inputs and keeps fewer rows, or why there is nothing."""


class Adaptivity(OrdersLookUps, Protocol):
    """By what the operators of a new plan adapt."""

    @property
    def settings(self) -> SettingValues:
        """Of the connection."""

    @property
    def threads(self) -> Callable[[], int | str]:
        """Tells how many threads an operator may work in now, or 'auto'."""

    def condition(self, filters: Sequence[TupleFilter], operator: str, attributes: Attributes) -> Condition:
        """The filters of a Select.  operator: how the plan log names it.  attributes: of the tuples."""

    def condition_key(self) -> Hashable:
        """What must be alike in the settings of two queries that share the filters of a Select."""

    def adapt_join(self, join: Join, asked: Hashable, attributes: Callable[[Schema], Attributes]) -> None:
        """Let all of the join's plan adapt that was not asked for.  asked: see `plan.n_way_joins.join_plan_of`.
        attributes: by which rows may be told apart.
        """

    def spare_state(self, join: Join, reducing: Reducing) -> None:
        """Let a join over streams keep fewer rows when memory gets short, if that is asked for."""

    def surroundings(self, node: ReducedJoin, operator: str) -> Surroundings:
        """Whom a join that keeps rows of its own asks and tells.  operator: how the plan log names it."""

    def adapt_form(self, operator: Operator) -> None:
        """Let an operator that has forms be asked for them between its slices."""
