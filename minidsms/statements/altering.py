"""ALTER: what can be changed of a query, or of a stream's source, while it runs. docs/statements/alter.md.

Invariant: an answer never depends on it. A paused query loses nothing: its input waits in the streams' stores, under
memory_limit, and after RESUME its answers are those it would have given.  Babu 2005, section 2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minidsms.cql import syntax
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
