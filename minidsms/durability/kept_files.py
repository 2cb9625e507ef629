"""The files and topics that queries of a connection write: opened, marked, gone on with.

Invariant: a mark is in the log after what it marks is on disk, and before the query ends; the first is there before
anything is written.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from minidsms.answers.waiting import after
from minidsms.cql.errors import Error, saying
from minidsms.durability import kept_parts, kept_topic
from minidsms.durability.folder import check_outside
from minidsms.durability.kept_file import Mark, hidden
from minidsms.durability.kept_parts import KeptParts
from minidsms.durability.kept_topic import KeptTopic
from minidsms.elements import Batch
from minidsms.sinks.append_output import AppendOutput
from minidsms.sinks.lines import LineSink
from minidsms.sinks.sink import Sink

if TYPE_CHECKING:
    from minidsms.durability.connection import DurableConnection
    from minidsms.engine.running_query import RunningQuery

MARK_BYTES = 1 << 20
MARK_S = 0.1
"""A mark is made when so much has been written since the last, or so long ago."""


def answers_wait(query: RunningQuery, error: Error) -> str:
    """The warning about a query whose sink could not be opened."""
    reason, *hint = str(error).split("\nhelp: ")
    return "\nhelp: ".join([f"query {query.name}: {reason}; its answers wait to be fetched", *hint])


class KeptSink(Sink, Protocol):
    """A sink that goes on at a mark. has_ended: not any more, even if that could not be synced."""

    @property
    def bytes(self) -> int: ...

    @property
    def wants_mark(self) -> bool: ...

    @property
    def has_ended(self) -> bool: ...

    def mark(self, until: int) -> Mark: ...

    def sync(self) -> None: ...

    def publish_marked(self) -> None: ...

    def leave(self) -> None: ...


@dataclass
class _Open:
    query: RunningQuery
    sink: KeptSink
    marked_s: float = 0.0
    marked_bytes: int = 0


@dataclass
class _Ended:
    """Of a query that has ended amid an entry. until: answers of the query.  rest: those behind the mark, which were
    not on their way when the process ended; None: the mark is the last.  leave: lets them wait to be fetched.
    """

    query: RunningQuery
    sink: Sink
    mark: Mark
    until: int
    rest: list[Batch] | None
    leave: Callable[[Sequence[Batch]], None]

    def end(self, note: Callable[[RunningQuery, Mapping[str, Any]], None]) -> None:
        """Let the file take its place, where it has not. note: of a mark, before that. Raises Error or OSError."""
        made = _going_on(self.sink, self.mark)
        try:
            made.open(self.query.schema, self.query.codec)
            if self.rest is not None:
                done = made.until - self.mark.until if isinstance(made, KeptTopic) else 0
                for batch in after(self.rest, done):
                    made.write(batch)
                made.sync()
                note(self.query, vars(made.mark(self.until)))
                self.rest = None
            made.close()
        finally:
            made.leave()

    def warning(self, error: Exception) -> str:
        """That it could not."""
        wait = ", the last of them wait to be fetched" if self.rest else ""
        return f"query {self.query.name} has ended: {error}; its answers are in {hidden(_place(self.mark))!r}{wait}"


class KeptFiles:
    """By query, in lower case. marks: what the log says.  is_reading: the log is being carried out, and files wait.
    is_at_end: that is at its last entry.  endings: of the queries that end with the entry, in their order, until where
    their answers are where they go, as the log says; nothing of those that wait to be fetched.
    """

    def __init__(self) -> None:
        self.marks: dict[str, Mark] = {}
        self.is_reading = True
        self.is_at_end = False
        self.endings: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self._waiting: dict[str, Sink] = {}
        self._open: dict[str, _Open] = {}
        self._ended: dict[str, _Ended] = {}
        """By place."""
        self._untold: list[RunningQuery] = []
        """Of those that have ended, the ones of which the log is to say it, but not of their files."""

    def __contains__(self, query: RunningQuery) -> bool:
        return query.name.lower() in self._open

    @property
    def are_open(self) -> bool:
        """Some query writes one."""
        return bool(self._open)

    @property
    def writing(self) -> dict[str, KeptSink]:
        """The queries that write one, and what they write."""
        return {key: each.sink for key, each in self._open.items() if each.query.sink is each.sink}

    @property
    def wants_commit(self) -> bool:
        """Some query has sent what others see as soon as it is synced."""
        return any(isinstance(each.sink, KeptTopic) and each.sink.wants_mark for each in self._open.values())

    @staticmethod
    def can_keep(sink: Sink) -> bool:
        """Whether a sink can be gone on with."""
        return kept_parts.can_keep(sink) or kept_topic.can_keep(sink)

    def wait(self, query: RunningQuery, sink: Sink) -> None:
        """While the log is read: the sink is opened at its end."""
        self.marks.pop(query.name.lower(), None)
        self._ended.pop(os.path.abspath(sink.path), None)
        self._waiting[query.name.lower()] = sink

    def end(self, query: RunningQuery, leave: Callable[[Sequence[Batch]], None]) -> None:
        """While the log is read: a query ends amid an entry. leave: see `Database.end_followed`."""
        key = query.name.lower()
        sink, told = self._waiting.get(key), self.endings[key].popleft() if self.endings[key] else None
        if told:
            query.acknowledge(told["until"])
        if told is None and self.is_at_end:
            self._end_untold(query, leave)
        elif sink is not None and told and "path" in told and _is_unpublished(mark := Mark(**told)):
            self._ended[mark.path] = _Ended(query, sink, mark, query.position, None, leave)

    def _end_untold(self, query: RunningQuery, leave: Callable[[Sequence[Batch]], None]) -> None:
        """The process ended before the log said that a query has, and where its answers are."""
        key = query.name.lower()
        sink = self._waiting.get(key)
        if sink is not None and self.can_keep(sink):
            mark = self.marks.get(key) or _no_mark(sink)
            if not _has_taken_place(sink, mark):
                rest = query.taken_batches()
                self._ended[mark.path] = _Ended(query, sink, mark, query.position, rest, leave)
                return
        self._untold.append(query)

    def end_all(self, note: Callable[[RunningQuery, Mapping[str, Any]], None]) -> list[str]:
        """The log has been carried out: let the files of queries that ended amid an entry take their places, where the
        process ended before that; warnings of those that cannot. note: see `_Ended.end`.
        """
        warnings = []
        for each in self._ended.values():
            try:
                each.end(note)
            except (Error, OSError) as error:
                if each.rest:
                    each.leave(each.rest)
                if each.rest is not None:
                    self._untold.append(each.query)
                warnings.append(each.warning(error))
        for query in self._untold:
            note(query, {})
        self._ended, self._untold = {}, []
        return warnings

    @staticmethod
    def beginning(sink: Sink, until: int) -> Mark:
        """Where a new sink of a query begins. until: answers that have been taken. Error where it cannot be written."""
        if kept_topic.can_keep(sink):
            return kept_topic.first_mark(sink, until)
        check_outside(sink.path)
        return kept_parts.first_mark(sink, until)

    def first_mark(self, name: str, sink: Sink, until: int) -> dict[str, Any]:
        """`beginning`, as the log is to say it before the sink is opened."""
        mark = self.marks[name.lower()] = self.beginning(sink, until)
        return vars(mark)

    def begin(self, query: RunningQuery, sink: Sink) -> KeptSink:
        """What is to be opened instead of a query's sink, at its mark. Error where that cannot be gone on with."""
        key = query.name.lower()
        made = _going_on(sink, self.marks[key])
        if isinstance(made, KeptTopic):
            query.acknowledge(made.until)
        self._open[key] = _Open(query, made)
        return made

    def go_on(self, db: DurableConnection) -> Iterator[tuple[RunningQuery, Sink]]:
        """The log has been carried out: (query, sink) of those that run, to be opened. What cannot be gone on with is
        told in the connection's warnings, and its answers wait to be fetched.
        """
        self.is_reading = False
        waiting, self._waiting = self._waiting, {}
        for key, sink in waiting.items():
            query = db.queries.get(key)
            if query is None:
                continue
            if not self.can_keep(sink):
                yield query, sink
                continue
            try:
                self.marks.setdefault(key, _no_mark(sink))
                made = self.begin(query, sink)
            except Error as error:
                db.warnings.append(answers_wait(query, error))
                continue
            yield query, made

    def is_unpublished(self, key: str) -> bool:
        """Whether a query that is said to end has a file that has not taken its place."""
        mark = self.marks.get(key)
        return key in self._waiting and mark is not None and _is_unpublished(mark)

    def new_marks(self, is_forced: bool) -> list[tuple[RunningQuery, Mark]]:
        """Sync what is due, or all; (query, mark) of each, to be logged. Raises OSError."""
        made = []
        now = time.monotonic()
        for key, each in self._open.items():
            if each.query.sink is not each.sink:
                continue
            nbytes = each.sink.bytes
            is_due = is_forced or each.sink.wants_mark or nbytes - each.marked_bytes >= MARK_BYTES
            if is_due or now - each.marked_s >= MARK_S:
                mark = each.sink.mark(each.query.position)
                if mark != self.marks.get(key):
                    each.sink.sync()
                    each.marked_s, each.marked_bytes = now, nbytes
                    self.marks[key] = mark = each.sink.mark(each.query.position)
                    made.append((each.query, mark))
        return made

    def last_mark(self, query: RunningQuery) -> Mark | None:
        """Of a query that is about to end and has nothing more to write, synced; None where it writes no file. Raises
        Error.
        """
        each = self._open.get(query.name.lower())
        if each is None:
            return None
        with saying(f"cannot write {each.sink.path!r}"):
            each.sink.sync()
        return each.sink.mark(query.position)

    @property
    def wants_marks(self) -> bool:
        """Files wait for their marks to take their places."""
        return any(each.sink.wants_mark for each in self._open.values())

    def publish_marked(self) -> None:
        """All marks are in the log, on disk."""
        for each in self._open.values():
            each.sink.publish_marked()

    def forget(self, key: str) -> None:
        """A query has ended."""
        self.marks.pop(key, None)
        self._waiting.pop(key, None)
        self.give_up(key)

    def give_up(self, key: str) -> None:
        """What a query writes is not open; it is gone on with at its mark when the folder is opened again."""
        each = self._open.pop(key, None)
        if each is not None:
            each.sink.discard()  # no more than closes one that has been marked, or has taken its place

    def leave(self) -> None:
        """Close all files as they are."""
        for each in self._open.values():
            each.query.release_sink()
            each.sink.leave()
        self._open = {}


def _going_on(sink: Sink, mark: Mark) -> KeptParts | KeptTopic:
    """What is to be opened instead of a sink, at its mark. Error where that cannot be gone on with."""
    if kept_topic.can_keep(sink):
        assert isinstance(sink, LineSink)
        return KeptTopic(sink, mark)
    return KeptParts(sink, mark)


def _no_mark(sink: Sink) -> Mark:
    """Of a file of which the log says none."""
    return Mark(os.path.abspath(sink.path), 0, 0, 0)


def _place(mark: Mark) -> str:
    """Of the file that grows."""
    return mark.path.replace("{n}", str(mark.part)) if mark.part else mark.path


def _is_unpublished(mark: Mark) -> bool:
    """Whether the file that grows has not taken its place."""
    return os.path.exists(hidden(_place(mark)))


def _has_taken_place(sink: Sink, mark: Mark) -> bool:
    """Whether the file that grew has, or was left out as an empty part: so did a version whose log does not say it."""
    grows_there = isinstance(sink, LineSink) and (sink.makes_output is AppendOutput or kept_topic.can_keep(sink))
    return mark.nbytes > 0 and not grows_there and not _is_unpublished(mark)
