"""How a query is carried out on Spark: as DataFrame operations over intervals, by engines in tasks, or by one engine.

Engines read slices of time from the archives themselves where the plan can be cut so, and are fed by Spark where it can
be cut by a key. One engine in one task can answer everything.

Invariant: the choice follows from the plan, the archives' sizes and what has been measured over them, before any row is
read (`costs`), and what is chosen is what EXPLAIN says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from minidsms.archive.format import Archive
from minidsms.archive.rates import Rates
from minidsms.counted import counted
from minidsms.cql.binder import Bound
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import Error
from minidsms.cql.printer import print_query
from minidsms.elements import Schema
from minidsms.plan.explain import logical_text
from minidsms.plan.logical import Stop, nodes
from minidsms.spark.compiler import Compiled, Compiler, base_relation, beyond_frames, logical_plan
from minidsms.spark.computed import NotExpressibleError
from minidsms.spark.costs import WAYS, Estimate, estimate, least_regret, shape_of
from minidsms.spark.engines import setting_of
from minidsms.spark.expressions import Expressions
from minidsms.spark.frames import SIGN, TS, Elements, Intervals, World, long
from minidsms.spark.in_tasks import in_tasks
from minidsms.spark.offload import History, finished
from minidsms.spark.own_slices import WHOLE, Part, in_own_slices, parts_of
from minidsms.spark.partitioning import Alone, ByKey, BySlices, Whole, by_key, partitioning
from minidsms.spark.session import tasks_of
from minidsms.spark.slicing import Extent, read_twice, slices
from minidsms.spark.streams import contents, net_of_changes, output_of_relation, output_of_stream
from minidsms.spark.sweep import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_UNFOLDED = 5_000
"""Nodes of a plan that Spark carries out, those that are read twice counted twice."""


@dataclass(frozen=True)
class Choice:
    """A plan and how it is carried out. cut: how engines in tasks share it; None for DataFrame operations alone.

    why: what Spark cannot say, if anything.  frames: how the relation at chosen instants is found, for which the
    changes of all time need not be made; None where they must.  way, shape: what its cost is remembered under.  ways:
    what each that can be taken would cost, or why it cannot.
    """

    root: Stop
    cut: ByKey | BySlices | Alone | None = None
    why: str = ""
    frames: Choice | None = None
    way: str = "frames"
    shape: str = ""
    ways: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.cut is None:
            by_engine = f"; over batches in Arrow, by the engine: {self.why}" if self.why else ""
            return f"On Spark: DataFrame operations over intervals of validity{by_engine}"
        because = f", for the query has {self.why}" if self.why else ""
        engine = "the engine, " if isinstance(self.cut, Alone) else "the engine in tasks, "
        return f"On Spark: {engine}{self.cut}{because}"

    def text(self) -> str:
        """For EXPLAIN: the plan, the choice, and what the ways would cost."""
        ways = ["Estimated:", *(f"  {way}" for way in self.ways)] if self.ways else []
        return "\n".join([f"Logical plan\n{logical_text(self.root)}\n{self}", *ways])


def choose(
    query: Bound,
    text: str,
    catalog: Catalog,
    extent: Extent | None = None,
    tasks: int = 1,
    by: str | None = None,
    rates: Callable[[str], Rates] = lambda shape: {},
) -> Choice:
    """How to carry out a query; a Spark session is running. Raises CqlError and Error for what cannot be.

    extent: of the archives, where there are such.  tasks: how many run at a time.  by: one of `WAYS`, where somebody
    wants it so.  rates: what is known of queries of a shape.
    """
    if by not in (None, *WAYS):
        raise Error(f'by: "{by}" is no way to carry out a query; there are: {", ".join(reversed(WAYS))}')
    root = logical_plan(query.node, text)
    expressions = Expressions(catalog.tick_ns, catalog.functions)
    why = _beyond_spark(root, expressions)
    frames = None if why is not None else Choice(root, why=" and ".join(dict.fromkeys(expressions.in_batches)))
    cut = partitioning(root)
    if isinstance(cut, BySlices) and extent is None:
        key = by_key(root)
        cut = Whole(key, "there are no archives") if isinstance(key, str) else ByKey(key.columns)
    able = {} if frames is None else {"frames": frames}
    refused = {"frames": f"cannot be run by DataFrame operations: it has {why}"} if frames is None else {}
    if isinstance(cut, Whole):
        has = "it is to be run by engines" if why is None else f"it has {why}, which only the engine can compute"
        refused["engines"] = (
            f"cannot be run on Spark: {has}, and it cannot be cut into parts\n"
            f"  by key: {cut.no_key}\n  by time: {cut.no_time}"
        )
    else:
        at = frames if by is None and isinstance(cut, BySlices) else None
        able["engines"] = Choice(root, cut, why or "", at, "engines")
    if extent is None:
        refused["replay"] = "cannot be replayed: there are no archives"
        wanted = by or next((way for way in ("frames", "engines") if way in able), "engines")
        if wanted in refused:
            raise Error(f"this query {refused[wanted]}")
        return able[wanted]
    able["replay"] = Choice(root, Alone(), why or "", way="replay")
    if by in refused:
        raise Error(f"this query {refused[by]}\nhelp: one engine can replay the archives: by replay")
    shape = shape_of(print_query(query.expanded))
    known = rates(shape)
    found = {way: _estimate(way, able[way].cut, extent, tasks, known) for way in able}
    told = [str(found[way]) if way in found else f"{way:7}  {_in_a_line(refused[way])}" for way in WAYS]
    way = by or least_regret(found)
    return replace(
        able[way], shape=shape, ways=(f"{counted(extent.rows, 'row')}, {counted(tasks, 'task')} at a time", *told)
    )


def _in_a_line(reason: str) -> str:
    return "; ".join(line.strip() for line in reason.splitlines())


def _estimate(way: str, cut: ByKey | BySlices | Alone | None, extent: Extent, tasks: int, rates: Rates) -> Estimate:
    rows: float = extent.rows
    if way == "replay":
        tasks = 1
    elif isinstance(cut, BySlices):
        found = slices(extent, cut.lookback, tasks, *extent.span)
        rows *= read_twice(found, extent, cut.lookback)
        tasks = min(tasks, max(len(found), 1))
    return estimate(way, rows, tasks, rates)


def _beyond_spark(root: Stop, expressions: Expressions) -> str | None:
    """What of the plan no Spark column means exactly, or Spark computes far too often; None where all can be said."""
    unfolded = _unfolded(root)
    if unfolded > _MOST_UNFOLDED:
        return f"parts that stand in others again and again, {unfolded:,} in all"
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


def _unfolded(root: Stop) -> int:
    """How many nodes the plan would have if each had its inputs for itself.

    Outer joins without keys, such as those of subqueries that are values, read what is left of them twice and put the
    two together, which doubles the parts that Spark divides it into.
    """
    sizes: dict[int, int] = {}
    for node in nodes(root):
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in node.inputs)
    return sizes[id(root)]


def carry_out(
    spark: SparkSession,
    choice: Choice,
    query: Bound,
    history: History,
    catalog: Catalog,
    at: Sequence[int] | None = None,
    slices: int = 256,
    counts_all: bool = False,
) -> tuple[DataFrame, dict[str, int]]:
    """The changes of the query over a history, or, with `at`, what its relation holds at these instants; and the rows
    of parts of its joins that were counted on the way.

    slices: into how many parts time is cut where no key divides the work.  counts_all: see `World`.  Where an
    expression fails (docs/semantics R4), evaluating the frame raises, with the first instant and the reason.
    """
    expressions = Expressions(catalog.tick_ns, catalog.functions)
    world = World(spark, expressions, history.first, history.until, slices, counts_all=counts_all)
    return _carried_out(world, choice, query, history, catalog, at), world.counted


def _carried_out(
    world: World, choice: Choice, query: Bound, history: History, catalog: Catalog, at: Sequence[int] | None
) -> DataFrame:
    schema = query.node.schema
    if choice.cut is None:
        result: Compiled = Compiler(world, history.sources).compile(choice.root)
    else:
        assert isinstance(choice.cut, ByKey)
        changes = in_tasks(world, setting_of(query, catalog), history, choice.cut, world.slices)
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
) -> DataFrame:
    """The same, from engines that read the archives themselves, slices of time or all of it.

    archives: of the query's inputs, in their order.
    """
    extent = Extent.of(archives, until, choice.root)
    first, last = extent.span
    until = last if until is None else until
    world = World(spark, Expressions(catalog.tick_ns, catalog.functions), min(first, until + 1), until)
    if isinstance(choice.cut, BySlices):
        parts = parts_of(extent, choice.cut.lookback, tasks_of(spark), until)
    else:
        parts = [Part(world.first, until, WHOLE)] if first <= until else []
    changes = in_own_slices(world, setting_of(query, catalog), archives, parts, (choice.way, choice.shape))
    if at is not None:
        return _contents_of_changes(world, changes, query.node.schema, at)
    return finished(world, changes, query.node.schema, (TS, SIGN))


def _contents_of_changes(world: World, changes: DataFrame, schema: Schema, at: Sequence[int]) -> DataFrame:
    return _contents(world, base_relation(changes.withColumn("_arrival", long(0)), schema), schema, at)


def _contents(world: World, relation: Intervals, schema: Schema, at: Sequence[int]) -> DataFrame:
    """What a relation holds at instants: `_ts` and its rows."""
    instants = world.spark.createDataFrame([(int(tau),) for tau in at], f"{AT} bigint")
    return finished(world, contents(relation, instants), schema, (TS,))
