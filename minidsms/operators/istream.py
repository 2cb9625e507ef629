"""ISTREAM: the stream of the rows that come into a relation.

Invariant: at instant t it carries the positive part of R(t) - R(t-1), as bags.  docs/semantics S1, T3; Arasu, Babu,
Widom 2006.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minidsms.elements import Batch
from minidsms.operators.changes_as_stream import ChangesAsStream


class IStream(ChangesAsStream):
    """The rows inserted at each instant, net, as a stream."""

    name = "IStream"

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        batch = batches[0]
        if batch is None:
            return
        stream = self.stream_of(batch, 1)
        if stream is not None:
            yield stream
