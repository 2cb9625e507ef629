"""Rows that are written out: SELECT without FROM, VALUES, INSERT INTO .. VALUES.

Invariant: they read no column, so they are computed once, when the statement is carried out; a row that cannot be
computed or taken is an error, and then none is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.answers.results import ResultCodec
from minidsms.cql import bound, syntax
from minidsms.cql.catalog import RelationDef, StreamDef
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.expression_binder import Context, ExpressionBinder
from minidsms.cql.scope import Scope
from minidsms.cql.session import Piece, Session
from minidsms.elements import Batch, Field, Schema, Type
from minidsms.expressions import Context as Evaluation
from minidsms.expressions import Evaluator, explain_failure
from minidsms.statements.connectors import placed_at

if TYPE_CHECKING:
    from minidsms.connection import Connection


def constant_rows(
    db: Connection, statement: syntax.Constants, text: str
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """The names and values of SELECT without FROM, or of VALUES; instants as texts."""
    value = _evaluating(db, text)
    first = statement.rows[0]
    _check_widths([len(row) for row in statement.rows], text, statement)
    for item in first:
        if isinstance(item.expr, syntax.Star | syntax.Name):
            shown = text[item.span[0] : item.span[1]]
            raise CqlError("a column needs FROM", text, item.span, "", f"name what it is of: SELECT {shown} FROM S")
    rows = tuple(tuple(value(item.expr, True) for item in row) for row in statement.rows)
    is_select = text[slice(*statement.span)].lstrip()[:1].upper() == "S"
    names = tuple(
        item.alias or (" ".join(text[slice(*item.expr.span)].split()) if is_select else f"column{i + 1}")
        for i, item in enumerate(first)
    )
    return names, rows


def insert(db: Connection, statement: syntax.Insert, text: str) -> int:
    """Push the rows; how many were taken. A column `ts` that the input does not have itself is their instant."""
    there: list[StreamDef | RelationDef] = [s for s in db.catalog.streams.values() if not s.is_system]
    there += db.catalog.relations.values()
    definition = next((each for each in there if each.name.lower() == statement.name.lower()), None)
    if definition is None:
        note = f"there are: {', '.join(each.name for each in there)}" if there else "nothing has been declared yet"
        raise CqlError(f'no stream or relation "{statement.name}"', text, statement.name_span, note)
    names = [field.name.lower() for field in definition.schema]
    columns = [name.lower() for name in statement.columns] or names
    for written, name in zip(statement.columns, columns):
        if (name not in names and name != "ts") or columns.count(name) > 1:
            reason = f'"{written}" stands twice' if columns.count(name) > 1 else f'{statement.name} has no "{written}"'
            hint = f"it has {', '.join(definition.schema.names)}; ts is the instant"
            raise CqlError(reason, text, statement.span, "", hint)
    _check_widths([len(columns), *(len(row) for row in statement.rows)], text, statement)
    value = _evaluating(db, text)
    given = dict(zip(columns, zip(*([value(expr, False) for expr in row] for row in statement.rows))))
    ts = None if "ts" in names else given.pop("ts", None)
    n = len(statement.rows)
    rows = list(zip(*(given.get(name, (None,) * n) for name in names)))
    try:
        if statement.replaces:
            return db.upsert(statement.name, rows, None if ts is None else list(ts))
        return db.push(statement.name, rows, None if ts is None else list(ts))
    except Error as error:
        raise placed_at(error, text, statement) from None


def _check_widths(widths: Sequence[int], text: str, statement: syntax.Statement) -> None:
    other = next((width for width in widths if width != widths[0]), None)
    if other is not None:
        raise CqlError(f"a row has {other} values, not {widths[0]}", text, statement.span)


def _evaluating(db: Connection, text: str) -> Callable[[syntax.Expr, bool], Any]:
    """What gives the value of an expression over no row; shown: instants as texts."""
    session, evaluation = Session(db.catalog, text), Evaluation(db.dictionary, db.tick_ns, db.catalog.functions)

    def no_query(query: syntax.Query, context: Context) -> Piece:
        raise session.error("a subquery where there are only constants", query.span, "", "register it as a query")

    binder = ExpressionBinder(session, Context(Scope([]), "a row without FROM"), no_query)

    def value(expr: syntax.Expr, shown: bool) -> Any:
        found = binder.value(expr)
        if shown and found.type in (Type.TIMESTAMP, Type.INTERVAL):
            found = bound.Cast(Type.TEXT, found, span=expr.span)
        with np.errstate(all="ignore"):
            result = Evaluator(found, evaluation)(_no_columns, 1)
        if result.failed is not None and result.failed[0]:
            culprit, reason = explain_failure(found, evaluation, _no_columns, 0)
            raise session.error(f"{culprit}: {reason}", expr.span)
        batch = Batch(np.zeros(1, np.int64), None, [result.column()])
        return ResultCodec(Schema((Field("value", found.type),)), db.dictionary, db.tick_ns).rows(batch)[0][0]

    return value


def _no_columns(index: int) -> Any:
    raise AssertionError("a constant reads no column")
