"""Constants: the join of a stream with the constants of queries that are alike but for these.

Queries whose plans differ in one filter over a stream run as one: every row comes once for each query whose filter it
passes, with the query's number as a last column, and what stands above keeps the queries apart by that number.
Chen et al. 2000 (NiagaraCQ: group signatures, the constant table); docs/sharing.md.

Invariant: a row comes with a query's number exactly if it arrived after the query was registered and its filter's
condition is TRUE. Numbers are never given twice, so rows of a query that has gone reach nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minidsms.counted import counted
from minidsms.elements import Batch, Column, Schema
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.screens.box import Box
from minidsms.screens.boxes import Boxes
from minidsms.screens.screening import LookUps, Screening

_PAIRS = 1 << 16
"""Rows that a batch put out has, about."""
_WORN = 64
"""Queries that have gone before their number is compared with those that were ever there."""


@dataclass(frozen=True)
class Constant:
    """What one query has of its own. number: its.  box: the rows it wants.  after: by stream (lower case) the arrival
    number of the first row that it sees.
    """

    number: int
    box: Box
    after: Mapping[str, int]


@runtime_checkable
class ByQuery(Protocol):
    """An operator that knows the queries it works for."""

    def admit(self, constant: Constant) -> None:
        """Work for one more query. Equal ones, registered at the same moment, have one number."""

    def dismiss(self, number: int) -> None:
        """A query of this number has gone."""

    def keep_only(self, number: int) -> None:
        """Work for no other number from now on; a query of it is to be admitted."""


class Constants(Operator):
    """See `ByQuery`. stream: whose rows come in.  family: the number of the queries' family."""

    name = "Constants"
    acts_on_time = False

    def __init__(self, input: Queue, stream: str, family: int, schema: Schema, screening: Screening) -> None:
        super().__init__((input,), schema)
        self.family = family
        self._stream = stream.lower()
        self._dictionary = screening.dictionary
        self._screening = screening
        self._boxes = Boxes(input.schema.types)
        self._constants: dict[int, tuple[Constant, int]] = {}
        self._readers: Counter[int] = Counter()
        self._numbers = np.zeros(64, np.int64)
        self._after = np.zeros(64, np.int64)
        self._seen_by_all = 0
        self._gone = 0
        self.is_alone = False
        """It has been copied for one query."""
        self._pairs_a_row = 1.0
        self._sequence = self._new_sequence()

    def _new_sequence(self) -> LookUps:
        return self._screening.look_ups(f"Constants over {self._stream}", self.schema.names)

    def admit(self, constant: Constant) -> None:
        self._readers[constant.number] += 1
        if constant.number in self._constants:
            return
        place = self._boxes.add(constant.box)
        self._constants[constant.number] = constant, place
        if place >= len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
            self._after = np.concatenate([self._after, np.zeros_like(self._after)])
        self._numbers[place] = constant.number
        self._after[place] = constant.after[self._stream]
        self._seen_by_all = max(self._seen_by_all, constant.after[self._stream])

    def dismiss(self, number: int) -> None:
        self._readers[number] -= 1
        if not self._readers[number]:
            del self._readers[number]
            self._boxes.remove(self._constants.pop(number)[1])
            self._gone += 1

    def keep_only(self, number: int) -> None:
        constant, _ = self._constants[number]
        self._boxes, self._constants = Boxes(self.inputs[0].schema.types), {}
        self.admit(constant)
        self._readers.clear()
        self._sequence = self._new_sequence()
        self.is_alone = True

    @property
    def is_worn(self) -> bool:
        """Most queries have gone; the operators above may hold more of them than of the others."""
        return self._gone > max(_WORN, len(self._constants))

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        (batch,) = batches
        if batch is None:
            return
        if self._boxes.settle():
            self._sequence.take(self._boxes.levels[0] if self._boxes.levels else None)
        start = 0
        while start < len(batch):
            room = self._sequence.limit(min(len(batch) - start, max(1, int(_PAIRS / self._pairs_a_row))))
            part = batch.slice(start, start + room)
            start += len(part)
            found = self._boxes.look_up(part, self._dictionary, self._sequence.passed)
            self._pairs_a_row = max(1.0, found.count / len(part))
            if found.count:
                yield self._joined(part, found.rows[: found.count].astype(np.int64), found.members[: found.count])

    def _joined(self, part: Batch, rows: np.ndarray, places: np.ndarray) -> Batch:
        if not self._boxes.finds_by_row:
            order = np.argsort(rows, kind="stable")
            rows, places = rows[order], places[order]
        assert part.seq is not None
        if part.seq[0] < self._seen_by_all:
            sees = part.seq[rows] >= self._after[places]
            rows, places = rows[sees], places[sees]
        columns = [*part.columns_at(range(part.width), rows), Column(self._numbers[places])]
        return Batch(part.ts[rows], None, columns, is_own=True)

    def adaptations(self) -> tuple[Any, ...]:
        return (self._sequence.adaptation,)

    def describe(self) -> Description:
        names = ", ".join(self.schema[c].name for c in sorted(self._boxes.columns))
        detail = f"of {counted(self._readers.total(), 'query', 'queries')}" + (f", by {names}" if names else "")
        return Description(self.name, detail, {"bytes": self._boxes.nbytes})


class Openings(Operator):
    """A row per query of NULLs and its number, at the first arrival in any of the streams that the query sees: what
    makes a group of a query that has no rows. streams: of the inputs.  number: the column of the number.
    See `ByQuery`.
    """

    name = "Openings"
    acts_on_time = False

    def __init__(self, inputs: Sequence[Queue], streams: Sequence[str], schema: Schema, number: int) -> None:
        super().__init__(inputs, schema)
        self._streams = [stream.lower() for stream in streams]
        self._number = number
        self._awaited: dict[int, Constant] = {}
        self._readers: Counter[int] = Counter()
        self._opened: set[int] = set()

    def admit(self, constant: Constant) -> None:
        self._readers[constant.number] += 1
        if constant.number not in self._opened:
            self._awaited[constant.number] = constant

    def dismiss(self, number: int) -> None:
        self._readers[number] -= 1
        if not self._readers[number]:
            del self._readers[number]
            self._awaited.pop(number, None)
            self._opened.discard(number)

    def keep_only(self, number: int) -> None:
        self._awaited = {n: c for n, c in self._awaited.items() if n == number}
        self._opened &= {number}
        self._readers.clear()

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        first: list[tuple[int, int]] = []
        for number, constant in self._awaited.items():
            instants = [
                int(batch.ts[at])
                for batch, stream in zip(batches, self._streams)
                if batch is not None and (at := _first_from(batch, constant.after[stream])) < len(batch)
            ]
            if instants:
                first.append((min(instants), number))
        if not first:
            return ()
        first.sort()
        for _, number in first:
            del self._awaited[number]
            self._opened.add(number)
        columns = [Column.nulls(len(first), type_) for type_ in self.schema.types]
        columns[self._number] = Column(np.array([number for _, number in first], np.int64))
        return (Batch(np.array([ts for ts, _ in first], np.int64), None, columns),)

    def describe(self) -> Description:
        return Description(self.name, f"of {counted(self._readers.total(), 'query', 'queries')}")


def _first_from(batch: Batch, after: int) -> int:
    """The position of the first row that has at least this arrival number."""
    assert batch.seq is not None
    return int(np.searchsorted(batch.seq, after))
