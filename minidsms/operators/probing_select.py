"""Select with probes: the elements of a stream for which, at their own instant, every filter holds, where filters are
conditions on the row and semi-joins with relations that change.

`S0 IN (SELECT .. FROM S1 [ROWS 10000])` is a filter as any other: it drops a tuple or lets it pass, and takes its place
in the adaptive order. The contents of the relations are brought up to every instant whatever the order is.

Invariant: an element is in the output if at its instant all conditions are TRUE, each relation of a semi-join has its
key, and none of an anti-join.  docs/semantics R1, R2, R4; Babu 2005, section 4.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.expressions.joint_program import Part
from minidsms.expressions.value import Frame
from minidsms.operators.adaptivity import Condition
from minidsms.operators.operator import Description, Operator
from minidsms.operators.select import Explain
from minidsms.queues import Queue
from minidsms.synopses.instant_counts import InstantCounts


class ProbeFilter:
    """A semi-join, or anti-join, as a filter. See `expressions.filters.TupleFilter`.

    keys: the key columns of the stream; none: any row of the relation will do.  instants: the number of the column that
    tells the row's instant.  of_nulls: the number of a column; only rows in which it is NULL ask, all others pass.
    """

    is_fixed = False
    is_thread_safe = False
    part: Part | None = None

    def __init__(
        self,
        text: str,
        keys: Sequence[int],
        counts: InstantCounts,
        anti: bool,
        instants: int,
        of_nulls: int | None = None,
    ) -> None:
        """counts: by the key columns of the relation, in the order of `keys`."""
        self.text = text
        self.counts = counts
        self._keys = tuple(keys)
        self._anti = anti
        self._instants = instants
        self._of_nulls = of_nulls

    def narrow(self, frame: Frame, rows: Int64Array | None, use_kernels: bool) -> tuple[Int64Array, Int64Array | None]:
        """The rows with (anti: without) a partner; a probe never fails."""
        part = frame if rows is None else frame.subset(rows)
        instants: Any = part.column(self._instants).values
        valid = None if self._of_nulls is None else part.column(self._of_nulls).valid
        if self._of_nulls is not None and valid is None:
            return np.arange(len(instants)) if rows is None else rows, None
        columns = [part.column(key).column() for key in self._keys]
        passes = self.counts.present(columns, instants) != self._anti
        kept = (passes if valid is None else passes | valid).nonzero()[0]
        return kept if rows is None else rows[kept], None


class Timed:
    """A batch with one column more: the instants."""

    __slots__ = ("_batch", "_width", "ts")

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._width = batch.width
        self.ts = batch.ts

    def __len__(self) -> int:
        return len(self.ts)

    def column(self, index: int) -> Column:
        """A column of the batch, or behind the last one the instants."""
        return Column(self.ts) if index == self._width else self._batch.column(index)


class ProbingSelect(Operator):
    """inputs: the stream, then the relation of each probe, whose columns are its keys."""

    name = "Select"
    acts_on_time = False

    def __init__(
        self,
        stream: Queue,
        relations: Sequence[Queue],
        condition: Condition,
        probes: Sequence[ProbeFilter],
        explain: Explain,
        detail: str,
    ) -> None:
        """condition: over all filters, the probes among them."""
        super().__init__((stream, *relations), stream.schema)
        self._condition = condition
        self._probes = tuple(probes)
        self._explain = explain
        self._detail = detail

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        stream = batches[0]
        for probe, changes in zip(self._probes, batches[1:]):
            probe.counts.begin(changes)
        kept: Int64Array | None = None
        if stream is not None:
            kept, failed = self._condition.run(Timed(stream))
            if failed is not None:
                self.fail(int(stream.ts[failed]), self._explain(stream, failed))
        for probe in self._probes:
            probe.counts.finish()
        if stream is not None:
            yield stream if kept is None else stream.take(kept)

    def adaptations(self) -> tuple[Any, ...]:
        return self._condition.adaptations()

    def synopses(self) -> tuple[InstantCounts, ...]:
        """What is probed."""
        return tuple(probe.counts for probe in self._probes)

    def describe(self) -> Description:
        counters = self.counters
        figures = {
            "selectivity": counters.elements_out / counters.elements_in if counters.elements_in else None,
            "keys": sum(len(probe.counts) for probe in self._probes),
            "bytes": sum(probe.counts.nbytes for probe in self._probes),
        }
        return Description(self.name, self._detail, figures, self._condition.describe())
