"""How a query is carried out on Spark: as DataFrame operations over intervals, or by engines in tasks.

Invariant: the choice follows from the plan alone, before any row is read, and what is chosen is what EXPLAIN says.
What neither way can answer is refused with the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from minidsms.cql.binder import Bound
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import Error
from minidsms.cql.printer import print_query
from minidsms.elements import Schema
from minidsms.plan.explain import logical_text
from minidsms.plan.logical import GroupBy, Stop, nodes
from minidsms.settings import UNIT_NS
from minidsms.spark.compiler import Compiled, Compiler, base_relation, evaluated, logical_plan
from minidsms.spark.computed import NotExpressibleError
from minidsms.spark.expressions import Expressions
from minidsms.spark.frames import SIGN, TS, Elements, Intervals, World
from minidsms.spark.in_tasks import Setting, in_tasks, quoted
from minidsms.spark.offload import History, finished
from minidsms.spark.partitioning import ByKey, ByTime, Whole, partitioning
from minidsms.spark.streams import contents, net_of_changes, output_of_relation, output_of_stream
from minidsms.spark.sweep import AT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Choice:
    """A plan and how it is carried out. cut: how engines in tasks share it; None for DataFrame operations alone.

    why: what Spark cannot say, if anything.
    """

    root: Stop
    cut: ByKey | ByTime | None = None
    why: str = ""

    def __str__(self) -> str:
        if self.cut is None:
            by_engine = f"; over batches in Arrow, by the engine: {self.why}" if self.why else ""
            return f"On Spark: DataFrame operations over intervals of validity{by_engine}"
        return f"On Spark: the engine in tasks, {self.cut}, for the query has {self.why}"

    def text(self) -> str:
        """For EXPLAIN: the plan, and the choice."""
        return f"Logical plan\n{logical_text(self.root)}\n{self}"


def choose(query: Bound, text: str, catalog: Catalog) -> Choice:
    """How to carry out a query; a Spark session is running. Raises CqlError and Error for what cannot be."""
    root = logical_plan(query.node, text)
    expressions = Expressions(catalog.tick_ns, catalog.functions)
    why = _beyond_spark(root, expressions)
    if why is None:
        return Choice(root, why=" and ".join(dict.fromkeys(expressions.in_batches)))
    cut = partitioning(root)
    if isinstance(cut, Whole):
        raise Error(
            f"this query cannot be run on Spark: it has {why}, which only the engine can compute, "
            "and it cannot be cut into parts\n"
            f"  by key: {cut.no_key}\n  by time: {cut.no_time}"
        )
    return Choice(root, cut, why)


def _beyond_spark(root: Stop, expressions: Expressions) -> str | None:
    """What of the plan no Spark column means exactly; None where all can be said."""
    for node in nodes(root):
        if isinstance(node, GroupBy):
            user = next((call for call in node.aggregates if call.user), None)
            if user is not None:
                return f"the user aggregate {user.function}"
        try:
            for expr in evaluated(node):
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
    if at is not None and query.node.kind != "relation":
        raise Error("only a relation has contents at an instant; leave out ISTREAM, DSTREAM or RSTREAM")
    if choice.cut is None:
        result: Compiled = Compiler(world, history.sources).compile(choice.root)
    else:
        changes = in_tasks(world, query, _setting(query, catalog), history, choice.cut, slices)
        if at is None:
            net = net_of_changes(changes, len(schema)) if query.node.kind == "relation" else changes
            return finished(world, net, schema, (TS, SIGN))
        result = base_relation(changes.withColumn("_arrival", F.lit(0).cast("bigint")), schema)
    if at is not None:
        assert isinstance(result, Intervals)
        instants = spark.createDataFrame([(int(tau),) for tau in at], f"{AT} bigint")
        return finished(world, contents(result, instants), schema, (TS,))
    if isinstance(result, Elements):
        return finished(world, output_of_stream(world, result), schema, (TS, SIGN))
    return finished(world, output_of_relation(world, result), schema, (TS, SIGN))


def _setting(query: Bound, catalog: Catalog) -> Setting:
    """What an engine in a task must know."""
    views = []
    for view in catalog.views.values():
        columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
        views.append(f"CREATE VIEW {quoted(view.name)}{columns} AS {print_query(view.query)}")
    return Setting(
        tuple(inputs(query, catalog)),
        tuple(views),
        print_query(query.expanded),
        query.node.schema.types,
        next(unit for unit, ns in UNIT_NS.items() if ns == catalog.tick_ns),
        catalog.rstream_ticks,
        tuple(catalog.functions.values()),
        tuple(catalog.aggregates.values()),
    )
