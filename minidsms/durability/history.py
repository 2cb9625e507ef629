"""What a query WITH HISTORY begins with: the elements that its streams' stores held when it was registered.

They do not follow from the log, which leaves out what matters no more and may be carried out by other plans. So the
entry that creates the query holds them: its header says of each stream how many columns and bytes ("history"), and
behind it stand their rows, one stream's after the other's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minidsms.cql import syntax
from minidsms.cql.binder import bind
from minidsms.cql.errors import Error
from minidsms.durability.entry import Fields
from minidsms.durability.segments import Part
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.elements import Batch


def history_for(db: DurableConnection, statement: syntax.Statement, text: str) -> tuple[Fields, tuple[Part, ...]]:
    """(what the entry of a statement says of it, its rows); nothing where it creates no query WITH HISTORY."""
    if not isinstance(statement, syntax.CreateQuery) or not statement.with_history:
        return {}, ()
    if statement.is_optional and statement.name.lower() in db.queries:
        return {}, ()
    streams = bind(statement.query, db.catalog, text).streams
    db.system_streams.open(streams)
    db.check_registration(streams, True)
    db.gather_history(streams)
    told: list[tuple[str, int, int]] = []
    data: list[Part] = []
    for name in streams:
        target = db.stream_input(name)
        assert target.journal is not None and isinstance(target.store, StreamStore)
        ts, columns = target.store.arrays()
        rows = target.journal.rows.encoded(ts, None, columns)
        told.append((name, len(target.schema), sum(map(len, rows))))
        data += rows
    return {"history": told}, tuple(data)


def parts(fields: Fields, rows: memoryview) -> Iterator[tuple[str, int, memoryview]]:
    """(stream, number of columns, rows) of an entry."""
    at = 0
    for name, width, nbytes in fields.get("history", ()):
        yield name, width, rows[at : at + nbytes]
        at += nbytes


def hold(store: StreamStore, past: Batch) -> None:
    """Let a store have these as the last elements that came, and a query WITH HISTORY begin with them."""
    first = store.head - len(past)
    if first < 0:
        raise Error("more elements are to have come than the log holds")
    other = StreamStore(store.schema)
    other.start_at(first)
    other.append(past.ts, [past.column(i) for i in range(len(store.schema))])
    store.take_back(other, first)
    store.history = first
