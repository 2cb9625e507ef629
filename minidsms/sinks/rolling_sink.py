"""Answers in a row of files, each of which appears whole: `part-{n}.parquet` with n = 1, 2, ..

Invariants: every element is in exactly one part, in order; a part that has appeared does not change, and no file that
stood there before is written over.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable

from minidsms.answers.results import ResultCodec
from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.elements import Batch, Schema
from minidsms.sinks.sink import Asked, Sink


class RollingSink:
    """Writes parts.

    make: a sink for a part's path.  most_rows: rows of a part; None: as many as come.  most_s: a part that is so old is
    closed when the next elements come.  clock: seconds, for tests.
    """

    def __init__(
        self,
        path: str,
        make: Callable[[str], Sink],
        most_rows: int | None,
        most_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if "{n}" not in os.path.basename(path):
            raise Error(f"{path!r}: parts need a place for their number\nhelp: for example 'part-{{n}}.parquet'")
        self.path = path
        self.rows = 0
        self.asked: Asked = None
        self.bytes = 0
        self.notes: deque[str] = deque(maxlen=100)
        self.make = make
        self.most_rows, self.most_s, self.clock = most_rows, most_s, clock
        self._number = 0
        self._part: Sink | None = None
        self._begun_s = 0.0
        self._schema: Schema | None = None
        self._codec: ResultCodec | None = None

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Begin the first part, so that a place that cannot be written is told now."""
        self._schema, self._codec = schema, codec
        self._begin()

    def _begin(self) -> Sink:
        assert self._schema is not None and self._codec is not None
        self._number += 1
        while os.path.exists(self._name()):
            self._number += 1
        part = self.make(self._name())
        part.open(self._schema, self._codec)
        self.notes.extend(getattr(part, "notes", ()))
        self._part, self._begun_s = part, self.clock()
        return part

    def _name(self) -> str:
        return self.path.replace("{n}", str(self._number))

    def write(self, batch: Batch) -> None:
        """Take the elements; parts that are full are closed."""
        if self._part is not None and self.most_s is not None and self.clock() - self._begun_s >= self.most_s:
            self._end()
        start = 0
        while start < len(batch):
            part = self._part or self._begin()
            room = len(batch) if self.most_rows is None else self.most_rows - part.rows
            stop = min(len(batch), start + room)
            part.write(batch.slice(start, stop))
            self.rows += stop - start
            start = stop
            if self.most_rows is not None and part.rows >= self.most_rows:
                self._end()

    def _end(self) -> None:
        """Close the part; one without rows leaves no file."""
        part, self._part = self._part, None
        if part is None:
            return
        if not part.rows:
            part.discard()
            self._number -= 1
            return
        part.close()
        self.bytes += getattr(part, "bytes", 0)
        self.notes.append(f"{counted(part.rows, 'row')} written to {part.path}")

    def close(self) -> None:
        """Close the last part."""
        self._end()

    def discard(self) -> None:
        """Leave the part that is not finished out; the others stand."""
        part, self._part = self._part, None
        if part is not None:
            part.discard()
