"""Scripts of the original STREAM prototype, run unchanged: what they declare, on a connection that reads as they do.

In a script a tick is a Second, RSTREAM speaks at every tick, UNION and EXCEPT keep duplicates, and answers are lines
`[ts]:+:v1, v2`. Paths are relative to the current directory.  docs/semantics "Statements"; docs/stream-scripts.

Invariant: every entry is declared, and every query registered, before any data is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from minidsms.cql import syntax
from minidsms.cql.stream_script import ScriptEntry, parse_script

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


@dataclass
class LoadedScript:
    """A script whose queries run.

    queries: each with the path its `dest` names, or None.  warnings: what the author may not have meant, in words.
    """

    queries: list[tuple[Query, str | None]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def connect_for_script() -> Connection:
    """A connection on which the texts of a script mean what they meant to STREAM."""
    from minidsms.connection import connect

    db = connect(time_unit="s", rstream="ticks")
    db.catalog.bag_set_operations = True
    return db


def load_script(db: Connection, text: str, only_declare: bool = False) -> LoadedScript:
    """Declare a script's tables and views, and register its queries.

    A `dest` is opened by the caller. only_declare: leave sources and queries out. Raises CqlError with the place in the
    script, Error where a source cannot be read.
    """
    loaded = LoadedScript()
    for entry in parse_script(text):
        match entry.statement:
            case syntax.CreateStream() | syntax.CreateRelation():
                _declare(db, replace(entry, path=None) if only_declare else entry, text)
            case syntax.CreateView():
                _declare_view(db, entry, text, loaded)
            case syntax.QueryStatement(query=tree) if not only_declare:
                from minidsms.statements.run import register

                loaded.queries.append((register(db, tree, text, None), entry.path))
    loaded.warnings += db.warnings
    return loaded


def _declare(db: Connection, entry: ScriptEntry, text: str) -> None:
    from minidsms.cql.binder import relation_def, stream_def
    from minidsms.sources.opening import open_source

    statement = entry.statement
    if isinstance(statement, syntax.CreateStream):
        stream = stream_def(statement, db.catalog, text)
        source = None if entry.path is None else open_source(entry.path, "stream", stream.schema)
        db.add_stream(stream, source)
    elif isinstance(statement, syntax.CreateRelation):
        relation = relation_def(statement, db.catalog, text)
        source = None if entry.path is None else open_source(entry.path, "stream", relation.schema, relation=True)
        db.add_relation(relation, source)


def _declare_view(db: Connection, entry: ScriptEntry, text: str, loaded: LoadedScript) -> None:
    from minidsms.cql.binder import bind_view
    from minidsms.statements.run import carry_out

    view = entry.statement
    assert isinstance(view, syntax.CreateView)
    carry_out(db, view, text)
    kind = bind_view(db.catalog.views[view.name.lower()], db.catalog).kind
    if kind != entry.kind:
        loaded.warnings.append(
            f"the vtable {view.name} says {entry.kind}, but its query yields a {kind}; it is taken as a {kind}"
        )
