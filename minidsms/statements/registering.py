"""How queries that a screen may run are registered and defined: what they were made of, and their operators when they
need them.

Invariant: a query registered here answers from the same element on as one that is planned at once (docs/semantics T7).
docs/sharing.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from operator import getitem
from typing import TYPE_CHECKING

from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.elements import MIN_INSTANT, Int64Array
from minidsms.engine.group import Group
from minidsms.engine.network import Network
from minidsms.expressions import Context
from minidsms.operators.constants import Constant, Constants
from minidsms.operators.operator import Operator
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.constants import FamilyPlan, FamilyShape
from minidsms.plan.explain import Plan, instant_text
from minidsms.plan.logical import LogicalPlan, Stop
from minidsms.plan.physical import Inputs, PhysicalPlanner
from minidsms.plan.planner import plan
from minidsms.plan.screening import box_of
from minidsms.plan.sharing import RunningOperators, operators_behind
from minidsms.plan.tails import filter_and_columns
from minidsms.plan.templates import Template, kind_of
from minidsms.query import Query
from minidsms.screens.box import Box, Values
from minidsms.screens.tail import Tail

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.operators.screen import Screen
    from minidsms.synopses.stream_store import StreamStore

_CREATE = re.compile(r"\s*CREATE\s+QUERY\s+([A-Za-z_][A-Za-z_0-9]*)\s+AS\s+(SELECT\b[^;]*?)\s*;?\s*\Z", re.IGNORECASE)


class Planned:
    """A query that was planned when it was registered. See `Definition`."""

    def __init__(self, db: Connection, query: Query, logical: LogicalPlan, family: FamilyPlan | None = None) -> None:
        self._db = db
        self.query = query
        self._logical = logical
        self._root = logical.root if family is None else family.root

    def plan(self) -> Plan:
        return Plan(self.query.expanded, self._logical, None)

    def network(self, leading: RunningOperators) -> Network:
        return network_of(self._db, self.query, self._root, leading)


class Written:
    """A query of which only the text is kept. began: the greatest closed instant before it.  member: where it is one
    of a family, which, and its number there.  See `Definition`.
    """

    __slots__ = ("_db", "_member", "began", "query")

    def __init__(self, db: Connection, query: Query, began: int, member: tuple[FamilyShape, int] | None = None) -> None:
        self._db = db
        self.query = query
        self._member = member
        self.began = began

    def plan(self) -> Plan:
        found = bind(parse_query(self.query.text), self._db.catalog, self.query.text)
        began = ""
        if self.began > MIN_INSTANT:
            began = f"Began after instant {instant_text(self.began)}, from empty"
        logical = plan(found.node, self.query.text)
        family = self._family(logical)
        return Plan(print_query(found.expanded), logical if family is None else family.of(logical), None, began)

    def _family(self, logical: LogicalPlan) -> FamilyPlan | None:
        return None if self._member is None else self._member[0].plan(logical.root, self._member[1])

    def network(self, leading: RunningOperators) -> Network:
        logical = self.plan().logical
        family = self._family(logical)
        return network_of(self._db, self.query, logical.root if family is None else family.root, leading)


def network_of(db: Connection, query: Query, root: Stop, leading: RunningOperators) -> Network:
    """The operators of a query that was folded."""
    return planner_of(db, stored(db), leading).network(root, query.deliver)


def stored(db: Connection) -> Inputs:
    """What streams and relations hold."""
    return Inputs(db.stream_store, db.relation_store)


def context_of(db: Connection) -> Context:
    """What expressions of this connection need."""
    compilation = partial(getitem, db.settings.values, "compilation")
    return Context(db.dictionary, db.tick_ns, db.catalog.functions, compilation)


def planner_of(
    db: Connection,
    inputs: Inputs,
    running: RunningOperators | None = None,
    start: int = MIN_INSTANT,
    with_history: bool = False,
) -> PhysicalPlanner:
    """What makes the operators of a query of this connection. The arguments are those of `PhysicalPlanner`."""
    size = db.settings["queue_size"]
    return PhysicalPlanner(inputs, db.catalog, context_of(db), size, start, db.adaptivity, with_history, running)


def family_of(db: Connection, logical: LogicalPlan) -> tuple[FamilyPlan, Constant] | None:
    """The plan of a query in its family, and what is its own; None where it has a plan of its own."""
    screening, is_limited = db.settings["screening"], db.settings["answer_limit"] is not None
    if not db.groups.is_sharing or screening in ("off", "column") or is_limited:
        return None
    family = db.families.find(logical.root, lambda stream: _moment(db, stream))
    if family is None:
        return None
    return family, Constant(family.number, family.box, {s: _moment(db, s)[0] for s in family.streams})


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
    box = template.box(kind.values)
    if box is None or not box.is_all:
        return None
    frontier = db.frontier([template.stream], [])
    found = _screen(db, template, frontier)
    if found is None:
        return None
    constant = _constant(db, template, box)
    if template.family is not None and constant is None:
        return None
    db.check_registration([template.stream], False)
    group, screen, leading = found
    schema = template.schema
    codec = db.codec(schema, [template.stream])
    query = Query(db, name or db.next_name(), text.strip(), template.kind, schema, None, codec)
    member = None
    if template.family is not None and constant is not None:
        member = template.family, constant.number
        box = Box.of({template.family.own: Values(((constant.number, constant.number + 1),))})
    tail = Tail(box, template.columns, Written(db, query, frontier, member), db.memory.grow)
    network = Network((), None, group.streams, (), group.is_immediate, tail=tail, constant=constant)
    network.fold(screen, leading)
    query.attach(network, None)
    db.adopt(query, network, group)
    return query


def _constant(db: Connection, template: Template, box: Box) -> Constant | None:
    """What a query of a family has of its own; None where it does not share."""
    if template.family is None:
        return None
    moment = _moment(db, template.stream)
    number = db.families.member(template.family.number, box, moment)
    return None if number is None else Constant(number, box, {template.stream: moment[0]})


def _moment(db: Connection, stream: str) -> tuple[int, bytes]:
    """What has come of a stream: the arrival number of what is to come, and what waits before the store."""
    store, _, earlier = db.stream_store(stream)
    return store.head, earlier.tobytes()


def _screen(db: Connection, template: Template, frontier: int) -> tuple[Group, Screen, list] | None:  # type: ignore[type-arg]
    """The group that such a query would join now, the screen that would run it, and the operators that lead to it."""
    store, _, earlier = db.stream_store(template.stream)
    for group in db.groups.reading_alone(template.stream, template.family is None):
        if group.progress != frontier or group.is_apart or not group.operators or not group.running.is_sharing:
            continue
        if template.family is not None:
            group.fold()
            for screen in group.screens if group.screens.folds else ():
                leading = operators_behind(screen.producer)
                if _runs(leading, template.family.number, store, earlier):
                    return group, screen, leading
            continue
        for operator in group.sources:
            if isinstance(operator, StreamSource) and operator.store is store and operator.is_as_new(earlier):
                over = group.screen_over(operator)
                if over is not None:
                    return group, over, operators_behind(operator)
    return None


def _runs(leading: Sequence[Operator], family: int, store: StreamStore, earlier: Int64Array) -> bool:
    """These operators are a family's, and good for one more query."""
    joined = [op for op in leading if isinstance(op, Constants)]
    sources = [op for op in leading if isinstance(op, StreamSource)]
    is_good = bool(joined) and joined[0].family == family and not joined[0].is_worn and not joined[0].is_alone
    return is_good and all(s.store is store and s.own is None and s.waits_for(earlier) for s in sources)
