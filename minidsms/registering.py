"""How queries that a screen may run are registered and defined: what they were made of, and their operators when they
need them.

Invariant: a query registered here answers from the same element on as one that is planned at once (docs/semantics T7).
docs/sharing.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.elements import MIN_INSTANT
from minidsms.engine import Group, Network
from minidsms.expressions import Context
from minidsms.operators.constants import Constant
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.constants import FamilyPlan
from minidsms.plan.explain import Plan, instant_text
from minidsms.plan.logical import Stop
from minidsms.plan.physical import Inputs, PhysicalPlanner
from minidsms.plan.planner import LogicalPlan, plan
from minidsms.plan.screening import box_of
from minidsms.plan.sharing import RunningOperators, operators_behind
from minidsms.plan.tails import filter_and_columns
from minidsms.plan.templates import Template, kind_of
from minidsms.query import Query
from minidsms.screens.tail import Tail

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.operators.screen import Screen

_CREATE = re.compile(r"\s*CREATE\s+QUERY\s+([A-Za-z_][A-Za-z_0-9]*)\s+AS\s+(SELECT\b[^;]*?)\s*;?\s*\Z", re.IGNORECASE)


class Planned:
    """A query that was planned when it was registered."""

    def __init__(self, db: Connection, query: Query, logical: LogicalPlan, family: FamilyPlan | None = None) -> None:
        self._db = db
        self._query = query
        self._logical = logical
        self._root = logical.root if family is None else family.root

    @property
    def query(self) -> Query:
        """The query."""
        return self._query

    def plan(self) -> Plan:
        """What EXPLAIN shows, without a network."""
        return Plan(self._query.expanded, self._logical, None)

    def network(self, leading: RunningOperators) -> Network:
        """Its operators behind those that lead to the screen."""
        return network_of(self._db, self._query, self._root, leading)


class Written:
    """A query of which only the text is kept. began: the greatest closed instant before it."""

    __slots__ = ("_db", "_query", "began")

    def __init__(self, db: Connection, query: Query, began: int) -> None:
        self._db = db
        self._query = query
        self.began = began

    @property
    def query(self) -> Query:
        """The query."""
        return self._query

    def plan(self) -> Plan:
        """What EXPLAIN shows, without a network."""
        found = bind(parse_query(self._query.text), self._db.catalog, self._query.text)
        began = ""
        if self.began > MIN_INSTANT:
            began = f"Began after instant {instant_text(self.began)}, from empty"
        return Plan(print_query(found.expanded), plan(found.node, self._query.text), None, began)

    def network(self, leading: RunningOperators) -> Network:
        """Its operators behind those that lead to the screen."""
        return network_of(self._db, self._query, self.plan().logical.root, leading)


def network_of(db: Connection, query: Query, root: Stop, leading: RunningOperators) -> Network:
    """The operators of a query that was folded."""
    context = Context(db.dictionary, db.tick_ns, db.catalog.functions)
    inputs = Inputs(db.stream_store, db.relation_store)
    size = db.settings["queue_size"]
    planner = PhysicalPlanner(inputs, db.catalog, context, size, MIN_INSTANT, streamon=db.streamon, running=leading)
    return planner.network(root, query.deliver)


def family_of(db: Connection, logical: LogicalPlan) -> tuple[FamilyPlan, Constant] | None:
    """The plan of a query in its family, and what is its own; None where it has a plan of its own."""
    if not db.groups.is_sharing or db.settings["screening"] == "off" or db.settings["answer_limit"] is not None:
        return None

    def moment(stream: str) -> tuple[int, bytes]:
        store, _, earlier = db.stream_store(stream)
        return store.head, earlier.tobytes()

    family = db.families.find(logical.root, moment)
    if family is None:
        return None
    return family, Constant(family.number, family.box, {s: moment(s)[0] for s in family.streams})


def tail_of(db: Connection, query: Query, logical: LogicalPlan, family: FamilyPlan | None) -> Tail | None:
    """What a screen needs to know to run a query; None where it cannot, or each query must be told of its answers."""
    if db.settings["answer_limit"] is not None:
        return None
    found = filter_and_columns(logical.root if family is None else family.root)
    if found is None:
        return None
    box = box_of(found[0].condition)
    if box is None or not box.is_all:
        return None
    return Tail(box, found[1], Planned(db, query, logical, family), db.memory.grow)


def create_written(db: Connection, text: str) -> Query | None:
    """Carry out CREATE QUERY of a text that a template knows; None of any other text."""
    match = _CREATE.match(text)
    if match is None or match.group(1).lower() in db.queries:
        return None
    return register_written(db, match.group(2), match.group(1))


def register_written(db: Connection, text: str, name: str | None) -> Query | None:
    """Register a query of a kind that a template knows, where a screen runs such queries; None of any other."""
    kind = kind_of(text) if db.settings["answer_limit"] is None else None
    template = None if kind is None else db.templates.find(kind)
    if kind is None or template is None:
        return None
    frontier = db.frontier([template.stream], [])
    found = _screen(db, template, frontier)
    box = template.box(kind.values)
    if found is None or box is None or not box.is_all:
        return None
    db.check_registration([template.stream], False)
    group, screen, leading = found
    query = Query(db, name or db.next_name(), text.strip(), "stream", template.schema, None, db.codec(template.schema))
    tail = Tail(box, template.columns, Written(db, query, frontier), db.memory.grow)
    network = Network((), None, group.streams, (), True, tail=tail)
    network.fold(screen, leading)
    query.attach(network, None)
    db.adopt(query, network, group)
    return query


def _screen(db: Connection, template: Template, frontier: int) -> tuple[Group, Screen, list] | None:  # type: ignore[type-arg]
    """The group that such a query would join now, the screen over its stream, and the operators that lead to it."""
    for group in db.groups.reading_alone(template.stream):
        if group.progress != frontier or group.is_apart or not group.operators or not group.running.is_sharing:
            continue
        for operator in group.sources:
            if isinstance(operator, StreamSource) and operator.is_as_new(db.stream_store(template.stream)[2]):
                screen = group.screen_over(operator)
                if screen is not None:
                    return group, screen, operators_behind(operator)
    return None
