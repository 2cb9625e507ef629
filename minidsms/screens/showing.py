"""The operators that a screen stands for, where a folded query is to be shown as others are: EXPLAIN, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.operators.select import Select
from minidsms.plan.sharing import Leading

if TYPE_CHECKING:
    from minidsms.engine.network import Network
    from minidsms.screens.tail import Folding


def standing_for(folding: Folding, network: Network) -> Network:
    """The operators of a folded query with what has passed. They do not run; whoever has shown them closes them."""
    shown = folding.tail.definition.network(Leading(network.operators))
    shown.group, shown.failure = network.group, network.failure
    leading = {id(operator) for operator in network.operators}
    for operator in shown.operators:
        if id(operator) in leading:
            continue
        operator.counters.elements_in = operator.counters.elements_out = folding.results
        if isinstance(operator, Select):
            operator.stand_behind(folding.screen, operator.box)
    return shown
