"""What a sink is: something that takes the batches of a query's answer, in order, until it is closed.

Invariant: the bytes written depend on the elements only, never on how they were cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Schema

Asked = tuple[str, Mapping[str, Any]] | None
"""(format, options) of a place that INTO names; None of others."""


class Sink(Protocol):
    """A query's answers on their way out.

    rows: how many elements were written.  path: where to, as the user named it.
    """

    path: str
    rows: int

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Get ready for elements of the schema. Raises Error where the place cannot be written."""

    def write(self, batch: Batch) -> None:
        """Take the next elements."""

    def close(self) -> None:
        """Publish what was written. Closing twice is no error."""

    def discard(self) -> None:
        """Give up: the place is left as it was before `open`, where it is a file."""


def asked_of(sink: Sink | None) -> Asked:
    """In which way a sink was asked to write."""
    asked: Asked = getattr(sink, "asked", None)
    return asked
