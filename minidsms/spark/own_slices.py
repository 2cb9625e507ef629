"""Engines in Spark tasks that read the archives themselves: a task replays its slice of time, and nothing is shuffled.

A slice is replayed as `Connection.replay` would, with what the query does not need left out, from as long before as
answers reach back; the first element of each stream goes before, because aggregates over all and sliding windows count
from it (docs/semantics R3, S2). What is answered inside the slice is given back in Arrow.

Invariants: where the query fails, a task fails and tells of the first failure of all, whichever slice it comes upon.
All tasks read the elements that the archives had when the query was planned; where retention has removed some since
that a task needs, it fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.archive.conditions import needed_by
from minidsms.archive.demand import Demand, demand, everything
from minidsms.archive.files import read
from minidsms.archive.format import Archive
from minidsms.archive.lost_files import found_again
from minidsms.archive.rates import keep_rate
from minidsms.archive.replay import ReplayDriver
from minidsms.archive.replay_source import ReplaySource, Span, local_tables
from minidsms.cql.bound import Node
from minidsms.cql.errors import QueryError
from minidsms.elements import Schema
from minidsms.spark.engines import Setting, answer_ddl, engine_of, result_of
from minidsms.spark.frames import SIGN, TS, World, names
from minidsms.spark.offload import FAILED_AT
from minidsms.spark.slicing import Extent, slices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from minidsms.connection import Connection
    from minidsms.query import Query

WHOLE = 2**62
"""A look back over all that was."""

_BLOCKS = 16
"""Blocks that are replayed between two looks at what has been answered."""


@dataclass(frozen=True)
class Part:
    """One task's: the answers of [begin, end] to a query that reaches back `lookback` ticks."""

    begin: int
    end: int
    lookback: int


@dataclass(frozen=True)
class Past:
    """What tasks read of an input. archive: pinned.  first: the stream's very first element as a source gives it, where
    slices begin behind it.
    """

    archive: Archive
    first: pa.RecordBatch | None


def pasts(setting: Setting, archives: Sequence[Archive], parts: Sequence[Part]) -> tuple[Past, ...]:
    """What the tasks of these parts read. archives: in the order of the setting's inputs."""
    begins = max((part.begin - part.lookback for part in parts), default=-WHOLE)
    found = []
    for archive, (_, is_stream, schema) in zip(archives, setting.inputs):
        pinned = archive if archive.pinned is not None else archive.pin()
        found.append(Past(pinned, _first_element(pinned, schema, begins) if is_stream else None))
    return tuple(found)


def in_own_slices(
    world: World,
    setting: Setting,
    archives: Sequence[Archive],
    parts: Sequence[Part],
    kept_as: tuple[str, str] | None = None,
) -> DataFrame:
    """`_ts`, `_sign`, c0 .. of the query's answer. archives: in the order of the setting's inputs.

    kept_as: the way and the shape that what a row costs is remembered under.
    """
    run = runner(setting, pasts(setting, archives, parts), tuple(parts), kept_as)
    numbers = world.spark.range(0, len(parts), 1, max(len(parts), 1))
    return numbers.mapInArrow(run, answer_ddl(setting)).select(TS, SIGN, *names(len(setting.columns)))


def runner(
    setting: Setting, inputs: tuple[Past, ...], parts: tuple[Part, ...], kept_as: tuple[str, str] | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function a task applies to the numbers of its parts."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for table in answers(setting, inputs, parts, number, kept_as):
                    yield from table.to_batches()

    return run


def answers(
    setting: Setting,
    inputs: Sequence[Past],
    parts: Sequence[Part],
    number: int,
    kept_as: tuple[str, str] | None = None,
) -> Iterator[pa.Table]:
    """The answers of one of the parts. RuntimeError, with the first failure of all, where the query fails in it."""
    try:
        yield from answer_slice(setting, inputs, parts[number], kept_as)
    except QueryError as error:
        first = first_failure(setting, inputs, parts[0].begin, error)
        raise RuntimeError(f"{FAILED_AT}{first.ts}: {first.reason}") from None


def parts_of(extent: Extent, lookback: int, tasks: int, until: int | None = None) -> list[Part]:
    """The parts of what archives hold up to an instant (None: all). tasks: how many run at a time."""
    first, last = extent.span
    until = last if until is None else until
    return [Part(begin, end, lookback) for begin, end in slices(extent, lookback, tasks, min(first, until + 1), until)]


def first_failure(setting: Setting, inputs: Sequence[Past], begin: int, error: QueryError) -> QueryError:
    """The first failure of the query, given one of them; for this alone all that was before is replayed."""
    if error.ts is None:
        return error
    try:
        for _ in answer_slice(setting, inputs, Part(begin, error.ts, WHOLE)):
            pass
    except QueryError as first:
        return first
    return error


def answer_slice(
    setting: Setting, inputs: Sequence[Past], part: Part, kept_as: tuple[str, str] | None = None
) -> Iterator[pa.Table]:
    """The engine's answers inside a part, a few blocks at a time. Raises QueryError behind those before a failure, and
    Error where retention has removed since what it needs.
    """
    inputs = [replace(past, archive=found_again(past.archive)) for past in inputs]
    with engine_of(setting) as (db, query):
        began = time.process_time()
        driver = ReplayDriver([_entry(db, query, past, i, part) for past, i in zip(inputs, setting.inputs)])
        try:
            is_going_on = True
            while is_going_on:
                is_going_on = any([db.drive(driver) for _ in range(_BLOCKS)])
                if not is_going_on:
                    db.advance(part.end)
                while len(table := query.fetch_arrow()):
                    yield result_of(setting, _within(table, part))
            if kept_as is not None:
                rows = sum(_rows(past.archive, part, query.logical) for past in inputs)
                keep_rate(inputs[0].archive.folder, kept_as[1], kept_as[0], rows, time.process_time() - began)
        except QueryError as error:
            # Before the part windows lack their oldest rows: without them a sum may fail that does not with them.
            if error.ts is None or error.ts >= part.begin or part.lookback >= WHOLE:
                raise
            yield from answer_slice(setting, inputs, replace(part, lookback=WHOLE))


def _rows(archive: Archive, part: Part, root: Node) -> int:
    """About how many elements of an archive are read for a part of a plan, by what its log tells."""
    rows = 0.0
    for file in needed_by(archive, root, part.end):
        if file.last_ts < part.begin - part.lookback:
            continue
        inside = min(file.last_ts, part.end) - max(file.first_ts, part.begin - part.lookback) + 1
        share = inside / (file.last_ts - file.first_ts + 1)
        rows += share * (0 if file.statistics is None else file.statistics.rows)
    return int(rows)


def _within(table: pa.Table, part: Part) -> pa.Table:
    """The answers inside the part."""
    ts = table[TS].cast(pa.int64())
    inside = pc.and_(pc.less_equal(ts, part.end), pc.greater_equal(ts, part.begin))
    return table if pc.all(inside).as_py() else table.filter(inside)


def _entry(db: Connection, query: Query, past: Past, input_: tuple[str, bool, Schema], part: Part) -> Any:
    """The source of one input, and the input."""
    name, is_stream, _ = input_
    target = db.stream_input(name)
    schema = target.schema
    if not is_stream:
        span = Span(None, part.end, 0, 2**62)
        return ReplaySource(past.archive, schema, span, everything(schema), local_tables), target
    from_ = part.begin - part.lookback
    needed = demand([query.logical], name)
    return SliceSource(past, schema, Span(from_, part.end, 0, 2**62), needed), target


class SliceSource(ReplaySource):
    """A span of a stream's archive, and before it the stream's first element, if the span does not reach back to it."""

    def __init__(self, past: Past, schema: Schema, span: Span, needed: Demand) -> None:
        super().__init__(past.archive, schema, span, needed, local_tables)
        is_before = past.first is not None and span.from_ is not None and past.first[TS][0].as_py() < span.from_
        self._very_first = past.first if is_before else None

    def read(self) -> Iterator[pa.RecordBatch]:
        """The first element, then the elements of the span."""
        if self._very_first is not None:
            yield self._very_first
        yield from super().read()


def _first_element(archive: Archive, schema: Schema, before: int) -> pa.RecordBatch | None:
    """A stream's very first element as a source gives it, where it lies before an instant."""
    files = archive.files()
    if not files or files[0].first_ts >= before:
        return None
    table = next(read(archive, None, files[0].first_ts)).take([0])  # a slice would travel with all it is of
    by_name = {n.lower(): f for n, f in zip(archive.metadata.schema.names, archive.metadata.fields)}
    columns = [_alone(table.column(by_name[name.lower()]).chunk(0)) for name in schema.names]
    return pa.RecordBatch.from_arrays([*columns, table.column(TS).chunk(0)], names=[*schema.names, TS])


def _alone(values: pa.Array) -> pa.Array:
    """Coded texts without those that are not among them."""
    return values.dictionary_decode().dictionary_encode() if pa.types.is_dictionary(values.type) else values
