"""Unnest: a row for each element of a list, of streams and relations alike; NULL has as few elements as []."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from minidsms.elements import Batch, Column, Int64Array, Schema
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.values.dictionary import TextDictionary

_LARGEST_OUTPUT = 1 << 16
FEW = 64
"""Up to so many lists are read one by one, alike ones, too."""


class Unnest(Operator):
    """The last column of the input is a list; its elements stand there in the output."""

    name = "Unnest"
    is_stateless = True
    acts_on_time = False

    def __init__(self, input_: Queue, schema: Schema, texts: TextDictionary) -> None:
        super().__init__((input_,), schema)
        self._texts = texts
        self._element = schema.types[-1]
        self._list = self._element.list_type

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return ()
        if len(batch.ts) > FEW:
            return self._of_many(batch)
        values = self._values(batch.column(len(self.schema) - 1))
        lengths = [len(v) for v in values]
        if sum(lengths) > _LARGEST_OUTPUT:
            return self._of_many(batch)
        taken = np.arange(len(lengths)).repeat(lengths)
        return (self._with_elements(batch, taken, self._column(values)),) if len(taken) else ()

    def _of_many(self, batch: Batch) -> Iterable[Batch]:
        lists = batch.column(len(self.schema) - 1)
        rows = np.arange(len(batch)) if lists.valid is None else np.flatnonzero(lists.valid)
        codes, which = np.unique(lists.values[rows], return_inverse=True)
        values = self._values(Column(codes))
        lengths = np.array([len(v) for v in values], np.int64)
        elements = self._column(values)
        begins = np.cumsum(lengths) - lengths
        counts = lengths[which]
        ends = np.cumsum(counts)
        start = 0
        while start < len(rows):
            # One row at least, and as many as fit a batch.
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _LARGEST_OUTPUT, "right")))
            n = int(ends[stop - 1] - done)
            if n:
                here = slice(start, stop)
                within = np.arange(n) - np.repeat(ends[here] - counts[here] - done, counts[here])
                taken = np.repeat(rows[here], counts[here])
                yield self._with_elements(
                    batch, taken, elements.take(np.repeat(begins[which[here]], counts[here]) + within)
                )
            start = stop

    def _values(self, lists: Column) -> list[Any]:
        """The lists; NULL has no elements."""
        return [() if value is None else value for value in self._texts.values(lists, self._list)]

    def _column(self, values: Sequence[Any]) -> Column:
        return self._texts.column(list(chain.from_iterable(values)), self._element)

    def _with_elements(self, batch: Batch, rows: Int64Array, elements: Column) -> Batch:
        """The rows of the batch, each once for an element."""
        columns = [*(batch.column(i).take(rows) for i in range(len(self.schema) - 1)), elements]
        return Batch(batch.ts[rows], None if batch.sign is None else batch.sign[rows], columns)

    def describe(self) -> Description:
        return Description(self.name, self.schema.names[-1])
