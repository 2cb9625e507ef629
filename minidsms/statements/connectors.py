"""FROM and INTO: sources and sinks opened for statements, their errors with a place, and what SHOW tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minidsms.cql import syntax
from minidsms.cql.catalog import SourceDef
from minidsms.cql.declarations import option_values
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.masking import masked
from minidsms.elements import Schema

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.sinks.sink import Sink
    from minidsms.sources.live_lines import LiveLines
    from minidsms.sources.source import Source


def open_declared(
    db: Connection,
    definition: SourceDef,
    schema: Schema,
    statement: syntax.CreateStream | syntax.CreateRelation,
    text: str,
) -> Source | LiveLines:
    """The source that a declaration names. CqlError at FROM, or at the option that is wrong."""
    from minidsms.sources.opening import open_definition

    relation = isinstance(statement, syntax.CreateRelation)
    assert statement.source is not None
    try:
        if definition.format == "archive":
            from minidsms.archive.declaring import source_of

            kind = "relation" if relation else "stream"
            unit = db.settings["time_unit"]
            options = dict(definition.options)
            return db.opened(
                lambda: source_of(definition.path, statement.name, kind, schema, unit, options), definition.path
            )
        return db.opened(lambda: open_definition(definition, schema, relation, db.tick_ns), definition.path)
    except CqlError:
        raise
    except Error as error:
        raise _placed(error, text, statement.source.span, statement.source.options) from None


def open_into(db: Connection, statement: syntax.CreateQuery, text: str) -> Sink | None:
    """The sink that INTO names, not yet open, or None."""
    if statement.into is None:
        return None
    from minidsms.sinks.opening import open_sink

    try:
        options = dict(option_values(statement.options))
        return open_sink(statement.into, statement.format, options, is_new=not db.is_replayed)
    except Error as error:
        raise _placed(error, text, statement.span, statement.options) from None


def placed_at(error: Error, text: str, statement: syntax.Statement) -> CqlError:
    """The error at the clause of a statement that names where its rows come from, or at the statement."""
    source = getattr(statement, "source", None)
    return _placed(error, text, statement.span if source is None else source.span, ())


def _placed(error: Error, text: str, span: tuple[int, int], options: tuple[syntax.Option, ...]) -> CqlError:
    """The error at its option, or at the clause."""
    from minidsms.sources.options import OptionError

    reason, _, hint = str(error).partition("\nhelp: ")
    if isinstance(error, OptionError):
        span = next((o.span for o in options if o.name == error.option), span)
    return CqlError(reason, text, span, "", hint)


# ------------------------------------------------------------------------------------------------------------- SHOW


def show_sources(db: Connection) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """SHOW SOURCES: columns and rows."""
    rows = []
    for source, target in db.reading.sources:
        notes = getattr(source, "notes", None)
        rows.append(
            (
                target.definition.name,
                masked(source.path),
                "ended"
                if target.ended
                else getattr(source, "state", "reading" if source.bytes_read else "waiting to run"),
                source.bytes_read,
                target.counters.accepted,
                target.counters.rejected,
                notes[-1] if notes else None,
            )
        )
    return ("stream", "from", "state", "bytes", "rows", "rejected", "last note"), tuple(rows)


def show_sinks(db: Connection) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """SHOW SINKS: columns and rows."""
    rows = []
    for query in db.queries.values():
        told = query.written
        if told is not None:
            rows.append((query.name, told["to"], told["state"], told["bytes"], told["rows"], told["note"]))
    return ("query", "into", "state", "bytes", "rows", "last note"), tuple(rows)
