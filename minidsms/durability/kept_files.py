"""The files of a connection's queries with INTO: opened, marked, gone on with.

Invariant: a mark is in the log after what it marks is on disk, and before the query ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.durability.kept_file import KeptFile, Mark, hidden
from minidsms.sinks.destination import Destination
from minidsms.sinks.lines import LineSink

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.engine.running_query import RunningQuery
    from minidsms.sinks.sink import Sink

MARK_BYTES = 1 << 20
MARK_S = 0.1
"""A mark is made when so much has been written since the last, or so long ago."""


@dataclass
class _Open:
    query: RunningQuery
    sink: LineSink
    file: KeptFile
    marked_s: float


class KeptFiles:
    """By query, in lower case. marks: what the log says.  is_reading: the log is being carried out, and files wait."""

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        self.is_reading = True
        self._waiting: dict[str, LineSink] = {}
        self._open: dict[str, _Open] = {}

    @staticmethod
    def can_keep(sink: Sink) -> bool:
        """Whether a sink is one of lines that takes its place as a whole."""
        return isinstance(sink, LineSink) and sink.makes_output is Destination

    def __contains__(self, query: RunningQuery) -> bool:
        return query.name.lower() in self._open

    @property
    def are_open(self) -> bool:
        """Some query writes one."""
        return bool(self._open)

    def prepare(self, query: RunningQuery, sink: Sink) -> bool:
        """Let a sink of a new query write a kept file; False while the log is read: it is opened at its end."""
        assert isinstance(sink, LineSink)
        key = query.name.lower()
        self.marks.pop(key, None)
        if self.is_reading:
            self._waiting[key] = sink
            return False
        self._begin(query, sink, Mark(os.path.abspath(sink.path), 0, 0, 0))
        return True

    def _begin(self, query: RunningQuery, sink: LineSink, mark: Mark) -> None:
        file = KeptFile(mark.path, mark.nbytes)
        sink.go_on(file, mark.rows, mark.nbytes)
        self._open[query.name.lower()] = _Open(query, sink, file, 0.0)

    def go_on(self, db: DurableConnection) -> Sequence[tuple[RunningQuery, LineSink]]:
        """The log has been carried out: (query, sink) of those that run, to be opened. What cannot be gone on with is
        told in the connection's warnings, and its answers wait to be fetched.
        """
        self.is_reading = False
        found = []
        for key, sink in self._waiting.items():
            query = db.queries.get(key)
            if query is None:
                continue
            try:
                self._begin(query, sink, self.marks.get(key) or Mark(os.path.abspath(sink.path), 0, 0, 0))
            except Error as error:
                db.warnings.append(f"query {query.name}: {error}; its answers wait to be fetched")
                continue
            found.append((query, sink))
        self._waiting = {}
        return found

    def is_unpublished(self, key: str) -> bool:
        """Whether a query that is said to end has a file that has not taken its place."""
        sink = self._waiting.get(key)
        if sink is None:
            return False
        mark = self.marks.get(key)
        return os.path.exists(hidden(os.path.abspath(sink.path) if mark is None else mark.path))

    def new_marks(self, is_forced: bool) -> list[tuple[RunningQuery, Mark]]:
        """Sync what is due, or all; (query, mark) of each, to be logged. Raises OSError."""
        made = []
        now = time.monotonic()
        for key, each in self._open.items():
            if each.query.sink is not each.sink:
                continue
            mark = Mark(each.file.shown, each.query.position, each.sink.rows, each.sink.bytes)
            before = self.marks.get(key)
            grown = mark.nbytes - (0 if before is None else before.nbytes)
            is_due = is_forced or grown >= MARK_BYTES or now - each.marked_s >= MARK_S
            if mark != before and is_due:
                each.file.sync()
                each.marked_s = now
                self.marks[key] = mark
                made.append((each.query, mark))
        return made

    def forget(self, key: str) -> None:
        """A query has ended."""
        self.marks.pop(key, None)
        self._waiting.pop(key, None)
        each = self._open.pop(key, None)
        if each is not None:
            each.file.discard()  # no more than closes one that has been marked, or has taken its place

    def leave(self) -> None:
        """Close all files as they are."""
        for each in self._open.values():
            each.query.release_sink()
            each.file.leave()
        self._open = {}
