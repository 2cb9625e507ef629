"""Declarations: from CREATE STREAM, RELATION and VIEW to what the catalog keeps (docs/semantics "Statements").

Invariant: a definition that leaves here can be entered in the catalog: its name is free and its columns exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from minidsms.cql import syntax
from minidsms.cql.catalog import Catalog, RelationDef, SourceDef, StreamDef, ViewDef
from minidsms.cql.scope import did_you_mean, listing
from minidsms.cql.session import Session
from minidsms.cql.times import UNIT_NS
from minidsms.cql.views import bind_view, check_views
from minidsms.cql.windows import ticks
from minidsms.elements import Field, Schema, Type

_LIVE = re.compile(r"-|(tcp|tcp-listen|kafka)://.*", re.IGNORECASE | re.DOTALL)


def stream_def(statement: syntax.CreateStream, catalog: Catalog, text: str) -> StreamDef:
    """What CREATE STREAM declares. Raises CqlError."""
    session = Session(catalog, text)
    _check_free(session, statement.name, statement.name_span)
    schema = _schema(session, statement.columns, statement.name_span)
    timestamp_by = None
    if statement.timestamp_by is not None:
        timestamp_by = _position(session, statement.timestamp_by, schema)
        if schema[timestamp_by].type not in (Type.TIMESTAMP, Type.INTEGER):
            raise session.error(
                f"TIMESTAMP BY needs a TIMESTAMP or INTEGER column, and this is {schema[timestamp_by].type}",
                statement.timestamp_by.span,
                hint=f"declare it as {statement.timestamp_by.name} TIMESTAMP, which reads texts such as "
                "'2024-05-01 12:30:00'",
            )
    source = _source(session, statement.source)
    if source is not None and timestamp_by is None and not is_live(source) and source.format != "archive":
        raise session.error(
            "a stream that is read FROM a file, a table or a generator needs TIMESTAMP BY",
            statement.source.span if statement.source is not None else statement.span,
            "",
            "say which column carries the time: TIMESTAMP BY column",
        )
    slack = 0 if statement.slack is None else ticks(session, statement.slack)
    key = _key(session, statement.key, schema)
    return StreamDef(statement.name, schema, timestamp_by, slack, statement.late_drop, key, source)


def widened(statement: syntax.AddColumn, catalog: Catalog, text: str) -> StreamDef:
    """What the stream is with one more column. Raises CqlError, also where a view could not stand on it any more."""
    session = Session(catalog, text)
    before, column = catalog.streams[statement.name.lower()], statement.column
    session.check_width(len(before.schema) + 1, column.span)
    if column.name.lower() in (name.lower() for name in before.schema.names):
        raise session.error(f'{before.name} has a column "{column.name}" already', column.span)
    after = replace(before, schema=Schema((*before.schema, Field(column.name, column.type))))
    catalog = replace(catalog, streams={**catalog.streams, statement.name.lower(): after})
    check_views(catalog.views.values(), catalog, text, column.span)
    return after


def relation_def(statement: syntax.CreateRelation, catalog: Catalog, text: str) -> RelationDef:
    """What CREATE RELATION declares. Raises CqlError."""
    session = Session(catalog, text)
    _check_free(session, statement.name, statement.name_span)
    schema = _schema(session, statement.columns, statement.name_span)
    source = _source(session, statement.source)
    return RelationDef(statement.name, schema, _key(session, statement.key, schema), source)


def view_def(statement: syntax.CreateView, catalog: Catalog, text: str) -> ViewDef:
    """What CREATE VIEW declares; its query is bound once to see that it can be. Raises CqlError."""
    session = Session(catalog, text)
    _check_free(session, statement.name, statement.name_span)
    _check_distinct(session, statement.columns, [statement.name_span] * len(statement.columns))
    view = ViewDef(statement.name, statement.query, text, statement.columns, statement.types)
    bind_view(view, catalog)
    return view


def _check_free(session: Session, name: str, span: tuple[int, int]) -> None:
    kind = session.catalog.kind_of(name)
    if kind is not None:
        raise session.error(f'there is a {kind} "{name}" already', span, "", f"DROP {kind.upper()} {name} first")


def _schema(session: Session, columns: Sequence[syntax.ColumnDef], span: tuple[int, int]) -> Schema:
    if not columns:
        raise session.error("a declaration needs at least one column", span)
    session.check_width(len(columns), span)
    _check_distinct(session, [c.name for c in columns], [c.span for c in columns])
    return Schema(tuple(Field(c.name, c.type) for c in columns))


def _check_distinct(session: Session, names: Sequence[str], spans: Sequence[tuple[int, int]]) -> None:
    seen: set[str] = set()
    for name, span in zip(names, spans):
        if name.lower() in seen:
            raise session.error(f'the column "{name}" stands twice', span)
        seen.add(name.lower())


def _position(session: Session, name: syntax.Name, schema: Schema) -> int:
    for i, field in enumerate(schema):
        if field.name.lower() == name.name.lower():
            return i
    raise session.error(
        f'unknown column "{name.name}"',
        name.span,
        f"declared are: {listing(schema.names)}",
        did_you_mean(name.name, schema.names),
    )


def _key(session: Session, names: Sequence[syntax.Name], schema: Schema) -> tuple[int, ...]:
    positions = tuple(_position(session, name, schema) for name in names)
    _check_distinct(session, [n.name for n in names], [n.span for n in names])
    return positions


def _source(
    session: Session,
    source: syntax.Source | syntax.Generator | None,
) -> SourceDef | None:
    if source is None:
        return None
    options = option_values(source.options)
    if isinstance(source, syntax.Generator):
        if source.format is not None:
            raise session.error("FORMAT describes a file, and this is a generator", source.span, "", "leave it out")
        args = tuple(_argument(session, arg) for arg in source.args)
        return SourceDef(source.name, None, options, True, args)
    if source.format is not None and source.format.lower() not in syntax.FORMATS:
        raise session.error(
            f'unknown format "{source.format}"',
            source.span,
            f"there are: {listing(syntax.FORMATS)}",
            did_you_mean(source.format, syntax.FORMATS),
        )
    return SourceDef(source.path, None if source.format is None else source.format.lower(), options)


def is_live(source: SourceDef) -> bool:
    """Rows of the source come while it is read, so that they may take their instants from the clock."""
    options = dict(source.options)
    follows = options.get("follow") is True or "publication" in options
    return not source.is_generator and (follows or _LIVE.fullmatch(source.path) is not None)


def option_values(options: Sequence[syntax.Option]) -> tuple[tuple[str, Any], ...]:
    """The options of WITH (..) by name; lengths of time in seconds."""
    return tuple((o.name, _seconds(o.value) if isinstance(o.value, syntax.Duration) else o.value) for o in options)


def _seconds(duration: syntax.Duration) -> float:
    return float(Fraction(duration.number) * UNIT_NS[duration.unit or "nanosecond"] / 1_000_000_000)


def _argument(session: Session, expr: syntax.Expr) -> Any:
    """An argument of a generator: a literal, or name = literal as a pair."""
    if isinstance(expr, syntax.Literal):
        return expr.value
    if isinstance(expr, syntax.Binary) and expr.op == "=" and isinstance(expr.left, syntax.Name):
        if isinstance(expr.right, syntax.Literal):
            return (expr.left.name.lower(), expr.right.value)
        if isinstance(expr.right, syntax.Interval) and expr.right.duration.unit in UNIT_NS:
            return (expr.left.name.lower(), _seconds(expr.right.duration))
    raise session.error(
        "an argument of a generator is a value or name = value",
        expr.span,
        "",
        "for example: nexmark('bid', events = 10000, seed = 7)",
    )
