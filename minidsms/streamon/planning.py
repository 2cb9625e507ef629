"""What StreaMon gives to a new plan: the parts of its operators that change while they run.

Techniques are imported when first needed, for kernels are slow to load.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TYPE_CHECKING, cast

from minidsms.elements import Schema
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filters import TupleFilter
from minidsms.operators.adaptivity import Condition
from minidsms.operators.forms import TwoForms
from minidsms.operators.operator import Operator
from minidsms.plan.adaptivity import Reducing
from minidsms.plan.logical import ReducedJoin
from minidsms.screens.screening import LookUps, Screening
from minidsms.settings import SettingValues
from minidsms.streamon.compilation.compilation import Compilation
from minidsms.streamon.pipelined_filters.algorithms import OrderingOptions
from minidsms.streamon.pipelined_filters.conjunction import Conjunction
from minidsms.streamon.stream_monitor import StreaMon
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.joins.join import Join
    from minidsms.operators.k_mon_join import Surroundings


class AdaptivePlans:
    """See `plan.adaptivity.Adaptivity`. texts: to name rows that violate a key."""

    def __init__(self, streamon: StreaMon, texts: TextDictionary) -> None:
        self._streamon = streamon
        self._texts = texts

    @property
    def settings(self) -> SettingValues:
        return self._streamon.settings

    @property
    def threads(self) -> Callable[[], int | str]:
        return self._streamon.threads

    def condition(self, filters: Sequence[TupleFilter], operator: str, attributes: Attributes) -> Condition:
        return Conjunction(filters, operator, self._streamon, attributes)

    def condition_key(self) -> Hashable:
        return OrderingOptions.of(self.settings)

    def look_ups(self, screening: Screening, operator: str, names: tuple[str, ...]) -> LookUps:
        """See `OrdersLookUps.look_ups`."""
        from minidsms.streamon.screening.adaptive_sequence import AdaptiveSequence

        return AdaptiveSequence(screening, self._streamon, operator, names)

    def adapt_join(self, join: Join, asked: Hashable, attributes: Callable[[Schema], Attributes]) -> None:
        from minidsms.streamon.adapting_joins import adapt_join

        adapt_join(join, asked, self._streamon, attributes)

    def spare_state(self, join: Join, reducing: Reducing) -> None:
        if self.settings["state_reduction"] == "auto":
            from minidsms.streamon.k_mon.adaptive_reduction import AdaptiveReduction

            join.sparing = AdaptiveReduction(join, f"MJoin {', '.join(join.names)}", self._streamon, reducing)

    def surroundings(self, node: ReducedJoin, operator: str) -> Surroundings:
        from minidsms.operators.k_mon.contracts import Source
        from minidsms.operators.k_mon_join import Surroundings
        from minidsms.streamon.k_mon.watching import watched_by

        streamon = self._streamon
        forcing, sources = streamon.forcing, [Source(*source) for source in node.sources]
        return Surroundings(
            watch=watched_by(streamon.constraints, sources, streamon.settings["change_detection"] != "off")
            if streamon.is_adaptive
            else None,
            may_adapt=lambda: streamon.is_adaptive,
            texts=self._texts,
            tell=lambda join, instant, text: streamon.note_violation(instant, join, operator, text),
            warn=streamon.warn,
            forced=None if forcing is None else Random(forcing.seed),
        )

    def adapt_form(self, operator: Operator) -> None:
        if hasattr(operator, "fitting"):  # to ask of the protocol takes twenty times as long
            operator.compilation = Compilation(cast(TwoForms, operator), self._streamon)
