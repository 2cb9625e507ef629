"""Queries that differ in constants only: one plan for all of them. docs/sharing.md.

A plan with a filter over a stream is taken apart into that filter's condition, which is the query's own, and the rest,
its *signature*. Queries of one signature form a family. Its plan reads, in the place of the filter, the stream joined
with the conditions' constants (`logical.Constants`), carries the number of the query through every node as one more
column, groups by it, and ends in the rows of one number.

Only what keeps the queries apart is shared: a node that can fail would end all of them, ROWS windows and RSTREAM see
what others brought, and FIRST and LAST go by arrival.  Chen et al. 2000 (NiagaraCQ), section 3.

Invariant: a query of a family answers as its own plan does.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Field, Node, Type
from minidsms.cql.functions import can_fail
from minidsms.cql.node import Carried
from minidsms.cql.scalar import columns_used
from minidsms.elements import Schema
from minidsms.plan.logical import (
    Constants,
    FirstArrival,
    LogicalPlan,
    Netted,
    Openings,
    OwnRows,
    Stop,
    nodes,
    union_all,
)
from minidsms.plan.reading import inputs_of, is_immediate
from minidsms.plan.screening import box_of
from minidsms.plan.tails import filter_and_columns
from minidsms.screens.box import Box

FEWEST = 8
"""Different conditions of a signature of which the last is the first to share: the others have plans of their own."""
_REMEMBERED = 1000
_NUMBER = Field("query", Type.INTEGER)
_MARK = bound.Literal(Type.INTEGER, 1)
_WHOLE = (Type.INTEGER, Type.INTERVAL)


@dataclass
class _Family:
    """number: in the connection.  met: different conditions, up to FEWEST of them.  members: numbers given.

    moment: what had come when the last query was registered; of those registered since then, the numbers of conditions
    that share, and the conditions that have plans of their own, which equal ones run with.
    """

    number: int
    met: set[Box] = field(default_factory=set)
    members: int = 0
    moment: Hashable = None
    numbers: dict[Box, int] = field(default_factory=dict)
    alone: set[Box] = field(default_factory=set)

    def member(self, box: Box, moment: Hashable) -> int | None:
        """The number of one more query; None where it has a plan of its own."""
        if moment != self.moment:
            self.moment = moment
            self.numbers.clear()
            self.alone.clear()
        if len(self.met) < FEWEST:
            self.met.add(box)
        if len(self.met) < FEWEST or box in self.alone:
            self.alone.add(box)
            return None
        if box not in self.numbers:
            self.numbers[box] = self.members
            self.members += 1
        return self.numbers[box]


@dataclass(frozen=True)
class FamilyPlan:
    """The plan of a query in its family. root: the plan shared.  number: the query's.  box: of its condition.

    streams: those that it reads, in lower case.  notes: for EXPLAIN.
    """

    root: Stop
    number: int
    box: Box
    streams: tuple[str, ...]
    notes: tuple[str, ...]

    def of(self, logical: LogicalPlan) -> LogicalPlan:
        """What EXPLAIN shows: the query's own plan, and that it runs in a family."""
        return dataclasses.replace(logical, notes=(*logical.notes, *self.notes))


@dataclass(frozen=True)
class FamilyShape:
    """What the plans of a family that keeps its queries apart have in common. number: the family's.  target: the place
    of the filter among those over streams.  columns: of what the screen reads, those shown.  own: that of the number.
    """

    number: int
    target: int
    columns: tuple[int, ...]
    own: int

    def plan(self, root: Stop, number: int) -> FamilyPlan:
        """The plan of the query of this number, from its own plan."""
        return _family_plan(root, _targets(root)[self.target], self.number, number)


class Families:
    """Those of a connection, by signature: the last _REMEMBERED that queries were registered of."""

    def __init__(self) -> None:
        self._by_signature: dict[Hashable, _Family | None] = {}
        self._by_number: dict[int, _Family] = {}
        self._numbers = itertools.count()

    def find(self, root: Stop, moment: Callable[[str], Hashable]) -> FamilyPlan | None:
        """The plan of one more query in its family; None where there is none, or too few are like it.

        moment: of a stream (lower case), what of it has come.
        """
        for target in _targets(root):
            box = box_of(target.condition)
            if box is not None and box.is_all:
                family = self._family(root, target)
                number = None if family is None else family.member(box, tuple(map(moment, _streams(root))))
                if family is not None and number is not None:
                    return _family_plan(root, target, family.number, number)
        return None

    def shape(self, root: Stop) -> tuple[bound.Filter, FamilyShape] | None:
        """The filter in which the queries of a plan's family differ, and what they have in common; None where there is
        no family yet, or one that comes later may need a state of its own.
        """
        for place, target in enumerate(_targets(root)):
            family = self._family(root, target)
            if family is not None and len(family.met) == FEWEST:
                shared = _Carrying(target, family.number).plan(root, 0)
                found = None if shared is None else filter_and_columns(shared)
                if shared is None or found is None or not keeps_apart(shared):
                    return None
                (own,) = columns_used(found[0].condition)
                return target, FamilyShape(family.number, place, found[1], own)
        return None

    def member(self, family: int, box: Box, moment: Hashable) -> int | None:
        """The number of one more query of a family, by the family's; None where it has a plan of its own."""
        known = self._by_number.get(family)
        return None if known is None else known.member(box, (moment,))

    def _family(self, root: Stop, target: bound.Filter) -> _Family | None:
        """That of a plan, if it can be shared."""
        signature = _signature(root, target)
        if signature in self._by_signature:
            family = self._by_signature.pop(signature)
        else:
            number = next(self._numbers)
            family = None if _Carrying(target, number).plan(root, 0) is None else _Family(number)
            if family is not None:
                self._by_number[number] = family
        self._by_signature[signature] = family
        if len(self._by_signature) > _REMEMBERED:
            forgotten = self._by_signature.pop(next(iter(self._by_signature)))
            if forgotten is not None:
                del self._by_number[forgotten.number]
        return family


def _family_plan(root: Stop, target: bound.Filter, family: int, number: int) -> FamilyPlan:
    box, shared = box_of(target.condition), _Carrying(target, family).plan(root, number)
    assert box is not None and shared is not None
    note = f"One plan for all queries that differ in a filter; here it is {target.text()[len('Filter ') :]}"
    return FamilyPlan(shared, number, box, _streams(root), (note,))


def _streams(root: Stop) -> tuple[str, ...]:
    return tuple(inputs_of(root)[0])


def keeps_apart(root: Node) -> bool:
    """Every row of a plan is of one query of a family: one that comes later finds nothing of its own in it."""
    readers = [node for node in nodes(root) if any(not child.inputs for child in node.inputs)]
    return bool(readers) and all(isinstance(node, Constants | Openings) for node in readers)


def _targets(root: Stop) -> list[bound.Filter]:
    """The filters over streams, of a plan that keeps state and cannot fail."""
    if is_immediate(root) or any(can_fail(e) for node in nodes(root) for e in node.expressions):
        return []
    return [n for n in nodes(root) if isinstance(n, bound.Filter) and isinstance(n.input, bound.BaseStream)]


def _signature(root: Stop, target: bound.Filter) -> Hashable:
    """What the plans of a family have in common: all but the condition of one filter."""
    order = nodes(root)
    place = {id(node): i for i, node in enumerate(order)}

    def line(node: Node) -> Hashable:
        shape = "constants" if node is target else "output" if isinstance(node, Stop) else node.shape
        return shape, tuple(node.schema.types), tuple(place[id(child)] for child in node.inputs)

    return root.is_relation, tuple(map(line, order))


class _NotShared(Exception):
    """A node does not keep queries apart."""


class _Carrying:
    """Rewrites one plan. target: the filter that is the queries' own."""

    def __init__(self, target: bound.Filter, family: int) -> None:
        self._target = target
        self._family = family
        self._done: dict[int, Carried] = {}

    def plan(self, root: Stop, number: int) -> Stop | None:
        """The plan of the query of this number; None where it cannot be shared."""
        try:
            carried = self._carried(root.input)
        except _NotShared:
            return None
        if not carried.extra:
            return None
        top = carried.node
        if root.is_relation and not top.is_netted:
            top = Netted(top.schema, top)
        own = bound.Call(Type.BOOLEAN, "=", (*carried.carried, bound.Literal(Type.INTEGER, number)))
        rows = bound.Filter(top.schema, top, own)
        shown = tuple(bound.ColumnRef(f.type, carried.place[i], f.name) for i, f in enumerate(root.input.schema))
        return Stop(root.schema, OwnRows(root.input.schema, rows, shown), root.is_relation)

    def _carried(self, node: Node) -> Carried:
        if id(node) not in self._done:
            self._done[id(node)] = self._carry(node)
        return self._done[id(node)]

    def _carry(self, node: Node) -> Carried:
        if node is self._target:
            source = self._target.input
            numbered = Schema((*source.schema.fields, _NUMBER))
            return Carried.beside(Constants(numbered, source, self._family), len(source.schema))
        inputs = [self._carried(child) for child in node.inputs]
        if not any(each.extra for each in inputs):
            return Carried.beside(node, len(node.schema))
        if isinstance(node, bound.Aggregate):
            for call in node.aggregates:
                can_overflow = call.function == "sum" and call.arg is not None and call.arg.type in _WHOLE
                if call.has_objects or can_overflow or call.is_by_arrival:
                    raise _NotShared
            if node.start is not None:
                return self._global_aggregate(node, inputs[0])
        # What is computed of rows that meet, and fails, would be of the rows of several queries.
        carried = None if node.mixes else node.carrying(inputs)
        if carried is None:
            raise _NotShared
        return carried

    def _global_aggregate(self, node: bound.Aggregate, below: Carried) -> Carried:
        """Without GROUP BY every query has a row from its start on: a row of NULLs that never leaves sees to it, and
        COUNT(*) counts the others.
        """
        assert isinstance(node.start, FirstArrival)
        if not all(isinstance(source, bound.BaseStream) for source in node.start.sources):
            raise _NotShared
        args = [below.moved(call.arg) for call in node.aggregates if call.arg is not None]
        fields = [Field(f"column{i + 1}", arg.type) for i, arg in enumerate(args)]
        schema = Schema((*fields, _NUMBER, Field("is_row", Type.INTEGER)))
        rows = bound.Project(schema, below.node, (*args, *below.carried, _MARK))
        openings = Openings(schema, node.start.sources, self._family, len(args))
        both = union_all(rows, openings)
        places = iter(range(len(args)))
        calls = []
        for call in node.aggregates:
            at = len(args) + 1 if call.arg is None else next(places)
            calls.append(dataclasses.replace(call, arg=bound.ColumnRef(schema[at].type, at, schema[at].name)))
        keys = (bound.ColumnRef(Type.INTEGER, len(args), _NUMBER.name),)
        made = bound.Aggregate(Schema((_NUMBER, *node.schema.fields)), both, keys, tuple(calls))
        return Carried(made, {i: i + 1 for i in range(len(node.schema))}, (0,))
