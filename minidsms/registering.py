"""How queries that a screen may run are defined: what they were made of, and their operators when they need them.

docs/sharing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.elements import MIN_INSTANT
from minidsms.expressions import Context
from minidsms.plan.explain import Plan
from minidsms.plan.physical import Inputs, PhysicalPlanner
from minidsms.plan.planner import LogicalPlan
from minidsms.plan.screening import box_of
from minidsms.plan.sharing import RunningOperators
from minidsms.plan.tails import filter_and_columns
from minidsms.screens.tail import Tail

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.engine import Network
    from minidsms.query import Query


class Planned:
    """A query that was planned when it was registered."""

    def __init__(self, db: Connection, query: Query, logical: LogicalPlan) -> None:
        self._db = db
        self._query = query
        self._logical = logical

    def plan(self) -> Plan:
        """What EXPLAIN shows, without a network."""
        return Plan(self._query.expanded, self._logical, None)

    def network(self, leading: RunningOperators) -> Network:
        """Its operators behind those that lead to the screen."""
        return network_of(self._db, self._query, self._logical, leading)


def network_of(db: Connection, query: Query, logical: LogicalPlan, leading: RunningOperators) -> Network:
    """The operators of a query that was folded."""
    context = Context(db.dictionary, db.tick_ns, db.catalog.functions)
    inputs = Inputs(db.stream_store, db.relation_store)
    size = db.settings["queue_size"]
    planner = PhysicalPlanner(inputs, db.catalog, context, size, MIN_INSTANT, streamon=db.streamon, running=leading)
    return planner.network(logical.root, query.deliver)


def tail_of(db: Connection, query: Query, logical: LogicalPlan) -> Tail | None:
    """What a screen needs to know to run a query; None where it cannot."""
    found = filter_and_columns(logical.root)
    if found is None:
        return None
    box = box_of(found[0].condition)
    if box is None or not box.is_all:
        return None
    return Tail(box, found[1], Planned(db, query, logical), db.memory.grow)
