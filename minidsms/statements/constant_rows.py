"""Rows that are written out: queries over them alone, INSERT INTO .. VALUES.

Invariant: they are computed once, when the statement is carried out; a row that cannot be computed or taken is an
error, and then none is.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.aggregates.aggregate import EVERY_ROW
from minidsms.answers.results import ResultCodec
from minidsms.cql import bound, syntax
from minidsms.cql.binder import Bound, bind
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.coercion import unfit
from minidsms.cql.errors import CqlError, Error, MemoryLimitError, QueryError
from minidsms.cql.session import Session, tables_named
from minidsms.cql.values import check_widths, constant_binder
from minidsms.elements import MIN_INSTANT, Batch, Field, Schema, Type
from minidsms.expressions import constant_column
from minidsms.inputs.values import ValueRefused, value_reader
from minidsms.operators.relation_events import RelationEvents
from minidsms.operators.relation_source import ReadsRelation
from minidsms.plan.planner import plan
from minidsms.scheduler.round_robin import RoundRobin
from minidsms.statements.connectors import placed_at
from minidsms.statements.registering import context_of, planner_of, stored
from minidsms.values.coded import fitted

if TYPE_CHECKING:
    from minidsms.connection import Connection

COUNTED = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL)
"""Types of which Python has ints."""
_OF_PYTHON = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TEXT)
"""Types whose values Python tells apart itself."""


def is_constant(query: syntax.Query, catalog: Catalog) -> bool:
    """It reads no stream and no relation, nor do the views it names."""
    return not tables_read(query, catalog)


def tables_read(query: syntax.Query, catalog: Catalog) -> frozenset[str]:
    """The streams and relations that it reads (and what nobody has declared), by itself or through views."""
    views = {name: catalog.views.get(name) for name in tables_named(query, but_unread=True)}
    return frozenset().union(
        *({name} if view is None else tables_read(view.query, catalog) for name, view in views.items())
    )


def constant_rows(
    db: Connection, query: syntax.Query, text: str
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """The names and values of what a query gives that reads nothing, in the order of its ORDER BY; instants as texts,
    INTERVAL in ticks.

    Raises CqlError, and QueryError where the query fails.
    """
    node, is_ordered = _numbered(bind_written(query, db.catalog, text).node)
    shown = [
        bound.Cast(Type.TEXT, ref) if ref.type is Type.TIMESTAMP else ref for ref in bound.column_refs(node.schema)
    ]
    schema = Schema(tuple(Field(name, expr.type) for name, expr in zip(node.schema.names, shown)))
    codec = ResultCodec(schema, db.dictionary, db.tick_ns)
    batches = rows_once(db, bound.projected(node, shown, schema.names), text)
    rows = [row for batch in batches for row in codec.rows(batch)]
    if not is_ordered:
        return schema.names, tuple(rows)
    return schema.names[:-1], tuple(row[:-1] for row in sorted(rows, key=itemgetter(-1)))


def bind_written(query: syntax.Query, catalog: Catalog, text: str) -> Bound:
    """A query of a statement: ORDER BY may stand without LIMIT at its end where it is answered at once (R6).

    Raises CqlError.
    """
    return bind(_with_limit(query) if is_constant(query, catalog) else query, catalog, text)


def bind_continuous(query: syntax.Query, catalog: Catalog, text: str) -> Bound:
    """A query whose answer is kept up to date. CqlError, too, where it can never change."""
    found = bind_written(query, catalog, text)
    if not found.streams and not found.relations:
        hint = "execute() gives the rows at once; CREATE VIEW names them"
        raise CqlError("a query that reads no stream or relation never changes", text, query.span, "", hint)
    return found


def _with_limit(query: syntax.Query) -> syntax.Query:
    """ORDER BY without LIMIT behind an outermost query, as one that keeps all rows."""
    if isinstance(query, syntax.With | syntax.RelationToStream):
        return replace(query, query=_with_limit(query.query))
    if isinstance(query, syntax.Limited) and query.limit is None:
        return replace(query, limit=EVERY_ROW)
    if isinstance(query, syntax.Select) and query.shown:
        return syntax.Limited(query, query.shown, EVERY_ROW, span=query.span)
    return query


def _numbered(node: bound.Node) -> tuple[bound.Node, bool]:
    """The node with the places of its rows as a last column, if it ends with an ORDER BY; and whether it does."""
    shown = node.input if isinstance(node, bound.RelationToStream) else node
    is_chosen = isinstance(shown, bound.Project) and isinstance(shown.input, bound.Top)
    first = shown.input if isinstance(shown, bound.Project) and is_chosen else shown
    if not isinstance(first, bound.Top):
        return node, False
    chosen = shown.exprs if isinstance(shown, bound.Project) and is_chosen else bound.column_refs(first.schema)
    numbered = first.numbered(first)
    exprs = [*chosen, bound.column_refs(numbered.schema)[-1]]
    return bound.projected(numbered, exprs, (*shown.schema.names, "place")), True


def rows_once(db: Connection, node: bound.Node, text: str, instant: int = MIN_INSTANT) -> list[Batch]:
    """What a query over constants and the present rows of relations gives. instant: at which these are there.

    Raises CqlError, and QueryError where the query fails.
    """
    batches: list[Batch] = []
    planner = planner_of(db, stored(db), start=instant)
    network = planner.network(plan(node, text).root, lambda batch: batches.append(batch.owned()))
    try:
        with db.computing():
            for operator in network.operators:
                operator.allowance = db.allowance
                if isinstance(operator, ReadsRelation):
                    operator.allow(instant)
                if isinstance(operator, RelationEvents):
                    operator.arrive(instant)  # COUNT(*) of a relation that nothing has come in is 0
            RoundRobin(db.settings["queue_size"]).run(network.operators)
        failed = next((operator.failure for operator in network.operators if operator.failure is not None), None)
        if failed is not None:
            raise QueryError(failed.reason)
        return batches
    finally:
        network.close()


def insert(db: Connection, statement: syntax.Insert, text: str) -> int:
    """Push the rows; how many were taken. A column `ts` that the input does not have itself is their instant."""
    there: list[StreamDef | RelationDef] = [s for s in db.catalog.streams.values() if not s.is_system]
    there += db.catalog.relations.values()
    definition = next((each for each in there if each.name.lower() == statement.name.lower()), None)
    if definition is None and statement.name.lower() in db.catalog.streams:
        raise CqlError(f"{statement.name} is written by the engine", text, statement.name_span)
    if definition is None:
        note = f"there are: {', '.join(each.name for each in there)}" if there else "nothing has been declared yet"
        kind = "query" if statement.name in db.queries else db.catalog.kind_of(statement.name)
        hint = "" if kind is None else f'"{statement.name}" is a {kind}: its rows come from what it reads'
        raise CqlError(f'no stream or relation "{statement.name}"', text, statement.name_span, note, hint)
    names = [field.name.lower() for field in definition.schema]
    columns = [name.lower() for name in statement.columns] or names
    for written, name in zip(statement.columns, columns):
        if (name not in names and name != "ts") or columns.count(name) > 1:
            reason = f'"{written}" stands twice' if columns.count(name) > 1 else f'{statement.name} has no "{written}"'
            hint = f"it has {', '.join(definition.schema.names)}; ts is the instant"
            raise CqlError(reason, text, statement.span, "", hint)
    check_widths([len(columns), *(len(row) for row in statement.rows)], text, statement)
    types = [definition.schema[names.index(name)].type if name in names else Type.TIMESTAMP for name in columns]
    given = dict(zip(columns, zip(*_values(db, statement, types, text))))
    ts = None if "ts" in names else given.pop("ts", None)
    n = len(statement.rows)
    rows = list(zip(*(given.get(name, (None,) * n) for name in names)))
    try:
        if statement.replaces:
            return db.upsert(statement.name, rows, None if ts is None else list(ts))
        return db.push(statement.name, rows, None if ts is None else list(ts))
    except MemoryLimitError:
        raise  # the statement may be made again
    except Error as error:
        raise placed_at(error, text, statement) from None


def _values(db: Connection, statement: syntax.Insert, types: Sequence[Type], text: str) -> list[list[Any]]:
    """The values of every row, each as `push` takes it. types: of the columns they are for."""
    session = Session(db.catalog, text)
    bind = constant_binder(session)
    context = context_of(db)

    @functools.cache
    def codec(type_: Type) -> ResultCodec:
        return ResultCodec(Schema((Field("value", type_),)), db.dictionary, db.tick_ns)

    def value(expr: syntax.Expr, type_: Type) -> Any:
        found = bind(expr)
        if isinstance(found, bound.Literal) and found.exact is not None and type_.kind == "DECIMAL":
            rounded = fitted(found.exact, type_)
            return found.exact if rounded is None else rounded
        column = constant_column([found], found.type, context, text)
        value = codec(found.type).rows(Batch(np.zeros(1, np.int64), None, [column]))[0][0]
        # As INSERT of SQL, where nothing is lost: a parameter may be a Decimal that counts something.
        is_count = isinstance(value, Decimal) and not found.type.scale and type_ in COUNTED
        value = int(value) if is_count else value
        if found.type is not type_ and type_ in _OF_PYTHON:
            try:
                value_reader(type_, db.tick_ns)(value)
            except ValueRefused:
                raise unfit(session, found, type_) from None
        return value

    return [list(map(value, row, types)) for row in statement.rows]
