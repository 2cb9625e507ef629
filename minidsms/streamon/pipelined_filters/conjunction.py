"""A condition as Select runs it: pipelines of filters, one after the other.

A filter with a user function that asks to stay where it was written (`create_function(.., fixed=True)`) is a pipeline
of its own: what stands before it is evaluated before it, what stands behind it after it, and only in between filters
change places. Such a function is never called for a tuple that a filter written before it drops.

Invariant: neither orders nor the cut into chunks change which rows pass and which fail (docs/semantics R4, T5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import Attributes
from minidsms.expressions.filter_tests import has_kernels
from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.predicate import CHUNK, Tuples, chunk_of, settle
from minidsms.expressions.value import Frame
from minidsms.streamon.loop import Loop
from minidsms.streamon.pipelined_filters.pipeline import FilterPipeline
from minidsms.streamon.stream_monitor import StreaMon


class Conjunction:
    """The filters of one Select. operator: how the plan log names it.  attributes: of the tuples.
    See `operators.adaptivity.Condition`.
    """

    def __init__(
        self, filters: Sequence[TupleFilter], operator: str, streamon: StreaMon, attributes: Attributes | None = None
    ) -> None:
        self._pipelines: list[FilterPipeline] = []
        first = 0
        for part in _pipelines(filters):
            self._pipelines.append(FilterPipeline(part, operator, streamon, first, attributes))
            first += len(part)
        self._use_kernels = False

    def run(self, batch: Tuples) -> tuple[Int64Array | None, int | None]:
        n = len(batch.ts)
        if n == 1 and not self._pipelines[0].looks_ahead(1):
            # Nothing cuts one tuple, and no kernel is faster.
            rows, wrong = self._narrow(Frame(batch.column, 1), batch.ts.item(0), False)
            return (None if rows is None or len(rows) else rows), (None if wrong is None else 0)
        kept: list[Int64Array] = []
        count = 0
        start = 0
        while start < n:
            stop = start + self._limit(min(CHUNK, n - start))
            stop = self._before_change(batch, start, stop)
            use_kernels = self._use_kernels or self._has_kernels(stop - start)
            rows, wrong = self._narrow(chunk_of(batch, start, stop), batch.ts.item(start), use_kernels)
            if stop - start == n:
                return None if rows is None or len(rows) == n else rows, None if wrong is None else int(wrong[0])
            if rows is None or len(rows) == stop - start:
                count += stop - start
                kept.append(np.arange(start, stop))
            elif len(rows):
                count += len(rows)
                kept.append(rows + start if start else rows)
            if wrong is not None:
                return _joined(kept), start + int(wrong[0])
            start = stop
        return (None if count == n else _joined(kept)), None

    def _limit(self, tuples: int) -> int:
        for pipeline in self._pipelines:
            tuples = pipeline.adaptation.limit(tuples)
        return tuples

    def _before_change(self, batch: Tuples, start: int, stop: int) -> int:
        """Where to stop, that a change of what enters does not lie within the chunk, as far as a look ahead tells."""
        if not self._pipelines[0].looks_ahead(stop - start):
            return stop
        frame = chunk_of(batch, start, stop)
        return start + self._pipelines[0].part_before_change(frame, self._has_kernels(stop - start))

    def _narrow(self, frame: Frame, instant: int, use_kernels: bool) -> tuple[Int64Array | None, Int64Array | None]:
        """(the rows of a chunk that pass, those that count as failed), None for all and for none."""
        rows: Int64Array | None = None
        wrong: Int64Array | None = None
        for pipeline in self._pipelines:
            rows, failed = pipeline.run(frame, rows, instant, use_kernels)
            if failed is not None:
                wrong = failed if wrong is None else np.union1d(wrong, failed)
            if rows is not None and not len(rows):
                return rows, None
        return (rows, None) if wrong is None else settle(rows, wrong)

    def _has_kernels(self, tuples: int) -> bool:
        """Compiled tests are used when they are there, and loaded when these and earlier tuples are enough."""
        if not self._use_kernels:
            self._use_kernels = has_kernels(self._pipelines[0].executor.tuples + tuples)
        return self._use_kernels

    def adaptations(self) -> tuple[Loop[Any], ...]:
        """Of the pipelines that have an order to choose."""
        return tuple(p.adaptation for p in self._pipelines if len(p.executor.filters) > 1)

    def describe(self) -> tuple[str, ...]:
        return tuple(line for pipeline in self._pipelines for line in pipeline.describe())


def _pipelines(filters: Sequence[TupleFilter]) -> Iterator[list[TupleFilter]]:
    """The filters cut at those that must stay."""
    open_part: list[TupleFilter] = []
    for each in filters:
        if each.is_fixed:
            if open_part:
                yield open_part
            yield [each]
            open_part = []
        else:
            open_part.append(each)
    if open_part:
        yield open_part


def _joined(kept: Sequence[Int64Array]) -> Int64Array:
    if len(kept) == 1:
        return kept[0]
    return np.concatenate(kept) if kept else np.empty(0, np.int64)
