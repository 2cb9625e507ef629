"""`minidsms run FILE --db FOLDER`: a run that goes on where it was, however the process before ended.

Invariants: of the file's statements the folder knows which have been carried out, and how they read; the others are.
Answers that no INTO takes wait in the folder until a run has come to its end, or was stopped, and has shown them.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from minidsms.cql import syntax
from minidsms.cql.errors import CqlError, Error, QueryError
from minidsms.cql.parser import parse
from minidsms.shell.harmless import harmless
from minidsms.shell.progress import progress_bar

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.query import Query
    from minidsms.sinks.sink import Sink


def check_options(options: argparse.Namespace) -> None:
    """Error for what does not go with a folder."""
    if options.output is not None:
        raise Error("-o does not go with --db: what is shown once is not kept\nhelp: write CREATE QUERY .. INTO")


def carry_out_rest(db: DurableConnection, text: str, show: Callable[[object], None]) -> None:
    """Carry out the statements that the folder does not know, and those that only show something. Error where it knows
    one otherwise.
    """
    statements = parse(text)
    if db.statements.script and max(db.statements.script) >= len(statements):
        raise Error(f"{db.folder!r} was made with more statements than this file has{_HELP}")
    for i, statement in enumerate(statements):
        digest = zlib.crc32(text[slice(*statement.span)].encode())
        known = db.statements.script.get(i)
        if known is not None and known != digest:
            reason = f"{db.folder!r} was made with another statement here"
            raise CqlError(reason, text, statement.span, "", _HELP.removeprefix("\nhelp: "))
        if known is None:
            show(db.statements.carry_out(statement, text, None if _only_reads(statement) else (i, digest)))
            db.statements.make_wanted()


_HELP = "\nhelp: run the file that it was made with, to whose end statements may be added; or name another folder"


def _only_reads(statement: syntax.Statement) -> bool:
    return isinstance(statement, syntax.Look | syntax.Checkpoint)


def tell_where(db: DurableConnection, verb: str) -> None:
    """Say on the standard error how far the streams and relations have been read."""
    places = [
        f"{each.definition.name} at element {db.position(each.definition.name):,}"
        for each in db.inputs
        if not getattr(each, "is_system", False)
    ]
    print(harmless(f"{db.folder}: {verb}, {', '.join(places) or 'with nothing read'}"), file=sys.stderr)


def read_on(db: DurableConnection, until: int | None, is_quiet: bool) -> bool:
    """Read the sources to their end, to an instant, or until Ctrl-C or SIGTERM; whether one of these has come."""
    was_stopped = False

    def stop(*_: object) -> None:
        nonlocal was_stopped
        was_stopped = True
        db.stop()

    with handled(stop), progress_bar(not is_quiet) as tell:
        db.run(until, tell)
    return was_stopped


@contextlib.contextmanager
def handled(stop: Callable[..., None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call `stop` meanwhile."""
    before = {which: signal.signal(which, stop) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


def show_waiting(db: DurableConnection, query: Query, sink: Sink) -> None:
    """Show what waits, then take it."""
    until = query.results
    sink.open(query.schema, query.codec)
    for batch in query.waiting_batches():
        sink.write(batch)
    sink.close()
    sys.stdout.flush()
    with contextlib.suppress(QueryError):  # told with the report
        query.fetch(ack=until)
