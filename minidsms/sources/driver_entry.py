"""One source under the driver: its input, the block that waits, and what the clock on the wall asks of it.

Invariants: a stream's time goes on with the clock only by heartbeats that its source's options asked for. Where a
folder keeps what comes, the entry of the log that has the rows of a push says how far the source has been read by it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.cql.errors import DataError, Error
from minidsms.cql.masking import masked
from minidsms.cql.times import tick_words
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array, Type
from minidsms.inputs.arrays import python_value
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.process.interrupts import breakable
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.plain_rows import PlainRows
from minidsms.sources.source import TS_COLUMN, GoesOn, Heartbeat, ReadUntil, Source

_EPOCHS = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 1000, "nanoseconds": 1}
_FROM_S, _TO_S = 631_152_000, 4_102_444_800
"""1990 and 2100, in seconds."""
_LEAST_ROWS = 64
"""Fewer rows than these are not pushed apart to make them fit in memory."""


class Pacer:
    """Event time against the clock: all paced sources of a driver begin together, at the first instant of the first."""

    def __init__(self, tick_ns: int) -> None:
        self.tick_ns = tick_ns
        self._start_s = 0.0
        self._start_ts: int | None = None

    def instant(self, first: int, speed: float | None) -> int:
        """The instant that is due now. first: where to begin, if nothing has begun."""
        if self._start_ts is None:
            self._start_ts, self._start_s = first, time.monotonic()
        ticks = (time.monotonic() - self._start_s) * (speed or 0.0) * 1e9 / self.tick_ns
        return min(self._start_ts + int(min(ticks, 2.0**62)), MAX_INSTANT - 1)

    def due_s(self, ts: int, speed: float | None) -> float:
        """Seconds until an instant is due."""
        return (ts - self.instant(ts, speed)) * self.tick_ns / 1e9 / (speed or 1.0)


def _shown(row: Any) -> tuple[Any, ...]:
    """The values of a batch of one row; a time that `datetime` does not reach as a text."""
    values = [python_value(column[0]) for column in row.columns]
    return tuple(str(value) if isinstance(value, np.datetime64) else value for value in values)


def _failing(error: Error) -> Iterator[Any]:
    """The batches of a source that has failed: it has not ended, however often it is asked."""

    def fail() -> None:
        raise error

    return iter(fail, None)


class Entry:
    """A source and its input. batch, ts: the rows that wait and their instants, ts None where they say none.

    finish: what becomes of the input when the source has ended.  warn: told of what may not have been meant.
    """

    def __init__(
        self,
        source: Source | LiveLines,
        target: StreamInput | RelationInput,
        finish: Callable[[Entry], None],
        warn: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self._warn = warn
        self._has_taken = False
        self.source = source
        self.target = target
        self._live = source if isinstance(source, LiveLines) else None
        self.bounded = self._live is None
        self._batches: Iterator[Any] = iter(()) if isinstance(source, LiveLines) else source.read()
        self.batch: Any = None
        self.ts: Int64Array | None = None
        self.first_line: int | None = None
        self.ended = False
        self.is_stalled = False
        self.most_rows: int | None = None
        self._rejected = 0
        self._finish = finish
        self._heard_s: float | None = None
        self._says_when = False
        self._goes_on = isinstance(source, GoesOn)
        self._kept = None if target.journal is None else target.journal.of(source)
        self._until = ReadUntil() if self._kept is None else self._kept.until
        self.ended = self._kept is not None and self._kept.has_ended
        # What the process before has pushed, or could not read, comes again where its source can be asked for it.
        comes_again = self.bounded or self._until.at is not None
        self._rows_known, self._bad_known = (self._until.rows, self._until.bad) if comes_again else (0, 0)
        self._until = replace(self._until, rows=0, bad=0)

    @property
    def is_paused(self) -> bool:
        """The source is not to be read for now."""
        return isinstance(self.target, StreamInput) and self.target.is_paused

    @property
    def has_instants(self) -> bool:
        """The waiting block says when."""
        return self.ts is not None

    @property
    def begins(self) -> int:
        """The first instant of the waiting block."""
        assert self.ts is not None
        return int(self.ts[0])

    @property
    def is_paced(self) -> bool:
        """Read no faster than its speed allows."""
        return self.source.pace.speed is not None

    def limit(self, until: int | None) -> int:
        """Once a row beyond this was seen, no row with ts <= until can come in time."""
        if until is None:
            return MAX_INSTANT
        slack = self.target.definition.slack if isinstance(self.target, StreamInput) else 0
        return min(until + slack, MAX_INSTANT)

    def may_bring(self, until: int | None) -> bool:
        """More may come up to `until`, though nothing is to be pushed now."""
        if self.ended or self.is_paused:
            return False
        if self.batch is not None:
            # Stalled, or not due yet; without instants it would have been pushed.
            return self.ts is None or self.begins <= self.limit(until)
        if until is not None and isinstance(self.target, StreamInput) and self.target.progress >= until:
            return False
        return not self.bounded

    # --------------------------------------------------------------------------------------------------- reading

    def fill(self) -> bool:
        """Make a block wait, or end the input. True for a heartbeat: it is to be answered before anything follows."""
        while self.batch is None and not self.ended and not self.is_paused:
            if self._live is not None:
                batch = self._live.poll()
                is_over = batch is None and self._live.has_ended
            else:
                try:
                    with breakable:
                        batch = next(self._batches, None)
                except Error as error:
                    self._batches = _failing(error)
                    raise
                except OSError as error:
                    refused = DataError(f"{self.source.path!r} cannot be read: {error.strerror or error}")
                    self._batches = _failing(refused)
                    raise refused from None
                except BaseException:  # else what has been cut short would be taken for the end
                    reason = f"{self.source.path!r}: reading was interrupted, and what follows is not known"
                    self._batches = _failing(DataError(reason))
                    raise
                is_over = batch is None
            if getattr(self.source, "begins_anew", False):  # of sources that lines are waited for
                self._rows_known = self._bad_known = 0
            self.first_line = self.source.first_line
            self._look_where(batch is not None)
            self._tell_rejected()
            if is_over:
                self._check_readable()
                self.ended = True
                self._finish(self)
                return False
            if batch is None:
                return False
            self._heard_s = None
            if isinstance(batch, Heartbeat):
                if isinstance(self.target, StreamInput):
                    self.target.heartbeat(batch.ts)
                return True
            self._take(batch)
            if self._rows_known and self.batch is not None:
                known = min(self._rows_known, self.batch.num_rows)
                self._rows_known -= known
                self.drop(known)
        return False

    def _look_where(self, has_come: bool) -> None:
        """Note where the block begins that has come, if it is another one."""
        if self._kept is not None and self._goes_on and has_come:
            at = self.source.position  # type: ignore[union-attr]
            if at != self._until.at:
                self._until = ReadUntil(at, rejected=self._until.rejected)

    @contextlib.contextmanager
    def bringing(self, n: int) -> Iterator[None]:
        """What the context pushes are the first n of the rows that wait."""
        if self._kept is None:
            yield
            return
        assert self.target.journal is not None
        with self.target.journal.coming(self._kept, replace(self._until, rows=self._until.rows + n)):
            yield

    def end_input(self) -> None:
        """The source has ended, and its input with it."""
        if self.target.journal is not None:
            self.target.journal.end(self._kept, self._until)
        self.target.finish()

    def _check_readable(self) -> None:
        """A file of which no row can be read is another one than was declared."""
        if not self.bounded or self._has_taken or not self._rejected or self._kept is not None:
            return
        text, reason = self.source.rejected[0]
        hint = "WITH (delimiter = ';', header = false, null = '-', decimal_comma = true) say how a CSV file is written"
        if text.lstrip()[:1] in ("{", "["):
            hint = 'each line is one JSON object, as {"k": "a", "v": 1}, with a value of its type for every column'
            from minidsms.sources.json_rows import ARRAY_HELP, line_of_array

            if line_of_array(text.encode()) is not None:
                hint = ARRAY_HELP
            if reason.endswith((" (dict) cannot be read as TEXT", " (list) cannot be read as TEXT")):
                hint = "declare what is nested: STRUCT(a INTEGER, b TEXT), MAP(TEXT, TEXT), TEXT[]"
        elif reason.endswith("is no UTF-8"):
            from minidsms.sources.csv_rows import conversion

            hint = conversion(text.encode())
        elif re.search(r"'[+-]?[0-9]*[.][0-9]*' cannot be read as INTEGER", reason):
            hint = "a number with a point is a FLOAT, or DECIMAL(p, s): declare the column so"
        elif "cannot be read as TIMESTAMP" in reason:
            hint = (
                "times are ISO; WITH (time_format = '%d.%m.%Y %H:%M'), or (epoch = 'seconds') for numbers, is of all "
                "times of a file: declare others TEXT, and write CAST(t AS TIMESTAMP) for ISO ones"
            )
        error = DataError(f"no row can be read, of {self._rejected}: {reason}\nhelp: {hint}")
        self._batches = _failing(error)
        raise error

    def _check_epoch(self, column: Any) -> None:
        """Numbers that are no ticks make a time long ago, or far ahead; other units would not."""
        target = self.target
        by = target.definition.timestamp_by if isinstance(target, StreamInput) else None
        if by is None or target.schema[by].type is not Type.TIMESTAMP or not pa.types.is_integer(column.type):
            return
        value, tick_ns = int(column[0].as_py()), target.converter.tick_ns
        meant = next((u for u, ns in _EPOCHS.items() if _FROM_S <= value * ns / 1e9 < _TO_S), None)
        if meant is not None and not _FROM_S <= value * tick_ns / 1e9 < _TO_S:
            name = target.schema[by].name
            self._warn(
                f"{masked(self.source.path)}: {name} begins with {value}, which is no time of our days in ticks of "
                f"{tick_words(tick_ns)}; WITH (epoch = '{meant}') reads it as {meant} since 1970"
            )

    def _take(self, batch: Any) -> None:
        """Set the waiting block and its instants; rows without a timestamp are malformed."""
        if isinstance(batch, PlainRows):
            if self._has_taken and isinstance(self.target, StreamInput) and self._take_plain(batch, self.target):
                return
            batch = batch.arrow()
        column = self._ts_column(batch)
        if not self._has_taken and column is not None and column.null_count < len(column):
            self._check_epoch(column.drop_null())
        self._has_taken = True
        if column is not None and column.null_count:
            missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            for row in missing.tolist():
                self._reject(_shown(batch.slice(row, 1)), "the timestamp is NULL", True)
            kept = column.is_valid()
            batch, column = batch.filter(kept), column.filter(kept)
        if batch.num_rows:
            try:
                ts = None if column is None else self.target.converter.instants(column, batch.num_rows)
            except DataError as error:
                if self.bounded:
                    raise self.placed(error) from None
                batch = self._without_bad_instants(batch, column)
                ts = self.target.converter.instants(self._ts_column(batch), batch.num_rows)
            if batch.num_rows:
                self.batch, self.ts = batch, ts
                self._says_when = ts is not None

    def _take_plain(self, rows: PlainRows, target: StreamInput) -> bool:
        """`_take` of a few rows; False, and nothing has changed, where an instant is missing or cannot be."""
        k, by = len(target.schema), target.definition.timestamp_by
        by = k + rows.names[k:].index(TS_COLUMN) if TS_COLUMN in rows.names[k:] else by
        if by is None:
            self.batch, self.ts, self._says_when = rows, None, False
            return True
        instants = rows.columns[by]
        if None in instants:
            return False
        try:
            self.ts = target.converter.instants(instants, len(instants))
        except DataError:
            return False
        self.batch, self._says_when = rows, True
        return True

    def _without_bad_instants(self, batch: Any, column: Any) -> Any:
        """The rows of a live source whose timestamps can be; the others are malformed."""
        kept = np.ones(batch.num_rows, np.bool_)
        for row in range(batch.num_rows):
            try:
                self.target.converter.instants(column.slice(row, 1), 1)
            except DataError as error:
                kept[row] = False
                self.refuse(batch.slice(row, 1), error, True)
        return batch.filter(pa.array(kept))

    def refuse(self, row: Any, error: DataError, is_bad: bool = False) -> None:
        """Count and keep a row that a live source has brought and the input does not take. is_bad: for what it is,
        whatever came before it.
        """
        self._reject(_shown(row), str(error).split("\n")[0], is_bad)

    def _reject(self, row: tuple[Any, ...], reason: str, is_bad: bool) -> None:
        """Count and keep a row, unless the process before has."""
        if is_bad and self._has_known_bad(1, 1):
            return
        self._until = replace(self._until, rejected=self._until.rejected + 1)
        self.target.reject(row, f"{masked(self.source.path)}: {reason}")

    def _has_known_bad(self, n: int, of_block: int) -> int:
        """n rows cannot be read, some of them of the block; of how many of the n the process before has told."""
        known = min(n, self._bad_known)
        self._bad_known -= known
        self._until = replace(self._until, bad=self._until.bad + of_block)
        return known

    def _ts_column(self, batch: Any) -> Any:
        names = batch.schema.names
        if TS_COLUMN in names[len(self.target.schema) :]:
            return batch.column(len(names) - 1 - names[::-1].index(TS_COLUMN))
        if isinstance(self.target, StreamInput):
            by = self.target.definition.timestamp_by
            if by is not None:
                return batch.column(by)
            if self.bounded:
                raise DataError(
                    f"{self.source.path}: nothing says when the rows of {self.target.definition.name} come\n"
                    "help: declare the stream with TIMESTAMP BY a column"
                )
        return None

    def _tell_rejected(self) -> None:
        """Pass the rows the source could not read on to the input's account."""
        new = self.source.rejected.count - self._rejected
        self._rejected += new
        if new:
            before = self.source.rejected_before if isinstance(self.source, GoesOn) else 0
            new -= self._has_known_bad(new, min(new, self.source.rejected.count - before))
            self._until = replace(self._until, rejected=self._until.rejected + new)
        if new:
            kept = list(self.source.rejected)[-new:]
            self.target.counters.rejected += new - len(kept)
            self.target.rejected.skip(new - len(kept))
            for row, reason in kept:
                self.target.reject(row, reason)

    def drop(self, n: int) -> None:
        """The first n waiting rows have been pushed."""
        self._until = replace(self._until, rows=self._until.rows + n)
        rest = self.batch.num_rows - n
        self.batch = self.batch.slice(n) if rest else None
        self.ts = self.ts[n:] if rest and self.ts is not None else None
        if self.first_line is not None and rest:
            self.first_line += n

    def push_less(self) -> bool:
        """What waits is too much at once: a part of it is to be pushed; False when it is small already."""
        rows = self.batch.num_rows if self.most_rows is None else self.most_rows
        self.most_rows = rows // 4
        return bool(self.most_rows >= _LEAST_ROWS)

    def placed(self, error: DataError) -> DataError:
        """The error with the file, and the line: exact where no row before it in the block spans lines or was
        malformed."""
        line, told = "", str(error)
        if error.row is not None and self.first_line is not None:
            line = f", about line {self.first_line + error.row}"
            told = re.sub(f": row {error.row}[:,] ", ": ", told, count=1)  # that of the block, which nobody sees
        placed = type(error)(f"{self.source.path}{line}: {told}")
        placed.row = error.row
        return placed

    # ------------------------------------------------------------------------------------------------- the clock

    def go_on_with_clock(self, pacer: Pacer, entries: Sequence[Entry]) -> None:
        """Nothing is to be pushed now: a heartbeat, where the source's pace asks for one."""
        if self.is_stalled:
            return
        if isinstance(self.target, RelationInput):
            if not self.bounded and self.batch is None and not self._says_when:
                self.target.keep_pace()
            return
        if self.is_paced and self.ts is not None:
            # The next row has been seen, so that no earlier one can come but within the slack.
            due = pacer.instant(self.begins, self.source.pace.speed)
            self.target.heartbeat(max(MIN_INSTANT + 2, min(due, self.begins - self.target.definition.slack - 1)))
        elif self.batch is None and not self.bounded:
            self._go_on_idle(self.target, pacer, entries)

    def _go_on_idle(self, target: StreamInput, pacer: Pacer, entries: Sequence[Entry]) -> None:
        """Nothing has come for a while."""
        if target.definition.timestamp_by is None and not self._says_when:
            target.keep_pace()
            return
        idle_after_s = self.source.pace.idle_after_s
        if idle_after_s is None:
            return
        now_s = time.monotonic()
        if self._heard_s is None:
            self._heard_s = now_s
        over_s = now_s - self._heard_s - idle_after_s
        if over_s < 0:
            return
        if target.greatest_ts is not None:
            target.heartbeat(target.greatest_ts + int(over_s * 1e9 / pacer.tick_ns))
            return
        # It has never said anything: it follows the streams that have.
        others = [e.target.progress for e in entries if isinstance(e.target, StreamInput) and e.target is not target]
        told = [p for p in others if MIN_INSTANT < p < MAX_INSTANT]
        if told:
            target.heartbeat(min(told))
