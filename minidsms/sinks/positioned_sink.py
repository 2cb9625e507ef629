"""Answers with their numbers: a column `_position` before the query's own, from 0, by which a receiver tells those it
is told again after a crash.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Column, Field, Schema, Type
from minidsms.sinks.sink import Asked

if TYPE_CHECKING:
    from minidsms.sinks.function_sink import FunctionSink
    from minidsms.sinks.lines import LineSink

_POSITION = Field("_position", Type.INTEGER)


class PositionedSink:
    """Hands answers to another sink, each with its number. position: of the next answer; set before `open`."""

    def __init__(self, sink: LineSink | FunctionSink) -> None:
        self._sink = sink
        self.path, self.rows, self.bytes = sink.path, 0, 0
        self.asked: Asked = None
        self.notes: deque[str] = deque()
        self.position = 0

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Open the other sink."""
        schema = Schema((_POSITION, *schema))
        self._sink.open(schema, codec.of(schema))
        self.path, self.notes = self._sink.path, getattr(self._sink, "notes", self.notes)

    def write(self, batch: Batch) -> None:
        """Take the next elements."""
        numbers = np.arange(self.position, self.position + len(batch), dtype=np.int64)
        self._sink.write(Batch(batch.ts, batch.sign, [Column(numbers), *batch.columns]))
        self.position += len(batch)
        self.rows, self.bytes = self._sink.rows, self._sink.bytes

    def close(self) -> None:
        """Close the other sink."""
        self._sink.close()

    def discard(self) -> None:
        """Give it up."""
        self._sink.discard()
