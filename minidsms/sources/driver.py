"""Drives sources into their inputs, in the order of their timestamps as far as possible.

One block of each source waits here. The stream whose waiting block begins earliest goes next, so that little waits in
the inputs. Relations run ahead of the streams: their changes up to the last instant of a block are made before the
block is pushed, since a change at a closed instant is refused (docs/semantics T4). Beyond that they run in the order of
time, since a change of one closes what is before it for the others where the streams of a query have ended. A live
source that has nothing to say holds nobody back here; its stream holds back the queries that read it, unless it is told
to go on with the clock.

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
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.plain_rows import PlainRows
from minidsms.sources.source import SIGN_COLUMN, Source

_IDLE_S = 0.1
"""How long to wait for live sources before looking again."""


class SourceDriver:
    """Reads sources a block at a time.

    entries: (source, input) pairs.  pushed: called after each push.  tick_ns: nanoseconds in a tick.
    warn: as of `Entry`.
    """

    def __init__(
        self,
        entries: Sequence[tuple[Source | LiveLines, StreamInput | RelationInput]],
        pushed: Callable[[], None] | None = None,
        tick_ns: int = 1_000_000,
        warn: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self._warn = warn
        self._entries: list[Entry] = []
        self._over: list[Entry] = []
        self._resting: list[LiveLines] = []
        self._pushed = pushed
        self._pacer = Pacer(tick_ns)
        self._bell = threading.Event()
        self._wait_s: float | None = None
        for source, target in entries:
            self.add(source, target)

    def add(self, source: Source | LiveLines, target: StreamInput | RelationInput) -> None:
        """One more source; one that is live starts with the next step."""
        self._entries.append(Entry(source, target, self._finish, self._warn))
        if isinstance(source, LiveLines):
            self._resting.append(source)

    def _start(self) -> None:
        """Start what rests. Error where the system gives no thread: the next step tries again."""
        while self._resting:
            self._resting[0].start(self._bell.set)
            del self._resting[0]

    def remove(self, source: Source | LiveLines) -> None:
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
        """A source has been read to its end: so has its input, where nothing else feeds it."""
        if any(e.target is entry.target and not e.ended for e in self._entries):
            return
        if isinstance(entry.target, StreamInput):
            self._over.append(entry)
        else:
            entry.end_input()

    def _end_streams(self) -> None:
        """End the streams that have been read: not before changes of relations at the instants that are closed by the
        end of the last one: those that the streams have shown, and what is before the changes that have been made.
        """
        for entry in list(self._over):
            shown = entry.target.greatest_ts
            beside = [e for e in self._entries if self._is_beside(e, entry)]
            made = [e.target.last_ts - 1 for e in beside if e.target.last_ts is not None]  # type: ignore[union-attr]
            closed = max(made if shown is None else [shown, *made], default=MIN_INSTANT)
            if not any(e.has_instants and e.begins <= closed for e in beside):
                self._over.remove(entry)
                entry.end_input()

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
            chosen, limit = self._next(until)
            if chosen is None or isinstance(chosen.target, StreamInput):
                self._end_streams()
            if chosen is None:
                break
            try:
                self._push(chosen, limit)
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
        is_stuck = stalled is not None and all(self._is_stuck(e) for e in may_come)
        has_moved = is_stuck and self._move_on_to_stalled()
        for entry in self._entries:
            entry.is_stalled, entry.most_rows = False, None
        if has_moved:
            return True
        if stalled is not None and is_stuck:
            raise stalled
        for entry in may_come:
            entry.go_on_with_clock(self._pacer, self._entries)
        if may_come:
            self._wait_s = self._pause_s(may_come)
            return True
        if until is not None:
            for each in self._entries:
                if each in self._over or not (each.ended or each.is_paused):
                    each.target.heartbeat(until)
        return False

    def _pause_s(self, entries: Sequence[Entry]) -> float:
        """How long nothing is due."""
        due = [self._pacer.due_s(e.begins, e.source.pace.speed) for e in entries if e.is_paced and e.has_instants]
        return max(0.001, min([_IDLE_S, *due]))

    # -------------------------------------------------------------------------------------------------- choosing

    def _next(self, until: int | None) -> tuple[Entry | None, int]:
        """Whose block goes next, or None, and up to which instant."""
        waiting = [e for e in self._entries if e.batch is not None and not e.is_paused and not e.is_stalled]
        whole = [e for e in waiting if not e.has_instants]
        if whole:
            return whole[0], MAX_INSTANT
        streams = [e for e in waiting if isinstance(e.target, StreamInput) and e.begins <= self._limit(e, until)]
        relations = [e for e in waiting if isinstance(e.target, RelationInput) and not self._follows(e)]
        if streams:
            stream = min(streams, key=lambda e: e.begins)
            assert stream.ts is not None
            limit = self._limit(stream, until)
            last = min(int(stream.ts.max()), limit)
            # Rows beyond `until` that slack lets in do not yet close it.
            ahead = [e for e in relations if e.begins <= min(last, e.limit(until))]
            if not ahead:
                return stream, limit
            first = min(ahead, key=lambda e: e.begins)
            limit = self._limit(first, until)
            return (first if first.begins <= limit else None), min(limit, max(last, self._next_change(first)))
        due = [e for e in relations if e.begins <= self._limit(e, until)]
        if not due:
            return None, MAX_INSTANT
        first = min(due, key=lambda e: e.begins)
        return first, self._limit(first, until)

    def _limit(self, entry: Entry, until: int | None) -> int:
        """Once a row beyond this was seen, no row with ts <= until can come in time; rows beyond are not due yet."""
        limit = entry.limit(until)
        if entry.is_paced:
            limit = min(limit, self._pacer.instant(entry.begins, entry.source.pace.speed))
        return min(limit, entry.limit(self._stalled_change(entry)))

    def _stalled_change(self, entry: Entry) -> int | None:
        """The first change that finds no memory, or follows one, of the relations read beside a stream. A file that
        says no instants comes before everything.
        """
        if not any(e.is_stalled for e in self._entries):
            return None
        stuck = [e for e in self._entries if (e.is_stalled or self._follows(e)) and self._is_beside(e, entry)]
        if any(e.bounded and not e.has_instants for e in stuck):
            return MIN_INSTANT
        return min((e.begins for e in stuck if e.has_instants), default=None)

    def _is_stuck(self, entry: Entry) -> bool:
        """What waits here finds no memory, or comes behind a change that finds none."""
        is_behind = entry.ts is not None and entry.begins > entry.limit(self._stalled_change(entry))
        return entry.is_stalled or self._follows(entry) or is_behind

    def _move_on_to_stalled(self) -> bool:
        """Let the time of the streams go on to where changes find no memory; whether there was any left."""
        has_moved = False
        for entry in self._entries:
            change, stream = self._stalled_change(entry), entry.target
            is_behind = change is not None and entry.ts is not None and entry.begins > entry.limit(change)
            if change is not None and is_behind and change - 1 > stream.progress:
                stream.heartbeat(change - 1)
                has_moved = True
        return has_moved

    def _is_beside(self, entry: Entry, of: Entry) -> bool:
        """It is of a relation that a query reads beside the stream of another."""
        relation, stream = entry.target, of.target
        return isinstance(relation, RelationInput) and isinstance(stream, StreamInput) and relation.is_beside(stream)

    def _follows(self, entry: Entry) -> bool:
        """A change of another relation comes first, and cannot come behind what waits here."""
        is_first = entry.ts is None or entry.begins <= self._next_change(entry)
        return not is_first and isinstance(entry.target, RelationInput) and entry.target.closes()

    def _next_change(self, entry: Entry) -> int:
        """The first instant at which another relation that waits changes."""
        others = (e for e in self._entries if e is not entry and isinstance(e.target, RelationInput) and e.has_instants)
        return min((e.begins for e in others), default=MAX_INSTANT)

    # --------------------------------------------------------------------------------------------------- pushing

    def _push(self, entry: Entry, limit: int) -> None:
        """Push the waiting block up to an instant."""
        batch, ts = entry.batch, entry.ts
        n = batch.num_rows
        if ts is not None and isinstance(entry.target, RelationInput):
            # They ascend, or are refused; and a large block may go a few at a time.
            limit = min(limit, self._next_change(entry)) if entry.target.closes() else limit
            n = max(1, int(np.searchsorted(ts, limit, "right")))
        elif ts is not None and limit < MAX_INSTANT:
            beyond = np.flatnonzero(ts > limit)
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
