"""ISTREAM: the stream of the rows that come into a relation.

Invariant: at instant t it carries the positive part of R(t) - R(t-1), as bags.  docs/semantics S1, T3; Arasu, Babu,
Widom 2006.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.elements import Batch
from minidsms.operators.changes_as_stream import ChangesAsStream


class IStream(ChangesAsStream):
    """The rows inserted at each instant, net, as a stream."""

    name = "IStream"

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = batches[0]
        stream = None if batch is None else self.stream_of(batch, 1)
        return () if stream is None else (stream,)
