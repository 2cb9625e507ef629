"""What a connection writes to its log around the rows of pushes: entries, and what has come of them.

Invariants: what is part of an entry that is being carried out has no entry of its own; answers are marked in the log
after they are where they are to be. Once the connection is astray, the log alone knows what is true.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

from minidsms.answers.callbacks import Callbacks
from minidsms.cql.errors import Error
from minidsms.durability.entry import encoded
from minidsms.durability.kept_files import KeptFiles
from minidsms.durability.segments import Part

if TYPE_CHECKING:
    from minidsms.durability.log import Log
    from minidsms.engine.running_query import RunningQuery


class LogWriter:
    """log: None while it is carried out, and of a twin.  is_ending: the connection is being closed, and its queries go
    on when the folder is opened again.
    """

    def __init__(self, files: KeptFiles) -> None:
        self.log: Log | None = None
        self.is_astray = self.is_ending = False
        self._files = files
        self._depth = 0

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
    def entry(self, queries: Sized, rows: Sequence[Part], fields: Mapping[str, Any]) -> Iterator[None]:
        """Carry out what the context does as one entry. The lock is held; what is part of another entry, or comes from
        the log, is in it already. queries: of the connection.  rows: behind the header.
        """
        log = self.log
        if log is None or self._depth or self.is_ending:
            yield
            return
        self.mark(is_forced=True)  # what ends with this entry is marked before it
        n_queries, writing = len(queries), self._files.writing
        number = log.append(encoded(dict(fields)), *rows)
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

    def end(self, query: RunningQuery) -> None:
        """A query ends amid an entry: let its answers be where they go, and the log say so, before a file takes its
        place.
        """
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
