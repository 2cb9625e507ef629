"""A source of lines that come when they come: a thread waits for them, and whoever polls reads them.

Invariants: rows come in the order of their origin, whatever the sizes of what arrived; what waits is bounded by the
inbox; when the source is closed the thread has ended, or ends at its next breath.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.process.threads import begun
from minidsms.sources.blocks import Block
from minidsms.sources.csv_form import CsvForm
from minidsms.sources.inbox import Inbox
from minidsms.sources.line_rows import LineRows
from minidsms.sources.source import BaseSource

_KEPT_NOTES = 100
_log = logging.getLogger("minidsms.sources")


class Feeder(Protocol):
    """What waits for lines: runs in a thread of its own and puts them into the inbox."""

    def run(self, source: LiveLines) -> None:
        """Put blocks until there are no more, or the inbox is closed. An Error ends the source."""

    def stop(self) -> None:
        """Wake `run` up, so that it returns; from another thread, and more than once."""

    def close(self) -> None:
        """Let go of what is open: once `run` has returned, or where it is never called, then more than once."""


@runtime_checkable
class FeederGoesOn(Protocol):
    """A feeder that another process can go on with."""

    def position(self, rows: LineRows, block: Block) -> Any:
        """Where a block begins that has been taken, as JSON."""

    def go_on(self, position: Any) -> str:
        """Before `run`: begin at a position; what is to be told of it, or "". Error where that cannot be."""


class LiveLines(BaseSource):
    """A source whose rows come when they come: of lines that a feeder waits for. See `GoesOn`.

    notes: what happened to the source, newest last: a rotation, a client that came.  state: a word for people.
    notes_pushed: keep account in `pushed`, for a feeder that has to tell somebody else how far it is.
    form: of CSV, None: JSON. Where it has a header, each origin begins with one.  is_lenient: one origin among many
    that does not fit is ignored, instead of ending the source.
    """

    def __init__(
        self,
        path: str,
        schema: Schema,
        relation: bool,
        form: CsvForm | None,
        feeder: Feeder,
        is_lenient: bool = False,
    ) -> None:
        super().__init__(path, schema)
        self.notes: deque[str] = deque(maxlen=_KEPT_NOTES)
        self.state = "waiting to run"
        self.bytes_read = 0
        self.inbox: Inbox[LineRows] = Inbox()
        self.feeder = feeder
        self._goes_on = feeder if isinstance(feeder, FeederGoesOn) else None  # a protocol is asked for slowly
        self._relation, self._form, self._is_lenient = relation, form, is_lenient
        # How far each origin has been pushed: the line behind. What was taken last counts when more is asked for.
        self.pushed: dict[LineRows, int] = {}
        self.notes_pushed = False
        self._last: tuple[LineRows, int] | None = None
        self._ready: deque[Any] = deque()
        self.position: Any = None
        self.rejected_before = 0
        self.begins_anew = False
        """What was read before it was gone on with does not come again."""
        self._thread: threading.Thread | None = None

    def rows(self, origin: str) -> LineRows:
        """A reader for the lines of one origin; origin: as errors name it."""
        return LineRows(origin, self.schema, self.rejected, self._relation, self._form, self._is_lenient)

    def note(self, text: str) -> None:
        """Tell what happened: kept for SHOW SOURCES, and logged."""
        self.notes.append(text)
        _log.info("%s: %s", self.path, text)

    def note_waiting(self, error: Error) -> None:
        """Tell, once, why nothing comes."""
        told = f"waits: {str(error).splitlines()[0]}"
        if not self.notes or self.notes[-1] != told:
            self.note(told)

    def start(self, bell: Callable[[], None]) -> None:
        """Begin to wait for rows; bell is rung from the thread when there is something to poll."""
        self.inbox.ring(bell)
        if self._thread is None and not self.inbox.is_closed:
            before, self.state = self.state, "running"
            try:
                self._thread = begun(self._run, f"minidsms {self.path}"[:60])
            except Error:
                self.state = before
                raise

    def _run(self) -> None:
        failure: Error | None = None
        try:
            try:
                self.feeder.run(self)
            finally:
                self.feeder.close()
        except Error as error:
            failure = error
        except Exception as error:
            failure = Error(f"{self.path}: {type(error).__name__}: {str(error)[:200]}")
        if not self.inbox.is_closed:
            self.state = "ended" if failure is None else "failed"
        self.inbox.end(failure)

    def poll(self) -> Any:
        """The next batch or heartbeat, or None. Error where the source has failed, once what came before is taken."""
        while not self._ready:
            if self._last is not None:
                self.pushed[self._last[0]] = self._last[1]
                self._last = None
            taken = self.inbox.take()
            if taken is None:
                failure = self.inbox.take_failure()
                if failure is not None:
                    raise failure
                return None
            rows, block = taken
            self.rejected_before = self.rejected.count
            self.bytes_read += len(block.data)
            if self.notes_pushed:
                self._last = rows, block.first_line + block.data.count(b"\n")
            try:
                self._ready.extend(rows.read(block))
            except (Error, OSError) as error:  # of these lines nobody knows the rows
                self.close()
                self.state = "failed"
                self.inbox.end()
                if isinstance(error, Error):
                    raise
                raise Error(f"{self.path} cannot be read: {error.strerror or error}") from None
            if self._goes_on is not None:
                self.position = self._goes_on.position(rows, block)
        return self._ready.popleft()

    def go_on(self, position: Any) -> str:
        assert self._goes_on is not None
        return self._goes_on.go_on(position)

    @property
    def has_ended(self) -> bool:
        """Nothing more will come, and nothing waits."""
        return not self._ready and self.inbox.has_ended

    def close(self) -> None:
        """Stop the thread and give up what it reads. Closing twice is no error."""
        self.inbox.close()
        self.feeder.stop()
        if self._thread is None:
            self.feeder.close()
        elif self._thread is not threading.current_thread():
            self._thread.join(2.0)
        self.state = "closed"
