"""The rows of a relation by partition, each partition in an order: by sort keys, then by value.

A row is a flat tuple that compares as it is sorted: its sort keys, its other values, its words as bytes, and behind
these, as they are the same in equal rows, the value of one column that is asked for. NULL is an object before or behind
all values; what is sorted downwards is turned round.

Invariant: a row stands in its partition as often as it is in the relation; equal rows are next to each other, and rows
that differ have different places (docs/semantics R6). No partition is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import neg
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.sorting import Descending, Few, Rows, sortable, with_room
from minidsms.elements import (
    AnyArray,
    Batch,
    Column,
    Int64Array,
    Schema,
    columns_of_words,
    row_words,
    words_width,
)
from minidsms.values.coded import digits_of

if TYPE_CHECKING:
    from minidsms.synopses.object_states import Texts  # loads kernels

_BY_VALUE = SortKey(nulls_first=True)
_ROW_BYTES, _COLUMN_BYTES, _PARTITION_BYTES = 150, 50, 300
"""About what a row takes, each of its columns, and a partition beside its rows."""

Partition = tuple[Any, ...]
Entry = tuple[Any, ...]
Keys = tuple[Any, ...]


class Beside:
    """What stands before all values (rank -1), or behind them."""

    __slots__ = ("rank",)

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __lt__(self, other: object) -> bool:
        return self.rank < (other.rank if isinstance(other, Beside) else 0)

    def __gt__(self, other: object) -> bool:
        return self.rank > (other.rank if isinstance(other, Beside) else 0)


NULL_FIRST, NULL_LAST, BEHIND = Beside(-1), Beside(1), Beside(2)


def behind(rows: Rows, keys: Keys) -> int:
    """The place behind the last row whose keys begin with these."""
    if rows and rows[-1][: len(keys)] == keys:
        return len(rows)
    return int(rows.bisect_left((*keys, BEHIND)))


class PartitionRows:
    """Rows of one schema, with multiplicity. partition: the columns whose values make one.  order: by which columns a
    partition is sorted, and how.  arg: the column whose value stands last in an entry; None for 1.  sums: a DECIMAL
    stands there as its digits.
    """

    def __init__(
        self,
        schema: Schema,
        partition: Sequence[int],
        order: Sequence[tuple[int, SortKey]],
        arg: int | None,
        sums: bool,
        texts: Texts,
    ) -> None:
        self.schema, self._types = schema, schema.types
        self._partition, self._order, self._arg, self._texts = partition, order, arg, texts
        self._has_digits = sums and arg is not None and schema.types[arg].kind == "DECIMAL"
        known = {*partition, *(column for column, _ in order)}
        self._others = [column for column in range(len(schema)) if column not in known]
        self._width = words_width(len(schema))
        self._row_type = np.dtype(f"V{8 * self._width}")
        self.row_nbytes = _ROW_BYTES + _COLUMN_BYTES * len(schema)
        self.partitions: dict[Partition, Rows] = {}
        self.n = 0

    def entries(self, batch: Batch) -> tuple[list[Partition], list[Entry]]:
        """Of the rows of a batch their partitions, and how they stand there."""
        columns = batch.columns
        values = [sortable(column, t, self._texts) for column, t in zip(columns, self._types)]
        keys = [self._standing(values[column], column, key) for column, key in self._order]
        others = [self._standing(values[column], column, _BY_VALUE) for column in self._others]
        words = row_words(columns).view(self._row_type).ravel().tolist()
        args = repeat(1) if self._arg is None else self._args(values[self._arg])
        partitions = list(zip(*(values[column] for column in self._partition))) or [()] * len(words)
        return partitions, list(zip(*keys, *others, words, args))

    def _standing(self, values: list[Any], column: int, key: SortKey) -> list[Any]:
        null = NULL_FIRST if key.nulls_first else NULL_LAST
        if key.descending:
            turned = Descending if self._types[column].is_coded else neg
            return [null if value is None else turned(value) for value in values]
        return [null if value is None else value for value in values] if None in values else values

    def _args(self, values: list[Any]) -> list[Any]:
        if not self._has_digits:
            return values
        return [value if value is None else digits_of(value) for value in values]

    def of(self, partition: Partition) -> Rows:
        """The rows of a partition, none if there is no such."""
        rows = self.partitions.get(partition)
        return Few() if rows is None else rows

    def add(self, partition: Partition, rows: Rows, entry: Entry, n: int) -> Rows:
        """Put a row n times into its partition, whose rows are these; returns where they are now."""
        if not rows:
            self.partitions[partition] = rows
        for _ in range(n):
            rows.add(entry)
        self.n += n
        roomy = with_room(rows)
        if roomy is not rows:
            self.partitions[partition] = roomy
        return roomy

    def drop(self, partition: Partition, rows: Rows, start: int, end: int) -> None:
        """Let go of the rows of a partition at these places."""
        del rows[start:end]
        self.n -= end - start
        if not rows:
            del self.partitions[partition]

    def columns_of(self, words: Sequence[bytes]) -> list[Column]:
        """Rows, given as the words of their entries, as columns."""
        return columns_of_words(self._joined(words), self.schema)

    def _joined(self, words: Iterable[bytes]) -> Int64Array:
        return np.frombuffer(b"".join(words), np.int64).reshape(-1, self._width)

    def _words(self) -> Int64Array:
        return self._joined(entry[-2] for entry in chain.from_iterable(self.partitions.values()))

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return self.n * self.row_nbytes + len(self.partitions) * _PARTITION_BYTES

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes held (0 stands for NULL)."""
        words = self._words()
        for i, type_ in enumerate(self.schema.types):
            if type_.is_coded:
                yield words[:, i]

    def arrays(self) -> dict[str, AnyArray]:
        """The state: rows as words, partition by partition, in order."""
        return {"words": self._words()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        words = state["words"].astype(np.int64)
        batch = Batch(np.zeros(len(words), np.int64), None, columns_of_words(words, self.schema))
        kept: dict[Partition, list[Entry]] = {}
        for partition, entry in zip(*self.entries(batch)):
            kept.setdefault(partition, []).append(entry)
        self.partitions = {partition: with_room(Few(sorted(rows))) for partition, rows in kept.items()}
        self.n = len(words)
