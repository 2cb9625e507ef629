"""From a bound query to its logical plan, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.cql.bound import Node
from minidsms.plan.logical import Stop, nodes
from minidsms.plan.rules import RULES
from minidsms.plan.unnesting import build


@dataclass(frozen=True)
class LogicalPlan:
    """The plan as built, after each rule that changed it (rule name, plan), and at the end.

    notes: what was asked for and could not be, in words.
    """

    stages: tuple[tuple[str, Stop], ...]
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> Stop:
        return self.stages[-1][1]


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
