"""`minidsms run FILE`: the statements of a CQL file or a STREAM script, with their sources read to the end.

Invariant: every query is registered, and every place for answers opened, before any data is read; a run that is broken
off leaves no half-written file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.cql.errors import Error, saying
from minidsms.shell.progress import progress_bar
from minidsms.shell.reading import read_instant, read_text
from minidsms.shell.showing import TableSink, cell, harmless, print_table

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query
    from minidsms.sinks.sink import Sink


@dataclass
class Job:
    """What is to run: the queries in order, each with its sink, and which sinks are files."""

    db: Connection
    is_script: bool
    queries: list[tuple[Query, str | None]]
    warnings: list[str] = field(default_factory=list)
    sinks: list[tuple[Query, Sink]] = field(default_factory=list)


def run(options: argparse.Namespace) -> int:
    """Run the file; the exit code."""
    if options.db is not None:
        return _run_in_folder(read_text(options.file), options)
    job = _load(read_text(options.file), options)
    until = None if options.until is None else read_instant(options.until, job.db.tick_ns)
    return drive_job(job, options, lambda: _drive(job, until, options))


def drive_job(job: Job, options: argparse.Namespace, drive: Callable[[], None]) -> int:
    """Open the places for the answers, let `drive` bring the elements, and report; the exit code."""
    with job.db:
        try:
            _open_sinks(job, options)
            _tell(job.warnings)
            warned = len(job.db.warnings)
            started = time.perf_counter()
            drive()
            took_s = time.perf_counter() - started
            _tell(job.db.warnings[warned:])
            for query, _ in job.sinks:
                query.close_sink()
        except BaseException:
            for query, _ in job.sinks:
                query.discard_sink()
            raise
        return _report(job, options, took_s)


def _run_in_folder(text: str, options: argparse.Namespace) -> int:
    """`run`, going on with what the folder holds."""
    from minidsms.connection import connect
    from minidsms.cql.stream_script import is_stream_script
    from minidsms.durability.connection import DurableConnection
    from minidsms.shell import kept_run

    kept_run.check_options(options)
    if is_stream_script(text):
        raise Error("a STREAM script is not kept in a folder\nhelp: write its declarations and queries in CQL")
    with connect(options.db, **({"time_unit": options.time_unit} if options.time_unit else {})) as db:
        assert isinstance(db, DurableConnection)
        until = None if options.until is None else read_instant(options.until, db.tick_ns)
        if db.statements.script:
            kept_run.tell_where(db, "goes on")
        kept_run.carry_out_rest(db, text, _show_result)
        _tell(db.warnings)
        _tell_unfed(db, options)
        started = time.perf_counter()
        was_stopped = kept_run.read_on(db, until, options.quiet)
        took_s = time.perf_counter() - started
        job = Job(db, False, [(query, None) for query in db.queries.values()])
        shown = [query for query, _ in job.queries if query.sink is None and query.is_waiting]
        for query, _ in job.queries:
            if query in shown:
                sink = _shown_sink(query, shown, job, options)
                kept_run.show_waiting(db, query, sink)
                job.sinks.append((query, sink))
        if was_stopped:
            kept_run.tell_where(db, "stopped")
        return _report(job, options, took_s)


# ---------------------------------------------------------------------------------------------------------- loading


def _load(text: str, options: argparse.Namespace) -> Job:
    from minidsms.cql.stream_script import is_stream_script

    if is_stream_script(text):
        from minidsms.statements.script import connect_for_script, load_script

        if options.time_unit not in (None, "s"):
            raise Error("--time-unit: a tick of a STREAM script is a second")
        db = connect_for_script()
        loaded = load_script(db, text)
        return Job(db, True, loaded.queries, loaded.warnings)
    from minidsms.connection import connect

    db = connect(**({"time_unit": options.time_unit} if options.time_unit else {}))
    return Job(db, False, carry_out(db, text), db.warnings)


def carry_out(db: Connection, text: str) -> list[tuple[Query, str | None]]:
    """Carry out the statements; tables are printed at once. The queries that are left running."""
    from minidsms.cql.parser import parse
    from minidsms.statements import run as statements

    try:
        for statement in parse(text):
            _show_result(statements.carry_out(db, statement, text))
    except BaseException:
        for query in db.queries.values():
            query.discard_sink()
        db.close()
        raise
    return [(query, None) for query in db.queries.values()]


def _show_result(result: object) -> None:
    """Print what a statement gives, where it is a table."""
    from minidsms.answers.table import Table

    if isinstance(result, Table) and result.columns == ("plan",):
        print(harmless("\n".join(line for (line,) in result.rows)) + "\n")
    elif isinstance(result, Table):
        columns = [(name, False) for name in result.columns]
        print_table("", columns, [[cell(v) for v in row] for row in result.rows], sys.stdout)


def _open_sinks(job: Job, options: argparse.Namespace) -> None:
    """Give every query that has no file a place for its answers."""
    shown = [q for q, path in job.queries if path is None and q.sink is None]
    for query, path in job.queries:
        if query.sink is not None:
            job.sinks.append((query, query.sink))
            continue
        if path is not None:
            sink = _file_sink(path, "stream")
        elif options.output is not None:
            sink = _output_sink(query, len(shown), job, options)
        else:
            sink = _shown_sink(query, shown, job, options)
        job.db.add_sink(query, sink)
        job.sinks.append((query, sink))
    if options.output is not None and not shown:
        said = "every query of the file says itself where its answers go" if job.sinks else "there is no query"
        raise Error(f"-o: {said}")


def _file_sink(path: str, format: str | None) -> Sink:
    from minidsms.sinks.opening import open_sink

    return open_sink(path, format)


def _output_sink(query: Query, count: int, job: Job, options: argparse.Namespace) -> Sink:
    """The sink that -o asks for."""
    if options.format == "table":
        raise Error("-o: a table is for reading; write csv, json, parquet, arrow or stream")
    from minidsms.sources.files import BY_SUFFIX, unpacked_name

    path: str = options.output
    if count > 1 and not os.path.exists(path) and not os.path.splitext(path)[1]:
        with saying(f"the folder {path!r} cannot be made"):
            os.mkdir(path)
    if os.path.isdir(path):
        format_ = options.format or ("stream" if job.is_script else "csv")
        return _file_sink(os.path.join(path, f"{query.name}.{'log' if format_ == 'stream' else format_}"), format_)
    if count > 1:
        help_ = "name a folder, or write CREATE QUERY .. INTO"
        raise Error(f"-o: {count} queries cannot share the file {path!r}\nhelp: {help_}")
    known_suffix = os.path.splitext(unpacked_name(path))[1] in BY_SUFFIX
    return _file_sink(path, options.format or ("stream" if job.is_script and not known_suffix else None))


def _shown_sink(query: Query, shown: list[Query], job: Job, options: argparse.Namespace) -> Sink:
    """A sink that prints."""
    format_ = options.format or ("stream" if job.is_script else "table")
    if format_ == "table":
        return TableSink(f"{query.name}: {' '.join(query.text.split())[:200]}", options.rows, job.db.tick_ns)
    from minidsms.shell.showing import Spool, StandardOutput
    from minidsms.sinks.lines import LineSink
    from minidsms.sinks.opening import line_format

    output: Callable[[str], Spool | StandardOutput] = StandardOutput
    if len(shown) > 1:
        blank = b"" if format_ == "json" or query is shown[0] else b"\n"
        output = lambda path: Spool(blank)  # noqa: E731 the other branch is a class
    return LineSink("-", line_format(format_), output)


# ---------------------------------------------------------------------------------------------------------- running


def _drive(job: Job, until: int | None, options: argparse.Namespace) -> None:
    """Read the sources, with a bar on a terminal."""
    _tell_unfed(job.db, options)
    with progress_bar(not options.quiet) as tell, _stopped_by_signals(job.db):
        while not job.db.reading.take_stop() and job.db.run_some(until):
            tell(job.db.sources_read)


def _tell_unfed(db: Connection, options: argparse.Namespace) -> None:
    """End the streams that nothing feeds, and say which have stayed empty."""
    unfed = db.finish_unfed()
    if unfed and not options.quiet:
        _tell([f"nothing feeds {name}: it stays empty" for name in unfed])


@contextlib.contextmanager
def _stopped_by_signals(db: Connection) -> Iterator[None]:
    """Where a source may go on for ever, Ctrl-C and SIGTERM are how a run ends: what was answered is written."""
    from minidsms.shell.kept_run import handled
    from minidsms.sources.live_lines import LiveLines

    if not any(isinstance(source, LiveLines) for source, _ in db.reading.sources):
        yield
        return
    with handled(lambda *_: db.stop()):
        yield


# --------------------------------------------------------------------------------------------------------- reporting


def _tell(notes: list[str]) -> None:
    for note in notes:
        print(harmless(f"warning: {note}"), file=sys.stderr)


def _report(job: Job, options: argparse.Namespace, took_s: float) -> int:
    """Say what was written, what was left out and what failed; the exit code."""
    code = 0
    for query, sink in job.sinks:
        if sink.path != "-" and not options.quiet:
            print(harmless(f"{query.name}: {counted(sink.rows, 'row')} written to {sink.path}"), file=sys.stderr)
    for name in _inputs(job.db):
        _report_losses(job.db, name)
    if options.stats:
        _show_stats(job, took_s)
    for query, _ in job.queries:
        if query.failure is not None:
            ts, reason = query.failure
            print(harmless(f"error: query {query.name} stopped at instant {ts}: {reason}"), file=sys.stderr)
            code = 1
    return code


def _inputs(db: Connection) -> list[str]:
    """The names of the streams and relations."""
    return [each.definition.name for each in db.inputs]


def _report_losses(db: Connection, name: str) -> None:
    taken = db.stream_input(name)
    lost = taken.counters.rejected
    if lost:
        _tell([f"{name}: {counted(lost, 'row')} left out, unreadable or refused{taken.rejected.examples()}"])
    late = taken.counters.late_dropped
    if late:
        _tell([f"{name}: {counted(late, 'late row')} left out by LATE DROP; SLACK waits for such rows"])


def _show_stats(job: Job, took_s: float) -> None:
    elements = sum(job.db.stream_input(name).counters.accepted for name in _inputs(job.db))
    rate = elements / took_s if took_s > 0 else 0.0
    print(f"{counted(elements, 'element')} read in {took_s:.3f} s ({rate:,.0f}/s)", file=sys.stderr)
    columns = [("operator", False), ("in", True), ("out", True), ("ms", True)]
    for query, sink in job.sinks:
        rows = []
        for figures in query.stats()["operators"]:
            name = f"{figures['operator']} {figures['detail']}".strip()
            counts = [f"{figures[key]:,}" for key in ("elements_in", "elements_out")]
            rows.append([cell(name), *counts, f"{figures['time_s'] * 1000:.1f}"])
        print_table(f"{query.name}: {sink.rows:,} results", columns, rows, sys.stderr)
