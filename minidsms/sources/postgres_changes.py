"""A table of PostgreSQL as it changes: its rows, then each transaction by logical replication.

Invariants: the rows that are there at first are those of the slot's snapshot, so that nothing is missing between them
and the first change, and nothing comes twice; they, and the rows of a transaction, stand in one block, and so come at
one instant; the server is told to forget a block when all its rows are pushed, and never a part of one.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from minidsms.cql.errors import Error, quoted
from minidsms.cql.masking import masked
from minidsms.elements import Schema, Type
from minidsms.extras import library
from minidsms.sources.blocks import Block
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.pgoutput import Decoder, Row, Transaction
from minidsms.sources.postgres import asking, column_names, connected, identifier, table_named
from minidsms.sources.source import SIGN_COLUMN, choose_columns

_CHANGES = 10_000
"""Changes asked for at once; a transaction comes whole."""
SLOT_S = 10.0
"""How long another connection may still read the slot."""
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class TableChanges:
    """Reads a table and its changes. slot: of the server, which keeps what comes for another process to go on with;
    None: one of this connection alone.  poll_s: how often to ask.  See `FeederGoesOn`.
    """

    def __init__(
        self,
        address: str,
        allow_remote: bool,
        table: str | None,
        publication: str,
        slot: str | None,
        poll_s: float,
        schema: Schema,
    ) -> None:
        self._shown = masked(address)
        self._schema, self._publication, self._poll_s = schema, publication, poll_s
        self._slot = slot or f"minidsms_{uuid.uuid4().hex}"
        self._is_kept = slot is not None
        self._stopped = threading.Event()
        self._connection = connected(address, allow_remote, replication="database")
        try:
            self._table = table_named(self._connection, self._shown, table)
            self._positions(column_names(self._connection, self._shown, self._table))
            self._check()
        except Error:
            self._connection.close()
            raise
        self._decoder = Decoder(self._table, self._positions)
        self._from: Any = None
        self._given = 0
        """The position in the server's log up to which transactions have been put."""
        self._known: LineRows | None = None
        self._first: LineRows | None = None
        """Readers of what another process has pushed, and of the rows that are there at first."""
        self._line = self._lines_at_first = 1
        """The next line, and the one behind the rows that are there at first."""
        self._places: dict[int, int] = {1: 0}
        """Where blocks of changes begin and end in the server's log, by line."""

    def _positions(self, names: list[str]) -> list[int]:
        """Of the schema's columns among those of the table."""
        return [column.position for column in choose_columns(self._shown, names, self._schema, False)]

    def _one(self, query: str, *values: Any) -> Any:
        with asking(self._shown):
            return self._connection.execute(query, values).fetchone()

    def _check(self) -> None:
        """Error, with the statement that mends it, where changes of the table would not be told in full."""
        name = identifier(*self._table)
        published = "SELECT 1 FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s"
        if self._one(published, self._publication, *self._table) is None:
            mends = f"CREATE PUBLICATION {identifier(self._publication)} FOR TABLE {name}, or ALTER PUBLICATION"
            raise Error(f"{self._shown}: publication {quoted(self._publication)} has no table {name}\nhelp: {mends}")
        if self._one("SELECT relreplident = 'f' FROM pg_class WHERE oid = %s::regclass", name) != (True,):
            mends = f"ALTER TABLE {name} REPLICA IDENTITY FULL"
            raise Error(f"{self._shown}: {name} does not say which rows were changed or deleted\nhelp: {mends}")

    def position(self, rows: LineRows, block: Block) -> Any:
        if rows is self._known:
            return self._from
        if rows is self._first:
            return {"lines": self._lines_at_first - 1}
        return {"lsn": self._places[block.first_line]}

    def go_on(self, position: Any) -> str:
        """See `FeederGoesOn`. Error where the server does not know any more what came."""
        if not self._is_kept:
            raise Error(
                f"{self._shown}: nobody has kept what changed meanwhile\n"
                "help: drop the relation, and declare it WITH (slot = 'name') for the server to keep it"
            )
        if position["rows"] + position["bad"] < position.get("lines", 0):
            raise Error(
                f"{self._shown}: the first reading of the table broke off, and cannot be gone on with\n"
                f"help: drop the relation, SELECT pg_drop_replication_slot('{self._slot}'), and declare it anew"
            )
        slots = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        found = self._one(slots, self._slot)
        if found is None:
            raise Error(f"{self._shown}: there is no slot {quoted(self._slot)} any more: what came meanwhile is lost")
        self._from, self._given = position, max(position.get("lsn", 0), lsn_of(found[0]))
        return ""

    def run(self, source: LiveLines) -> None:
        """Put the table, then what changes, until stopped."""
        source.notes_pushed = True
        with asking(self._shown):
            if self._from is None:
                self._put_table(source)
            elif self._from.get("lsn") != self._given:
                self._put_known(source, self._from)
            self._follow(source)

    def _put_table(self, source: LiveLines) -> None:
        """The rows of the slot's snapshot."""
        kind = "LOGICAL" if self._is_kept else "TEMPORARY LOGICAL"
        if self._one("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", self._slot) is not None:
            raise Error(
                f"{self._shown}: there is a slot {quoted(self._slot)} already\n"
                f"help: choose another name, or SELECT pg_drop_replication_slot('{self._slot}') if nobody needs it"
            )
        execute = self._connection.execute
        execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        made = execute(f"CREATE_REPLICATION_SLOT {identifier(self._slot)} {kind} pgoutput USE_SNAPSHOT").fetchone()
        self._given = lsn_of(made[1])
        columns = ", ".join(f"{identifier(name)}::text" for name in self._names())
        rows = execute(f"SELECT {columns} FROM {identifier(*self._table)}").fetchall()
        execute("COMMIT")
        data = self._lines((1, tuple(None if v is None else v.encode() for v in row)) for row in rows)
        if rows:
            self._first, self._lines_at_first = self._rows(source), 1 + len(rows)
            source.inbox.put(self._first, Block(data, 1))

    def _put_known(self, source: LiveLines, position: Any) -> None:
        """In place of the block that another process has pushed, as many rows, which are passed over: the server need
        not know them any more.
        """
        self._known = self._rows(source)
        self._from = {name: value for name, value in position.items() if name not in ("rows", "bad", "held")}
        rows = self._lines([(1, (None,) * len(self._schema))]) * position["rows"]
        if rows or position["bad"]:
            source.inbox.put(self._known, Block(rows + b"null\n" * position["bad"], 1))

    def _follow(self, source: LiveLines) -> None:
        """Transactions, as they are told."""
        rows, confirmed = self._rows(source), self._given
        self._places[1] = self._given
        while not self._stopped.is_set():
            (now,) = self._one("SELECT pg_current_wal_lsn()::text")
            new = [each for each in self._transactions() if each.end > self._given]
            changes = [change for each in new for change in each.changes]
            is_pushed = self._is_pushed(source, rows)
            self._places[self._line], self._given = self._given, max([self._given, *(each.end for each in new)])
            if changes:
                block = Block(self._lines(changes), self._line)
                self._line += len(changes)
                self._places[self._line] = self._given
                if not source.inbox.put(rows, block):
                    return
            elif not new:
                # Whatever was committed before the question has been told.
                self._given = max(self._given, lsn_of(now)) if is_pushed else self._given
                self._stopped.wait(self._poll_s)
            pushed = self._given if is_pushed and not changes else self._places.get(source.pushed.get(rows, 0), 0)
            if pushed > confirmed:
                confirmed = pushed
                self._of_slot("SELECT 1 FROM pg_replication_slot_advance(%s, %s::pg_lsn)", self._slot, lsn_text(pushed))
                self._places = {line: at for line, at in self._places.items() if at >= pushed or line == self._line}

    def _is_pushed(self, source: LiveLines, rows: LineRows) -> bool:
        """Everything that was put has been pushed."""
        first = (
            self._first is None or self._lines_at_first == 1 or source.pushed.get(self._first) == self._lines_at_first
        )
        return (
            first and (self._known is None or self._known in source.pushed) and source.pushed.get(rows, 1) == self._line
        )

    def _transactions(self) -> list[Transaction]:
        """Those that the slot still has, in the order of their ends."""
        given = "'proto_version', '1', 'publication_names', %s"
        told = self._of_slot(
            f"SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, {_CHANGES}, {given})",
            self._slot,
            identifier(self._publication),
        )
        found = (self._decoder.read(bytes(message)) for (message,) in told)
        return [each for each in found if each is not None]

    def _of_slot(self, query: str, *values: Any) -> list[Any]:
        """The rows of a query about the slot, when no other connection reads it: the server notices late that a process
        has been killed. Error where one goes on to.
        """
        end_s = time.monotonic() + SLOT_S
        while True:
            try:
                return list(self._connection.execute(query, values))
            except library("psycopg", "postgresql://", "postgres").errors.ObjectInUse as error:
                if time.monotonic() > end_s:
                    raise Error(
                        f"{self._shown}: another connection reads the slot {quoted(self._slot)} ({error})\n"
                        "help: end it, by SELECT pg_terminate_backend(..) if its process is gone, and run again"
                    ) from None
                if self._stopped.wait(self._poll_s):
                    return []

    def _rows(self, source: LiveLines) -> LineRows:
        """A reader of lines, which knows what the values are before it sees one."""
        rows = source.rows(f"{self._shown}, table {'.'.join(self._table)}")
        texts = {f.name: 0 if f.type in (Type.INTEGER, Type.FLOAT, Type.BOOLEAN) else "" for f in self._schema}
        rows.learn({**texts, SIGN_COLUMN: 0})
        return rows

    def _names(self) -> list[str]:
        names = column_names(self._connection, self._shown, self._table)
        return [names[i] for i in self._positions(names)]

    def _lines(self, changes: Iterable[tuple[int, Row]]) -> bytes:
        """Changes as lines of JSON."""
        return b"".join(b"{%s}\n" % b", ".join(self._fields(row, sign)) for sign, row in changes)

    def _fields(self, row: Sequence[bytes | None], sign: int) -> list[bytes]:
        pairs = zip(self._schema, row)
        fields = [b"%s: %s" % (json.dumps(f.name).encode(), _value(value, f.type)) for f, value in pairs]
        return [*fields, b'"%s": %d' % (SIGN_COLUMN.encode(), sign)]

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Leave the server."""
        self._connection.close()


def _value(value: bytes | None, type_: Type) -> bytes:
    """A value as JSON."""
    if value is None:
        return b"null"
    if type_ in (Type.INTEGER, Type.FLOAT, Type.INTERVAL) and _NUMBER.fullmatch(value):
        return value
    if type_ is Type.BOOLEAN and value in (b"t", b"f", b"true", b"false"):
        return b"true" if value[:1] == b"t" else b"false"
    return json.dumps(value.decode()).encode()


def lsn_of(text: str) -> int:
    """A position in the server's log.

    >>> lsn_of("1/F"), lsn_text(4294967311)
    (4294967311, '1/F')
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(lsn: int) -> str:
    """A position in the server's log, as the server writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
