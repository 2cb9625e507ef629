"""From a logical plan to one DataFrame: every node a stream or a relation, as `frames` has them.

The plan is the live engine's, rewritten by the same rules but the last two: n-way joins and filters that probe are the
engine's own.
Invariant: nothing is computed here but plans; what runs, runs when the DataFrame is asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, Node
from minidsms.cql.functions import can_fail
from minidsms.cql.window_spec import WindowKind
from minidsms.elements import Schema
from minidsms.plan.logical import (
    FirstArrival,
    KeepArrival,
    RelationEvents,
    RestoreArrival,
    SemiJoin,
    Stop,
    WindowEvents,
    nodes,
)
from minidsms.plan.rules import RULES
from minidsms.plan.rules.aggregate_partitions import aggregate_partitions
from minidsms.plan.rules.expand_outer_joins import expand_outer_joins
from minidsms.plan.rules.merge_joins import merge_joins
from minidsms.plan.rules.pass_what_enters import pass_what_enters
from minidsms.plan.rules.pipeline_semi_joins import pipeline_semi_joins
from minidsms.plan.rules.stream_of_instants import stream_of_instants
from minidsms.plan.unnesting import build
from minidsms.spark import aggregates, joins, set_operations, streams, windows
from minidsms.spark.counting import counted, sampled
from minidsms.spark.extremes import is_extreme
from minidsms.spark.frames import (
    FROM,
    NEVER,
    ORDER,
    SIGN,
    TO,
    TS,
    Elements,
    Intervals,
    World,
    computed_columns,
    long,
    names,
)
from minidsms.spark.join_order import SampledJoin, Switchable
from minidsms.spark.sweep import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compiled = Elements | Intervals

_OF_THE_ENGINE = (
    aggregate_partitions,
    stream_of_instants,
    merge_joins,
    pipeline_semi_joins,
    pass_what_enters,
)
"""Rules that serve the engine's operators alone."""


def logical_plan(node: Node, text: str) -> Stop:
    """The plan of a bound query that is compiled to Spark. Raises CqlError."""
    root: Node = Stop(node.schema, build(node, text), is_relation=node.kind == "relation")
    for rule in RULES:
        if rule not in _OF_THE_ENGINE:
            root = expand_outer_joins(root, every=True) if rule is expand_outer_joins else rule(root)
    assert isinstance(root, Stop)
    return root


class Compiler:
    """Compiles the nodes of one plan; a node read twice is one DataFrame."""

    def __init__(self, world: World, sources: Mapping[str, DataFrame]) -> None:
        """sources: by lower-case name, `_ts`, `_arrival`, `_sign`, c0, c1 .."""
        self._world = world
        self._sources = sources
        self._done: dict[int, Compiled] = {}
        self._instants: dict[int, DataFrame] = {}
        self._kept: list[Node] = []  # nodes are known by their ids

    def compile(self, root: Stop) -> Compiled:
        """What the query gives. Raises NotExpressibleError."""
        uses = _uses(root)
        for node in nodes(root):
            if isinstance(node, WindowEvents | RelationEvents):
                self._instants[id(node)] = self._events(node)
            elif not isinstance(node, Stop):
                made = self._compile(node)
                if uses.get(id(node), 0) > 1 and not made.is_light:
                    made = dataclasses.replace(made, frame=self._world.shared(made.frame))
                self._done[id(node)] = made
        return self._done[id(root.input)]

    def _stream(self, node: Node) -> Elements:
        found = self._done[id(node)]
        assert isinstance(found, Elements)
        return found

    def _relation(self, node: Node) -> Intervals:
        found = self._done[id(node)]
        assert isinstance(found, Intervals)
        return found

    def _compile(self, node: Node) -> Compiled:
        world = self._world
        match node:
            case bound.BaseStream(name=name):
                frame = self._sources[name.lower()]
                width = len(node.schema)
                return Elements(frame.select(TS, F.col("_arrival").alias(ORDER), *names(width)), width, is_light=True)
            case bound.BaseRelation(name=name):
                return base_relation(self._sources[name.lower()], node.schema)
            case bound.Filter():
                return self._filter(node)
            case bound.Project():
                return self._project(node)
            case bound.Window():
                return windows.window(world, self._stream(node.input), node.spec)
            case bound.Stamped():
                stream = self._stream(node.input)
                instant = F.col(TS).alias(f"c{stream.width}")
                return Elements(stream.frame.select(TS, ORDER, *names(stream.width), instant), stream.width + 1)
            case bound.Bounds():
                return windows.bounds(world, self._relation(node.input), node.spec)
            case bound.Join():
                assert node.join is JoinKind.INNER, "outer joins have been expanded"
                left, right = self._relation(node.left), self._relation(node.right)
                if not isinstance(node, SampledJoin):
                    return joins.join(world, left, right, node.condition)
                joined = joins.join(world, left, right, node.condition, node.small)
                return counted(world, joined, node.part) if world.counts_all and node.rows.is_open else joined
            case Switchable():
                return self._switched(node)
            case SemiJoin():
                left, right = self._relation(node.left), self._relation(node.right)
                return joins.semi_join(world, left, right, node.pairs, node.anti, node.null_safe)
            case bound.Aggregate():
                start = None if node.start is None else self._relation(node.start)
                return aggregates.aggregate(world, self._relation(node.input), node, start)
            case bound.Distinct():
                return set_operations.distinct(world, self._relation(node.input))
            case bound.SetOperation():
                left, right = self._relation(node.left), self._relation(node.right)
                return set_operations.set_operation(world, node.op, node.all, left, right)
            case bound.RelationToStream():
                events = [self._instants[id(event)] for event in node.instants]
                return streams.to_stream(world, node.op, self._relation(node.input), events, node.ticks)
            case FirstArrival():
                return self._first_arrival(node)
            case KeepArrival():
                kept = self._relation(node.input)
                frame = kept.frame.withColumn(f"c{kept.width}", F.col(ORDER))
                return dataclasses.replace(kept, frame=frame, width=kept.width + 1, is_light=False)
            case RestoreArrival():
                held = self._relation(node.input)
                last = F.col(f"c{held.width - 1}").alias(ORDER)
                frame = held.frame.select(FROM, TO, last, *names(held.width - 1))
                return dataclasses.replace(held, frame=frame, width=held.width - 1, is_ordered=True, is_light=False)
        raise AssertionError(f"no DataFrame for {type(node).__name__}")

    def _switched(self, node: Switchable) -> Compiled:
        """The part that must be known is carried out here, and the joins then in the order that it asks for."""
        first = node.parts[0]
        self._done[id(first)] = known = counted(self._world, self._relation(first), node.key)
        plan = node.after(sampled(self._world, known, first.schema, self._world.counted[node.key]))
        self._kept.append(plan)
        for below in nodes(plan):
            if id(below) not in self._done:
                self._done[id(below)] = self._compile(below)
        return self._done[id(plan)]

    def _filter(self, node: bound.Filter) -> Compiled:
        below = self._done[id(node.input)]
        verdict = self._world.expressions.compute(node.condition)
        self._world.failed(below, [verdict])
        frame = below.frame.where(verdict.value)
        return dataclasses.replace(below, frame=frame)

    def _project(self, node: bound.Project) -> Compiled:
        below = self._done[id(node.input)]
        computed = [self._world.expressions.compute(e) for e in node.exprs]
        self._world.failed(below, computed)
        columns = computed_columns(computed, node.exprs)
        width = len(node.exprs)
        if isinstance(below, Elements):
            return Elements(below.frame.select(TS, ORDER, *columns), width, below.is_light)
        order = [ORDER] if below.is_ordered else []
        frame = below.frame.select(FROM, TO, *order, *columns)
        return dataclasses.replace(below, frame=frame, width=width)

    def _events(self, node: WindowEvents | RelationEvents) -> DataFrame:
        """The instants, as `_at`."""
        if isinstance(node, RelationEvents):
            return self._sources[node.relation.lower()].select(F.col(TS).alias(AT))
        return windows.window_events(self._world, self._stream(node.input), node.spec)

    def _first_arrival(self, node: FirstArrival) -> Intervals:
        """A row of no columns from the first instant of any source on."""
        instants = [
            self._instants[id(s)] if id(s) in self._instants else self._stream(s).frame.select(F.col(TS).alias(AT))
            for s in node.sources
        ]
        firsts = [i.agg(F.min(AT).alias(AT)) for i in instants]
        first = reduce(lambda a, b: a.unionByName(b), firsts).agg(F.min(AT).alias(FROM))
        frame = first.where(F.col(FROM).isNotNull()).select(FROM, long(NEVER).alias(TO))
        return Intervals(frame, 0)


def beyond_frames(node: Node) -> str | None:
    """What of a node no DataFrame operation does, in words; None where all can be said."""
    match node:
        case bound.Aggregate():
            return aggregates.beyond_columns(node)
        case bound.Top():
            return "ORDER BY .. LIMIT"
        case bound.Unnest():
            return "UNNEST"
        case bound.Constant():
            return "VALUES"
        case bound.Over():
            return "OVER"
        case bound.Window(spec=spec) | WindowEvents(spec=spec) if spec.kind is WindowKind.SESSION:
            return "a SESSION window"
        case _:
            return None


def _uses(root: Stop) -> dict[int, int]:
    """How often the frame of each node is read, by id."""
    uses: dict[int, int] = {}
    for node in nodes(root):
        for child, times in zip(node.inputs, _times(node)):
            uses[id(child)] = uses.get(id(child), 0) + times
    return uses


def _times(node: Node) -> list[int]:
    """How often a node reads each of its inputs: once for its answer, once more for what fails, and so on."""
    fallible = int(any(can_fail(e) for e in node.expressions))
    match node:
        case SemiJoin(anti=anti):
            return [1 + anti + fallible, 1 + fallible]
        case bound.Aggregate(aggregates=calls):
            distinct = sum(call.distinct for call in calls)
            own = 1 + fallible + any(is_extreme(call) for call in calls) + distinct
            return [own, 2][: len(node.inputs)]
        case bound.Window(spec=spec) | WindowEvents(spec=spec) if spec.kind is WindowKind.ROWS:
            return [3]
        case bound.Join():
            return [1, 1]
        case _:
            return [1 + fallible] * len(node.inputs)


def base_relation(changes: DataFrame, schema: Schema) -> Intervals:
    """A declared relation: each insertion with the deletion that takes it back, the first with the first."""
    width = len(schema)
    row = names(width)
    order = Window.partitionBy(*row).orderBy(TS, "_arrival")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_in = F.col(SIGN) > F.lit(0)
    count = F.sum(F.when(is_in, long(1)).otherwise(long(0))).over(so_far)
    gone = F.sum(F.when(is_in, long(0)).otherwise(long(1))).over(so_far)
    turns = changes.withColumn("_turn", F.when(is_in, count).otherwise(gone))
    paired = turns.groupBy(*row, "_turn").agg(
        F.min(F.when(is_in, F.col(TS))).alias(FROM), F.min(F.when(~is_in, F.col(TS))).alias("_left")
    )
    frame = paired.select(FROM, F.coalesce(F.col("_left"), long(NEVER)).alias(TO), *row)
    return Intervals(frame.where(F.col(FROM) < F.col(TO)), width)
