"""Statements of a connection with a folder: each that changes something is an entry of the log, and no other.

`minidsms run` numbers those of its file: an entry says which of them it carries out, so that the next run goes on
behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from minidsms.connection import Connection
from minidsms.cql import syntax
from minidsms.durability.entry import encoded
from minidsms.durability.history import history_for
from minidsms.durability.log_writer import Taking
from minidsms.statements.connectors import open_into
from minidsms.statements.constant_rows import is_constant
from minidsms.statements.run import carry_out, is_settled

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.query import Query
    from minidsms.sinks.sink import Sink

Place: TypeAlias = tuple[int, int]
"""Of a statement in a file: its number, and a digest of its text."""


class KeptStatements:
    """script: digests of the statements of the file that have been carried out, by their number."""

    def __init__(self, db: DurableConnection) -> None:
        self._db = db
        self.script: dict[int, int] = {}
        self._wants_checkpoint = False
        self._coming_place: Place | None = None
        """Of the statement that is being carried out, until an entry says so."""

    def carry_out(self, statement: syntax.Statement, text: str, place: Place | None = None) -> Any:
        """Carry out one statement of a text, and keep it; its result. place: where the text is a file."""
        db = self._db
        if isinstance(statement, syntax.Checkpoint):
            self._wants_checkpoint = True  # when the lock has been let go
            return None
        if self._needs_no_entry(statement, place):
            return carry_out(db, statement, text)
        with db.lock:
            db._check()
            if place is None and is_settled(db, statement):
                result = carry_out(db, statement, text)
            elif isinstance(statement, syntax.RowChange):
                result = self._change(statement, text, place)
            elif (
                isinstance(statement, syntax.CreateQuery)
                and statement.replaces
                and statement.name.lower() in db.queries
            ):
                result = self._replace(statement, text, place)
            else:
                result = self._declare(statement, text, place)
            if place is not None:
                self.script[place[0]] = place[1]
        return result

    def _needs_no_entry(self, statement: syntax.Statement, place: Place | None) -> bool:
        """It changes nothing, or rows only, and what it pushes is kept."""
        if isinstance(statement, syntax.QueryStatement):
            return is_constant(statement.query, self._db.catalog)
        return isinstance(statement, syntax.Look) or (isinstance(statement, syntax.RowChange) and place is None)

    def make_wanted(self) -> None:
        """Make the checkpoint that a statement has asked for."""
        wanted, self._wants_checkpoint = self._wants_checkpoint, False
        if wanted:
            self._db.checkpoint()

    def _declare(self, statement: syntax.Statement, text: str, place: Place | None) -> Any:
        db = self._db
        piece = text[slice(*statement.span)]
        told: dict[str, Any] = {} if place is None else {"script": place}
        if getattr(statement, "archive", None) is not None:
            told["archive"] = db.archives.new_id()
        if isinstance(statement, syntax.QueryStatement):
            name = db.next_name()
            with db.journal.entry("query", cql=piece, name=name, **told):
                return Connection.query(db, piece, name)
        begun = ""
        if isinstance(statement, syntax.CreateQuery) and statement.name.lower() not in db.queries:
            sink = open_into(db, statement, text)
            if sink is not None and db.files.can_keep(sink):
                db.safety.check_statement(statement)
                begun, told["mark"] = statement.name.lower(), db.files.first_mark(statement.name, sink, 0)
        try:
            history, rows = history_for(db, statement, text)
            with (
                db.history.beginning_with(history, rows),
                db.journal.entry("statement", rows, cql=piece, **told, **history),
            ):
                return carry_out(db, statement, text)
        except BaseException:
            if begun and begun not in db.queries:  # else it could not be synced
                db.files.forget(begun)
            raise

    def _replace(self, statement: syntax.CreateQuery, text: str, place: Place | None) -> Any:
        """Carry out CREATE OR REPLACE of a query that is there."""
        self._coming_place = place
        try:
            result = carry_out(self._db, statement, text)
            if self._coming_place is not None:  # the query goes on
                self._note_nothing(place)
        finally:
            self._coming_place = None
        return result

    @contextlib.contextmanager
    def replacing(self, query: Query, sink: Sink | None, statement: syntax.CreateQuery, text: str) -> Iterator[None]:
        """One entry of the log: with it the other query is there, without it this one is. It stays if this one's file
        has taken its place; where something fails meanwhile, that is seen when the folder is opened again.
        """
        db, log = self._db, self._db.log
        assert log is not None
        db.journal.mark(is_forced=True)
        told: dict[str, Any] = {"cql": text[slice(*statement.span)], "replaces": True}
        if statement.archive is not None:
            told["archive"] = db.archives.new_id()
        mark = db.files.beginning(sink, 0) if sink is not None and db.files.can_keep(sink) else None
        if mark is not None:
            told["mark"] = vars(mark)
        if self._coming_place is not None:
            told["script"], self._coming_place = self._coming_place, None
        history, rows = history_for(db, statement, text)
        number = log.append(encoded({"kind": "statement", **told, **history}), *rows)
        with db.journal.amid():
            log.sync()
            query.close()
            log.append(encoded({"kind": "done", "of": number}), is_amid=True)
            log.sync()
            if mark is not None:
                db.files.marks[query.name.lower()] = mark
            with db.history.beginning_with(history, rows):
                yield
        log.commit()
        db.journal.mark(is_forced=False)

    def _change(self, statement: syntax.RowChange, text: str, place: Place | None) -> Any:
        """Carry out a change of rows of a file: that it has been stands in the entry of what it pushes."""
        inputs = {each.definition.name.lower(): each.journal for each in self._db.inputs}
        journal = inputs.get(statement.name.lower())
        if journal is None or place is None:
            return carry_out(self._db, statement, text)  # it says what is wrong
        with journal.carrying_out(place) as is_kept:
            result = carry_out(self._db, statement, text)
            if not is_kept():
                self._note_nothing(place)
        return result

    def _note_nothing(self, place: Place | None) -> None:
        """A statement of the file has changed nothing."""
        with Taking(self._db.journal):
            self._db.journal.append(kind="process", script=place)
