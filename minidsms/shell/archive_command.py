"""`minidsms archive inspect|compact|verify|expire FOLDER`: what archives hold, few files of many, whether all is sound,
and what is old removed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.shell.progress import progress_bar
from minidsms.shell.showing import cell, harmless, print_table, show_instant

if TYPE_CHECKING:
    from minidsms.archive.format import Archive


def archive(options: argparse.Namespace) -> int:
    """Carry out the action; the exit code: 1 where something is wrong."""
    from minidsms.archive.format import archives_in
    from minidsms.cql.errors import Error

    archives = archives_in(options.folder)
    if not archives:
        raise Error(
            f"{options.folder!r} has no archive\nhelp: name an archive, or the folder that CREATE .. ARCHIVE named"
        )
    actions: dict[str, Callable[[argparse.Namespace, list[Archive]], int]] = {
        "inspect": _inspect,
        "compact": _compact,
        "verify": _verify,
        "expire": _expire,
    }
    return actions[options.action](options, archives)


def _inspect(options: argparse.Namespace, archives: list[Archive]) -> int:
    from minidsms.archive.inspecting import inspect
    from minidsms.archive.log import read_snapshot

    figures = [inspect(a) for a in archives]
    columns = [("archive", False), ("kind", False), ("rows", True), ("files", True), ("bytes", True)]
    columns += [("first", False), ("last", False), ("columns", False)]
    rows = []
    for f in figures:
        metadata = f.archive.metadata
        ends = [_instant(ts, metadata.tick_ns) for ts in (f.first_ts, f.last_ts)]
        counts = [f"{n:,}" for n in (f.rows, len(f.files), f.nbytes)]
        rows.append([cell(metadata.name), metadata.kind, *counts, *ends, cell(metadata.schema)])
    print_table("", columns, rows, sys.stdout)
    if options.files:
        columns = [("file", False), ("rows", True), ("bytes", True), ("first", False), ("last", False)]
        for f in figures:
            unit = f.archive.metadata.tick_ns
            shown = [
                [
                    harmless(x.file.path.removeprefix(f.archive.folder).lstrip("/")),
                    f"{x.rows:,}",
                    f"{x.nbytes:,}",
                    _instant(x.file.first_ts, unit),
                    _instant(x.file.last_ts, unit),
                ]
                for x in f.files
            ]
            print_table(f.archive.metadata.name, columns, shown, sys.stdout)
    if options.log:
        columns = [("commit", True), ("time", False), ("arrivals", True), ("ingest", False)]
        for f in figures:
            snapshot = read_snapshot(f.archive.folder)
            marks = () if snapshot is None else snapshot.marks
            commits = [
                [str(m.number), show_instant(m.at_ms, 1_000_000), f"{m.arrivals:,}", cell(m.batch or "")] for m in marks
            ]
            print_table(f.archive.metadata.name, columns, commits, sys.stdout)
            origins = [
                [str(m.number), harmless(o.name), f"{o.rows:,}", f"{o.rejected:,}"] for m in marks for o in m.origins
            ]
            if origins:
                columns = [("commit", True), ("came from", False), ("rows", True), ("rejected", True)]
                print_table(f"{f.archive.metadata.name}: ingested", columns, origins, sys.stdout)
                columns = [("commit", True), ("time", False), ("arrivals", True), ("ingest", False)]
    return 0


def _compact(options: argparse.Namespace, archives: list[Archive]) -> int:
    from minidsms.archive.compacting import compact

    for each in archives:
        with progress_bar(what="compacting") as tell:
            done = compact(each, progress=tell)
        print(harmless(f"{each.metadata.name}: {counted(done.before, 'file')} before, {done.after:,} after"))
    return 0


def _verify(options: argparse.Namespace, archives: list[Archive]) -> int:
    from minidsms.archive.verifying import verify

    code = 0
    for each in archives:
        with progress_bar(what="verifying") as tell:
            problems = list(verify(each, tell))
        for problem in problems:
            print(harmless(f"error: {each.metadata.name}: {problem}"), file=sys.stderr)
        print(harmless(f"{each.metadata.name}: {'sound' if not problems else counted(len(problems), 'problem')}"))
        code = code or int(bool(problems))
    return code


def _expire(options: argparse.Namespace, archives: list[Archive]) -> int:
    from minidsms.archive.writer import Writer
    from minidsms.settings import checked, interval_ticks

    kept = checked("archive_retention", options.keep, "--keep")
    for each in archives:
        with Writer(each) as writer:
            gone = 0 if kept is None else writer.expire(interval_ticks(kept, each.metadata.tick_ns))
        print(harmless(f"{each.metadata.name}: {counted(gone, 'file')} removed"))
    return 0


def _instant(ts: int | None, tick_ns: int) -> str:
    return "" if ts is None else show_instant(ts, tick_ns)
