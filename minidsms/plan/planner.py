"""From a bound query to its logical plan, rule by rule; and to the one that runs under a connection's settings."""

from __future__ import annotations

from minidsms.cql.bound import Node
from minidsms.cql.catalog import Catalog
from minidsms.plan.logical import LogicalPlan, Stop, nodes
from minidsms.plan.rules import RULES
from minidsms.plan.star_lookups import look_up_stars
from minidsms.plan.state_reduction import reduce_state
from minidsms.plan.unnesting import build
from minidsms.settings import Settings


def plan(node: Node, text: str) -> LogicalPlan:
    """The rewritten plan of a bound query; CqlError where a correlated subquery is not supported."""
    built = build(node, text)
    root: Node = Stop(node.schema, built, is_relation=node.kind == "relation")
    stages = [("as bound", root)]
    for rule in RULES:
        changed = rule(root)
        if [id(n) for n in nodes(changed)] != [id(n) for n in nodes(root)]:
            stages.append((rule.__name__.replace("_", " "), changed))
        root = changed
    assert all(isinstance(stage, Stop) for _, stage in stages)
    return LogicalPlan(tuple(stages))  # type: ignore[arg-type]


def plan_under(
    node: Node, text: str, catalog: Catalog, settings: Settings, memory_is_short: bool = False
) -> LogicalPlan:
    """As `plan`, then what asks for keys, settings and the memory there is: joins are looked up and reduced as far as
    the settings let them.
    """
    return reduce_state(look_up_stars(plan(node, text), catalog, settings), catalog, settings, memory_is_short)
