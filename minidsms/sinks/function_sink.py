"""Answers handed to a function, a table at a time: columns `_ts`, `_sign`, then the query's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema


class FunctionSink:
    """Calls fn(pyarrow.Table) for each batch, while the engine is at rest. fn must not use the connection."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self.path = f"function {getattr(fn, '__name__', type(fn).__name__)} at {id(fn):x}"
        self.rows = 0
        self.bytes = 0
        self._fn = fn
        self._codec: ResultCodec | None = None

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Note the columns."""
        self._codec = codec

    def write(self, batch: Batch) -> None:
        """Hand the elements over."""
        assert self._codec is not None
        if len(batch):
            table = self._codec.table((batch,))
            self._fn(table)
            self.rows += len(batch)
            self.bytes += table.nbytes

    def close(self) -> None:
        """Nothing is open."""

    def discard(self) -> None:
        """Nothing is open."""
