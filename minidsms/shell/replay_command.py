"""`minidsms replay FOLDER`: archives through the queries of a file or of the command line.

Streams and relations that no statement declares are declared as their archives are, in the archives' time unit.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.shell.progress import progress_bar
from minidsms.shell.reading import read_commit, read_instant, read_text
from minidsms.shell.run import Job, carry_out, drive_job

if TYPE_CHECKING:
    from minidsms.connection import Connection


def replay(options: argparse.Namespace) -> int:
    """Carry out the statements, replay, and show or write the answers; the exit code."""
    from minidsms.archive.declaring import declare
    from minidsms.archive.format import archives_in
    from minidsms.connection import connect

    if options.file is None and not options.query:
        raise Error('there is nothing to ask\nhelp: -q "SELECT ..", or -f FILE')
    text = "".join(f"{part};\n" for part in ([] if options.file is None else [read_text(options.file)]) + options.query)
    archives = archives_in(options.folder)
    if not archives:
        raise Error(f"{options.folder!r} has no archive")
    units = {a.metadata.time_unit for a in archives}
    if len(units) > 1:
        raise Error(f"the archives count in {' and '.join(sorted(units))}\nhelp: name one archive")
    db = connect(time_unit=units.pop())
    declare(db, options.folder, _declared(text))
    job = Job(db, False, carry_out(db, text), db.warnings)
    return drive_job(job, options, lambda: _drive(db, options))


def _declared(text: str) -> frozenset[str]:
    """What the statements declare themselves."""
    from minidsms.cql import syntax
    from minidsms.cql.parser import parse

    kinds = (syntax.CreateStream, syntax.CreateRelation, syntax.CreateView)
    return frozenset(s.name.lower() for s in parse(text) if isinstance(s, kinds))


def _drive(db: Connection, options: argparse.Namespace) -> None:
    ends = [
        None if text is None else read_instant(text, db.tick_ns, name)
        for name, text in (("--from", options.from_), ("--to", options.to))
    ]
    with progress_bar(not options.quiet, "replaying") as tell:
        try:
            db.replay(
                options.folder,
                from_=ends[0],
                to=ends[1],
                speed=options.speed,
                engine=options.engine,
                follow=options.follow,
                as_of=read_commit(options.as_of),
                progress=tell,
            )
        except KeyboardInterrupt:
            if not options.follow:
                raise
    db.finish_unfed()
