"""The files that a query of a durable connection writes: one, or a row of parts that each appear when they are full.

A part that is full waits under its hidden name until a mark behind it is in the log, and takes its place then. So what
has appeared is never written again, whatever order the rows of an instant come in next time.

Invariant: parts before the mark's are whole, beside their places or there; of those behind it nothing has appeared.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from dataclasses import dataclass

from minidsms.answers.results import ResultCodec
from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.durability.kept_file import AddedFile, ArrowMessages, KeptFile, KeptLines, KeptMessages, Mark, hidden
from minidsms.elements import Batch, Schema
from minidsms.sinks.append_output import AppendOutput
from minidsms.sinks.columnar_sink import ColumnarSink
from minidsms.sinks.destination import Destination
from minidsms.sinks.lines import LineSink
from minidsms.sinks.packed_file import PackedFile
from minidsms.sinks.rolling_sink import RollingSink
from minidsms.sinks.sink import Sink, asked_of
from minidsms.sources.files import is_packed

_NUMBER = "{n}"


def can_keep(sink: Sink) -> bool:
    """Whether a sink writes files that can be gone on with."""
    if isinstance(sink, LineSink):
        return sink.makes_output in (Destination, PackedFile, AppendOutput)
    return isinstance(sink, ColumnarSink | RollingSink)


def first_mark(sink: Sink, until: int) -> Mark:
    """Where a new sink begins. until: answers that have been taken before. Error where it cannot be written."""
    path = os.path.abspath(sink.path)
    if isinstance(sink, LineSink) and sink.makes_output is AppendOutput:
        return Mark(path, until, 0, AddedFile.begins_at(path))
    if isinstance(sink, RollingSink):
        return Mark(path, until, 0, 0, _free_number(path, 1), is_packed=is_packed(path))
    return Mark(path, until, 0, 0, is_packed=is_packed(path))


@dataclass
class _Part:
    number: int
    first: int
    sink: LineSink
    file: KeptFile
    begun_s: float


class KeptParts:
    """A sink that goes on at a mark. sink: what the user has asked for, not open. Error where the mark's part cannot
    be gone on with.
    """

    def __init__(self, sink: Sink, mark: Mark) -> None:
        self._asked = sink
        self._rolling = sink if isinstance(sink, RollingSink) else None
        self._place = mark.path
        self._mark = mark
        self.path = sink.path
        self.rows = mark.rows
        self.asked = asked_of(sink)
        self.notes: deque[str] = deque(maxlen=100)
        self._schema: Schema | None = None
        self._codec: ResultCodec | None = None
        self._full: list[_Part] = []
        self._bytes_of_full = 0
        place = self._place.replace(_NUMBER, str(mark.part))
        if self._rolling is not None and os.path.exists(place) and not os.path.exists(hidden(place)):
            raise Error(f"cannot go on with {place!r}: another query or connection has written it")
        self._part = self._begun(mark.part, mark.first, mark.nbytes)
        if self._rolling is not None:
            try:
                self._tidy()
            except BaseException as error:
                self._part.file.discard()
                if isinstance(error, OSError):
                    raise Error(f"cannot write {self.path!r}: {error.strerror or error}") from None
                raise

    def _tidy(self) -> None:
        """Let the parts before the mark appear, and forget those behind it: nobody else writes any while we hold the
        mark's.
        """
        for number in _hidden_numbers(self._place):
            place = self._place.replace(_NUMBER, str(number))
            if number > self._mark.part:
                with contextlib.suppress(OSError):
                    os.unlink(hidden(place))
            elif number < self._mark.part:
                self._staged(place, os.path.getsize(hidden(place)))[1].publish()

    def _staged(self, place: str, nbytes: int) -> tuple[LineSink, KeptFile]:
        """What writes a part, and where it does."""
        sink = self._asked if self._rolling is None else self._rolling.make(place)
        if isinstance(sink, ColumnarSink):
            return LineSink(place, ArrowMessages), KeptMessages(place, nbytes, sink.format)
        assert isinstance(sink, LineSink)
        if sink.makes_output is AppendOutput:
            return sink, AddedFile(place, nbytes)
        return sink, (KeptLines if self._mark.is_packed else KeptFile)(place, nbytes)

    def _begun(self, number: int, first: int, nbytes: int) -> _Part:
        place = self._place.replace(_NUMBER, str(number)) if self._rolling is not None else self._place
        sink, file = self._staged(place, nbytes)
        sink.go_on(file, self.rows - first, nbytes)
        part = _Part(number, first, sink, file, 0.0 if self._rolling is None else self._rolling.clock())
        if self._codec is not None:
            self._open(part)
        return part

    def _open(self, part: _Part) -> None:
        assert self._schema is not None and self._codec is not None
        part.sink.open(self._schema, self._codec)

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Get ready to write."""
        self._schema, self._codec = schema, codec
        self._open(self._part)

    @property
    def bytes(self) -> int:
        """Bytes written."""
        return self._bytes_of_full + self._part.sink.bytes

    @property
    def wants_mark(self) -> bool:
        """Parts wait for a mark to appear."""
        return bool(self._full)

    @property
    def has_ended(self) -> bool:
        """The last part has taken its place, or was removed."""
        return self._part.file.has_ended

    def write(self, batch: Batch) -> None:
        """Take the elements; parts that are full give way to the next."""
        start = 0
        while start < len(batch):
            if self._is_old():
                self._roll()
            part, most = self._part, None if self._rolling is None else self._rolling.most_rows
            stop = len(batch) if most is None else min(len(batch), start + most - part.sink.rows)
            part.sink.write(batch.slice(start, stop))
            self.rows += stop - start
            start = stop
            if part.sink.rows == most:
                self._roll()

    def _is_old(self) -> bool:
        rolling, part = self._rolling, self._part
        if rolling is None or rolling.most_s is None or not part.sink.rows:
            return False
        return rolling.clock() - part.begun_s >= rolling.most_s

    def _roll(self) -> None:
        part = self._part
        self._full.append(part)
        self._bytes_of_full += part.sink.bytes
        self._part = self._begun(_free_number(self._place, part.number + 1), self.rows, 0)

    def mark(self, until: int) -> Mark:
        """What is to be logged of what has been written."""
        part = self._part
        packs = self._mark.is_packed
        return Mark(self._place, until, self.rows, part.sink.bytes, part.number, part.first, is_packed=packs)

    def sync(self) -> None:
        """Return when what was written is on disk. Raises OSError."""
        for part in (*self._full, self._part):
            part.file.sync()

    def publish_marked(self) -> None:
        """A mark is in the log, on disk: let the parts before it appear."""
        while self._full:
            self._publish(self._full.pop(0))

    def _publish(self, part: _Part) -> None:
        if self._rolling is not None and not part.sink.rows:
            part.file.remove()
            return
        part.sink.close()
        if self._rolling is not None:
            self.notes.append(f"{counted(part.sink.rows, 'row')} written to {part.sink.path}")

    def close(self) -> None:
        """Let what there is appear; a part without rows leaves no file."""
        self.publish_marked()
        self._publish(self._part)

    def leave(self) -> None:
        """Close the files as they are, to be gone on with."""
        for part in (*self._full, self._part):
            part.file.leave()

    def discard(self) -> None:
        """Leave nothing of what is new; what has been marked is gone on with."""
        for part in (*self._full, self._part):
            part.file.discard()


def _free_number(place: str, number: int) -> int:
    """The first from this one on of which there is no part, nor one under way."""
    while any(map(os.path.exists, (path := place.replace(_NUMBER, str(number)), hidden(path)))):
        number += 1
    return number


def _hidden_numbers(place: str) -> list[int]:
    """Those of the parts beside their places, in order."""
    folder, name = os.path.split(hidden(place))
    before, *behind = map(re.escape, name.split(_NUMBER))
    form = re.compile(before + r"(\d+)" + r"\1".join(behind))
    found = map(form.fullmatch, os.listdir(folder))
    return sorted(int(match[1]) for match in found if match is not None)
