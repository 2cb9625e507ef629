"""ALTER: what can be changed of a query or a stream while it runs. docs/statements/alter.md.

Invariant: no answer of a query that runs depends on it. A paused query loses nothing: its input waits in the streams'
stores, under memory_limit, and after RESUME its answers are those it would have given.  Babu 2005, section 2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.cql import syntax
from minidsms.cql.declarations import widened
from minidsms.cql.errors import CqlError, Error

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


def alter_query(db: Connection, query: Query, statement: syntax.AlterQuery, text: str) -> None:
    """Carry out ALTER QUERY."""
    match statement.action:
        case "set":
            assert statement.setting is not None
            try:
                query.set(statement.setting, statement.value)
            except Error as error:
                raise CqlError(str(error), text, statement.setting_span) from None
        case "pause":
            query.pause()
        case "resume":
            query.network.is_paused = False
            # Not `query.resume`: callbacks are told once the statement is done.
            db.settle()
        case "pin plan":
            query.pin_plan()
        case "unpin plan":
            query.unpin_plan()


def alter_stream(db: Connection, statement: syntax.AlterStream, text: str) -> None:
    """Carry out ALTER STREAM, whose name is known to be a stream's."""
    try:
        if statement.action == "pause":
            db.pause(statement.name)
        else:
            db.resume(statement.name)
    except Error as error:
        raise CqlError(str(error), text, statement.name_span) from None


def add_column(db: Connection, statement: syntax.AddColumn, text: str) -> None:
    """Carry out ALTER STREAM .. ADD COLUMN, whose name is known to be a stream's."""
    name = statement.name
    if db.catalog.streams[name.lower()].is_system:
        raise CqlError(f"{name} is written by the engine", text, statement.name_span)
    stream = db.stream_input(name)
    column = statement.column.name.lower()
    if statement.is_optional and column in (known.lower() for known in stream.schema.names):
        return
    hint = ""
    if stream.recorder is not None:
        reason = f"{name} is being archived"
        hint = f"stop that with db.archive('{name}', None), and begin it again behind this: the archive goes on"
    elif db.reading.of(stream):
        reason = f"{name} is read from a source, which has the columns it has"
        hint = "declare another stream over the source, or push what a client of yours reads"
    else:
        db.await_replay(name)
        db.widen_stream(widened(statement, db.catalog, text))
        return
    raise CqlError(reason, text, statement.name_span, "", hint)
