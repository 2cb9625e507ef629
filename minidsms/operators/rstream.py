"""RSTREAM: all of a relation, again and again.

Invariant: at every event instant up to `progress` all rows of R at that instant were put out once, as a stream.
docs/semantics S2, T3; Arasu, Babu, Widom 2006, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Batch, Int64Array, columns_of_words
from minidsms.operators.netting import Ranks, ordered_by_value
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.bag import Bag
from minidsms.synopses.instants import distinct, union
from minidsms.synopses.stub import NO_INSTANTS

_TICKS_AT_ONCE = 1 << 12


class RStream(Resuming):
    """input: the relation.  events: elements without columns at the event instants (of windows and relations).

    ticks: speak at every closed tick instead; then no events are needed.  order_by_value: order the rows of an
    instant by value, TEXT by `ranks` (where the stream feeds a window).
    """

    name = "RStream"
    knows_rows = False

    def __init__(
        self,
        input_: Queue,
        events: Sequence[Queue] = (),
        ticks: bool = False,
        order_by_value: bool = False,
        ranks: Ranks | None = None,
    ) -> None:
        super().__init__([input_, *events], input_.schema)
        self._ticks = ticks
        self._order_by_value = order_by_value
        self._ranks = ranks
        self._bag = Bag(input_.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        batches = self.all_uncounted(batches)
        if self._ticks:
            yield from self._at_every_tick(batches[0], until)
            return
        events = NO_INSTANTS
        for batch in batches[1:]:
            if batch is not None:
                events = union(events, batch.ts)
        yield from self._show(batches[0], distinct(events))

    def _at_every_tick(self, changes: Batch | None, until: int) -> Iterator[Batch]:
        """From one change to the next, a bounded run of ticks at a time; an empty relation says nothing.

        When the input has ended, time goes no further than its last change.
        """
        if until == MAX_INSTANT:
            until = self.progress if changes is None else int(changes.ts[-1])
        tick = max(self.progress, self.counted_until) + 1
        done, n = 0, 0 if changes is None else len(changes)
        while tick <= until:
            if not len(self._bag):
                if done == n:
                    return
                assert changes is not None
                tick = max(tick, int(changes.ts[done]))
            last = min(tick + _TICKS_AT_ONCE - 1, until)
            part = None
            if changes is not None and done < n:
                stop = int(np.searchsorted(changes.ts, last, side="right"))
                part = changes.slice(done, stop) if stop > done else None
                done = stop
            yield from self._show(part, np.arange(tick, last + 1, dtype=np.int64))
            tick = last + 1

    def _show(self, changes: Batch | None, events: Int64Array) -> Iterator[Batch]:
        for ts, words in self._bag.show(changes, events, self._order_by_value):
            batch = Batch(ts, None, columns_of_words(words, self.schema))
            yield ordered_by_value(batch, self.schema, self._ranks) if self._order_by_value else batch

    def wakes_at(self) -> int:
        """At every tick, where it speaks then."""
        return MIN_INSTANT if self._ticks else super().wakes_at()

    def describe(self) -> Description:
        detail = "at every tick" if self._ticks else f"at the instants of {len(self.inputs) - 1} inputs"
        return Description(self.name, detail, {"rows": len(self._bag), "bytes": self._bag.nbytes})

    def synopses(self) -> tuple[Bag, ...]:
        return (self._bag,)
