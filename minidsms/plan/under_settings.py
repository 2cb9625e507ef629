"""From a bound query to the logical plan that runs under a connection's settings: rewrite rules, then what asks for
keys, settings and the memory there is.
"""

from __future__ import annotations

from minidsms.cql.bound import Node
from minidsms.cql.catalog import Catalog
from minidsms.plan.planner import LogicalPlan, plan
from minidsms.plan.star_lookups import look_up_stars
from minidsms.plan.state_reduction import reduce_state
from minidsms.settings import Settings


def plan_under(
    node: Node, text: str, catalog: Catalog, settings: Settings, memory_is_short: bool = False
) -> LogicalPlan:
    """As `planner.plan`; joins reduced and looked up as far as the settings let them."""
    return reduce_state(look_up_stars(plan(node, text), catalog, settings), catalog, settings, memory_is_short)
