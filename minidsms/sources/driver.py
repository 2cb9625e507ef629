"""Drives sources into their inputs, in the order of their timestamps as far as possible.

One block of each source waits here. The stream whose waiting block begins earliest goes next, so that little waits in
the inputs. Relations run ahead of the streams: their changes up to the last instant of a block are made before the
block is pushed, since a change at a closed instant is refused (docs/semantics T4). A live source that has nothing to
say holds nobody back here; its stream holds back the queries that read it, unless it is told to go on with the clock.

A relation's file without a ts column is inserted whole, before anything else, at the first instant: the least ts in
the first blocks of the other sources, 0 where they show none; never before what has been closed or changed already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidsms.cql.errors import DataError, LateElementError, MemoryLimitError
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.sources.driver_entry import Entry, Pacer
from minidsms.sources.plain_rows import PlainRows
from minidsms.sources.source import SIGN_COLUMN, LiveSource, Source

_IDLE_S = 0.1
"""How long to wait for live sources before looking again."""


class SourceDriver:
    """Reads sources a block at a time.

    entries: (source, input) pairs.  pushed: called after each push.  tick_ns: nanoseconds in a tick.
    warn: as of `Entry`.
    """

    def __init__(
        self,
        entries: Sequence[tuple[Source | LiveSource, StreamInput | RelationInput]],
        pushed: Callable[[], None] | None = None,
        tick_ns: int = 1_000_000,
        warn: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self._warn = warn
        self._entries: list[Entry] = []
        self._over: list[Entry] = []
        self._resting: list[LiveSource] = []
        self._pushed = pushed
        self._pacer = Pacer(tick_ns)
        self._bell = threading.Event()
        self._wait_s: float | None = None
        for source, target in entries:
            self.add(source, target)

    def add(self, source: Source | LiveSource, target: StreamInput | RelationInput) -> None:
        """One more source; one that is live starts with the next step."""
        self._entries.append(Entry(source, target, self._finish, self._warn))
        if isinstance(source, LiveSource):
            self._resting.append(source)

    def _start(self) -> None:
        """Start what rests. Error where the system gives no thread: the next step tries again."""
        while self._resting:
            self._resting[0].start(self._bell.set)
            del self._resting[0]

    def remove(self, source: Source | LiveSource) -> None:
        """Forget a source that has been closed."""
        self._entries = [e for e in self._entries if e.source is not source]
        self._over = [e for e in self._over if e.source is not source]
        self._resting = [each for each in self._resting if each is not source]

    def leave(self) -> None:
        """Whoever read goes on no more: the sources wait for who does."""

    @property
    def fraction(self) -> float:
        """How much of the bounded sources has been read, 0 to 1."""
        sizes = [(e.source.bytes_total, e.source.bytes_read, e.ended) for e in self._entries if e.bounded]  # type: ignore[union-attr]
        total = sum(size for size, _, _ in sizes)
        read = sum(size if ended else min(done, size) for size, done, ended in sizes)
        return read / total if total else 1.0

    @property
    def is_bounded(self) -> bool:
        """It is known how much there is: `fraction` means something."""
        return all(e.bounded and e.source.bytes_total for e in self._entries)  # type: ignore[union-attr]

    def inputs(self) -> list[StreamInput | RelationInput]:
        """The streams and relations that are read into."""
        return list(dict.fromkeys(e.target for e in self._entries))

    def names(self) -> list[str]:
        """Of these."""
        return [target.definition.name for target in self.inputs()]

    @property
    def has_ended(self) -> bool:
        """Every source has been read to its end."""
        return all(e.ended for e in self._entries)

    def next_instant(self) -> int | None:
        """The least instant that the waiting blocks begin at, or None where they show none."""
        for entry in self._entries:
            entry.fill()
        return min((e.begins for e in self._entries if e.has_instants), default=None)

    def _finish(self, entry: Entry) -> None:
        """A source has been read to its end, and nothing else feeds its input."""
        if isinstance(entry.target, StreamInput):
            self._over.append(entry)
        else:
            entry.end_input()

    def _end_streams(self, until: int | None) -> None:
        """End the streams that have been read: not before changes of relations that are due or wait behind `until`,
        for the end of the last one closes all that has been seen, and with it the instant of each change.
        """
        waits = until is not None and any(e.has_instants and isinstance(e.target, RelationInput) for e in self._entries)
        while self._over and not waits:
            self._over.pop(0).end_input()

    def run(self, until: int | None = None) -> None:
        """Read everything, or up to an instant."""
        while self.step(until):
            self.wait()

    @property
    def is_waiting(self) -> bool:
        """The last step found nothing to push, though something may come."""
        return self._wait_s is not None

    def wait(self) -> None:
        """Where the last step found nothing to push: wait until a live source rings, or a while has passed."""
        if self._wait_s is not None:
            self._bell.wait(self._wait_s)

    def step(self, until: int | None = None, refused: Callable[[], None] = lambda: None) -> bool:
        """Push one more block; False when the sources have ended, or tell nothing more up to `until`.

        True without having pushed where something may still come: then `wait`. Errors of the inputs name the file,
        and the line where it is known; the block that was refused stays.  refused: called where there is no room.
        """
        self._bell.clear()
        self._wait_s = None
        self._start()
        if any([entry.fill() for entry in self._entries]):
            return True
        stalled: MemoryLimitError | None = None
        while True:
            chosen = self._next(until)
            if chosen is None or isinstance(chosen.target, StreamInput):
                self._end_streams(until)
            if chosen is None:
                break
            try:
                self._push(chosen, until)
            except MemoryLimitError as error:
                refused()
                if chosen.push_less():
                    continue
                # Back-pressure: what this source brings has to wait until another one has moved time on.
                chosen.is_stalled, stalled = True, error
                continue
            for entry in self._entries:
                entry.is_stalled = False
                if entry is not chosen or entry.batch is None:
                    entry.most_rows = None  # the parts of a block are alike: the next one is no larger
            if self._pushed is not None:
                self._pushed()
            return True
        return self._rest(until, stalled)

    def _rest(self, until: int | None, stalled: MemoryLimitError | None) -> bool:
        """Nothing is to be pushed now: move times on, and say whether more may come."""
        may_come = [e for e in self._entries if e.may_bring(until)]
        was_stalled = [e for e in self._entries if e.is_stalled]
        for entry in was_stalled:
            entry.is_stalled, entry.most_rows = False, None
        if stalled is not None and not [e for e in may_come if e not in was_stalled and not self._follows(e)]:
            raise stalled
        for entry in may_come:
            entry.go_on_with_clock(self._pacer, self._entries)
        if may_come:
            self._wait_s = self._pause_s(may_come)
            return True
        if until is not None:
            for each in self._entries:
                goes_on = each in self._over or not (each.ended or each.is_paused)
                if goes_on and isinstance(each.target, StreamInput):
                    each.target.heartbeat(until)
        return False

    def _pause_s(self, entries: Sequence[Entry]) -> float:
        """How long nothing is due."""
        due = [self._pacer.due_s(e.begins, e.source.pace.speed) for e in entries if e.is_paced and e.has_instants]
        return max(0.001, min([_IDLE_S, *due]))

    # -------------------------------------------------------------------------------------------------- choosing

    def _next(self, until: int | None) -> Entry | None:
        """Whose block goes next, or None."""
        waiting = [e for e in self._entries if e.batch is not None and not e.is_paused and not e.is_stalled]
        whole = [e for e in waiting if not e.has_instants]
        if whole:
            return whole[0]
        streams = [e for e in waiting if isinstance(e.target, StreamInput) and e.begins <= self._limit(e, until)]
        relations = [e for e in waiting if isinstance(e.target, RelationInput) and not self._follows(e)]
        if streams:
            stream = min(streams, key=lambda e: e.begins)
            assert stream.ts is not None
            last = min(int(stream.ts.max()), self._limit(stream, until))
            # Rows beyond `until` that slack lets in do not yet close it.
            ahead = [e for e in relations if e.begins <= min(last, e.limit(until))]
            if not ahead:
                return stream
            first = min(ahead, key=lambda e: e.begins)
            return first if first.begins <= self._limit(first, until) else None
        due = [e for e in relations if e.begins <= self._limit(e, until)]
        return min(due, key=lambda e: e.begins) if due else None

    def _limit(self, entry: Entry, until: int | None) -> int:
        """Once a row beyond this was seen, no row with ts <= until can come in time; rows beyond are not due yet."""
        limit = entry.limit(until)
        if entry.is_paced:
            limit = min(limit, self._pacer.instant(entry.begins, entry.source.pace.speed))
        return limit

    def _follows(self, entry: Entry) -> bool:
        """A change of another relation comes first, and cannot come behind what waits here."""
        is_first = entry.ts is None or entry.begins <= self._next_change(entry)
        return not is_first and isinstance(entry.target, RelationInput) and entry.target.closes()

    def _next_change(self, entry: Entry) -> int:
        """The first instant at which another relation that waits changes."""
        others = (e for e in self._entries if e is not entry and isinstance(e.target, RelationInput) and e.has_instants)
        return min((e.begins for e in others), default=MAX_INSTANT)

    # --------------------------------------------------------------------------------------------------- pushing

    def _push(self, entry: Entry, until: int | None) -> None:
        """Push the waiting block, up to `until` and to what is due."""
        batch, ts = entry.batch, entry.ts
        n = batch.num_rows
        if ts is not None and (until is not None or entry.is_paced):
            beyond = np.flatnonzero(ts > self._limit(entry, until))
            n = int(beyond[0]) if len(beyond) else n
        if ts is not None and isinstance(entry.target, RelationInput) and entry.target.closes():
            beyond = np.flatnonzero(ts[:n] > self._next_change(entry))
            n = int(beyond[0]) if len(beyond) else n
        n = n if entry.most_rows is None else min(n, entry.most_rows)
        rows = batch.slice(0, n)
        try:
            with entry.bringing(n):
                self._hand_over(entry, rows, None if ts is None else ts[:n])
        except DataError as error:
            if entry.bounded or (isinstance(error, LateElementError) and isinstance(entry.target, StreamInput)):
                raise entry.placed(error) from None
            self._hand_over_singly(entry, rows, None if ts is None else ts[:n])
        entry.drop(n)

    def _hand_over(self, entry: Entry, rows: Any, ts: Int64Array | None) -> None:
        """Let the input take rows, or none of them."""
        k = len(entry.target.schema)
        if isinstance(rows, PlainRows) and rows.num_rows == 1:
            # A whole column of one costs as much as ten rows.
            row = tuple([values[0] for values in rows.columns[:k]])
            entry.target.push(row, None if ts is None else ts.item(0))
            return
        # Positions, not names: a column of the schema may be called like one of ours.
        data = dict(zip(entry.target.schema.names, rows.columns[:k]))
        if isinstance(entry.target, StreamInput):
            entry.target.push(data, ts)
            return
        sign: Any = 1
        if SIGN_COLUMN in rows.schema.names[k:]:
            sign = rows.column(rows.num_columns - 1)
        if ts is None and entry.bounded:
            entry.target.push(data, self._first_instant(entry.target), sign)
        else:
            entry.target.push(data, entry.target.next_instant() if ts is None else ts, sign)

    def _hand_over_singly(self, entry: Entry, rows: Any, ts: Int64Array | None) -> None:
        """Of what a live source brings, rows that cannot be taken are counted and kept, and stop nothing."""
        rows = rows.arrow() if isinstance(rows, PlainRows) else rows
        for row in range(rows.num_rows):
            one = rows.slice(row, 1)
            try:
                with entry.bringing(row + 1):
                    self._hand_over(entry, one, None if ts is None else ts[row : row + 1])
            except DataError as error:
                if isinstance(error, LateElementError) and isinstance(entry.target, StreamInput):
                    raise entry.placed(error) from None
                entry.refuse(one, error)

    def _first_instant(self, target: RelationInput) -> int:
        """The instant at which a file without instants is inserted."""
        first = min((int(e.ts.min()) for e in self._entries if e.ts is not None), default=0)
        last = MIN_INSTANT if target.last_ts is None else target.last_ts
        return max(first, last, target.closed() + 1)
