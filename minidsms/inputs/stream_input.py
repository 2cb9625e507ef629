"""The input manager of one stream: types, instants, lateness, slack, heartbeats; then the stream's store.

Invariants:
  - the store holds the elements with ts <= progress + 1, in ts order, equal ts in arrival order; later ones wait in the
    slack buffer; no element with ts <= progress comes any more (docs/semantics T4, T6); without slack none waits;
  - progress never falls, and a call that raises has changed nothing but the dictionary of texts.
Rows of one call are judged one after the other, as if each had been pushed alone: batch boundaries do not matter (T5).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.cql.catalog import StreamDef
from minidsms.cql.errors import DataError, LateElementError, one_line
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, BoolArray, Column, Int64Array, Type, has_true
from minidsms.expressions.timestamps import iso_of_ticks
from minidsms.inputs.conversion import FIRST_INSTANT, LAST_INSTANT, Converter, is_ascending, is_one
from minidsms.inputs.foreign import raised
from minidsms.inputs.rejected import InputCounters, RejectedRows
from minidsms.inputs.slack_buffer import Released, SlackBuffer
from minidsms.synopses.stream_store import StreamStore
from minidsms.values.coded import shown as shown_value
from minidsms.values.coded import value_of
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.archive.recorder import Recorder
    from minidsms.durability.input_journal import InputJournal
    from minidsms.limits.admission import Admission

_NO_INSTANTS: Int64Array = np.zeros(0, np.int64)
_WORTH_A_STEP = 1 << 19
"""Bytes that take longer to copy than a slice of a few elements takes to pass."""
_ROWS_OF_A_STEP = 16
"""As many elements that need not be copied are worth an element in a slice of its own."""


class StreamInput:
    """What `push` and `advance` on a stream, and sources, talk to.

    store: what has been released.  progress: no later element has ts <= it.  greatest_ts: of what was taken, or None.
    clock: gives the instant of rows that come with none, where the stream has no TIMESTAMP BY.
    incomplete_until: what came up to this instant lacks rows or columns that nobody needed.
    recorder: writes what is taken into an archive.  journal: keeps it first, in a connection with a folder.
    admission: asked before anything is stored; it may refuse the call, or shed elements.
    """

    is_paused = False
    """Its source is not read for now."""

    def __init__(
        self,
        definition: StreamDef,
        dictionary: TextDictionary,
        tick_ns: int,
        clock: Callable[[], int] | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.store = StreamStore(definition.schema)
        self.progress = MIN_INSTANT
        self.greatest_ts: int | None = None
        self.ended = False
        self.counters = InputCounters()
        self.rejected = RejectedRows()
        self.recorder: Recorder | None = None
        self.journal: InputJournal | None = None
        self.incomplete_until = MIN_INSTANT
        self._clock = clock
        self._admission = admission
        self.has_slack = definition.slack > 0
        """Elements may wait before they are stored."""
        # A slack beyond the range of instants holds everything back just as well, and does not overflow.
        self._slack = min(definition.slack, LAST_INSTANT)
        self._waiting = SlackBuffer(definition.schema)
        self._define(definition, dictionary, tick_ns)

    def _define(self, definition: StreamDef, dictionary: TextDictionary, tick_ns: int) -> None:
        self.definition = definition
        self.schema = definition.schema
        self.is_system = definition.is_system
        """The engine writes it (`minidsms.system_streams`)."""
        self.converter = Converter(f"stream {one_line(definition.name)}", definition.schema, dictionary, tick_ns)
        self._text = definition.schema.coded

    def widen(self, definition: StreamDef) -> None:
        """What comes from now on has more columns behind those of now. The engine is at rest.

        Queries that run go on in the store they read, which takes of what comes the columns it has; others begin with
        a new one.  What waits for slack has NULL there.  MemoryError, and nothing has changed.
        """
        before, store = self.store, StreamStore(definition.schema)
        store.start_at(before.head)
        store.begins = before.head
        if before.is_read:
            store.mirrors.append(before)
        waiting = self._waiting.widened(definition.schema)
        if self.journal is not None:
            self.journal.widen(definition.schema)
        self.store, self._waiting = store, waiting
        self._define(definition, self.converter.dictionary, self.converter.tick_ns)

    def release(self) -> None:
        """The connection has been closed: what is held goes at once, whoever still refers to this."""
        self.store, self._waiting = StreamStore(self.schema), SlackBuffer(self.schema)

    # ---------------------------------------------------------------------------------------------------- input

    def push(
        self,
        data: Any,
        ts: Any = None,
        chunk: int = 0,
        step: Callable[[], None] | None = None,
        refuse: Callable[[int], None] | None = None,
    ) -> int:
        """Take rows; returns how many were taken. All or nothing: an error leaves the stream as it was.

        data: a tuple (one row), a list of tuples or dicts, a dict of columns, or an Arrow, polars or pandas table.
        ts: an instant for all rows, or one per row; without it the TIMESTAMP BY column, else the clock. step: called
        after each `chunk` rows stored, so that what nobody has to keep is processed while it is warm and the store
        stays small; everything has been checked before the first call. Whoever gives it processes what is left, and
        lets the store `keep` what then still stands in the arrays given. refuse: asked with the number of rows before
        any is stored; it may raise. DataError where something does not fit the schema; LateElementError for a row at
        or before the progress, unless the stream was declared LATE DROP.
        """
        row = self.one_row(data, ts)
        if row is not None:
            return self.push_row(row, ts, refuse)
        n, columns = self.converter.columns(data)
        if self.ended:
            raise self._ended()
        instants, ascends = self._instants(ts, n, columns)
        if n == 0:
            return 0
        if refuse is not None:
            refuse(n)
        if self._admission is not None and not self._admission.is_open:
            self._admission.admit(self, n)
            chunk = self._admission.chunk(self, chunk)
        late = None if ascends and instants.item(0) > self.progress else self._late(instants)
        if late is not None and not self.definition.late_drop:
            at = int(np.argmax(late))
            raise self._too_late(int(instants[at]), self._progress_before(instants, at), at)
        if self.journal is not None:
            self.journal.add(instants, None, columns, refuse is not None)
        try:
            return self._take_all(instants, columns, late, chunk, step)
        except MemoryError:
            if self.journal is not None:
                self.journal.retract(n)
            raise

    def _take_all(
        self,
        instants: Int64Array,
        columns: Sequence[Column],
        late: BoolArray | None,
        chunk: int,
        step: Callable[[], None] | None,
    ) -> int:
        """Take the elements of a push but for the late ones, which are counted: all or, with a MemoryError, none."""
        dropped: list[tuple[Any, str]] | None = None
        if late is not None:
            dropped = self._dropped(instants, columns, late)
            kept = ~late
            instants, columns = instants[kept], [c.take(kept) for c in columns]  # type: ignore[arg-type]
            if self.journal is not None:
                self.journal.accepted = np.flatnonzero(kept)
        n = len(instants)
        waits = step is not None and self._waits_alone(instants, columns)
        if step is None or self._slack or (n <= chunk and not waits):
            taken = self._take(instants, columns, step is not None)
        else:
            taken = start = 0
            ends = list(_ends(instants, chunk))  # before anything is taken: memory may be short
            for stop in ends:
                if start or waits:
                    # All of the instants before the part is here: what follows stands in this very push.
                    self.progress = max(self.progress, instants.item(start) - 1)
                    step()
                part = [column.slice(start, stop) for column in columns]
                taken += self._take_on(instants[start:stop], part, start > 0 or waits)
                start = stop
        if dropped is not None and late is not None:
            self._count_dropped(int(np.count_nonzero(late)), dropped)
        return taken

    def _waits_alone(self, instants: Int64Array, columns: Sequence[Column]) -> bool:
        """The store holds only a few elements of an instant that this push closes, and could take all of it as it
        stands if they were processed first.
        """
        store = self.store
        waiting = len(store)
        return (
            waiting > 0
            and (len(instants) - _ROWS_OF_A_STEP * waiting) * store.row_nbytes >= _WORTH_A_STEP
            and not self._slack
            and (self._admission is None or self._admission.is_open)
            and store.ts_at(store.tail) > self.progress
            and store.ts_at(store.head - 1) < instants.item(0)
            and store.may_pass(instants, columns)
        )

    def one_row(self, data: Any, ts: Any) -> tuple[Any, ...] | None:
        """The row that `push` is given where it is one, for `push_row`; else None."""
        return self.converter.one_row(data) if type(ts) is int or ts is None or is_one(ts) else None

    def push_row(self, row: tuple[Any, ...], ts: Any, refuse: Callable[[int], None] | None = None) -> int:
        """`push` of one row, without arrays: no more than a few microseconds."""
        values = self.converter.row(row)
        if self.ended:
            raise self._ended()
        by = self.definition.timestamp_by
        if ts is None:
            if by is None:
                ts = self._now()
            else:
                ts = values[by]
                if ts is None:
                    raise self.converter.error("the timestamp is NULL", "every element needs an instant")
        if type(ts) is not int or not FIRST_INSTANT < ts < LAST_INSTANT:
            ts = self.converter.instant(ts)
        if by is not None and values[by] != ts:
            raise self._timed_otherwise(values[by], ts)
        if refuse is not None:
            refuse(1)
        admission, journal = self._admission, self.journal
        if admission is not None and not admission.is_open:
            admission.admit(self, 1)
        if ts <= self.progress:
            if not self.definition.late_drop:
                raise self._too_late(ts, self.progress, None)
            if journal is not None:
                journal.add_row(ts, values, refuse is not None)
            self.counters.late_dropped += 1
            self.reject(self._shown(values), self._late_reason(ts, self.progress))
            return 0
        if journal is not None:
            journal.add_row(ts, values, refuse is not None)
        try:
            return self._take_row(ts, values)
        except MemoryError:
            if journal is not None:
                journal.retract(1)
            raise

    def _take_row(self, ts: int, values: Sequence[Any]) -> int:
        """Store an element that is not late, if it is not shed; how many. MemoryError, and nothing has changed."""
        greatest, progress, slack = self.greatest_ts, self.progress, self._slack
        if greatest is None or ts > greatest:
            greatest = ts
            if ts - slack > progress:
                progress = ts - slack - 1
        admission, recorder = self._admission, self.recorder
        kept = None if admission is None or admission.keeps_all else admission.kept(self, 1)
        if kept is not None and not kept.all():
            self.complete(progress, self.begin(progress))
            self.greatest_ts = greatest
            admission.count_shed(self, 1)  # type: ignore[union-attr]
            return 0
        if not slack:
            if recorder is not None:
                self.store.prepare_row(values)
                recorder.add_row(ts, values)
            self.store.append_row(ts, values)
            self.progress = progress
        else:
            self._waiting.add_row(ts, values)
            try:
                released = self.begin(progress, None if recorder is None else lambda: recorder.add_row(ts, values))
            except MemoryError:
                self._waiting.remove_last()
                raise
            self.complete(progress, released)
        self.greatest_ts = greatest
        self.counters.accepted += 1
        return 1

    def advance(self, ts: Any) -> None:
        """A heartbeat: no later element has a timestamp <= ts. One below the progress says nothing new."""
        if type(ts) is not int or not FIRST_INSTANT < ts < LAST_INSTANT:
            ts = self.converter.instant(ts)
        self.complete(ts, self.begin(ts))

    def heartbeat(self, ts: int) -> None:
        """`advance` by a source: where a folder keeps what comes, it keeps this first."""
        if self.journal is not None and ts > self.progress:
            self.journal.hear(ts)
        self.advance(ts)

    def begin(self, progress: int, record: Callable[[], None] | None = None) -> Released | None:
        """Take out what nothing earlier can precede once the stream has progressed so far, with room in the store for
        it. record: called when there is. MemoryError, and nothing has changed; `give_up` undoes it.
        """
        released = self._waiting.release(min(progress, MAX_INSTANT - 1) + 1) if self.has_slack else None
        try:
            if released is not None:
                self.store.prepare(released.ts, released.columns)
            if record is not None:
                record()
        except MemoryError:
            self.give_up(released)
            raise
        return released

    def give_up(self, released: Released | None) -> None:
        """It waits as before."""
        if released is not None:
            self._waiting.take_back(released)

    def complete(self, progress: int, released: Released | None) -> None:
        """The stream has progressed so far, and what `begin` gave stands in the store."""
        if released is not None:
            self.store.append(released.ts, released.columns)
            self._waiting.trim()
        if progress > self.progress:
            self.progress = progress

    def keep_pace(self) -> None:
        """A heartbeat by the clock, for rows that take their instants from it: none comes before the present."""
        self.heartbeat(self._now() - 1)

    def pass_over(self, ts: int) -> None:
        """Elements up to ts have come that nobody needs: time passes as if they had been pushed."""
        if self.greatest_ts is None or ts > self.greatest_ts:
            progress = max(self.progress, ts - self._slack - 1)  # before the first instant where ts is near it
            self.complete(progress, self.begin(progress))
            self.greatest_ts = ts

    def pass_by(self, ts: int) -> None:
        """`pass_over` by a replay: where a folder keeps what comes, it keeps this first."""
        if self.journal is not None and (self.greatest_ts is None or ts > self.greatest_ts):
            self.journal.pass_by(ts)
        self.pass_over(ts)

    def finish(self) -> None:
        """The stream has ended: everything that waits is released, nothing more is taken."""
        self.complete(MAX_INSTANT, self.begin(MAX_INSTANT))
        self.ended = True

    def reject(self, row: Any, reason: str) -> None:
        """Count and keep a row that could not be taken (sources tell of malformed rows here)."""
        self.counters.rejected += 1
        self.rejected.add(row, reason)

    # ------------------------------------------------------------------------------------------------- accounts

    @property
    def waiting(self) -> int:
        """Elements in the slack buffer."""
        return len(self._waiting)

    def lacks_rows(self) -> bool:
        """Whether rows or columns that nobody needed are missing in what the store holds, or in what waits."""
        return (len(self.store) > 0 and self.store.ts_at(self.store.tail) <= self.incomplete_until) or (
            self.lacks_waiting_rows()
        )

    def lacks_waiting_rows(self) -> bool:
        """The same of what waits."""
        return self.waiting > 0 and int(self.waiting_instants()[0]) <= self.incomplete_until

    def waiting_instants(self) -> Int64Array:
        """The instants of what waits in the slack buffer, ascending: a query that starts now has not seen them come
        (T7).
        """
        return self._waiting.arrays()[0].copy() if len(self._waiting) else _NO_INSTANTS

    @property
    def nbytes(self) -> int:
        """Bytes of the store and of what waits."""
        return self.store.nbytes + self._waiting.nbytes

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held by the store and the slack buffer (0 stands for NULL)."""
        if self._text:
            held = [store.arrays()[1] for store in self.store.with_mirrors()]
            for columns in (*held, self._waiting.arrays()[1]):
                for i in self._text:
                    if i < len(columns):
                        yield columns[i].values  # type: ignore[misc]

    # ------------------------------------------------------------------------------------------------- instants

    def _instants(self, ts: Any, n: int, columns: Sequence[Column]) -> tuple[Int64Array, bool]:
        """The instants of a push, and whether they ascend."""
        by = self.definition.timestamp_by
        if ts is not None:
            instants, ascends = self.converter.ordered_instants(ts, n)
            if by is not None and n:
                said = columns[by]
                other = said.values != instants
                if said.valid is not None:
                    other |= ~said.valid
                if has_true(other):
                    row = int(other.argmax())
                    is_null = said.valid is not None and not said.valid.item(row)
                    raise self._timed_otherwise(None if is_null else said.values.item(row), instants.item(row), row)
            return instants, ascends
        if by is not None:
            return self.converter.checked_instants(columns[by])
        return np.full(n, self._now() if n else 0, np.int64), True

    def _timed_otherwise(self, value: int | None, ts: int, row: int | None = None) -> DataError:
        """TIMESTAMP BY says when a row came; plans go by it, so `ts` may say nothing else."""
        by = self.definition.timestamp_by
        assert by is not None
        where, name = "" if row is None else f"row {row}: ", self.schema[by].name
        said, hint = ("NULL", f"give {name} its instant") if value is None else (value, "leave ts out")
        error = self.converter.error(f"{where}ts is {ts}, and {name}, the stream's TIMESTAMP BY, {said}", hint)
        error.row = row
        return error

    def _now(self) -> int:
        """The clock's instant, never late: a clock that stands or falls back, or is behind a heartbeat, is moved on."""
        if self._clock is None:
            raise self.converter.error(
                "the rows have no timestamp", "pass ts=.., or declare the stream with TIMESTAMP BY a column"
            )
        try:
            told = self._clock()
        except Exception as error:
            raise self.converter.error(f"the connection's clock raised {raised(error)}") from error
        now = max(self.converter.instant(told), self.progress + 1)
        now = now if self.greatest_ts is None else max(now, self.greatest_ts)
        return self.converter.instant(now)

    # ------------------------------------------------------------------------------------------------- lateness

    def _late(self, ts: Int64Array) -> BoolArray | None:
        """Which rows come at or before the progress their predecessors made; None where none does."""
        late: BoolArray = ts <= self.progress
        late[1:] |= ts[1:] <= np.maximum.accumulate(ts)[:-1] - (self._slack + 1)
        return late if late.any() else None

    def _progress_before(self, ts: Int64Array, row: int) -> int:
        if row == 0:
            return self.progress
        return max(self.progress, int(ts[:row].max()) - self._slack - 1)

    def _dropped(self, ts: Int64Array, columns: Sequence[Column], late: BoolArray) -> list[tuple[Any, str]]:
        """The newest of the late rows, as many as are kept, and why they are."""
        rows = np.flatnonzero(late)
        kept = rows[max(0, len(rows) - self.rejected.limit) :]
        shown = self.converter.rows([c.take(kept) for c in columns])
        # The greatest so far counts only what was taken, and what was dropped is never the greatest.
        greatest = np.maximum.accumulate(ts)
        dropped = []
        for row, values in zip(kept.tolist(), shown):
            progress = max(self.progress, int(greatest[row - 1]) - self._slack - 1) if row else self.progress
            dropped.append((values, self._late_reason(int(ts[row]), progress)))
        return dropped

    def _count_dropped(self, n: int, kept: Sequence[tuple[Any, str]]) -> None:
        """Count late rows and keep the newest of them."""
        self.counters.late_dropped += n
        self.counters.rejected += n - len(kept)
        self.rejected.skip(n - len(kept))
        for row, reason in kept:
            self.reject(row, reason)

    def _shown(self, values: Sequence[Any]) -> tuple[Any, ...]:
        text = self.converter.dictionary.text
        types = self.schema.types
        shown = (value_of(text(v), types[i]) if i in self._text and v is not None else v for i, v in enumerate(values))
        return tuple(map(shown_value, shown, types))

    def _too_late(self, ts: int, progress: int, row: int | None) -> DataError:
        where = "" if row is None else f"row {row}: "
        hint = "sort rows by time, or declare the stream with SLACK, which waits for late ones, or LATE DROP"
        error = self.converter.error(f"{where}{self._late_reason(ts, progress)}", hint, LateElementError)
        error.row = row
        return error

    def _late_reason(self, ts: int, progress: int) -> str:
        """By how much a row is late: with so much more slack it would have been taken."""
        by, tick_ns = progress + 1 - ts, self.converter.tick_ns
        column = self.definition.timestamp_by
        if column is None or self.schema[column].type is not Type.TIMESTAMP:
            return f"late by {by}: timestamp {ts}, but the stream has passed {progress}"
        came, passed = iso_of_ticks(ts, tick_ns), iso_of_ticks(progress, tick_ns)
        seconds = by * tick_ns / 1e9
        late = f"{seconds:g} s" if seconds < 172_800 else f"{seconds / 86_400:,.0f} days"
        return f"late by {late}: timestamp {came}, but the stream has passed {passed}"

    def _ended(self) -> DataError:
        return self.converter.error("the stream has ended", "its source was read to the end", LateElementError)

    # -------------------------------------------------------------------------------------------------- storing

    def _take(self, ts: Int64Array, columns: Sequence[Column], is_live: bool = False) -> int:
        """Store what is not shed; how many. is_live: the engine processes before more is stored. MemoryError, and
        nothing has changed.
        """
        if not len(ts):
            return 0
        # Without slack nothing comes out of order.
        newest = int(np.maximum.reduce(ts)) if self._slack else ts.item(-1)
        greatest, progress = self.greatest_ts, self.progress
        if greatest is None or newest > greatest:
            greatest, progress = newest, max(progress, newest - self._slack - 1)
        admission, came = self._admission, len(ts)
        if admission is not None and not admission.keeps_all:
            # What is shed has come: time goes on, and windows expire.
            kept = admission.kept(self, came, is_live)
            if kept is not None:
                ts, columns = ts[kept], [c.take(kept) for c in columns]  # type: ignore[arg-type]
        recorder = self.recorder
        if not len(ts):
            self.complete(progress, self.begin(progress))
        elif not self._slack or (not len(self._waiting) and newest <= progress + 1 and is_ascending(ts)):
            if recorder is not None:
                self.store.prepare(ts, columns, is_live)
                recorder.add(ts, None, columns)
            self.store.append(ts, columns, passes=is_live)
            self.progress = progress
        else:
            run = self._waiting.add(ts, columns)
            try:
                released = self.begin(progress, None if recorder is None else lambda: recorder.add(ts, None, columns))
            except MemoryError:
                self._waiting.go_back(run)
                raise
            self.complete(progress, released)
        self.greatest_ts = greatest
        self.counters.accepted += len(ts)
        if admission is not None and len(ts) < came:
            admission.count_shed(self, came - len(ts))
        return len(ts)

    def _take_on(self, ts: Int64Array, columns: Sequence[Column], has_answered: bool) -> int:
        """`_take` of a part of a push. has_answered: its first elements have been; then, where there is no memory for
        more, the queries that read the stream end before them, and nobody needs them stored.
        """
        try:
            return self._take(ts, columns, True)
        except MemoryError:
            if self._admission is None or not has_answered:
                raise
            self._admission.fail_readers(self)
            if self.recorder is not None:
                self.recorder.add(ts, None, columns)
            self.counters.accepted += len(ts)
            self.greatest_ts = ts.item(-1)
            self.progress = max(self.progress, self.greatest_ts - 1)
            return len(ts)


def _ends(ts: Int64Array, chunk: int) -> Iterator[int]:
    """Where to end the parts of a push, of about so many elements: where an instant ends, so that nothing of a part
    has to wait; within one that is longer than a part.
    """
    start, n = 0, len(ts)
    while start < n:
        stop = start + chunk
        if stop < n:
            # Not by numpy, which would ask for memory amidst a push of which a part has been answered.
            whole = bisect_left(ts, ts.item(stop), start, stop)
            stop = whole if whole > start else stop
        start = min(stop, n)
        yield start
