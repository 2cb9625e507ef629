"""What a connection writes to its log around the rows of pushes: entries, and what has come of them.

Invariants: what is part of an entry that is being carried out has no entry of its own; answers are marked in the log
after they are where they are to be. Once the connection is astray, the log alone knows what is true.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minidsms.answers.callbacks import Callbacks
from minidsms.cql.errors import Error
from minidsms.durability.entry import advance, encoded, shed, taken
from minidsms.durability.input_journal import InputJournal
from minidsms.durability.segments import Part
from minidsms.engine.journal import Journal

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.durability.log import Log
    from minidsms.elements import Batch, BoolArray, Int64Array, Schema
    from minidsms.engine.running_query import RunningQuery
    from minidsms.operators.operator import Failure
    from minidsms.values.dictionary import TextDictionary

_OF_THE_PROCESS = (KeyboardInterrupt, SystemExit, ImportError, OSError, SystemError)
"""What is no fault of a query: a signal's handler has ended the call, or Python lacked memory, or files that it may
open, amid a first import.
"""


class LogWriter(Journal):
    """log: None while it is carried out, and of a twin.  is_ending: the connection is being closed, and its queries go
    on when the folder is opened again.  endings: by query, where it is going to fail by the entry
    that is being carried out, and after how many answers.
    """

    keeps_answers = True

    def __init__(self, db: DurableConnection) -> None:
        self.log: Log | None = None
        self.is_astray = self.is_ending = False
        self.endings: dict[str, tuple[Failure, int]] = {}
        self._db, self._files = db, db.files
        self._depth = 0
        self._is_following = False
        self._taken: dict[str, int] = {}
        """By query, the position before which the log says that answers have been taken."""

    def check(self) -> None:
        """Error where the connection is astray."""
        if self.is_astray:
            raise Error(
                "a call was interrupted on its way through the engine; the log alone knows what it has done\n"
                "help: close the connection and open the folder again"
            )

    def go_astray(self) -> None:
        """The connection may be other than the log leads to."""
        self.is_astray = True

    @property
    def is_amid(self) -> bool:
        """An entry is being carried out."""
        return self._depth > 0

    @property
    def begins_entries(self) -> bool:
        """What comes now is an entry of its own: it is not of the log, nor part of another entry."""
        return self.log is not None and not self._depth

    def append(self, **fields: Any) -> None:
        """Write an entry, where it is one of its own."""
        if self.log is not None and not self._depth:
            self.log.append(encoded(fields))

    def append_amid(self, **fields: Any) -> None:
        """Write an entry about what the one that is being carried out has come to."""
        assert self.log is not None
        try:
            self.log.append(encoded(fields), is_amid=True)
        except BaseException:
            self.go_astray()
            raise

    def commit(self) -> None:
        """As `Log.commit`, where there is one."""
        if self.log is not None:
            self.log.commit()

    @contextlib.contextmanager
    def entry(self, kind: str, rows: Sequence[Part] = (), **fields: Any) -> Iterator[None]:
        """Carry out what the context does as one entry. The lock is held; what is part of another entry, or comes from
        the log, is in it already. rows: behind the header.
        """
        log = self.log
        if log is None or self._depth or self.is_ending:
            yield
            return
        self.mark(is_forced=True)  # what ends with this entry is marked before it
        queries, writing = self._db.queries, self._files.writing
        n_queries = len(queries)
        number = log.append(encoded({"kind": kind, **fields}), *rows)
        self._depth += 1
        try:
            if self._files.are_open or "mark" in fields:
                log.sync()  # a file is begun, or takes its place, only when that is known for good
            yield
        except BaseException:
            left = [sink for key, sink in writing.items() if key not in self._files.writing]
            if not left or not all(sink.has_ended for sink in left):  # else the query has ended, too
                self._undo(number)
            # A query that could not end, or its file, is still there in the log.
            self.is_astray |= len(queries) < n_queries or bool(left)
            raise
        finally:
            self._depth -= 1
        with contextlib.suppress(Error):  # the entry itself is there
            log.append(encoded({"kind": "done", "of": number}))
        log.commit()
        self.mark(is_forced=False)

    def _undo(self, number: int) -> None:
        """What an entry asks for has not been done."""
        assert self.log is not None
        if self.log.next == number + 1:
            self.log.retract(number)
        else:
            self.append_amid(kind="undone")

    @contextlib.contextmanager
    def amid(self) -> Iterator[None]:
        """What the context does follows from an entry that stays: where it fails, the connection is astray."""
        self._depth += 1
        try:
            yield
        except BaseException:
            self.is_astray |= self.log is not None
            raise
        finally:
            self._depth -= 1

    def mark(self, is_forced: bool) -> None:
        """Note in the log how far answers are where they are to be, where that is due or asked for; let files that wait
        for it take their places. What an entry brings is marked behind it: it may still be undone.
        """
        if self.log is None or self._depth:
            return
        try:
            if self._files.wants_commit:
                self.log.sync()
            for query, mark in self._files.new_marks(is_forced):
                self.log.append(encoded({"kind": "written", "query": query.name, **vars(mark)}), is_amid=True)
            if self._files.wants_marks:
                self.log.sync()
                self._files.publish_marked()
        except BaseException as error:
            self.go_astray()
            if isinstance(error, OSError):
                raise Error(f"a file of answers could not be synced: {error.strerror or error}") from None
            raise

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        self._is_following = True
        try:
            with self.amid():  # the files of the queries that the entry ends may not be done
                yield
        finally:
            self._is_following = False

    def end(self, query: RunningQuery, leave: Callable[[Sequence[Batch]], None]) -> None:
        if not self._is_following:
            return  # the entry says so
        if self.log is None:
            self._files.end(query, leave)
        else:
            self._end_amid(query)

    def _end_amid(self, query: RunningQuery) -> None:
        """Let the answers be where they go, and the log say so, before a file takes its place."""
        if query.sink is None:
            self.note_ended(query, {})
            return
        query.drain()
        if self._files.wants_commit:
            assert self.log is not None
            self.log.sync()
        mark = self._files.last_mark(query)
        self.note_ended(query, {"until": query.position} if mark is None else vars(mark))

    def note_ended(self, query: RunningQuery, told: Mapping[str, Any]) -> None:
        """A query ends amid an entry, its answers being where they go. told: until where; of a file its mark."""
        assert self.log is not None
        self.append_amid(kind="done", query=query.name, **told)
        if "path" in told:
            self.log.sync()  # as in `entry`

    def forget(self, query: RunningQuery) -> None:
        self._taken.pop(query.name, None)
        self._files.forget(query.name.lower())

    # --------------------------------------------------------------------------------------------- what is told

    @property
    def may_publish(self) -> bool:
        """What is measured is an entry of its own, and none while the log is carried out: there it comes again."""
        return self.begins_entries and not self.is_astray

    def of_input(self, name: str, schema: Schema, dictionary: TextDictionary, is_relation: bool) -> InputJournal:
        return InputJournal(name, schema, dictionary, is_relation, self.log)

    def note_advance(self, ts: int, key: str | None) -> None:
        if self.log is not None and not self._depth:
            self.log.append(advance(ts, key))

    def note_shed(self, rows: Int64Array, kept: BoolArray | None) -> None:
        if self.log is not None and kept is not None:
            self.append_amid(**shed(rows[~kept]))

    def note_taken(self, query: RunningQuery, until: int) -> Callable[[], None]:
        log, before = self.log, self._taken.get(query.name, 0)
        if log is None or before >= until or query in self._files:  # of a file its marks say it
            return super().note_taken(query, until)
        self._db._check()
        log.commit()  # an answer that somebody has seen does not go back on what it was made of
        number = log.next
        if not self.is_amid:
            log.append(taken(query.name, until), is_awaited=False)
        self._taken[query.name] = until

        def unnote() -> None:
            if log is self.log and log.next == number + 1 and not self.is_amid:
                log.retract(number)
                self._taken[query.name] = before

        return unnote

    def note_left_taken(self, rules: str) -> None:
        self.commit()
        self.append(kind="left taken", name=rules)

    def note_failure(self, query: RunningQuery, failure: Failure) -> None:
        if self.log is not None and not self.is_astray and not self.is_ending:
            told = {"ts": failure.ts, "reason": failure.reason, "results": query.results}
            self.append_amid(kind="failed", query=query.name, **told)

    def ending_of(self, query: RunningQuery) -> tuple[Failure, int] | None:
        return self.endings.get(query.name.lower())

    def cut_short(self, error: BaseException) -> None:
        if self.log is not None and isinstance(error, _OF_THE_PROCESS):
            self.go_astray()  # when the call comes again, no query fails


class Taking:
    """What the section takes goes to the log before it goes to the engine, and is committed when it is done."""

    __slots__ = ("_before", "_writer")

    def __init__(self, writer: LogWriter) -> None:
        self._writer, self._before = writer, 0 if writer.log is None else writer.log.next

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        log = self._writer.log
        if log is None:
            return
        if error is None or Callbacks.raised(error):
            log.commit()
        elif not isinstance(error, Error) and log.next != self._before:
            self._writer.go_astray()
