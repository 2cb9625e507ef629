"""How a query is carried out on Spark: as DataFrame operations over intervals, or by engines in tasks.

Engines read slices of time from the archives themselves where the plan can be cut so and there is enough to cut: that
is the fastest way. Else DataFrame operations; else engines that Spark feeds.

Invariant: the choice follows from the plan and the archives' sizes, before any row is read, and what is chosen is what
EXPLAIN says. What no way can answer is refused with the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.archive.format import Archive
from minidsms.cql.binder import Bound
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import Error
from minidsms.cql.printer import print_query
from minidsms.elements import Schema
from minidsms.plan.explain import logical_text
from minidsms.plan.logical import Stop, nodes
from minidsms.settings import UNIT_NS
from minidsms.spark.compiler import Compiled, Compiler, base_relation, beyond_frames, logical_plan
from minidsms.spark.computed import NotExpressibleError
from minidsms.spark.expressions import Expressions
from minidsms.spark.frames import SIGN, TS, Elements, Intervals, World, long
from minidsms.spark.in_tasks import Setting, in_tasks, quoted
from minidsms.spark.offload import History, finished
from minidsms.spark.own_slices import in_own_slices, parts_of
from minidsms.spark.partitioning import ByKey, BySlices, Whole, by_key, partitioning
from minidsms.spark.slicing import Extent, is_worth_it, slices
from minidsms.spark.streams import contents, net_of_changes, output_of_relation, output_of_stream
from minidsms.spark.sweep import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Choice:
    """A plan and how it is carried out. cut: how engines in tasks share it; None for DataFrame operations alone.

    why: what Spark cannot say, if anything.  frames: how the relation at chosen instants is found, for which the
    changes of all time need not be made; None where they must.
    """

    root: Stop
    cut: ByKey | BySlices | None = None
    why: str = ""
    frames: Choice | None = None

    def __str__(self) -> str:
        if self.cut is None:
            by_engine = f"; over batches in Arrow, by the engine: {self.why}" if self.why else ""
            return f"On Spark: DataFrame operations over intervals of validity{by_engine}"
        because = f", for the query has {self.why}" if self.why else ", which is faster than DataFrame operations"
        return f"On Spark: the engine in tasks, {self.cut}{because}"

    def text(self) -> str:
        """For EXPLAIN: the plan, and the choice."""
        return f"Logical plan\n{logical_text(self.root)}\n{self}"


def choose(
    query: Bound, text: str, catalog: Catalog, extent: Extent | None = None, tasks: int = 1, by: str | None = None
) -> Choice:
    """How to carry out a query; a Spark session is running. Raises CqlError and Error for what cannot be.

    extent: of the archives, where there are such.  tasks: how many run at a time.  by: "frames" or "engines", where
    somebody wants it so.
    """
    if by not in (None, "frames", "engines"):
        raise Error(f'by: "{by}" is no way to carry out a query; there are: frames, engines')
    root = logical_plan(query.node, text)
    expressions = Expressions(catalog.tick_ns, catalog.functions)
    why = _beyond_spark(root, expressions)
    frames = None if why is not None else Choice(root, why=" and ".join(dict.fromkeys(expressions.in_batches)))
    if by == "frames":
        if frames is None:
            raise Error(f"this query cannot be run by DataFrame operations: it has {why}")
        return frames
    cut = partitioning(root)
    if frames is not None and by is None:
        if not isinstance(cut, BySlices) or extent is None:
            return frames
        found = slices(extent, cut.lookback, tasks, *extent.span)
        return Choice(root, cut, "", frames) if is_worth_it(found, extent, cut.lookback, tasks) else frames
    if isinstance(cut, BySlices) and extent is None:
        found_key = by_key(root)
        if isinstance(found_key, str):
            raise Error("engines read slices of time from archives, and there are none")
        cut = found_key
    if isinstance(cut, Whole):
        has = "it is to be run by engines" if why is None else f"it has {why}, which only the engine can compute"
        raise Error(
            f"this query cannot be run on Spark: {has}, and it cannot be cut into parts\n"
            f"  by key: {cut.no_key}\n  by time: {cut.no_time}"
        )
    return Choice(root, cut, why or "", frames if isinstance(cut, BySlices) else None)


def _beyond_spark(root: Stop, expressions: Expressions) -> str | None:
    """What of the plan no Spark column means exactly; None where all can be said."""
    for node in nodes(root):
        refused = beyond_frames(node)
        if refused is not None:
            return refused
        try:
            for expr in node.expressions:
                expressions.compute(expr)
        except NotExpressibleError as problem:
            return str(problem)
    return None


def inputs(query: Bound, catalog: Catalog) -> list[tuple[str, bool, Schema]]:
    """What a query reads: (name, is a stream, schema)."""
    found = [(name, True, catalog.streams[name.lower()].schema) for name in query.streams]
    return found + [(name, False, catalog.relations[name.lower()].schema) for name in query.relations]


def carry_out(
    spark: SparkSession,
    choice: Choice,
    query: Bound,
    history: History,
    catalog: Catalog,
    at: Sequence[int] | None = None,
    slices: int = 256,
) -> DataFrame:
    """The changes of the query over a history, or, with `at`, what its relation holds at these instants.

    slices: into how many parts time is cut where no key divides the work.  Where an expression fails (docs/semantics
    R4), evaluating the frame raises, with the first instant and the reason.
    """
    world = World(spark, Expressions(catalog.tick_ns, catalog.functions), history.first, history.until, slices)
    schema = query.node.schema
    if choice.cut is None:
        result: Compiled = Compiler(world, history.sources).compile(choice.root)
    else:
        assert not isinstance(choice.cut, BySlices)
        changes = in_tasks(world, setting_of(query, catalog), history, choice.cut, slices)
        if at is None:
            net = net_of_changes(changes, len(schema)) if query.node.kind == "relation" else changes
            return finished(world, net, schema, (TS, SIGN))
        return _contents_of_changes(world, changes, schema, at)
    if at is not None:
        assert isinstance(result, Intervals)
        return _contents(world, result, schema, at)
    if isinstance(result, Elements):
        return finished(world, output_of_stream(world, result), schema, (TS, SIGN))
    return finished(world, output_of_relation(world, result), schema, (TS, SIGN))


def carry_out_by_slices(
    spark: SparkSession,
    choice: Choice,
    query: Bound,
    archives: Sequence[Archive],
    catalog: Catalog,
    at: Sequence[int] | None = None,
    until: int | None = None,
    tasks: int | None = None,
) -> DataFrame:
    """The same, from engines that read their own slices. archives: of the query's inputs, in their order.

    tasks: for how many that run at a time the slices are made; by default Spark says.
    """
    assert isinstance(choice.cut, BySlices)
    extent = Extent.of(archives, until, choice.root)
    first, last = extent.span
    until = last if until is None else until
    world = World(spark, Expressions(catalog.tick_ns, catalog.functions), min(first, until + 1), until)
    parts = parts_of(extent, choice.cut.lookback, tasks or spark.sparkContext.defaultParallelism, until)
    changes = in_own_slices(world, setting_of(query, catalog), archives, parts)
    if at is not None:
        return _contents_of_changes(world, changes, query.node.schema, at)
    return finished(world, changes, query.node.schema, (TS, SIGN))


def _contents_of_changes(world: World, changes: DataFrame, schema: Schema, at: Sequence[int]) -> DataFrame:
    return _contents(world, base_relation(changes.withColumn("_arrival", long(0)), schema), schema, at)


def _contents(world: World, relation: Intervals, schema: Schema, at: Sequence[int]) -> DataFrame:
    """What a relation holds at instants: `_ts` and its rows."""
    instants = world.spark.createDataFrame([(int(tau),) for tau in at], f"{AT} bigint")
    return finished(world, contents(relation, instants), schema, (TS,))


def setting_of(query: Bound, catalog: Catalog) -> Setting:
    """What an engine in a task must know."""
    views: list[str] = []
    for view in catalog.views.values():
        columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
        views.append(f"CREATE VIEW {quoted(view.name)}{columns} AS {print_query(view.query)}")
    text = print_query(query.expanded)
    said = " ".join([text, *views]).lower()  # what nobody names need not be fit to travel
    read = {name.lower() for name in (*query.streams, *query.relations)}
    others = [(s.name, True, s.schema) for key, s in catalog.streams.items() if key not in read and not s.is_system]
    others += [(r.name, False, r.schema) for key, r in catalog.relations.items() if key not in read]
    return Setting(
        tuple(inputs(query, catalog)),
        tuple(others) if views else (),
        tuple(views),
        text,
        query.node.schema.types,
        next(unit for unit, ns in UNIT_NS.items() if ns == catalog.tick_ns),
        catalog.rstream_ticks,
        catalog.bag_set_operations,
        tuple(f for f in catalog.functions.values() if f.name.lower() in said),
        tuple(a for a in catalog.aggregates.values() if a.name.lower() in said),
    )
