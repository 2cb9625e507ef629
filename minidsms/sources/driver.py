"""Drives bounded sources into their inputs, in the order of their timestamps as far as possible.

One block of each source waits here. The stream whose waiting block begins earliest goes next, so that little waits in
the inputs. Relations run ahead of the streams: their changes up to the last instant of a block are made before the
block is pushed, since a change at a closed instant is refused (docs/semantics T4).

A relation's file without a ts column is inserted whole, before anything else, at the first instant: the least ts in
the first blocks of the other sources, 0 where they show none; never before what has been closed or changed already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidsms.cql.errors import DataError
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.sources.source import SIGN_COLUMN, TS_COLUMN, Source


@dataclass
class _Entry:
    """A source, its input, and the block that waits."""

    source: Source
    target: StreamInput | RelationInput
    batches: Iterator[Any]
    batch: Any = None
    ts: Int64Array | None = None
    first_line: int | None = None
    rejected: int = field(default=0)
    ended: bool = False

    @property
    def is_paused(self) -> bool:
        """The source is not to be read for now."""
        return isinstance(self.target, StreamInput) and self.target.is_paused

    @property
    def has_instants(self) -> bool:
        """The waiting block says when."""
        return self.ts is not None


class SourceDriver:
    """Reads sources a block at a time.

    entries: (source, input) pairs.  pushed: called after each push.
    """

    def __init__(
        self,
        entries: Sequence[tuple[Source, StreamInput | RelationInput]],
        pushed: Callable[[], None] | None = None,
    ) -> None:
        self._entries = [_Entry(source, target, source.read()) for source, target in entries]
        self._pushed = pushed

    def add(self, source: Source, target: StreamInput | RelationInput) -> None:
        """One more source."""
        self._entries.append(_Entry(source, target, source.read()))

    def remove(self, target: StreamInput | RelationInput) -> None:
        """Forget the sources of an input that has been dropped."""
        self._entries = [e for e in self._entries if e.target is not target]

    @property
    def fraction(self) -> float:
        """How much of the files has been read, 0 to 1."""
        total = sum(e.source.bytes_total for e in self._entries)
        read = sum(
            e.source.bytes_total if e.ended else min(e.source.bytes_read, e.source.bytes_total) for e in self._entries
        )
        return read / total if total else 1.0

    def names(self) -> list[str]:
        """The streams and relations that are read into."""
        return list(dict.fromkeys(e.target.definition.name for e in self._entries))

    @property
    def has_ended(self) -> bool:
        """Every source has been read to its end."""
        return all(e.ended for e in self._entries)

    def next_instant(self) -> int | None:
        """The least instant that the waiting blocks begin at, or None where they show none."""
        for entry in self._entries:
            self._fill(entry)
        return min((self._begins(e) for e in self._entries if e.has_instants), default=None)

    def run(self, until: int | None = None) -> None:
        """Read everything, or up to an instant."""
        while self.step(until):
            pass

    def step(self, until: int | None = None) -> bool:
        """Push one more block; False when the sources have ended, or tell nothing more up to `until`.

        Errors of the inputs name the file, and the line where it is known; the block that was refused stays.
        """
        for entry in self._entries:
            if not entry.is_paused:
                self._fill(entry)
        chosen = self._next(until)
        if chosen is None:
            if until is not None:
                for each in self._entries:
                    if not each.ended and isinstance(each.target, StreamInput) and not each.is_paused:
                        each.target.advance(until)
            return False
        self._push(chosen, until)
        if self._pushed is not None:
            self._pushed()
        return True

    # -------------------------------------------------------------------------------------------------- choosing

    def _next(self, until: int | None) -> _Entry | None:
        """Whose block goes next, or None."""
        waiting = [e for e in self._entries if e.batch is not None and not e.is_paused]
        whole = [e for e in waiting if not e.has_instants]
        if whole:
            return whole[0]
        streams = [e for e in waiting if isinstance(e.target, StreamInput) and self._begins(e) <= self._limit(e, until)]
        relations = [e for e in waiting if isinstance(e.target, RelationInput)]
        if streams:
            stream = min(streams, key=self._begins)
            assert stream.ts is not None
            last = int(stream.ts.max())
            ahead = [e for e in relations if self._begins(e) <= last]
            return min(ahead, key=self._begins) if ahead else stream
        due = [e for e in relations if until is None or self._begins(e) <= until]
        return min(due, key=self._begins) if due else None

    @staticmethod
    def _begins(entry: _Entry) -> int:
        assert entry.ts is not None
        return int(entry.ts[0])

    @staticmethod
    def _limit(entry: _Entry, until: int | None) -> int:
        """Once a row beyond this was seen, no row with ts <= until can come in time."""
        if until is None:
            return MAX_INSTANT
        slack = entry.target.definition.slack if isinstance(entry.target, StreamInput) else 0
        return min(until + slack, MAX_INSTANT)

    # --------------------------------------------------------------------------------------------------- reading

    def _fill(self, entry: _Entry) -> None:
        """Make a block wait, or end the input."""
        while entry.batch is None and not entry.ended:
            batch = next(entry.batches, None)
            entry.first_line = entry.source.first_line
            self._tell_rejected(entry)
            if batch is None:
                entry.ended = True
                self._finish(entry.target)
                return
            self._take(entry, batch)

    def _finish(self, target: StreamInput | RelationInput) -> None:
        """A source has been read to its end, and nothing else feeds its input."""
        target.finish()

    def _take(self, entry: _Entry, batch: Any) -> None:
        """Set the waiting block and its instants; rows without a timestamp are malformed."""
        column = self._ts_column(entry, batch)
        if column is not None and column.null_count:
            missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            for row in missing.tolist():
                shown = tuple(batch.slice(row, 1).to_pylist()[0].values())
                entry.target.reject(shown, f"{entry.source.path}: the timestamp is NULL")
            kept = column.is_valid()
            batch, column = batch.filter(kept), column.filter(kept)
        if batch.num_rows:
            try:
                ts = None if column is None else entry.target.converter.instants(column, batch.num_rows)
            except DataError as error:
                raise self._placed(entry, error) from None
            entry.batch, entry.ts = batch, ts

    @staticmethod
    def _ts_column(entry: _Entry, batch: Any) -> Any:
        names = batch.schema.names
        if TS_COLUMN in names[len(entry.target.schema) :]:
            return batch.column(len(names) - 1 - names[::-1].index(TS_COLUMN))
        if isinstance(entry.target, StreamInput):
            by = entry.target.definition.timestamp_by
            if by is None:
                raise DataError(
                    f"{entry.source.path}: nothing says when the rows of {entry.target.definition.name} come\n"
                    "help: declare the stream with TIMESTAMP BY a column"
                )
            return batch.column(by)
        return None

    @staticmethod
    def _tell_rejected(entry: _Entry) -> None:
        """Pass the rows the source could not read on to the input's account."""
        new = entry.source.rejected.count - entry.rejected
        if new:
            kept = list(entry.source.rejected)[-new:]
            entry.target.counters.rejected += new - len(kept)
            entry.target.rejected.skip(new - len(kept))
            for row, reason in kept:
                entry.target.reject(row, reason)
            entry.rejected = entry.source.rejected.count

    # --------------------------------------------------------------------------------------------------- pushing

    def _push(self, entry: _Entry, until: int | None) -> None:
        """Push the waiting block, up to `until`."""
        batch, ts = entry.batch, entry.ts
        n = batch.num_rows
        if ts is not None and until is not None:
            beyond = np.flatnonzero(ts > self._limit(entry, until))
            n = int(beyond[0]) if len(beyond) else n
        k = len(entry.target.schema)
        # Positions, not names: a column of the schema may be called like one of ours.
        data = dict(zip(entry.target.schema.names, (c.slice(0, n) for c in batch.columns[:k])))
        try:
            if isinstance(entry.target, StreamInput):
                assert ts is not None
                entry.target.push(data, ts[:n])
            else:
                sign: Any = 1
                if SIGN_COLUMN in batch.schema.names[k:]:
                    sign = batch.column(batch.num_columns - 1).slice(0, n)
                entry.target.push(data, self._first_instant(entry.target) if ts is None else ts[:n], sign)
        except DataError as error:
            raise self._placed(entry, error) from None
        rest = batch.num_rows - n
        entry.batch = batch.slice(n) if rest else None
        entry.ts = ts[n:] if rest and ts is not None else None
        if entry.first_line is not None and rest:
            entry.first_line += n

    def _first_instant(self, target: RelationInput) -> int:
        """The instant at which a file without instants is inserted."""
        first = min((int(e.ts.min()) for e in self._entries if e.ts is not None), default=0)
        last = MIN_INSTANT if target.last_ts is None else target.last_ts
        return max(first, last, target.closed() + 1)

    @staticmethod
    def _placed(entry: _Entry, error: DataError) -> DataError:
        """The error with the file, and the line: exact where no row before it in the block spans lines or was
        malformed."""
        line = ""
        if error.row is not None and entry.first_line is not None:
            line = f", about line {entry.first_line + error.row}"
        placed = type(error)(f"{entry.source.path}{line}: {error}")
        placed.row = error.row
        return placed
