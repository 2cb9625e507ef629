"""SHOW: what there is in a connection, as tables. docs/statements/show.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from minidsms.aggregates import AGGREGATES
from minidsms.answers.table import Table
from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog, ViewDef
from minidsms.cql.functions import CALLED
from minidsms.cql.parser import parse_query
from minidsms.elements import Schema, Type
from minidsms.operators.screen import SCREEN_COLUMNS
from minidsms.settings import SETTINGS
from minidsms.statements.connectors import show_sinks, show_sources

if TYPE_CHECKING:
    from minidsms.connection import Connection


def show(db: Connection, what: str) -> Table:
    """The table of what a SHOW names, in lower case."""
    return _TABLES[what](db)


def schema_of_view(db: Connection, view: ViewDef) -> Schema:
    """The columns of the query that the view stands for, as it is bound now."""
    reference = parse_query(f"SELECT * FROM `{view.name.replace('`', '``')}`")
    return bind(reference, db.catalog, "").node.schema


def _streams(db: Connection) -> Table:
    rows = []
    for s in (s for s in db.catalog.streams.values() if not s.is_system):
        counters = db.stream_input(s.name).counters
        rows.append((s.name, str(s.schema), *vars(counters).values()))
    return Table(("stream", "columns", "accepted", "late dropped", "rejected", "shed"), tuple(rows))


def _tables(db: Connection) -> Table:
    catalog = db.catalog
    rows = [(s.name, "stream", str(s.schema)) for s in catalog.streams.values() if not s.is_system]
    rows += [(r.name, "relation", str(r.schema)) for r in catalog.relations.values()]
    rows += [(v.name, "view", str(schema_of_view(db, v))) for v in catalog.views.values()]
    return Table(("table", "kind", "columns"), tuple(rows))


def _relations(db: Connection) -> Table:
    return Table(("relation", "columns"), tuple((r.name, str(r.schema)) for r in db.catalog.relations.values()))


def _views(db: Connection) -> Table:
    rows = ((v.name, " ".join(v.text[slice(*v.query.span)].split())) for v in db.catalog.views.values())
    return Table(("view", "query"), tuple(rows))


def _queries(db: Connection) -> Table:
    rows = []
    for q in db.queries.values():
        state = q.state if q.failure is None else "failed at {}: {}".format(*q.failure)
        rows.append((q.name, q.kind, state, str(q.settings), " ".join(q.text.split())))
    return Table(("query", "kind", "state", "settings", "text"), tuple(rows))


def _constraints(db: Connection) -> Table:
    users: dict[int, list[str]] = {}
    for query in db.queries.values():
        for operator in query.network.operators:
            users.setdefault(id(operator), []).append(query.name)
    return Table(db.streamon.constraints.columns, tuple(db.streamon.constraints.table(users)))


def _checkpoints(db: Connection) -> Table:
    from minidsms.durability.checkpoints import COLUMNS

    return Table(COLUMNS, db.show_checkpoints())


def _system(db: Connection) -> Table:
    streams = db.system_streams.definitions().values()
    return Table(
        ("stream", "columns", "readers"), tuple((d.name, str(d.schema), len(db.readers_of(d.name))) for d in streams)
    )


def _settings(db: Connection) -> Table:
    return Table(
        ("setting", "value", "meaning"), tuple((s.name, db.settings[s.name], s.meaning) for s in SETTINGS.values())
    )


def _functions(db: Connection) -> Table:
    return Table(("function", "arguments", "result", "meaning"), tuple(_signatures(db.catalog)))


def _signatures(catalog: Catalog) -> Iterator[tuple[str, str, str, str]]:
    """The user's own functions and aggregates, then the built-in ones."""
    for f in catalog.functions.values():
        yield f.name, ", ".join(map(str, f.arg_types)), str(f.type), "your function"
    for a in catalog.aggregates.values():
        yield a.name, ", ".join(map(str, a.arg_types)), str(a.type), "your aggregate"
    for name, aggregate in sorted(AGGREGATES.items()):
        yield name.upper(), aggregate.takes, "", f"{aggregate.summary} (aggregate)"
    for name, row in sorted(CALLED.items()):
        signature = row.resolve([Type.NULL] * row.least)
        is_fixed = signature is not None and "values of one" not in row.takes and "number" not in row.takes
        result = str(signature.result) if signature is not None and is_fixed else ""
        yield name.upper(), row.takes, result, row.summary


_TABLES: dict[str, Callable[[Connection], Table]] = {
    "streams": _streams,
    "tables": _tables,
    "relations": _relations,
    "views": _views,
    "queries": _queries,
    "sources": lambda db: Table(*show_sources(db)),
    "sinks": lambda db: Table(*show_sinks(db)),
    "constraints": _constraints,
    "checkpoints": _checkpoints,
    "screens": lambda db: Table(SCREEN_COLUMNS, tuple(screen.line() for screen in db.screens)),
    "system": _system,
    "settings": _settings,
    "functions": _functions,
}
"""By what SHOW names."""
