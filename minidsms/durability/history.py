"""What a query begins with: WITH HISTORY the elements that its streams' stores held when it was registered, with
BACKFILL those that archives held then.

They do not follow from the log, which leaves out what matters no more and may be carried out by other plans. So the
entry that creates the query holds them: its header says of each stream how many columns and bytes ("history"), and
behind it stand their rows, one stream's after the other's; with BACKFILL in parts, of relations too. Beside that it
says of archives the least and the greatest instant ("past"), and which instants inputs have been told ("moves").
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from minidsms.archive.backfill import Backfill, Past
from minidsms.archive.replay_source import GivenSource
from minidsms.cql import syntax
from minidsms.cql.binder import bind
from minidsms.cql.errors import CqlError, Error
from minidsms.durability.entry import Fields
from minidsms.durability.segments import Part
from minidsms.plan.planner import plan_under
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN
from minidsms.statements.connectors import placed_at
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.elements import Batch


class KeptHistory:
    """What the query begins with that is being registered."""

    def __init__(self, db: DurableConnection) -> None:
        self._db = db
        self._rows: dict[str, memoryview] = {}
        """By stream, as the log says."""

    @contextlib.contextmanager
    def beginning_with(self, fields: Fields, rows: Sequence[Part]) -> Iterator[None]:
        """A query that the context registers begins with what its entry says; WITH HISTORY only where it is carried
        out again. Where an error comes when its inputs have moved on, the log does not say that they have.
        """
        db = self._db
        moved = [db.stream_input(name) for name in fields.get("moves", ())]
        before = [(each.progress, each.greatest_ts) for each in moved]
        if "past" in fields:
            db.kept_pasts = _pasts(db, fields, memoryview(rows[0]))
        elif db.is_replayed:
            self._rows = {name.lower(): data for name, _, data in parts(fields, memoryview(rows[0]))}
        try:
            yield
        except BaseException:
            if not db.is_replayed and before != [(each.progress, each.greatest_ts) for each in moved]:
                db.journal.go_astray()
            raise
        finally:
            db.kept_pasts = None
            for name in self._rows:
                _store(db, name).history = None
            self._rows = {}

    def gather(self) -> None:
        """Let the stores of streams hold it."""
        for name, rows in self._rows.items():
            journal = self._db.stream_input(name).journal
            assert journal is not None
            _hold(_store(self._db, name), journal.rows.elements(rows, self._db.tick_ns))


def _store(db: DurableConnection, stream: str) -> StreamStore:
    store = db.stream_input(stream).store
    assert isinstance(store, StreamStore)
    return store


def history_for(db: DurableConnection, statement: syntax.Statement, text: str) -> tuple[Fields, tuple[Part, ...]]:
    """(what the entry of a statement says of it, its rows); nothing where it creates no query WITH HISTORY."""
    if not isinstance(statement, syntax.CreateQuery) or (
        statement.is_optional and statement.name.lower() in db.queries
    ):
        return {}, ()
    if statement.backfill is not None:
        return _past_for(db, statement, statement.backfill, text)
    if not statement.with_history:
        return {}, ()
    streams = bind(statement.query, db.catalog, text).streams
    db.system_streams.open(streams)
    db.gather_history(streams)
    db.check_registration(streams, True)
    told: list[tuple[str, int, int]] = []
    data: list[Part] = []
    for name in streams:
        target = db.stream_input(name)
        assert target.journal is not None
        ts, columns = _store(db, name).arrays()
        rows = target.journal.rows.encoded(ts, None, columns)
        told.append((name, len(target.schema), sum(map(len, rows))))
        data += rows
    return {"history": told}, tuple(data)


def _past_for(
    db: DurableConnection, statement: syntax.CreateQuery, folder: str, text: str
) -> tuple[Fields, tuple[Part, ...]]:
    """What archives hold, as far as the query needs it. Error where they do not have its past."""
    if db.settings["backfill"] != "local":
        hint = "SET backfill = 'local', or use connect() without a folder"
        reason = f"a connection with a folder does not keep what {db.settings['backfill']} computes"
        raise CqlError(f"BACKFILL: {reason}", text, statement.span, "", hint)
    try:
        db.safety.check_statement(statement)
    except Error as error:
        raise placed_at(error, text, statement) from None
    bound = bind(statement.query, db.catalog, text)
    backfill = Backfill(db, folder, bound.streams, bound.relations, "local")
    logical = plan_under(bound.node, text, db.catalog, db.settings, db.memory.is_short).root
    told: list[tuple[str, int, int]] = []
    data: list[Part] = []
    pasts = {}
    for name, past, source in backfill.pasts(logical):
        pasts[name] = past.first_ts, past.last_ts
        target = db.stream_input(name)
        assert target.journal is not None
        k = len(target.schema)
        for batch in source.read():
            _, columns = target.converter.columns(dict(zip(target.schema.names, batch.columns[:k])))
            ts, *signs = (column.to_numpy() for column in batch.columns[k:])
            rows = target.journal.rows.encoded(ts, signs[0] if signs else None, columns)
            told.append((name, k, sum(map(len, rows))))
            data.append(b"".join(rows))
    return {"history": told, "past": pasts, "moves": backfill.moves}, (b"".join(data),)


def _pasts(db: DurableConnection, fields: Fields, rows: memoryview) -> dict[str, Past] | None:
    """By input, what the query of an entry that says BACKFILL begins with; None for another entry."""
    if "past" not in fields:
        return None
    held: dict[str, list[tuple[int, memoryview]]] = {name: [] for name in fields["past"]}
    for name, width, part in parts(fields, rows):
        held[name.lower()].append((width, part))
    return {name: _kept(db, name, told[0], told[1], held[name]) for name, told in fields["past"].items()}


def _kept(
    db: DurableConnection, name: str, first_ts: int | None, last_ts: int | None, held: list[tuple[int, memoryview]]
) -> Past:
    target = db.stream_input(name)
    journal, schema = target.journal, target.schema
    assert journal is not None
    own = [TS_COLUMN, SIGN_COLUMN] if journal.rows.has_signs else [TS_COLUMN]

    def read() -> Iterator[pa.RecordBatch]:
        for width, part in held:
            batch = journal.rows.batch(part, width)
            columns = [*batch.columns[len(own) :], *batch.columns[: len(own)]]
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(columns, names=[*schema.names, *own])

    return Past(first_ts, last_ts, lambda needed, from_: GivenSource(f"the past of {name}", schema, read, last_ts))


def parts(fields: Fields, rows: memoryview) -> Iterator[tuple[str, int, memoryview]]:
    """(stream, number of columns, rows) of an entry."""
    at = 0
    for name, width, nbytes in fields.get("history", ()):
        yield name, width, rows[at : at + nbytes]
        at += nbytes


def _hold(store: StreamStore, past: Batch) -> None:
    """Let a store have these as the last elements that came, and a query WITH HISTORY begin with them."""
    first = store.head - len(past)
    if first < 0:
        raise Error("more elements are to have come than the log holds")
    other = StreamStore(store.schema)
    other.start_at(first)
    other.append(past.ts, [past.column(i) for i in range(len(store.schema))])
    store.take_back(other, first)
    store.history = first
