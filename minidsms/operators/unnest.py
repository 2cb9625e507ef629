"""Unnest: a row for each element of a list, of streams and relations alike; NULL has as few elements as []."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from minidsms.elements import Batch, Column, Schema, Type
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.values.coded import value_of

_LARGEST_OUTPUT = 1 << 16


class Texts(Protocol):
    """What it asks of the dictionary (`dictionary.TextDictionary`)."""

    def column(self, values: Sequence[Any], type_: Type) -> Column: ...

    def decode(self, column: Column) -> list[str | None]: ...


class Unnest(Operator):
    """The last column of the input is a list; its elements stand there in the output."""

    name = "Unnest"
    is_stateless = True
    acts_on_time = False

    def __init__(self, input_: Queue, schema: Schema, texts: Texts) -> None:
        super().__init__((input_,), schema)
        self._texts = texts

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        (batch,) = batches
        if batch is None:
            return
        last = len(self.schema) - 1
        lists = batch.column(last)
        rows = np.arange(len(batch)) if lists.valid is None else np.flatnonzero(lists.valid)
        codes, which = np.unique(lists.values[rows], return_inverse=True)
        type_ = self.schema.types[last]
        values = [value_of(text, type_.list_type) for text in self._texts.decode(Column(codes)) if text is not None]
        lengths = np.array([len(v) for v in values], np.int64)
        elements = self._texts.column(list(chain.from_iterable(values)), type_)
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
                column = elements.take(np.repeat(begins[which[here]], counts[here]) + within)
                columns = [*(batch.column(i).take(taken) for i in range(last)), column]
                yield Batch(batch.ts[taken], None if batch.sign is None else batch.sign[taken], columns)
            start = stop

    def describe(self) -> Description:
        return Description(self.name, self.schema.names[-1])
