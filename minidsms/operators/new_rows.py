"""ISTREAM of rows that last an instant: those that were not there an instant before.

So it is given what enters alone, as a stream, and nothing puts out or nets what leaves
(`plan.rules.stream_of_instants`).

Invariant: at instant t it carries the positive part of R(t) - R(t-1), as bags.  docs/semantics S1; Arasu, Babu, Widom
2006.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, Int64Array, row_words
from minidsms.kernels.new_rows import Compared, tell_new_rows
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.instant_rows import InstantRows


class NewRows(Resuming):
    """input: the rows as they enter, a stream."""

    name = "IStream"
    acts_on_time = False
    knows_rows = False

    def __init__(self, input_: Queue) -> None:
        super().__init__((input_,), input_.schema)
        self._last = InstantRows(input_.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """All rows, but for equal ones of the tick before."""
        batch = self.uncounted(batches[0])
        if batch is None:
            return ()
        ts, last = batch.ts, self._last
        follows = len(last) > 0 and last.instant + 1 == ts.item(0)
        n, at = len(ts), ts.item(-1)
        is_last = at < until  # nothing comes at the tick behind it any more that would have to know it
        if not follows and not _has_neighbours(ts):
            if is_last:
                last.clear()
            else:
                begin = int(ts.searchsorted(at))
                last.hold(at, row_words(batch.slice(begin, n).columns))
            return (batch,)
        words, held = row_words(batch.columns), len(last) if follows else 0
        if follows:
            ts, words = np.concatenate((np.full(held, last.instant), ts)), np.concatenate((last.words, words))
        is_new = np.empty(held + n, np.bool_)
        tags, links = np.empty((2, held + n), np.int64)
        tell_new_rows(ts, Compared(words, tags, links, np.empty(2 << (held + n).bit_length(), np.int64)), is_new)
        if is_last:
            last.clear()
        else:
            last.hold(at, words[int(ts.searchsorted(at)) :].copy())
        found = is_new[held:]
        kept = int(np.count_nonzero(found))
        return () if kept == 0 else (batch if kept == n else batch.take(found.nonzero()[0]),)

    def describe(self) -> Description:
        """What is held."""
        return Description(self.name, "of rows of one instant", {"rows": len(self._last), "bytes": self._last.nbytes})

    def synopses(self) -> tuple[InstantRows, ...]:
        """The rows of the last instant."""
        return (self._last,)


def _has_neighbours(ts: Int64Array) -> bool:
    """One instant comes a tick after another."""
    n = len(ts)
    return n > 1 and ts.item(0) != ts.item(-1) and bool((ts[1:] - ts[:-1] == 1).any())
