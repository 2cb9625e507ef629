"""Queues between operators: FIFO, bounded, carrying the progress of their producer.

Invariant: when `progress` is t, every element with ts <= t that will ever come has been put; what is put later is
later. Babu 2005, section 2.2.2; docs/design, "Queue".
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from minidsms.elements import MIN_INSTANT, Batch, Schema

if TYPE_CHECKING:
    from minidsms.operators.operator import Operator


class Queue:
    """A FIFO of batches between one producer and one consumer.

    bound: elements above which the producer must stop before its next batch; a batch is never split to fit.
    peak: the most elements it has held since somebody last set it back.  producer: the operator that fills it, once
    known.
    """

    __slots__ = ("_batches", "bound", "name", "peak", "producer", "progress", "schema", "size")

    def __init__(self, schema: Schema, bound: int, name: str = "") -> None:
        self.schema = schema
        self.bound = bound
        self.name = name
        self.size = 0
        self.peak = 0
        self.producer: Operator | None = None
        self.progress = MIN_INSTANT
        self._batches: deque[Batch] = deque()

    def put(self, batch: Batch) -> None:
        """Append elements; their ts are above `progress` and not below any put before."""
        if len(batch):
            self._batches.append(batch)
            self.size += len(batch)
            if self.size > self.peak:
                self.peak = self.size

    def first_ts(self) -> int | None:
        """The instant of the oldest element, or None."""
        return int(self._batches[0].ts[0]) if self._batches else None

    def batches(self) -> tuple[Batch, ...]:
        """What waits, oldest first (for tests, checkpoints and the dictionary's sweep)."""
        return tuple(self._batches)

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

    def take(self, until: int) -> Batch | None:
        """Remove and return all elements with ts <= until, or None when there are none."""
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
        result = Batch.concat(taken)
        self.size -= len(result)
        return result
