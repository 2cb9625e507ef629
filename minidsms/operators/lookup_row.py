"""Lookup of one row: the elements of a stream beside the row that a relation of at most one has at their own instants.

An aggregate without GROUP BY is such a relation. Nothing is indexed: of the relation's changes up to an element's
instant the last one tells which row is there, for within an instant deletions come first.  docs/semantics R1, R2, S2.

Invariant: between slices nothing of the stream is held, and of the relation the row that it has at `progress`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.elements import AnyArray, Batch, Column, Int64Array, Schema, arrays_of_columns, columns_of_arrays
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue


class OneRow:
    """The row of a relation that has one or none.

    last: the change that made it so, of no instant. After a deletion none is there.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.last = Batch(np.zeros(1, np.int64), np.full(1, -1, np.int8), [Column.nulls(1, t) for t in schema.types])

    def __len__(self) -> int:
        return int(self.last.signs[0] > 0)

    def follow(self, changes: Batch) -> None:
        """Make the changes."""
        columns = changes.columns_at(range(changes.width), np.full(1, len(changes.ts) - 1))
        self.last = Batch(self.last.ts, changes.signs[-1:].copy(), columns)

    @property
    def nbytes(self) -> int:
        return sum(column.values.nbytes for column in self.last.columns)

    def arrays(self) -> dict[str, AnyArray]:
        return {"sign": self.last.signs.copy(), **arrays_of_columns(self.last.columns)}

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        self.last = Batch(self.last.ts, arrays["sign"].astype(np.int8), columns_of_arrays(arrays, len(self._schema)))

    def live_codes(self) -> Iterator[Int64Array]:
        yield from (self.last.column(i).words() for i in self._schema.coded)


class LookupRow(Operator):
    """columns: the (input, column) of each output column.  outer: elements that meet no row are there, too, with NULLs.

    It is called as `LookupJoin` is, in whose place it stands.
    """

    name = "LookupJoin"
    acts_on_time = False

    def __init__(
        self, stream: Queue, right: Queue, columns: Sequence[tuple[int, int]], schema: Schema, outer: bool = False
    ) -> None:
        super().__init__([stream, right], schema)
        self.name = "LeftLookupJoin" if outer else self.name
        self._columns = tuple(columns)
        self._outer = outer
        self._row = OneRow(right.schema)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        stream, changes = batches
        found = () if stream is None else self._found(stream, changes)
        if changes is not None:
            self._row.follow(changes)
        return found

    def _found(self, stream: Batch, changes: Batch | None) -> tuple[Batch, ...]:
        """The elements beside what they meet."""
        rows, at = self._row.last, np.zeros(len(stream.ts), np.int64)
        if changes is not None:
            at = changes.ts.searchsorted(stream.ts, side="right")
            if at.item(0):
                rows, at = changes, at - 1
            elif at.item(-1):
                rows = Batch.concat([rows, changes])
        is_there = rows.signs[at] > 0
        met = np.count_nonzero(is_there)
        ts, own = stream.ts, [c for i, c in self._columns if i == 0]
        if met == len(ts) or self._outer:
            left = [stream.column(c) for c in own]
        elif met:
            places = is_there.nonzero()[0]
            ts, at, left = ts[places], at[places], stream.columns_at(own, places)
        else:
            return ()
        right = [rows.column(c).take(at) for i, c in self._columns if i == 1]
        if met < len(ts):
            for column in right:
                column.values[~is_there] = 0
                column.valid = is_there if column.valid is None else column.valid & is_there
        sides = iter(left), iter(right)
        return (Batch(ts, None, [next(sides[i]) for i, _ in self._columns]),)

    def describe(self) -> Description:
        return Description(self.name, "every row", {"rows": len(self._row), "bytes": self._row.nbytes})

    def synopses(self) -> tuple[OneRow, ...]:
        """The relation's row."""
        return (self._row,)
