"""Queues between operators: FIFO, bounded, carrying the progress of their producer.

Invariant: when `progress` is t, every element with ts <= t that will ever come has been put; what is put later is
later. Babu 2005, section 2.2.2; docs/design, "Queue".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from minidsms.elements import MIN_INSTANT, Batch, Schema

if TYPE_CHECKING:
    from minidsms.operators.operator import Operator

MOST_BESIDE = 8 + 8 + 1
"""Bytes of an element beside its columns, at most (`Batch.row_nbytes`)."""
LITTLE = 16
"""A slice, or a turn, takes one part in so many more than it should, which is not worth another."""
MAX_BYTES = 2**62
"""More than there are: no bound."""


class Queue:
    """A FIFO of batches between one producer and one consumer.

    bound, byte_bound: what it may hold, in elements and bytes (None: any). The producer keeps to them by `room`; only
    where the plan would stand still otherwise does it put one instant more.
    ample: up to so many elements there is room for one more, whatever they take.
    size: elements it holds.  is_full: no further one has room.  is_unread: the consumer takes no more.  peak: the most
    it has held since somebody last set it back.  producer: the operator that fills it, once known.
    """

    __slots__ = (
        "_batches",
        "ample",
        "bound",
        "byte_bound",
        "byte_limit",
        "is_full",
        "is_unread",
        "name",
        "peak",
        "producer",
        "progress",
        "schema",
        "size",
    )

    def __init__(self, schema: Schema, bound: int, name: str = "", byte_bound: int | None = None) -> None:
        self.schema = schema
        self.name = name
        self.size = 0
        self.peak = 0
        self.is_full = False
        self.is_unread = False
        self.producer: Operator | None = None
        self.progress = MIN_INSTANT
        self._batches: deque[Batch] = deque()
        self.limit(bound, byte_bound)

    @property
    def nbytes(self) -> int:
        """Bytes it holds."""
        return sum(len(b.ts) * b.row_nbytes for b in self._batches)

    def limit(self, bound: int, byte_bound: int | None = None) -> None:
        """Change the bounds; what it holds already stays."""
        self.bound, self.byte_bound = bound, byte_bound
        self.byte_limit = MAX_BYTES if byte_bound is None else byte_bound
        # No bytes need be counted.
        self.ample = min(bound, self.byte_limit // (MOST_BESIDE + 8 * len(self.schema))) - 1
        self._look()

    def has_room(self, batch: Batch) -> bool:
        """The whole batch fits."""
        size = self.size + len(batch.ts)
        if size <= self.ample:
            return True
        return size <= self.bound and self.nbytes + len(batch.ts) * batch.row_nbytes <= self.byte_limit

    def room(self, batch: Batch) -> int:
        """How many elements of a batch fit."""
        return max(0, min(self.bound - self.size, (self.byte_limit - self.nbytes) // batch.row_nbytes))

    def put(self, batch: Batch) -> None:
        """Append elements; their ts are above `progress` and not below any put before."""
        n = len(batch.ts)
        if n:
            self._append(batch, self.size + n)

    def offer(self, batch: Batch) -> bool:
        """Put a batch that is not empty where there is ample room for it; whether there was."""
        size = self.size + len(batch.ts)
        if size > self.ample:
            return False
        # As `_append`; written out, for it is done for every batch.
        self._batches.append(batch)
        self.size = size
        if size > self.peak:
            self.peak = size
        return True

    def _append(self, batch: Batch, size: int) -> None:
        """size: of all that is held then."""
        self._batches.append(batch)
        self.size = size
        if size > self.peak:
            self.peak = size
        self._look()

    def _look(self) -> None:
        """No room for one more like the last is no room."""
        row = self._batches[-1].row_nbytes if self._batches else 0
        self.is_full = self.size > self.ample and (self.size >= self.bound or self.nbytes + row > self.byte_limit)

    def give_up(self, is_unread: bool) -> None:
        """The consumer has failed: what waits, and what comes, is dropped, and there is room for all of it.

        is_unread: the producer need make no more; else it counts what it makes, as where it runs on another thread.
        """
        self._batches = deque(maxlen=0)
        self.limit(MAX_BYTES)
        self.size = 0
        if is_unread:
            self.ample = -1  # so that a producer asks what is the matter
        self.is_full, self.is_unread = False, is_unread

    def clear(self) -> None:
        """Give up what waits: nobody will take it."""
        self._batches.clear()
        self.size = 0
        self.is_full = False

    def first_ts(self) -> int | None:
        """The instant of the oldest element, or None."""
        return int(self._batches[0].ts[0]) if self._batches else None

    def cut(self, until: int, budget: int) -> int:
        """The greatest instant t <= until such that the elements with ts <= t are at most `budget`, or form a single
        instant.
        """
        if self.size <= budget:
            return until
        passed = 0
        for batch in self._batches:
            if passed + len(batch) > budget:
                at = int(batch.ts[budget - passed])
                if at > until:
                    return until
                first = int(self._batches[0].ts[0])
                return first if at <= first else at - 1
            passed += len(batch)
        return until

    def end_of_first(self, until: int) -> int:
        """The last instant of the first batch, where others wait behind it; else `until`."""
        if len(self._batches) > 1:
            last: int = self._batches[0].ts.item(-1)
            if last < min(until, self._batches[1].ts.item(0)):
                return last
        return until

    @staticmethod
    def _joined(batches: Sequence[Batch]) -> Batch:
        """Batches of one producer, one after the other: no two of them have a part in one instant each."""
        result = Batch.concat(batches)
        result.is_netted = all(batch.is_netted for batch in batches)
        return result

    def take(self, until: int) -> Batch | None:
        """Remove and return all elements with ts <= until, or None when there are none."""
        batches = self._batches
        if len(batches) == 1 and batches[0].ts.item(-1) <= until:
            # One batch waits, and it may go whole: nearly always so.
            self.size = 0
            self.is_full = False
            return batches.popleft()
        taken: list[Batch] = []
        while self._batches:
            batch = self._batches[0]
            if batch.ts[-1] <= until:
                taken.append(self._batches.popleft())
                continue
            stop = int(np.searchsorted(batch.ts, until, side="right"))
            if stop:
                taken.append(batch.slice(0, stop))
                self._batches[0] = batch.slice(stop, len(batch))
            break
        if not taken:
            return None
        if not self._batches:
            self.size = 0
            self.is_full = False
            return self._joined(taken)
        result = self._joined(taken)
        self.size -= len(result)
        self._look()
        return result
