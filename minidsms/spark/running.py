"""`minidsms.spark.run`: a CQL text over a folder of archives; and the same for what a connection has declared."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from minidsms.archive.conditions import needed_by
from minidsms.archive.format import Archive, AsOf, archives_in
from minidsms.archive.rates import keep_rate, read_rates
from minidsms.archive.storage import storage_of
from minidsms.counted import counted
from minidsms.cql import syntax
from minidsms.cql.binder import Bound, bind, view_def
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parser import parse
from minidsms.cql.printer import print_query
from minidsms.spark import archives
from minidsms.spark.compiler import logical_plan
from minidsms.spark.costs import WAYS, about, shape_of
from minidsms.spark.join_order import order_joins
from minidsms.spark.offload import with_times
from minidsms.spark.partitioning import Alone, BySlices
from minidsms.spark.places import shared
from minidsms.spark.plan import Choice, carry_out, carry_out_by_slices, choose
from minidsms.spark.reading import reading
from minidsms.spark.session import is_remote, prepared, session, tasks_of
from minidsms.spark.slicing import Extent
from minidsms.spark.workers import check_workers
from minidsms.statements.constant_rows import bind_continuous

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from minidsms.connection import Connection
    from minidsms.query import Query


@dataclasses.dataclass(frozen=True)
class Offloaded:
    """A query that is ready to run on Spark. archives: of everything it reads, pinned, streams first."""

    spark: SparkSession
    choice: Choice
    query: Bound
    catalog: Catalog
    archives: tuple[Archive, ...]

    def frame(
        self, at: Sequence[int] | None = None, until: int | None = None, slices: int = 256, times: bool = False
    ) -> DataFrame:
        """See `minidsms.spark.run`."""
        with reading(self.archives):
            frame = self._frame(at, until, slices)
        return with_times(frame, self.query.node.schema, self.catalog.tick_ns) if times else frame

    def _frame(
        self, at: Sequence[int] | None = None, until: int | None = None, slices: int = 256, counts_all: bool = False
    ) -> DataFrame:
        """Joins that are counted on the way are remembered. counts_all: see `World`."""
        choice, until = self.choice, self._until(at, until)
        if at is not None:
            if self.query.node.kind != "relation":
                raise Error("only a relation has contents at an instant; leave out ISTREAM, DSTREAM or RSTREAM")
            choice = choice.frames or choice
        if choice.cut is not None or choice.why:
            check_workers(self.spark)
        if isinstance(choice.cut, BySlices | Alone):
            return carry_out_by_slices(self.spark, choice, self.query, self.archives, self.catalog, at, until)
        history = archives.history(self.spark, self.archives, until, choice.root)
        frame, counted = carry_out(self.spark, choice, self.query, history, self.catalog, at, slices, counts_all)
        rows = Extent.of(self.archives, until, choice.root).rows
        for key, n in counted.items():
            keep_rate(self.archives[0].folder, shape_of(print_query(self.query.expanded), masked=False), key, rows, n)
        return frame

    def text(self) -> str:
        """For EXPLAIN: the plan, the choice, and how much of the archives is read, by what their logs tell."""
        lines = [self.choice.text()]
        for archive in self.archives:
            files, read = archive.files(), needed_by(archive, self.choice.root)
            nbytes = sum(storage_of(archive.folder).sizes([file.path for file in read]))
            lines.append(
                f"{archive.metadata.name}: {len(read):,} of {counted(len(files), 'file')}, {nbytes / 1e6:,.1f} MB"
            )
        return "\n".join(lines)

    def measure(self) -> None:
        """Carry the query out, for nothing but what a row costs; the archives remember it.

        Engines in tasks tell of themselves. Of DataFrame operations Spark tells, of the tasks alone.
        """
        context, group = self.spark.sparkContext, f"minidsms measures {self.choice.shape}"
        if self.choice.cut is None:
            self.count_joins()
        context.setJobGroup(group, "minidsms: what a row costs")
        try:
            self.frame().write.format("noop").mode("overwrite").save()
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
            context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
        if self.choice.cut is not None or self.choice.why:
            return
        store, tracker = context._jsc.sc().statusStore(), context.statusTracker()
        jobs = [job for number in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(number)) is not None]
        stages = {stage for job in jobs for stage in job.stageIds}
        seconds = sum(store.lastStageAttempt(stage).executorCpuTime() for stage in stages) / 1e9
        rows = Extent.of(self.archives, None, self.choice.root).rows
        keep_rate(self.archives[0].folder, self.choice.shape, "frames", rows, seconds)

    def count_joins(self) -> None:
        """Carry out what DataFrame operations join, as far as samples leave sizes open; the archives remember these."""
        self._frame(counts_all=True)

    def _until(self, at: Sequence[int] | None, until: int | None) -> int | None:
        """The last closed instant: instants that are asked for are closed. Error where they are not to be."""
        if not at:
            return until
        if until is None:
            _, last = Extent.of(self.archives).span
            return max(last, *at)
        if max(at) > until:
            raise Error(f"at: {max(at)} lies behind the last closed instant, until={until}")
        return until


def prepare(
    cql: str,
    folder: str,
    catalog: Catalog | None = None,
    spark: SparkSession | None = None,
    by: str | None = None,
    as_of: AsOf | None = None,
) -> Offloaded:
    """A query over the archives of a folder. The text may define views and set `rstream` before its one query.

    catalog: views and user functions that the query may name.  by, as_of: see `minidsms.spark.run`.
    """
    there = archives_in(shared(folder), as_of)
    known = _copied(catalog) if catalog is not None else Catalog()
    known.streams, known.relations = {}, {}
    archives.declare(known, there)
    tree = query_of(cql, known)
    query = bind_continuous(tree, known, cql)
    by_name = {archive.metadata.name.lower(): archive for archive in there}
    return _ready(query, cql, known, lambda name: by_name[name.lower()], spark, by)


def measured(cql: str, folder: str, spark: SparkSession | None = None) -> None:
    """Carry a query out by every way that can, so that its archives remember what each costs."""
    spark = spark or session()
    if is_remote(spark):
        raise Error(
            "what a row costs cannot be measured over Spark Connect\n"
            "help: leave out analyze, or run the program where Spark's driver is"
        )
    for way in WAYS:
        with contextlib.suppress(Error):
            ready = prepare(cql, folder, spark=spark, by=way)
            ready.measure()


def prepare_connected(
    db: Connection, cql: str, folder: str | None, spark: SparkSession | None = None, by: str | None = None
) -> Offloaded:
    """A query over what a connection has declared. folder: where the archives are; None: where it writes them."""
    if folder is not None:
        return prepare(cql, folder, db.catalog, spark, by)
    db.flush()
    known = _copied(db.catalog)
    query = bind_continuous(query_of(cql, known), known, cql)

    def archive_of(name: str) -> Archive:
        recorder = db.stream_input(name).recorder
        if recorder is None:
            raise Error(f'"{name}" is not archived\nhelp: say in which folder its archive is, or CREATE .. ARCHIVE')
        return recorder.archive

    return _ready(query, cql, known, archive_of, spark, by)


def explain_connected(db: Connection, cql: str, is_more_asked: bool = False) -> str:
    """How a query over what a connection has declared would be carried out; where it cannot be, the reasons.

    Sizes are those of the archives it writes, if any.  is_more_asked: something that only a running plan can tell.
    """
    if is_more_asked:
        raise Error("ANALYZE and RULES tell of the engine's own plan; leave them out, or FORMAT spark")
    spark = prepared(session())
    with db.lock:
        known = _copied(db.catalog)
        query = bind(query_of(cql, known), known, cql)
        recorders = [db.stream_input(name).recorder for name in (*query.streams, *query.relations)]
    extent = Extent.of([recorder.archive for recorder in recorders if recorder is not None])
    try:
        return choose(query, cql, known, extent, tasks_of(spark)).text()
    except Error as refused:
        return f"On Spark: refused; {refused}"


def _ready(
    query: Bound,
    text: str,
    catalog: Catalog,
    archive_of: Callable[[str], Archive],
    spark: SparkSession | None,
    by: str | None,
) -> Offloaded:
    system = next((n for n in query.streams if catalog.streams[n.lower()].is_system), None)
    if system is not None:
        raise Error(f"{system} is written by the engine as it runs; it has no archive")
    found = tuple(archive_of(name).pin() for name in (*query.streams, *query.relations))
    for archive in found:
        shared(archive.folder)
    spark = prepared(spark or session())
    extent = Extent.of(found, None, logical_plan(query.node, text))
    tasks = tasks_of(spark)
    choice = choose(query, text, catalog, extent, tasks, by, lambda shape: read_rates(found[0].folder, shape))
    if choice.cut is None:
        kept = read_rates(found[0].folder, shape_of(print_query(query.expanded), masked=False))
        counted = {key: about(rates, extent.rows) for key, rates in kept.items()}
        choice = dataclasses.replace(choice, root=order_joins(choice.root, found, catalog, counted))
    return Offloaded(spark, choice, query, catalog, found)


def offload(
    db: Connection,
    query: Query | str,
    folder: str | None,
    at: Sequence[int] | None,
    until: int | None,
    by: str | None,
) -> DataFrame:
    """See `Connection.offload`."""
    if isinstance(query, str):
        query = db.queries.get(query.lower(), query)
    text = query if isinstance(query, str) else query.expanded
    return prepare_connected(db, text, folder, by=by).frame(at, until)


def _copied(catalog: Catalog) -> Catalog:
    """A catalog to add to without a trace in the other."""
    streams, relations, views = dict(catalog.streams), dict(catalog.relations), dict(catalog.views)
    return dataclasses.replace(catalog, streams=streams, relations=relations, views=views, queries={})


def query_of(cql: str, catalog: Catalog) -> syntax.Query:
    """The one query of a text, after the views and settings before it have been taken into the catalog."""
    found: list[syntax.Query] = []
    for statement in parse(cql):
        match statement:
            case syntax.CreateView():
                catalog.views[statement.name.lower()] = view_def(statement, catalog, cql)
            case syntax.SetSetting(name="rstream", value=value) if value in ("ticks", "events"):
                catalog.rstream_ticks = value == "ticks"
            case syntax.QueryStatement():
                found.append(statement.query)
            case _:
                hint = "the archives say what streams and relations there are"
                raise CqlError(
                    "only views, SET rstream and one query are carried out on Spark", cql, statement.span, "", hint
                )
    if len(found) != 1:
        raise CqlError("one query is wanted" if not found else "there are several queries; run them one by one", cql)
    return found[0]
