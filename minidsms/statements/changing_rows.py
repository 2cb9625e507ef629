"""DELETE and UPDATE of a relation: its rows for which a condition is TRUE leave, or others take their places.

Invariant: condition and values are those of one query over the rows that are present when the statement is carried out;
all changes are made at one instant, the first that is still open, and after an error none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from minidsms.cql import bound, syntax
from minidsms.cql.aggregates import has_aggregates
from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog
from minidsms.cql.coercion import coerce, exact_number
from minidsms.cql.errors import CqlError, Error, MemoryLimitError
from minidsms.cql.session import Session
from minidsms.elements import Column, Schema, Type
from minidsms.inputs.relation_input import RelationInput
from minidsms.statements.connectors import placed_at
from minidsms.statements.constant_rows import COUNTED, rows_once, tables_read

if TYPE_CHECKING:
    from minidsms.connection import Connection


def change_rows(db: Connection, statement: syntax.Delete | syntax.Update, text: str) -> int:
    """Carry it out; how many rows have left, or given their places to others."""
    _check_relation(statement.table, db.catalog, text)

    def change(relation: RelationInput) -> int:
        schema = relation.schema
        assignments = statement.assignments if isinstance(statement, syntax.Update) else ()
        for each in assignments:
            if has_aggregates(each.expr, db.catalog):
                hint = f"write a subquery: {each.alias} = (SELECT .. FROM {statement.name})"
                raise CqlError("a row has no aggregates", text, each.expr.span, "", hint)
        assigned = _places(schema, assignments, text)
        node = _rows_and_values(db.catalog, statement, schema, assigned, text)
        # Other relations may have changed at later instants: all are read as they are now.
        changed = (each.last_ts for each in db.inputs if isinstance(each, RelationInput) and each.last_ts is not None)
        batches = rows_once(db, node, text, max([relation.first_open(), *changed]))
        if not batches:
            return 0
        columns = [Column.concat([batch.column(c) for batch in batches]) for c in range(len(node.schema))]
        leaving, values = columns[: len(schema)], columns[len(schema) :]
        coming = list(leaving)
        for place, value in zip(assigned, values):
            coming[place] = value
        return relation.exchange(leaving, coming if assigned else None)

    try:
        return db.change_relation(statement.table.name, change)
    except (CqlError, MemoryLimitError):
        raise  # it shows the place; the statement may be made again
    except Error as error:
        raise placed_at(error, text, statement) from None


def _check_relation(table: syntax.TableRef, catalog: Catalog, text: str) -> None:
    if table.name.lower() in catalog.relations:
        return
    kind = catalog.kind_of(table.name)
    if kind is not None:
        hint = f"a window says how long rows of a stream stay: SELECT .. FROM {table.name} [RANGE 10 SECONDS] WHERE .."
        reason = f"{table.name} is a {kind}: only rows of a relation leave or change"
        raise CqlError(reason, text, table.span, "", hint if kind == "stream" else "")
    there = ", ".join(each.name for each in catalog.relations.values())
    raise CqlError(f'no relation "{table.name}"', text, table.span, f"there are: {there}" if there else "there is none")


def _places(schema: Schema, assignments: Sequence[syntax.SelectItem], text: str) -> list[int]:
    """Which column each is for."""
    names = [name.lower() for name in schema.names]
    places: list[int] = []
    for each in assignments:
        column = (each.alias or "").lower()
        if column not in names:
            raise CqlError(
                f'there is no column "{each.alias}"', text, each.span, f"there are: {', '.join(schema.names)}"
            )
        if names.index(column) in places:
            raise CqlError(f'"{each.alias}" is given two values', text, each.span)
        places.append(names.index(column))
    return places


def _rows_and_values(
    catalog: Catalog, statement: syntax.Delete | syntax.Update, schema: Schema, assigned: Sequence[int], text: str
) -> bound.Node:
    """The query of the rows that are meant, and what is given to each of the columns assigned."""
    table = statement.table
    exprs = [each.expr for each in statement.assignments] if isinstance(statement, syntax.Update) else []
    items = [syntax.SelectItem(syntax.Name(name, table.alias or table.name)) for name in schema.names]
    items += [syntax.SelectItem(expr, f"value {i}", span=expr.span) for i, expr in enumerate(exprs)]
    query = syntax.Select(tuple(items), (table,), statement.where, span=statement.span)
    for name in sorted(tables_read(query, catalog) & catalog.streams.keys()):
        hint = "relations alone are read; in Python, db.push(.., sign=..) makes the changes that a query gives"
        raise CqlError(f"{catalog.streams[name].name} is a stream", text, statement.span, "", hint)
    node = bind(query, catalog, text).node
    below, found = (
        (node.input, node.exprs) if isinstance(node, bound.Project) else (node, bound.column_refs(node.schema))
    )
    session = Session(catalog, text)
    values = [_assigned(session, value, schema[place].type) for value, place in zip(found[len(schema) :], assigned)]
    return bound.projected(below, [*found[: len(schema)], *values], [item.alias or "" for item in items])


def _assigned(session: Session, value: bound.Expr, target: Type) -> bound.Expr:
    """The value as the type of its column; numbers are rounded to the places of a DECIMAL, and a Decimal may count
    something, as for INSERT: a parameter gives one.
    """
    if target in COUNTED and isinstance(value, bound.Literal) and isinstance(value.value, Decimal):
        if not value.type.scale and -(2**63) <= value.value < 2**63:
            value = replace(value, type=Type.INTEGER, value=int(value.value))
        return coerce(session, value, target)
    if target.kind != "DECIMAL" or value.type.kind not in ("INTEGER", "FLOAT", "DECIMAL"):
        return coerce(session, value, target)
    if isinstance(value, bound.Literal):
        value = exact_number(value)
    return value if value.type is target else bound.Cast(target, value, span=value.span)
